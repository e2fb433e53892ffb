//! `/`: how much there is, what is in flight, what is stuck and why.

use std::collections::BTreeMap;

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::Api;
use crate::problem::Problem;
use crate::service::Console;
use crate::view::tone;
use crate::visit::Person;

/// So many nodes are counted, and no more.
const MOST: usize = 20_000;
/// So many of those that are stuck, or in flight, are named.
const NAMED: usize = 12;

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/", get(show))
}

/// `GET /`.
async fn show(person: Person) -> Result<Response, Problem> {
    let (nodes, clusters) = tokio::join!(nodes(&person), clusters(&person));
    if let (Err(Problem::LoggedOut), _) | (_, Err(Problem::LoggedOut)) = (&nodes, &clusters) {
        return Err(Problem::LoggedOut);
    }
    let why = |why: Option<&Problem>| why.map(ToString::to_string);
    let page = person.page("overview.html", "Overview").under("overview").live();
    let page = page.put("no_nodes", why(nodes.as_ref().err()));
    let page = page.put("no_clusters", why(clusters.as_ref().err()));
    person.show(page.put("nodes", nodes.ok()).put("clusters", clusters.ok()))
}

/// What is counted of a node.
#[derive(Deserialize)]
struct Node {
    uuid: String,
    name: Option<String>,
    provision_state: String,
    maintenance: bool,
    last_error: Option<String>,
    provision_updated_at: Option<String>,
}

/// All nodes, counted.
#[derive(Default, Serialize)]
struct Nodes {
    total: usize,
    in_use: usize,
    free: usize,
    in_flight: usize,
    stuck: usize,
    by_state: BTreeMap<String, usize>,
    stuck_ones: Vec<Value>,
    busy_ones: Vec<Value>,
}

#[derive(Deserialize)]
struct PageOfNodes {
    nodes: Vec<Node>,
    next: Option<String>,
}

async fn nodes(person: &Person) -> Result<Nodes, Problem> {
    let api = person.machines()?;
    let mut counted = Nodes::default();
    let mut marker = String::new();
    loop {
        let fields = "uuid,name,provision_state,maintenance,last_error,provision_updated_at";
        let path = format!("/v1/nodes?limit=1000&fields={fields}{marker}");
        let page: PageOfNodes = api.get_as(&path).await?;
        let last = page.nodes.last().map(|node| node.uuid.clone());
        page.nodes.into_iter().for_each(|node| counted.count(node));
        match last {
            Some(last) if page.next.is_some() && counted.total < MOST => {
                marker = format!("&marker={last}")
            }
            Some(_) | None => return Ok(counted),
        }
    }
}

impl Nodes {
    fn count(&mut self, node: Node) {
        self.total += 1;
        let tone = tone(&node.provision_state);
        match node.provision_state.as_str() {
            "active" => self.in_use += 1,
            "available" => self.free += 1,
            _ => {}
        }
        let is_stuck =
            tone == "bad" || node.last_error.is_some() && tone != "good" && tone != "busy";
        let named = |node: Node| {
            serde_json::json!({
                "uuid": node.uuid, "name": node.name, "state": node.provision_state,
                "since": node.provision_updated_at, "why": node.last_error, "maintenance": node.maintenance,
            })
        };
        match self.by_state.get_mut(&node.provision_state) {
            Some(count) => *count += 1,
            None => drop(self.by_state.insert(node.provision_state.clone(), 1)),
        }
        if is_stuck {
            self.stuck += 1;
            if self.stuck_ones.len() < NAMED {
                self.stuck_ones.push(named(node));
            }
        } else if tone == "busy" {
            self.in_flight += 1;
            if self.busy_ones.len() < NAMED {
                self.busy_ones.push(named(node));
            }
        }
    }
}

/// What somebody has in the cloud.
#[derive(Serialize)]
struct Clusters {
    clusters: Vec<Value>,
    machines: Vec<Value>,
    quotas: Option<Value>,
}

async fn clusters(person: &Person) -> Result<Clusters, Problem> {
    let api: Api = person.clusters()?;
    let (clusters, machines, quotas) = tokio::join!(
        api.all("clusters", "/v1/clusters/detail", 1000),
        api.all("machines", "/bedplate/v1/machines", 1000),
        api.find("/bedplate/v1/quotas"),
    );
    Ok(Clusters { clusters: clusters?, machines: machines?, quotas: quotas? })
}
