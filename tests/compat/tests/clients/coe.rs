//! Tests of `openstack coe`: templates, clusters, node groups, certificates, quotas.

use std::fs;
use std::time::Duration;

use compat::wait::wait_for;
use compat::{CommandLine, Service};
use serde_json::{Value, json};

/// A command that creates a template.
pub(crate) const TEMPLATE: &[&str] = &[
    "cluster",
    "template",
    "create",
    "t",
    "--coe",
    "kubernetes",
    "--image",
    "fcos",
    "--external-network",
    "public",
    "--flavor",
    "m1.large",
    "--master-lb-enabled",
    "--labels",
    "kube_tag=v1.33.0,boot_volume_size=20",
];

/// How long clusterd may take to delete a cluster without cloud objects.
const PATIENCE: Duration = Duration::from_secs(30);

fn start() -> (Service, CommandLine) {
    let service = Service::clusters();
    let client = CommandLine::coe(&service.url);
    (service, client)
}

/// Creates a template and a cluster from it.
fn with_cluster(client: &mut CommandLine, more: &[&str]) {
    client.done(TEMPLATE);
    let create = ["cluster", "create", "c", "--cluster-template", "t"];
    let said = client.done(&[&create[..], more].concat());
    assert!(said.contains("accepted"), "{said}");
}

#[test]
fn a_template_is_created_listed_changed_and_deleted() {
    let (_service, mut client) = start();
    client.done(TEMPLATE);
    let shown = client.json(&["cluster", "template", "show", "t"]);
    assert_eq!((&shown["coe"], &shown["image_id"]), (&json!("kubernetes"), &json!("fcos")));
    assert_eq!(shown["labels"], json!({"kube_tag": "v1.33.0", "boot_volume_size": "20"}));
    assert_eq!((&shown["master_lb_enabled"], &shown["public"]), (&json!(true), &json!(false)));

    let listed = client.json(&["cluster", "template", "list"]);
    assert_eq!(listed[0]["name"], "t");
    client.done(&[
        "cluster",
        "template",
        "update",
        "t",
        "--flavor",
        "m1.small",
        "--label",
        "kube_tag=v1.32.1",
    ]);
    let shown = client.json(&["cluster", "template", "show", "t"]);
    assert_eq!(
        (&shown["flavor_id"], &shown["labels"]["kube_tag"]),
        (&json!("m1.small"), &json!("v1.32.1"))
    );
    client.done(&["cluster", "template", "delete", "t"]);
    let refused = client.refused(&["cluster", "template", "show", "t"]);
    assert!(refused.contains("could not be found"), "{refused}");
}

#[test]
fn a_refusal_names_the_mistake() {
    let (_service, mut client) = start();
    // The last word has the labels.
    let mut words = TEMPLATE.to_vec();
    words.pop();
    words.push("monitoring_enabled=true");
    let refused = client.refused(&words);
    assert!(
        refused.contains("labels/monitoring_enabled: clusterd does not install it"),
        "{refused}"
    );
    client.done(TEMPLATE);
    let refused = client.refused(&[
        "cluster",
        "create",
        "c",
        "--cluster-template",
        "t",
        "--master-count",
        "2",
    ]);
    assert!(refused.contains("master_count: must be 1, 3 or 5"), "{refused}");
}

#[test]
fn a_cluster_is_created_resized_and_deleted() {
    let (_service, mut client) = start();
    with_cluster(&mut client, &["--node-count", "2", "--master-count", "3", "--timeout", "30"]);
    let shown = client.json(&["cluster", "show", "c"]);
    assert_eq!((&shown["node_count"], &shown["master_count"]), (&json!(2), &json!(3)));
    assert_eq!(
        (&shown["status"], &shown["create_timeout"]),
        (&json!("CREATE_IN_PROGRESS"), &json!(30))
    );
    // The reason must say what clusterd waits for.
    let reason = wait_for("a reason", PATIENCE, || {
        client.json(&["cluster", "show", "c"])["status_reason"].as_str().map(str::to_owned)
    });
    assert!(reason.contains("clusterd has no cloud configured"), "{reason}");
    let listed = client.json(&["cluster", "list"]);
    assert_eq!((&listed[0]["name"], &listed[0]["node_count"]), (&json!("c"), &json!(2)));

    client.done(&["cluster", "resize", "c", "4"]);
    assert_eq!(client.json(&["cluster", "show", "c"])["node_count"], 4);
    client.done(&["cluster", "update", "c", "--node-count", "3"]);
    assert_eq!(client.json(&["cluster", "show", "c"])["node_count"], 3);
    let refused = client.refused(&["cluster", "upgrade", "c", "t"]);
    assert!(refused.contains("cluster c was never complete"), "{refused}");

    // The client prints the refusal on standard output and exits with success.
    let refused = client.run(&["cluster", "template", "delete", "t"]);
    assert!(refused.stdout.contains("referenced by one or multiple clusters"), "{refused:?}");
    client.done(&["cluster", "delete", "c"]);
    wait_for("the cluster to be gone", PATIENCE, || {
        (client.run(&["cluster", "show", "c"]).code != 0).then_some(())
    });
    client.done(&["cluster", "template", "delete", "t"]);
}

#[test]
fn node_groups_are_created_changed_and_deleted() {
    let (_service, mut client) = start();
    with_cluster(&mut client, &[]);
    let create = ["nodegroup", "create", "c", "gpu", "--node-count", "2", "--flavor", "g1.large"];
    let more = [
        "--node-labels",
        "gpu=a100",
        "--node-taints",
        "gpu=yes:NoSchedule",
        "--labels",
        "availability_zone=az-2",
    ];
    client.done(&[&create[..], &more[..]].concat());
    let shown = client.json(&["nodegroup", "show", "c", "gpu"]);
    assert_eq!((&shown["node_count"], &shown["flavor_id"]), (&json!(2), &json!("g1.large")));
    assert_eq!((&shown["role"], &shown["is_default"]), (&json!("worker"), &json!(false)));

    let listed = client.json(&["nodegroup", "list", "c"]);
    let names: Vec<&Value> =
        listed.as_array().expect("a list").iter().map(|group| &group["name"]).collect();
    assert_eq!(names, ["default-master", "default-worker", "gpu"]);
    client.done(&["nodegroup", "update", "c", "gpu", "--max-nodes", "3"]);
    assert_eq!(client.json(&["nodegroup", "show", "c", "gpu"])["max_node_count"], 3);
    client.done(&["cluster", "resize", "c", "3", "--nodegroup", "gpu"]);
    assert_eq!(client.json(&["nodegroup", "show", "c", "gpu"])["node_count"], 3);
    let refused = client.refused(&["cluster", "resize", "c", "4", "--nodegroup", "gpu"]);
    assert!(refused.contains("more than max_node_count, 3"), "{refused}");
    client.done(&["nodegroup", "delete", "c", "gpu"]);
    assert_eq!(client.json(&["nodegroup", "list", "c"]).as_array().map(Vec::len), Some(2));
    let refused = client.refused(&["nodegroup", "delete", "c", "default-worker"]);
    assert!(refused.contains("is a default group"), "{refused}");
}

#[test]
fn a_label_that_nobody_documents_is_kept() {
    let (_service, mut client) = start();
    with_cluster(&mut client, &["--labels", "team=blue", "--merge-labels"]);
    let shown = client.json(&["cluster", "show", "c"]);
    assert_eq!(
        (&shown["labels"]["team"], &shown["labels_added"]),
        (&json!("blue"), &json!({"team": "blue"}))
    );
}

#[test]
fn certificates_are_shown_signed_and_rotated() {
    let (_service, mut client) = start();
    with_cluster(&mut client, &[]);
    let authority = client.done(&["ca", "show", "c"]);
    assert!(authority.starts_with("-----BEGIN CERTIFICATE-----"), "{authority}");
    let file = std::env::temp_dir().join(format!("compat-{}.csr", std::process::id()));
    fs::write(&file, CSR).expect("a file can be written");
    let signed = client.run(&["ca", "sign", "c", &file.display().to_string()]);
    fs::remove_file(&file).expect("a file can be removed");
    assert_eq!(signed.code, 0, "{}", signed.stderr);
    assert!(signed.stdout.starts_with("-----BEGIN CERTIFICATE-----") && signed.stdout != authority);
    client.done(&["ca", "rotate", "c"]);
    assert_ne!(client.done(&["ca", "show", "c"]), authority);
}

#[test]
fn quotas_stats_and_services_are_shown() {
    let (_service, mut client) = start();
    client.done(&[
        "quotas",
        "create",
        "--project-id",
        "default",
        "--resource",
        "Cluster",
        "--hard-limit",
        "1",
    ]);
    with_cluster(&mut client, &["--node-count", "2"]);
    let refused = client.refused(&["cluster", "create", "d", "--cluster-template", "t"]);
    assert!(refused.contains("clusters: project default uses 1 of 1"), "{refused}");
    client.done(&[
        "quotas",
        "update",
        "--project-id",
        "default",
        "--resource",
        "Cluster",
        "--hard-limit",
        "2",
    ]);
    let shown =
        client.done(&["quotas", "show", "--project-id", "default", "--resource", "Cluster"]);
    assert!(shown.contains("| hard_limit | 2 "), "{shown}");
    client.done(&["quotas", "delete", "--project-id", "default", "--resource", "Cluster"]);
    let stats = client.done(&["stats", "list", "default"]);
    assert!(stats.contains("| clusters | 1 ") && stats.contains("| nodes    | 3 "), "{stats}");
    let services = wait_for("the service to be listed", PATIENCE, || {
        let listed = client.json(&["service", "list"]);
        (!listed.as_array()?.is_empty()).then_some(listed)
    });
    assert_eq!(
        (&services[0]["binary"], &services[0]["state"]),
        (&json!("magnum-conductor"), &json!("up"))
    );
}

/// A certificate request with an RSA key, as the client makes it: CN=admin, O=system:masters.
const CSR: &str = include_str!("admin.csr");
