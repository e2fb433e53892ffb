//! Compares wanted add-ons with receipts.

use cluster_addons::{AddOn, Receipt, changes, desired_add_ons};
use expect_test::expect;
use serde_json::json;

use crate::fixtures::{cloud, everything, named};

/// The receipt of an add-on that was applied, read back as from the API server.
fn applied(add_on: &AddOn) -> Receipt {
    Receipt::read(add_on.finished_receipt().as_value()).expect("a receipt can be read")
}

fn names(add_ons: &[&AddOn]) -> Vec<&'static str> {
    add_ons.iter().map(|it| it.name).collect()
}

#[test]
fn an_applied_add_on_is_not_applied_again() {
    let add_ons = desired_add_ons(&everything(34)).unwrap();
    let none = changes(&add_ons, &[]);
    assert_eq!(none.apply.len(), add_ons.len());
    assert!(none.remove.is_empty());
    let receipts: Vec<Receipt> = add_ons.iter().map(applied).collect();
    let done = changes(&add_ons, &receipts);
    assert!(done.apply.is_empty() && done.remove.is_empty());
    assert_eq!(receipts[1].credential, Some(1));
}

#[test]
fn a_new_credential_applies_the_add_ons_that_use_it_again() {
    let before: Vec<Receipt> =
        desired_add_ons(&everything(34)).unwrap().iter().map(applied).collect();
    let mut settings = everything(34);
    settings.cloud = Some(cloud(2));
    let add_ons = desired_add_ons(&settings).unwrap();
    let changes = changes(&add_ons, &before);
    let users = ["openstack-cloud-controller-manager", "cinder-csi"];
    assert_eq!(names(&changes.apply), users);
    assert!(changes.remove.is_empty());
    // Pods read the credential only when they start, so a new credential has to replace the pods.
    let annotation = |add_on: &AddOn| {
        let pods = add_on.documents.last().unwrap().as_value()["spec"]["template"].clone();
        pods["metadata"]["annotations"]["bedplate/configuration"].as_str().unwrap().to_owned()
    };
    let old = desired_add_ons(&everything(34)).unwrap();
    assert_ne!(annotation(named(&old, users[0])), annotation(named(&add_ons, users[0])));
}

#[test]
fn an_upgrade_applies_what_goes_with_the_new_version() {
    let before: Vec<Receipt> =
        desired_add_ons(&everything(33)).unwrap().iter().map(applied).collect();
    let add_ons = desired_add_ons(&everything(34)).unwrap();
    let changes = changes(&add_ons, &before);
    let of_a_version = ["openstack-cloud-controller-manager", "cinder-csi"];
    assert_eq!(names(&changes.apply), of_a_version);
}

#[test]
fn unwanted_objects_are_removed_and_the_receipt_last() {
    let before: Vec<Receipt> =
        desired_add_ons(&everything(34)).unwrap().iter().map(applied).collect();
    let mut settings = everything(34);
    settings.metrics = None;
    settings.volumes.as_mut().unwrap().classes.truncate(1);
    let add_ons = desired_add_ons(&settings).unwrap();
    let changes = changes(&add_ons, &before);
    assert_eq!(names(&changes.apply), ["cinder-csi"]);
    let gone: Vec<String> = changes.remove.iter().map(ToString::to_string).collect();
    expect![[r#"
        APIService v1beta1.metrics.k8s.io
        Deployment kube-system/metrics-server
        Service kube-system/metrics-server
        RoleBinding kube-system/bedplate:metrics-server:authentication
        ClusterRoleBinding bedplate:metrics-server:auth-delegator
        ClusterRoleBinding bedplate:metrics-server
        ClusterRole bedplate:metrics-server
        ClusterRole bedplate:metrics-reader
        ServiceAccount kube-system/metrics-server
        ConfigMap kube-system/bedplate-addon-metrics-server
        StorageClass cinder-fast"#]]
    .assert_eq(&gone.join("\n"));
}

#[test]
fn an_interrupted_application_leaves_a_receipt_and_is_repeated() {
    let old = desired_add_ons(&everything(34)).unwrap();
    let before = applied(named(&old, "cinder-csi"));
    let mut settings = everything(34);
    settings.volumes.as_mut().unwrap().classes.truncate(1);
    let new = desired_add_ons(&settings).unwrap();
    let new = named(&new, "cinder-csi");

    let begun = Receipt::read(new.unfinished_receipt(Some(&before)).as_value()).unwrap();
    assert_eq!(begun.digest, None);
    let again = std::slice::from_ref(new);
    let changes = changes(again, std::slice::from_ref(&begun));
    assert_eq!(names(&changes.apply), ["cinder-csi"]);
    let gone: Vec<String> = changes.remove.iter().map(ToString::to_string).collect();
    assert_eq!(gone, ["StorageClass cinder-fast"]);
}

#[test]
fn an_edited_receipt_is_refused_with_a_reason() {
    let add_ons = desired_add_ons(&everything(34)).unwrap();
    let mut receipt = add_ons[0].finished_receipt().into_value();
    receipt["data"]["objects"] = json!("[{\"kind\": 7}]");
    expect!["cannot read ConfigMap bedplate-addon-flannel as an add-on receipt: the list of objects is not valid; \
             delete the ConfigMap, and clusterd applies the add-on again"]
        .assert_eq(&Receipt::read(&receipt).unwrap_err().to_string());
}
