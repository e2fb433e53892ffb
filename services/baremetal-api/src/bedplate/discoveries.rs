//! `/bedplate/v1/discoveries`: machines that requested a network boot and are not enrolled.

use axum::response::Response;
use baremetal_core::Discovery;
use baremetal_store::{PagePart, PageRows};
use hardware::MacAddress;
use http::StatusCode;
use openstack_api::{
    ApiError, JsonShape, ListPart, Listing, PathParam, Route, Routes, Shaped, Time, shaped,
};
use serde::Serialize;
use serde_json::Value;

use crate::app::App;
use crate::error::Error;
use crate::request::Request;

/// The routes of discoveries.
pub(crate) fn routes() -> Routes<App> {
    let list = Route::get("List discovered machines", list);
    let forget = Route::delete("Delete a discovered machine", forget);
    let found = JsonShape::list(Shown::shape());
    let list = list.returns(JsonShape::object([("discoveries", found)]));
    Routes::new("bedplate")
        .at("/bedplate/v1/discoveries", [list])
        .at("/bedplate/v1/discoveries/{mac}", [forget.answers(StatusCode::NO_CONTENT)])
}

shaped! {
    #[derive(Serialize)]
    struct Shown<'a> {
        mac: MacAddress = JsonShape::text(),
        first_seen_at: Time,
        last_seen_at: Time,
        data: Option<&'a Value> = JsonShape::anything(),
    }
}

/// `GET /bedplate/v1/discoveries`: lists discovered machines.
async fn list(Request { app, .. }: Request) -> Result<Response, Error> {
    let store = app.store.clone();
    openstack_api::list(Listing::whole("discoveries"), move |asked| {
        let store = store.clone();
        Box::pin(async move {
            let part = PagePart { after: asked.after, bytes: asked.bytes };
            let PageRows { found, more } =
                store.list_discoveries_part(asked.elements, part).await?;
            Ok::<_, Error>(ListPart::of(&found, |found| found.mac, shown, more)?)
        })
    })
    .await
}

fn shown(found: &Discovery) -> Shown<'_> {
    Shown {
        mac: found.mac,
        first_seen_at: Time(found.first_seen_at),
        last_seen_at: Time(found.last_seen_at),
        data: found.data.as_ref(),
    }
}

/// `DELETE /bedplate/v1/discoveries/{mac}`: deletes a discovered machine from the list.
async fn forget(
    Request { app, .. }: Request,
    PathParam(mac): PathParam<String>,
) -> Result<StatusCode, Error> {
    let mac = mac.parse().map_err(|why| ApiError::bad_field("mac", why))?;
    app.store.delete_discovery(mac).await?;
    Ok(StatusCode::NO_CONTENT)
}
