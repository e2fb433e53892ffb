//! `/images`: the images and snapshots that VMs can boot.

use api_client::WithJson;
use api_client::clusterd::{Image, Snapshot};
use axum::Router;
use axum::response::Response;
use axum::routing::get;

use crate::page_request::AuthorizedUser;
use crate::problem::Result;
use crate::state::Console;

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/images", get(list))
}

/// `GET /images`: lists images and snapshots.
async fn list(person: AuthorizedUser) -> Result<Response> {
    let api = person.clusterd()?;
    let (images, snapshots) = tokio::join!(
        api.all::<WithJson<Image>>("/bedplate/v1/images"),
        api.first::<WithJson<Snapshot>>("/bedplate/v1/snapshots", 1000)
    );
    let page = person.page("images.html", "Images").under("images");
    person.show(page.put("images", images?).put("snapshots", snapshots?))
}
