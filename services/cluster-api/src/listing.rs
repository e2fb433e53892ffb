//! Pages of what the store holds, written part by part.

use axum::response::Response;
use cluster_core::Page;
use cluster_store::{PagePart, Position};
use http::StatusCode;
use openstack_api::{
    ApiError, Direction, ListRequest, Listing, Origin, Paging, PartFuture, PartRequest, Query,
    json, next_link,
};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::app::App;
use crate::error::{Error, Result};
use crate::field::{Field, Resource};

/// The keys by which a list in memory is sorted, and the field that names its elements.
pub(crate) struct MemoryList {
    pub(crate) name: &'static str,
    pub(crate) marker: &'static str,
    pub(crate) keys: &'static [&'static str],
}

/// The query parameters of a list.
pub(crate) const SORTED: [&str; 4] = ["limit", "marker", "sort_key", "sort_dir"];

/// Reads the page that a query requests of resources, which are sorted by `default` if the caller names no key.
pub(crate) fn page_of<R: Resource>(
    query: &Query,
    default: &str,
) -> Result<Page<R::Sort>, ApiError> {
    let mut rest = query.clone();
    let paging = Paging::take(&mut rest)?;
    rest.finish()?;
    // Magnum's `id` counts the resources as they are created.
    let key =
        paging.sort_key.as_deref().map_or(default, |key| if key == "id" { default } else { key });
    let field = Field::<R>::find(key);
    let sort = field.and_then(|field| field.sort).ok_or_else(|| unsorted::<R>(default))?;
    let descending = paging.direction == Direction::Descending;
    Ok(Page { limit: paging.limit, marker: paging.marker, sort, descending })
}

/// The refusal of a key by which no list is sorted.
fn unsorted<R: Resource>(default: &str) -> ApiError {
    let keys = R::FIELDS.iter().filter(|field| field.sort.is_some()).map(|field| field.name);
    let keys: Vec<&str> = [default].into_iter().chain(keys.filter(|key| *key != default)).collect();
    no_key(&keys)
}

fn no_key(keys: &[&str]) -> ApiError {
    let (last, others) = keys.split_last().unwrap_or((&"id", &[]));
    ApiError::bad_field("sort_key", format!("must be {} or {last}", others.join(", ")))
}

/// Answers with one page of a list, which `read` reads part by part.
pub(crate) async fn list_of<Sort, F>(
    name: &'static str,
    page: &Page<Sort>,
    (app, origin, path, query): (&App, &Origin, &str, &Query),
    mut read: F,
) -> Result<Response>
where
    Sort: Clone + Send + 'static,
    F: FnMut(PagePart, Page<Sort>) -> PartFuture<Position, Error> + Send + 'static,
{
    let (origin, path, query) = (origin.clone(), path.to_owned(), query.clone());
    let limit = page.limit;
    let listing = Listing {
        name,
        limit,
        bytes: app.settings.api.limits.page.get(),
        next: Some(Box::new(move |last| next_link(&origin, &path, &query, limit, last))),
    };
    let page = page.clone();
    openstack_api::list(listing, move |asked: PartRequest<Position>| {
        let part = PagePart { after: asked.after, bytes: asked.bytes };
        read(part, Page { limit: asked.elements, ..page.clone() })
    })
    .await
}

impl MemoryList {
    /// Answers with the page that `paging` requests of `rows`, a list that is short enough for the memory. The rows come in the order of
    /// Magnum's `id`, which counts them as they are created.
    pub(crate) fn page<T: Serialize>(
        &self,
        rows: &[T],
        (paging, asked): (&Paging, &ListRequest),
    ) -> Result<Response> {
        let rows: std::result::Result<Vec<Value>, _> =
            rows.iter().map(serde_json::to_value).collect();
        let mut rows =
            rows.map_err(|why| ApiError::broken(format!("cannot serialize the answer: {why}")))?;
        match paging.sort_key.as_deref() {
            None | Some("id") => {}
            Some(key) if self.keys.contains(&key) => {
                rows.sort_by(|one, other| rank(&one[key]).cmp(&rank(&other[key])));
            }
            Some(_) => return Err(no_key(self.keys).into()),
        }
        if paging.direction == Direction::Descending {
            rows.reverse();
        }
        let mut page = rows.split_off(self.after(&rows, paging)?);
        let limit = usize::try_from(paging.limit).unwrap_or(usize::MAX);
        let has_more = page.len() > limit;
        page.truncate(limit);
        let mut body = Map::new();
        if let Some(last) = page.last().filter(|_| has_more) {
            let last = last[self.marker].as_str().unwrap_or_default();
            let next = next_link(&asked.origin, &asked.path, &asked.query, paging.limit, last);
            body.insert("next".to_owned(), Value::String(next));
        }
        body.insert(self.name.to_owned(), Value::Array(page));
        Ok(json(StatusCode::OK, &Value::Object(body)))
    }

    /// The index of the first row of the page.
    fn after(&self, rows: &[Value], paging: &Paging) -> Result<usize, ApiError> {
        let Some(marker) = paging.marker else { return Ok(0) };
        let marker = marker.to_string();
        let found = rows.iter().position(|row| row[self.marker] == marker.as_str());
        let none = || ApiError::bad_field("marker", format!("the list has no {marker}"));
        found.map(|at| at + 1).ok_or_else(none)
    }
}

/// The order of the values of a field: null, then numbers, then texts.
fn rank(value: &Value) -> (bool, i64, &str) {
    match value {
        Value::Null | Value::Array(_) | Value::Object(_) => (false, i64::MIN, ""),
        Value::Bool(is) => (false, i64::from(*is), ""),
        Value::Number(number) => (false, number.as_i64().unwrap_or(i64::MAX), ""),
        Value::String(text) => (true, 0, text),
    }
}
