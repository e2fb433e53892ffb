//! `/bedplate/v1/clusters/{cluster}/ledger`: the cloud objects of a cluster, and how to forget them when clusterd cannot delete them any
//! more.

use axum::response::Response;
use cluster_core::{DesiredState, LedgerEntry};
use cluster_store::{PagePart, PageRows};
use http::StatusCode;
use openstack_api::{
    ApiError, JsonShape, ListPart, Listing, PathParam, RequiredAccess, Route, Routes, Shaped, Time,
    json_field, shaped,
};
use serde::Serialize;
use tracing::warn;

use crate::app::App;
use crate::error::{Error, Result};
use crate::request::Request;

pub(super) fn routes() -> Routes<App> {
    let list = Route::get("List the cloud objects of a cluster", list).returns(shape());
    let forget = Route::delete("Forget the cloud objects of a deleted cluster", forget)
        .needs(RequiredAccess::Administer)
        .answers(StatusCode::OK)
        .returns(shape())
        .refuses([StatusCode::CONFLICT, StatusCode::SERVICE_UNAVAILABLE]);
    Routes::new("bedplate").at("/bedplate/v1/clusters/{cluster}/ledger", [list, forget])
}

/// The response schema of the ledger.
fn shape() -> JsonShape {
    JsonShape::object([("ledger", JsonShape::list(Shown::shape()))])
}

/// `GET /bedplate/v1/clusters/{cluster}/ledger`: the cloud objects of a cluster.
async fn list(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    let cluster = request.cluster(&ident).await?.id;
    let store = request.app.store.clone();
    openstack_api::list(Listing::whole("ledger"), move |asked| {
        let store = store.clone();
        Box::pin(async move {
            let part = PagePart { after: asked.after, bytes: asked.bytes };
            let PageRows { found, more } =
                store.ledger_part_of(cluster, asked.elements, part).await?;
            Ok::<_, Error>(ListPart::of(&found, |entry| entry.id, shown, more)?)
        })
    })
    .await
}

/// `DELETE /bedplate/v1/clusters/{cluster}/ledger`: forgets the cloud objects of a cluster that is being deleted, in a project that
/// clusterd has lost access to, such as a deleted project.
///
/// Sends nothing to the cloud. The response lists the objects that may be left there, which the caller has to remove. With an empty ledger
/// the conductor removes the cluster.
async fn forget(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    let cluster = request.cluster(&ident).await?;
    if cluster.desire != DesiredState::Gone {
        let why = "the cluster is not being deleted: delete it first, and forget its cloud objects only if the deletion cannot finish";
        return Err(ApiError::conflict(why).into());
    }
    if !request.app.conductor.has_no_access(&cluster).await? {
        let why =
            "clusterd has access to the cluster's project and deletes its cloud objects itself";
        return Err(ApiError::conflict(why).into());
    }
    let left = request.app.store.forget_ledger(&cluster).await?;
    warn!(cluster.id = %cluster.id, "forgot {} cloud objects of cluster {}: those that still exist have to be deleted \
                                     by hand", left.len(), cluster.id);
    request.app.conductor.wake(cluster.id);
    Ok(json_field(StatusCode::OK, "ledger", &left.iter().map(shown).collect::<Vec<_>>()))
}

shaped! {
    #[derive(Serialize)]
    struct Shown<'a> {
        object: &'a str,
        name: &'a str,
        cloud_id: Option<&'a str>,
        state: &'static str,
        created_at: Time,
        updated_at: Option<Time>,
    }
}

fn shown(entry: &LedgerEntry) -> Shown<'_> {
    Shown {
        object: &entry.kind,
        name: &entry.name,
        cloud_id: entry.cloud_id.as_deref(),
        state: entry.state.as_str(),
        created_at: Time(entry.created_at),
        updated_at: Time::some(entry.updated_at),
    }
}
