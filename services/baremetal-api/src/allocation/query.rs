//! The query parameters of a list of allocations.

use baremetal_core::{AllocationFilter, AllocationSort};
use http::StatusCode;
use openstack_api::{ApiError, Caller, Microversion, Query};

use super::field::Field;
use crate::app::App;
use crate::error::Error;
use crate::field::FieldSet;
use crate::microversion as since;

/// The query parameters of a list of allocations.
pub(crate) const KNOWN: [&str; 9] = [
    "limit",
    "marker",
    "sort_key",
    "sort_dir",
    "fields",
    "node",
    "resource_class",
    "state",
    "owner",
];

/// The fields to show, as requested by `fields`.
pub(crate) fn shown(query: &mut Query, asked: Microversion) -> Result<FieldSet<Field>, ApiError> {
    match query.take("fields") {
        Some(raw) => FieldSet::named(&raw, asked),
        None => Ok(FieldSet::all(asked)),
    }
}

/// Removes the filter parameters from `query` and returns the filter.
pub(crate) async fn filter(
    app: &App,
    caller: &Caller,
    query: &mut Query,
    asked: Microversion,
) -> Result<AllocationFilter, Error> {
    let mut filter = AllocationFilter::default();
    if let Some(ident) = query.take("node") {
        let node = app.node(caller, asked, &ident).await;
        filter.node = Some(node.map_err(in_body("node"))?.id);
    }
    filter.resource_class = query.take("resource_class");
    if let Some(word) = query.take("state") {
        filter.state = Some(word.parse().map_err(|why| ApiError::bad_field("state", why))?);
    }
    if let Some(owner) = query.take("owner") {
        asked.need(since::ALLOCATION_OWNER, "owner")?;
        filter.owner = Some(owner);
    }
    Ok(filter)
}

/// Parses the sort key.
pub(crate) fn sort(key: Option<&str>) -> Result<AllocationSort, ApiError> {
    match key {
        None | Some("id" | "created_at") => Ok(AllocationSort::CreatedAt),
        Some("uuid") => Ok(AllocationSort::Id),
        Some("name") => Ok(AllocationSort::Name),
        Some("state") => Ok(AllocationSort::State),
        Some("resource_class") => Ok(AllocationSort::ResourceClass),
        Some("owner") => Ok(AllocationSort::Owner),
        Some("updated_at") => Ok(AllocationSort::UpdatedAt),
        Some(key) => {
            let key: String = key.chars().take(64).collect();
            let problem = format!("allocations cannot be sorted by {key:?}");
            Err(ApiError::bad_field("sort_key", problem))
        }
    }
}

/// Turns 404 into 400: the path of the request exists, but a field of its body names something that does not.
pub(super) fn in_body(field: &'static str) -> impl Fn(Error) -> ApiError {
    move |why| match ApiError::from(why) {
        why if why.status == StatusCode::NOT_FOUND => ApiError::bad_field(field, why.message),
        why => why,
    }
}
