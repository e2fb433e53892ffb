//! Lists of what there is none of here, because clients look before they leap.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use openstack_api::{Caller, Handle, Microversion, Routes, Segment, json};
use serde_json::{Map, Value};

use crate::app::App;
use crate::error::Error;
use crate::microversion as since;

/// A path, the key of its list, and the version it came with.
type Empty = (&'static str, &'static str, Microversion);

/// Lists of their own.
const LISTS: [Empty; 9] = [
    ("/v1/chassis", "chassis", since::MINIMUM),
    ("/v1/portgroups", "portgroups", since::PORTGROUPS),
    ("/v1/portgroups/detail", "portgroups", since::PORTGROUPS),
    ("/v1/volume/connectors", "connectors", since::VOLUME),
    ("/v1/volume/targets", "targets", since::VOLUME),
    ("/v1/allocations", "allocations", since::ALLOCATIONS),
    ("/v1/deploy_templates", "deploy_templates", since::DEPLOY_TEMPLATES),
    ("/v1/runbooks", "runbooks", since::RUNBOOKS),
    ("/v1/inspection_rules", "inspection_rules", since::INSPECTION_RULES),
];

/// Lists of a node.
const NODE_LISTS: [Empty; 5] = [
    ("/v1/nodes/{node}/portgroups", "portgroups", since::PORTGROUP_FIELDS),
    ("/v1/nodes/{node}/volume/connectors", "connectors", since::VOLUME),
    ("/v1/nodes/{node}/volume/targets", "targets", since::VOLUME),
    ("/v1/nodes/{node}/bios", "bios", since::BIOS),
    ("/v1/nodes/{node}/firmware", "firmware", since::FIRMWARE),
];

/// What is answered here.
pub(crate) fn routes() -> Routes<App> {
    let mut routes = Routes::new("nothing");
    for (path, key, came) in LISTS {
        let list = move |_caller: Caller| async move { nothing(key) };
        routes = routes.at(path, [Handle::get("List nothing", list).since(came)]);
    }
    for (path, key, came) in NODE_LISTS {
        let list =
            move |caller: Caller, app: State<App>, asked: Microversion, ident: Segment<String>| {
                of_node(caller, app, asked, ident, key)
            };
        routes = routes.at(path, [Handle::get("List nothing", list).since(came)]);
    }
    routes
}

async fn of_node(
    _caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    Segment(ident): Segment<String>,
    key: &'static str,
) -> Result<Response, Error> {
    app.node(asked, &ident).await?;
    Ok(nothing(key))
}

fn nothing(key: &str) -> Response {
    let list = (key.to_owned(), Value::Array(Vec::new()));
    json(StatusCode::OK, &Map::from_iter([list]))
}
