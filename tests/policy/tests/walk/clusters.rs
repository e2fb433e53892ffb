//! clusterd's routes.

use serde_json::{Value, json};

use crate::service::{Cloud, Service};
use crate::walk::About::{self, List, Nobodys, Project, Thing};
use crate::walk::{Step, Things, walk};

#[tokio::test]
async fn every_route_of_clusters_lets_in_whom_its_row_says() {
    everybody_tries(Cloud::emulated().await).await;
}

#[tokio::test]
async fn every_route_of_clusters_does_so_by_the_word_of_a_given_keystone() {
    let Some(cloud) = Cloud::given() else { return };
    everybody_tries(cloud).await;
}

async fn everybody_tries(cloud: Cloud) {
    let service = Service::clusters(cloud).await;
    let owner = service.projects[0].clone();
    let make = async || {
        let member = "project-a-member";
        let body = json!({"image_id": "i", "coe": "kubernetes", "flavor_id": "f"});
        let template = service.ask_as(member, "POST", "/v1/clustertemplates", &body).await;
        let template = template.has(201).json()["uuid"].as_str().unwrap().to_owned();
        let body = json!({"cluster_template_id": template});
        let cluster = service.ask_as(member, "POST", "/v1/clusters", &body).await;
        let cluster = cluster.has(202).json()["uuid"].as_str().unwrap().to_owned();
        // One that nothing was made of, and that may be deleted.
        let body = json!({"image_id": "i", "coe": "kubernetes", "flavor_id": "f"});
        let unused = service.ask_as(member, "POST", "/v1/clustertemplates", &body).await;
        let unused = unused.has(201).json()["uuid"].as_str().unwrap().to_owned();
        Things::from([("cluster", cluster), ("template", unused), ("project", owner.clone())])
    };
    walk(&service, &steps(), make).await;
    service.end().await;
}

#[rustfmt::skip]
fn steps() -> Vec<Step> {
    let step = |about: About, method, path, body| Step { method, path, body, about };
    let nothing = || Value::Null;
    let one = |method, path, body| step(Thing, method, path, body);
    let see = |path| step(Thing, "GET", path, Value::Null);
    let look = |path| step(Nobodys, "GET", path, Value::Null);
    vec![
        look("/"),
        look("/v1"),
        look("/openapi.json"),
        look("/bedplate/v1/policy"),
        look("/bedplate/v1/audit"),
        look("/bedplate/v1/audit/verify"),

        step(List, "GET", "/v1/clustertemplates", nothing()),
        step(List, "GET", "/v1/clustertemplates/detail", nothing()),
        step(Nobodys, "POST", "/v1/clustertemplates", json!({"image_id": "i", "coe": "kubernetes", "flavor_id": "f"})),
        see("/v1/clustertemplates/{template}"),
        one("PATCH", "/v1/clustertemplates/{template}", json!([{"op": "replace", "path": "/flavor_id", "value": "g"}])),
        one("DELETE", "/v1/clustertemplates/{template}", nothing()),

        step(List, "GET", "/v1/clusters", nothing()),
        step(List, "GET", "/v1/clusters/detail", nothing()),
        one("POST", "/v1/clusters", json!({"cluster_template_id": "{template}"})),
        see("/v1/clusters/{cluster}"),
        one("PATCH", "/v1/clusters/{cluster}", json!([{"op": "replace", "path": "/node_count", "value": 2}])),
        one("DELETE", "/v1/clusters/{cluster}", nothing()),
        one("POST", "/v1/clusters/{cluster}/actions/resize", json!({"node_count": 2})),
        one("POST", "/v1/clusters/{cluster}/actions/upgrade", json!({"cluster_template": "{template}"})),
        see("/v1/clusters/{cluster}/nodegroups"),
        one("POST", "/v1/clusters/{cluster}/nodegroups", json!({"name": "more"})),
        see("/v1/clusters/{cluster}/nodegroups/{nodegroup}"),
        one("PATCH", "/v1/clusters/{cluster}/nodegroups/{nodegroup}", json!([{"op": "replace", "path": "/max_node_count", "value": 9}])),
        one("DELETE", "/v1/clusters/{cluster}/nodegroups/{nodegroup}", nothing()),

        one("POST", "/v1/certificates", json!({"cluster_uuid": "{cluster}", "csr": "none"})),
        see("/v1/certificates/{cluster}"),
        one("PATCH", "/v1/certificates/{cluster}", nothing()),
        one("PATCH", "/v1/credentials/{cluster}", nothing()),

        look("/v1/quotas"),
        step(Nobodys, "POST", "/v1/quotas", json!({"project_id": "{project}", "resource": "Cluster", "hard_limit": 100000})),
        step(Project, "GET", "/v1/quotas/{project}/{resource}", nothing()),
        step(Project, "PATCH", "/v1/quotas/{project}/{resource}", json!({"hard_limit": 100000})),
        step(Project, "DELETE", "/v1/quotas/{project}/{resource}", nothing()),
        look("/bedplate/v1/quotas"),
        step(Project, "PUT", "/bedplate/v1/quotas/{project}", json!({"clusters": 100000})),
        step(Project, "PUT", "/bedplate/v1/quotas/{project}/users/{user}", json!({"clusters": 100000})),
        look("/v1/stats"),
        look("/v1/mservices"),

        see("/bedplate/v1/clusters/{cluster}"),
        see("/bedplate/v1/clusters/{cluster}/machines"),
        see("/bedplate/v1/clusters/{cluster}/ledger"),
        see("/bedplate/v1/clusters/{cluster}/kubeconfig"),
        see("/bedplate/v1/clusters/{cluster}/events"),
        see("/bedplate/v1/clusters/{cluster}/lease"),
        one("PUT", "/bedplate/v1/clusters/{cluster}/lease", json!({"for": "1d"})),
        one("POST", "/bedplate/v1/clusters/{cluster}/lease/undo", json!({})),
        one("POST", "/bedplate/v1/plan", json!({"cluster_template_id": "{template}"})),
        see("/bedplate/v1/clusters/{cluster}/plan"),
        one("PUT", "/bedplate/v1/clusters/{cluster}/nodegroups/{nodegroup}/ignition", json!({"ignition": {"version": "3.4.0"}})),
        one("DELETE", "/bedplate/v1/clusters/{cluster}/nodegroups/{nodegroup}/ignition", nothing()),
        look("/bedplate/v1/keys"),
        step(Nobodys, "POST", "/bedplate/v1/keys/rotate", nothing()),
        step(Nobodys, "DELETE", "/bedplate/v1/keys/{key}", nothing()),
    ]
}
