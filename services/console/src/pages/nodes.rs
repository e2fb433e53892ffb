//! `/nodes`: lists nodes page by page, optionally of one state.

use api_client::WithJson;
use api_client::baremetald::Node;
use axum::Router;
use axum::extract::Query;
use axum::response::Response;
use axum::routing::get;
use serde::Deserialize;

use crate::api::encoded;
use crate::page_request::AuthorizedUser;
use crate::problem::Result;
use crate::state::Console;

/// The number of nodes on a page.
const SHOWN: usize = 100;

/// The states that the list can be filtered by, in the order of a node's life. States that baremetald does not use are left out.
const STATES: [&str; 30] = [
    "enroll",
    "verifying",
    "manageable",
    "inspecting",
    "inspect wait",
    "inspect failed",
    "cleaning",
    "clean wait",
    "clean failed",
    "clean hold",
    "available",
    "deploying",
    "wait call-back",
    "deploy failed",
    "deploy hold",
    "active",
    "servicing",
    "service wait",
    "service failed",
    "service hold",
    "rescuing",
    "rescue wait",
    "rescue",
    "rescue failed",
    "unrescuing",
    "unrescue failed",
    "deleting",
    "error",
    "adopting",
    "adopt failed",
];

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/nodes", get(list))
}

#[derive(Deserialize)]
struct ListQuery {
    #[serde(default)]
    state: String,
    #[serde(default)]
    marker: String,
    #[serde(default)]
    maintenance: String,
}

/// `GET /nodes`: lists nodes.
async fn list(person: AuthorizedUser, Query(wanted): Query<ListQuery>) -> Result<Response> {
    let fields = "uuid,name,provision_state,power_state,maintenance,resource_class,lessee,last_error,provision_updated_at";
    let mut path = format!("/v1/nodes?limit={SHOWN}&fields={fields}");
    for (name, value) in [
        ("provision_state", &wanted.state),
        ("marker", &wanted.marker),
        ("maintenance", &wanted.maintenance),
    ] {
        if !value.is_empty() {
            path = format!("{path}&{name}={}", encoded(value));
        }
    }
    let (nodes, has_more) = person.baremetald()?.page::<WithJson<Node>>(&path).await?;
    let next = nodes.last().filter(|_| has_more).map(|last| {
        format!(
            "/nodes?state={}&maintenance={}&marker={}",
            encoded(&wanted.state),
            encoded(&wanted.maintenance),
            encoded(last.id())
        )
    });
    let page = person.page("nodes.html", "Nodes").under("nodes").live();
    let page = page
        .put("nodes", nodes)
        .put("next", next)
        .put("states", STATES)
        .put("state", &wanted.state);
    person.show(page.put("is_first", wanted.marker.is_empty()))
}
