//! Pages of what the store holds, written part by part.

use axum::response::Response;
use baremetal_core::Page;
use baremetal_store::{PagePart, Position};
use openstack_api::{Listing, Origin, PartFuture, PartRequest, Query, next_link};

use crate::app::App;
use crate::error::{Error, Result};

/// Answers with one page of a list, which `read` reads part by part.
pub(crate) async fn list_of<Sort, F>(
    name: &'static str,
    page: &Page<Sort>,
    at: (&App, &Origin, &str, &Query),
    mut read: F,
) -> Result<Response>
where
    Sort: Clone + Send + 'static,
    F: FnMut(PagePart, Page<Sort>) -> PartFuture<Position, Error> + Send + 'static,
{
    let page = page.clone();
    parts_of(name, page.limit, at, move |asked: PartRequest<Position>| {
        let part = PagePart { after: asked.after, bytes: asked.bytes };
        read(part, Page { limit: asked.elements, ..page.clone() })
    })
    .await
}

/// The same of a list whose order the caller cannot choose.
pub(crate) async fn parts_of<P, F>(
    name: &'static str,
    limit: u32,
    (app, origin, path, query): (&App, &Origin, &str, &Query),
    read: F,
) -> Result<Response>
where
    P: Send + 'static,
    F: FnMut(PartRequest<P>) -> PartFuture<P, Error> + Send + 'static,
{
    let (origin, path, query) = (origin.clone(), path.to_owned(), query.clone());
    let listing = Listing {
        name,
        limit,
        bytes: app.settings.api.limits.page.get(),
        next: Some(Box::new(move |last| next_link(&origin, &path, &query, limit, last))),
    };
    openstack_api::list(listing, read).await
}
