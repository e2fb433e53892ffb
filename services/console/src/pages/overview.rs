//! `/`: counts, operations in progress and failures. The number of requests does not grow with the number of nodes.

use api_client::WithJson;
use api_client::baremetald::NodeCounts;
use api_client::clusterd::{Cluster, Vm};
use axum::Router;
use axum::response::Response;
use axum::routing::get;
use serde::Serialize;

use crate::api::Api;
use crate::page_request::AuthorizedUser;
use crate::problem::Problem;
use crate::state::Console;

/// The number of clusters and VMs that the page names, newest first.
const NAMED: usize = 10;

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/", get(show))
}

/// `GET /`: shows the overview.
async fn show(person: AuthorizedUser) -> Result<Response, Problem> {
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

async fn nodes(person: &AuthorizedUser) -> Result<Nodes, Problem> {
    Ok(Nodes::of(person.baremetald()?.get("/bedplate/v1/counts").await?))
}

#[derive(Serialize)]
struct Nodes {
    in_use: u64,
    free: u64,
    counts: WithJson<NodeCounts>,
}

impl Nodes {
    fn of(counts: WithJson<NodeCounts>) -> Self {
        let count = |word: &str| {
            let state = counts.states.iter().find(|it| it.provision_state == word);
            state.map_or(0, |it| it.count)
        };
        Nodes { in_use: count("active"), free: count("available"), counts }
    }
}

/// The newest clusters and VMs of the user.
#[derive(Serialize)]
struct Clusters {
    clusters: Vec<WithJson<Cluster>>,
    /// Whether there are more clusters than the page names.
    more_clusters: bool,
    machines: Vec<WithJson<Vm>>,
    more_machines: bool,
}

async fn clusters(person: &AuthorizedUser) -> Result<Clusters, Problem> {
    let api: Api = person.clusterd()?;
    let newest = format!("limit={NAMED}&sort_key=created_at&sort_dir=desc");
    let [clusters, machines] =
        [format!("/v1/clusters/detail?{newest}"), format!("/bedplate/v1/machines?{newest}")];
    let (clusters, machines) = tokio::join!(api.page(&clusters), api.page(&machines));
    let ((clusters, more_clusters), (machines, more_machines)) = (clusters?, machines?);
    Ok(Clusters { clusters, more_clusters, machines, more_machines })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn used_and_free_nodes_are_counted_by_state() {
        let states = json!([{"provision_state": "active", "count": 7}, {"provision_state": "enroll", "count": 2}]);
        let counts = json!({"total": 9, "states": states});
        let nodes = Nodes::of(serde_json::from_value(counts).unwrap());
        assert_eq!((nodes.in_use, nodes.free), (7, 0));
    }
}
