//! The query parameters of a list of ports.

use baremetal_core::{PortFilter, PortSort};
use openstack_api::{ApiError, Caller, Microversion, Query, flag};
use serde_json::Value;
use uuid::Uuid;

use super::{Field, write};
use crate::app::App;
use crate::error::Error;
use crate::field::FieldSet;
use crate::microversion as since;

/// The query parameters of a list of ports.
#[rustfmt::skip]
pub(crate) const KNOWN: [&str; 10] = ["limit", "marker", "sort_key", "sort_dir", "fields", "detail", "address", "node",
    "node_uuid", "portgroup"];

/// How many fields of a port a list shows by default.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DetailLevel {
    /// For `/v1/ports`.
    Brief,
    /// For `/v1/ports/detail`.
    Detail,
}

/// The fields to show, as requested by `fields` and `detail`.
pub(crate) fn shown(
    query: &mut Query,
    extent: DetailLevel,
    asked: Microversion,
) -> Result<FieldSet<Field>, ApiError> {
    let detail = match query.take("detail") {
        None => extent == DetailLevel::Detail,
        Some(raw) => {
            asked.need(since::DETAIL_QUERY, "detail")?;
            flag("detail", &raw)? || extent == DetailLevel::Detail
        }
    };
    match query.take("fields") {
        Some(_) if detail => {
            Err(ApiError::bad_field("fields", "cannot be used together with detail"))
        }
        Some(raw) => {
            asked.need(since::FIELDS, "fields")?;
            FieldSet::named(&raw, asked)
        }
        None if detail => Ok(FieldSet::all(asked)),
        None => Ok(FieldSet::brief(asked)),
    }
}

/// Removes the filter parameters from `query` and returns the filter.
pub(crate) async fn filter(
    app: &App,
    caller: &Caller,
    query: &mut Query,
    asked: Microversion,
) -> Result<PortFilter, Error> {
    let mut filter = PortFilter::default();
    if let Some(raw) = query.take("address") {
        let addresses = raw.split(',').map(|raw| write::address(Value::from(raw.trim())));
        filter.addresses = addresses.collect::<Result<_, ApiError>>()?;
    }
    if let Some(ident) = query.take("node") {
        filter.node = Some(app.node(caller, asked, &ident).await?.id);
    }
    if let Some(raw) = query.take("node_uuid") {
        let id = raw.parse().map_err(|_| ApiError::bad_field("node_uuid", "must be a UUID"))?;
        filter.node = Some(id);
    }
    if let Some(raw) = query.take("portgroup") {
        asked.need(since::PORTGROUP_FIELDS, "portgroup")?;
        let missing = |_| ApiError::not_found("port group not found");
        filter.portgroup = Some(Uuid::parse_str(&raw).map_err(missing)?);
    }
    Ok(filter)
}

/// Parses the sort key.
pub(crate) fn sort(key: Option<&str>) -> Result<PortSort, ApiError> {
    match key {
        None | Some("id" | "created_at") => Ok(PortSort::CreatedAt),
        Some("uuid") => Ok(PortSort::Id),
        Some("address") => Ok(PortSort::Address),
        Some("updated_at") => Ok(PortSort::UpdatedAt),
        Some(key) => {
            let key: String = key.chars().take(64).collect();
            let problem = format!("ports cannot be sorted by {key:?}");
            Err(ApiError::bad_field("sort_key", problem))
        }
    }
}
