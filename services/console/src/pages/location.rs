//! `/where`: finds the location of a resource: rack, node, host, server, and the cluster or VM of the server.

use std::collections::{BTreeMap, BTreeSet};

use api_client::WithJson;
use api_client::baremetald::{Explanation, Node};
use api_client::clusterd::{Place, Places};
use axum::Router;
use axum::extract::Query;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use futures::future::join_all;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::api::{Api, segment};
use crate::page_request::AuthorizedUser;
use crate::problem::{Problem, Result};
use crate::state::Console;

/// The maximum number of hosts whose nodes are looked up.
const HOSTS: usize = 40;

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/where", get(find))
}

#[derive(Deserialize)]
struct LocationQuery {
    #[serde(default)]
    resource: String,
}

/// A node that is a compute host of the cloud.
#[derive(Clone, Debug, Serialize)]
pub(super) struct HostNode {
    uuid: String,
    name: String,
    state: String,
    rack: Option<String>,
    position: Option<u64>,
    host: Option<String>,
}

/// `GET /where?resource=`: redirects to the page of a rack, node or host, or shows the locations of a server, cluster or VM.
async fn find(person: AuthorizedUser, Query(wanted): Query<LocationQuery>) -> Result<Response> {
    let resource = wanted.resource.trim();
    let page = person.page("where.html", "Location").under("hosts");
    let page = page.put("resource", resource).put("rows", Vec::<Row>::new()).put("is_asked", false);
    if resource.is_empty() {
        return person.show(page);
    }
    let name = segment(resource)?;
    let machines = person.baremetald()?;
    let rack = format!("/bedplate/v1/racks/{name}");
    let (rack, node) =
        tokio::join!(machines.find::<IgnoredAny>(&rack), of_node(&machines, resource));
    if rack?.is_some() {
        return Ok(Redirect::to(&format!("/racks/{name}")).into_response());
    }
    if let Some(node) = node? {
        // A host can have the same name as its node; the page of the host shows both.
        let to = match &node.host {
            Some(host) => format!("/hosts/{}", segment(host)?),
            None => format!("/nodes/{}", segment(&node.uuid)?),
        };
        return Ok(Redirect::to(&to).into_response());
    }
    let clusters = person.clusterd()?;
    let (host, places) =
        (format!("/bedplate/v1/hosts/{name}"), format!("/bedplate/v1/places/{name}"));
    if clusters.find::<IgnoredAny>(&host).await?.is_some() {
        return Ok(Redirect::to(&format!("/hosts/{name}")).into_response());
    }
    let Places { places } = clusters.get(&places).await?;
    let hosts: BTreeSet<&str> = places.iter().filter_map(|it| it.host.as_deref()).collect();
    let hosts: Vec<&str> = hosts.into_iter().take(HOSTS).collect();
    let nodes = join_all(hosts.iter().map(|host| node_of_host(&person, host))).await;
    let mut by_host = BTreeMap::new();
    for (host, node) in hosts.iter().zip(nodes) {
        by_host.insert((*host).to_owned(), node?);
    }
    let row = |place: WithJson<Place>| {
        let host = place.host.as_deref().unwrap_or_default();
        Row { node: by_host.get(host).cloned().flatten(), place }
    };
    let rows: Vec<Row> = places.into_iter().map(row).collect();
    person.show(page.put("rows", rows).put("is_asked", true))
}

/// The location of one server.
#[derive(Serialize)]
struct Row {
    node: Option<HostNode>,
    place: WithJson<Place>,
}

/// Finds the node that is the compute host `host`. A host is named like its node, or `node-` and the node's id, if a profile made it a
/// host.
pub(super) async fn node_of_host(person: &AuthorizedUser, host: &str) -> Result<Option<HostNode>> {
    let Ok(api) = person.baremetald() else { return Ok(None) };
    for ident in [Some(host), host.strip_prefix("node-")].into_iter().flatten() {
        match of_node(&api, ident).await {
            Ok(Some(node)) if node.host.as_deref() == Some(host) => return Ok(Some(node)),
            Ok(_) => {}
            Err(Problem::LoggedOut) => return Err(Problem::LoggedOut),
            // The location is shown without its node if baremetald does not answer.
            Err(_) => return Ok(None),
        }
    }
    Ok(None)
}

/// Finds a node and the name of the compute host that it is.
async fn of_node(api: &Api, ident: &str) -> Result<Option<HostNode>> {
    let ident = segment(ident)?;
    let [shown, explained] = [
        format!("/v1/nodes/{ident}?fields=uuid,name,provision_state,instance_info"),
        format!("/bedplate/v1/nodes/{ident}/explain"),
    ];
    let (shown, explained) = tokio::join!(api.find(&shown), api.find(&explained));
    let Some(node): Option<Node> = shown? else { return Ok(None) };
    let explained: Option<Explanation> = explained?;
    let (place, hypervisor) = explained.map(|it| (it.place, it.hypervisor)).unwrap_or_default();
    let (rack, position) = place.map(|place| (place.rack, place.position)).unzip();
    let named = || node.hypervisor_hostname().map(str::to_owned);
    Ok(Some(HostNode {
        name: node.label().to_owned(),
        uuid: node.id().to_owned(),
        state: node.state().to_owned(),
        rack,
        position,
        host: hypervisor.map(|it| it.host).or_else(named),
    }))
}
