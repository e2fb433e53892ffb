//! Plans: the resources that a cluster needs, and whether they fit into the cloud's quota.

use cluster_core::{ClusterUuid, LedgerEntry, LedgerState, LedgerUuid};
use jiff::Timestamp;
use openstack_emulator::{Act, Emulator, Rule, Settings};
use serde_json::{Value, json};

use crate::api::Api;

async fn emulator() -> Emulator {
    Emulator::start(Settings::default()).await.unwrap()
}

/// Whether a plan fits, its shortages, and the reason.
fn fits(plan: &Value) -> (Value, Value, Value) {
    (plan["fits"].clone(), plan["shortages"].clone(), plan["fits_reason"].clone())
}

/// A cluster of two members with four processors and 8 GiB each.
const SMALL: &str = r#"{"name": "c", "cluster_template_id": "t"}"#;

#[tokio::test]
async fn a_plan_lists_the_needed_resources_and_creates_nothing() {
    let api = Api::start().await;
    api.template("t", "").await;
    let body = r#"{"name": "c", "cluster_template_id": "t", "master_count": 3, "node_count": 5}"#;
    let plan = api.post("/bedplate/v1/plan", body).await.has(200).json();
    assert_eq!(plan["first"][0], "create network");
    let need = &plan["need"];
    assert_eq!(need["instances"], 8);
    // One port for each member, one for the router and one for the load balancer.
    assert_eq!(
        (&need["ports"], &need["floating_ips"], &need["load_balancers"]),
        (&json!(10), &json!(9), &json!(1))
    );
    let unknown = (json!(null), json!(null), json!("clusterd has no cloud configured"));
    assert_eq!(fits(&plan), unknown);
    api.get("/v1/clusters").await.is(r#"{"clusters": []}"#);
    api.post("/bedplate/v1/plan", r#"{"cluster_template_id": "t", "master_count": 2}"#)
        .await
        .has(400);
}

#[tokio::test]
async fn a_plan_that_fits_has_the_sizes_of_its_members() {
    let emulator = emulator().await;
    let api = Api::in_cloud(&emulator.cloud).await;
    api.template("t", "").await;
    let plan = api.post("/bedplate/v1/plan", SMALL).await.has(200).json();
    assert_eq!(fits(&plan), (json!(true), json!([]), json!(null)));
    let need = &plan["need"];
    assert_eq!((&need["cores"], &need["ram_mib"]), (&json!(8), &json!(16384)));
}

#[tokio::test]
async fn a_plan_names_an_insufficient_cloud_quota() {
    let emulator = emulator().await;
    emulator.cloud.set_quota("tenant-a", "instances", 1);
    emulator.cloud.set_quota("tenant-a", "cores", 7);
    let api = Api::in_cloud(&emulator.cloud).await;
    api.template("t", "").await;
    let plan = api.post("/bedplate/v1/plan", SMALL).await.has(200).json();
    let short = json!([
        {"resource": "instances", "needed": 2, "free": 1},
        {"resource": "cores", "needed": 8, "free": 7},
    ]);
    let why = "the project's quota in the cloud is too small; needed: 2 instances (1 free), 8 cores (7 free)";
    assert_eq!(fits(&plan), (json!(false), short, json!(why)));
    api.get("/v1/clusters").await.is(r#"{"clusters": []}"#);
}

#[tokio::test]
async fn existing_objects_of_a_cluster_do_not_count_as_a_shortage() {
    let emulator = emulator().await;
    emulator.cloud.set_quota("tenant-a", "instances", 1);
    let api = Api::in_cloud(&emulator.cloud).await;
    let id = api.small().await;
    let line = |machine: &str, cloud_id: Option<&str>| LedgerEntry {
        id: LedgerUuid::new_v4(),
        of: id.parse::<ClusterUuid>().unwrap().into(),
        kind: format!("server/{machine}"),
        name: machine.to_owned(),
        cloud_id: cloud_id.map(str::to_owned),
        state: LedgerState::Intended,
        created_at: Timestamp::UNIX_EPOCH,
        updated_at: None,
    };
    let asked_for = [line("default-master-0", Some("id")), line("default-worker-0", None)];
    let plan = api.get("/bedplate/v1/clusters/c/plan").await.has(200).json();
    assert_eq!(plan["shortages"], json!([{"resource": "instances", "needed": 2, "free": 1}]));
    api.store.save_ledger(&asked_for).await.unwrap();
    let plan = api.get("/bedplate/v1/clusters/c/plan").await.has(200).json();
    assert_eq!(fits(&plan), (json!(true), json!([]), json!(null)));
    assert_eq!(plan["need"]["instances"], 2, "all that the cluster consists of");
}

#[tokio::test]
async fn fits_is_null_if_the_cloud_does_not_answer() {
    let emulator = emulator().await;
    let api = Api::in_cloud(&emulator.cloud).await;
    api.template("t", "").await;
    let huge = r#"{"cluster_template_id": "t", "flavor_id": "huge"}"#;
    let plan = api.post("/bedplate/v1/plan", huge).await.has(200).json();
    let why = "flavor_id: the cloud has no \"huge\" that clusterd may use";
    assert_eq!(fits(&plan), (json!(null), json!(null), json!(why)));
    assert_eq!((&plan["need"]["instances"], &plan["need"]["cores"]), (&json!(2), &json!(0)));

    emulator.cloud.misbehave(Rule::new("GET", "/compute/**/limits", Act::Close));
    let plan = api.post("/bedplate/v1/plan", SMALL).await.has(200).json();
    let (fits, shortages, why) = fits(&plan);
    assert_eq!((fits, shortages), (json!(null), json!(null)));
    assert!(why.as_str().unwrap().starts_with("no answer from the compute service"), "{why}");
}
