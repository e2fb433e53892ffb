//! Pages of what the store holds, written part by part.

use axum::response::Response;
use cluster_core::Page;
use cluster_store::{PagePart, Position};
use openstack_api::{Listing, Origin, PartFuture, PartRequest, Query, next_link};

use crate::app::App;
use crate::error::Error;

/// Answers with one page of a list, which `read` reads part by part.
pub(crate) async fn list_of<Sort, F>(
    name: &'static str,
    page: &Page<Sort>,
    (app, origin, path, query): (&App, &Origin, &str, &Query),
    mut read: F,
) -> Result<Response, Error>
where
    Sort: Clone + Send + 'static,
    F: FnMut(PagePart, Page<Sort>) -> PartFuture<Position, Error> + Send + 'static,
{
    let (origin, path, query) = (origin.clone(), path.to_owned(), query.clone());
    let limit = page.limit;
    let listing = Listing {
        name,
        limit,
        bytes: app.settings.limits.page.get(),
        next: Some(Box::new(move |last| next_link(&origin, &path, &query, limit, last))),
    };
    let page = page.clone();
    openstack_api::list(listing, move |asked: PartRequest<Position>| {
        let part = PagePart { after: asked.after, bytes: asked.bytes };
        read(part, Page { limit: asked.elements, ..page.clone() })
    })
    .await
}
