//! Pages of what the store holds, written part by part.

use axum::response::Response;
use cluster_core::Page;
use cluster_store::{PagePart, Position};
use openstack_api::{
    ApiError, Direction, Listing, Origin, Paging, PartFuture, PartRequest, Query, next_link,
};

use crate::app::App;
use crate::error::{Error, Result};
use crate::field::{Field, Resource};

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
    let (last, others) = keys.split_last().unwrap_or((&default, &[]));
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
