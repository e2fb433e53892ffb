//! The cloud controller manager: sets addresses and zones of nodes, deletes nodes whose server is gone, and creates load balancers.
//!
//! kubernetes/cloud-provider-openstack, docs/openstack-cloud-controller-manager. All its controllers run with its own service account
//! (`--use-service-account-credentials=false`), so the manager needs no permission to create tokens for other accounts or to read secrets.

use serde_json::{Value, json};

use crate::cloud_config::{FILE, FOLDER, global, load_balancer, secret};
use crate::object::{
    AddOnObjects, container, control_plane_nodes, control_plane_tolerations, mount_to_read, rule,
    tolerates,
};
use crate::version::AddOnVersions;
use crate::{AddOn, Cloud, LoadBalancing, Settings};

const NAME: &str = "openstack-cloud-controller-manager";
const KIT: AddOnObjects = AddOnObjects { add_on: NAME, namespace: "kube-system" };
const ACCOUNT: &str = "cloud-controller-manager";
const ROLE: &str = "bedplate:cloud-controller-manager";
const CONFIG: &str = "cloud-config";
/// The user id that the program in the image runs as.
const USER: u32 = 1001;

pub(crate) fn add_on(settings: &Settings, cloud: &Cloud, balancing: &LoadBalancing) -> AddOn {
    let image = AddOnVersions::of(settings.kubernetes).cloud_controller();
    let text = global(cloud) + &load_balancer(balancing);
    let config = secret(KIT, CONFIG, &text, cloud);
    let workload = daemon_set(settings, &config);
    let mut documents = vec![KIT.service_account(ACCOUNT)];
    documents.extend(access());
    documents.extend([config, workload]);
    AddOn::new(NAME, settings.images.tag(&image), Some(cloud.credential.generation), documents)
}

fn access() -> Vec<Value> {
    let whole = json!([
        rule("", &["nodes"], &["get", "list", "watch", "update", "patch", "delete"]),
        rule("", &["nodes/status"], &["patch"]),
        rule("", &["services"], &["get", "list", "watch", "update", "patch"]),
        rule("", &["services/status"], &["update", "patch"]),
        rule("", &["events"], &["create", "update", "patch"]),
    ]);
    let mut own_lease = rule("coordination.k8s.io", &["leases"], &["get", "update"]);
    own_lease["resourceNames"] = json!([ACCOUNT]);
    let leases = json!([rule("coordination.k8s.io", &["leases"], &["create"]), own_lease]);
    let mut documents = KIT.cluster_access(ROLE, ACCOUNT, whole).to_vec();
    documents.extend(KIT.access(ROLE, ACCOUNT, leases));
    let name = "bedplate:cloud-controller-manager:authentication";
    documents.push(KIT.reads_authentication(name, ACCOUNT));
    documents
}

fn daemon_set(settings: &Settings, config: &Value) -> Value {
    let cluster = format!("--cluster-name={}", settings.cluster);
    let file = format!("--cloud-config={FILE}");
    let args = [
        "/bin/openstack-cloud-controller-manager",
        "--v=1",
        "--cloud-provider=openstack",
        &cluster,
        &file,
        "--bind-address=127.0.0.1",
        "--configure-cloud-routes=false",
        "--leader-elect-resource-lock=leases",
        "--use-service-account-credentials=false",
    ];
    let image = AddOnVersions::of(settings.kubernetes).cloud_controller();
    let mut manager = container(NAME, settings.images.reference(&image), &args, (100, 64));
    manager["volumeMounts"] = json!([mount_to_read("cloud-config", FOLDER)]);
    manager["livenessProbe"] = json!({
        "httpGet": {"host": "127.0.0.1", "path": "/healthz", "port": 10258, "scheme": "HTTPS"},
        "initialDelaySeconds": 20, "periodSeconds": 10, "timeoutSeconds": 15, "failureThreshold": 6,
    });
    let pod = json!({
        // Until the manager has run, pods have no pod network and no cluster DNS, and the manager's own pod would not have them either.
        "hostNetwork": true,
        "dnsPolicy": "Default",
        "priorityClassName": "system-node-critical",
        "nodeSelector": control_plane_nodes(),
        "tolerations": tolerations(),
        "serviceAccountName": ACCOUNT,
        "automountServiceAccountToken": true,
        "securityContext": {
            "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [manager],
        "volumes": [{"name": "cloud-config", "secret": {"secretName": CONFIG, "defaultMode": 0o440}}],
    });
    KIT.daemon_set(NAME, &[config], pod)
}

/// The manager makes nodes ready, so its pod has to tolerate nodes that are not ready yet.
fn tolerations() -> Vec<Value> {
    let mut all = control_plane_tolerations();
    all.extend(
        [
            "node.cloudprovider.kubernetes.io/uninitialized",
            "node.kubernetes.io/network-unavailable",
            "node.kubernetes.io/not-ready",
        ]
        .map(tolerates),
    );
    all
}
