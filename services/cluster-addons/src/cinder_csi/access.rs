//! The RBAC rules of the controller pod: the union of the rules that the upstream manifest of each sidecar asks for.

use serde_json::{Value, json};

use super::controller;
use super::driver::KIT;
use crate::object::rule;

pub(super) fn documents(snapshots: bool) -> Vec<Value> {
    const READ: &[&str] = &["get", "list", "watch"];
    const STORAGE: &str = "storage.k8s.io";
    const SNAPSHOTS: &str = "snapshot.storage.k8s.io";
    let mut rules = vec![
        rule(
            "",
            &["persistentvolumes"],
            &["get", "list", "watch", "create", "delete", "update", "patch"],
        ),
        rule("", &["persistentvolumeclaims"], &["get", "list", "watch", "update"]),
        rule("", &["persistentvolumeclaims/status"], &["update", "patch"]),
        rule("", &["nodes", "pods"], READ),
        rule("", &["events"], &["list", "watch", "create", "update", "patch"]),
        rule(STORAGE, &["storageclasses", "csinodes"], READ),
        rule(STORAGE, &["volumeattachments"], &["get", "list", "watch", "update", "patch"]),
        rule(STORAGE, &["volumeattachments/status"], &["patch"]),
    ];
    if snapshots {
        rules.extend([
            rule(SNAPSHOTS, &["volumesnapshots", "volumesnapshotclasses"], READ),
            rule(
                SNAPSHOTS,
                &["volumesnapshotcontents"],
                &["get", "list", "watch", "create", "delete", "update", "patch"],
            ),
            rule(SNAPSHOTS, &["volumesnapshotcontents/status"], &["update", "patch"]),
        ]);
    }
    let leases = rule(
        "coordination.k8s.io",
        &["leases"],
        &["get", "list", "watch", "create", "update", "patch"],
    );
    let (role, account) = ("bedplate:cinder-csi-controller", controller::ACCOUNT);
    let mut documents = vec![KIT.service_account(account)];
    documents.extend(KIT.cluster_access(role, account, json!(rules)));
    documents.extend(KIT.access(role, account, json!([leases])));
    documents
}
