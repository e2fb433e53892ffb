//! metrics-server: processor and memory usage of nodes and pods, for `kubectl top` and autoscaling.
//!
//! kubernetes-sigs/metrics-server, README.md and its manifests.

use serde_json::{Value, json};

use crate::object::{AddOnObjects, container, control_plane_tolerations, mount, rule};
use crate::version::AddOnVersions;
use crate::{AddOn, KubeletCertificates, Settings};

const NAME: &str = "metrics-server";
const KIT: AddOnObjects = AddOnObjects { add_on: NAME, namespace: "kube-system" };
const USER: u32 = 1000;
const PORT: u16 = 10250;

pub(crate) fn add_on(settings: &Settings, kubelets: KubeletCertificates) -> AddOn {
    let minor = AddOnVersions::of(settings.kubernetes);
    let rules = json!([
        rule("", &[minor.kubelet_resource()], &["get"]),
        rule("", &["pods", "nodes"], &["get", "list", "watch"]),
    ]);
    let mut documents = vec![KIT.service_account(NAME), metrics_reader()];
    documents.extend(KIT.cluster_access("bedplate:metrics-server", NAME, rules));
    // Kubernetes' own role for asking the API server who a caller is and what the caller may do.
    let delegator = KIT.binding_body("ClusterRole", "system:auth-delegator", NAME);
    let name = "bedplate:metrics-server:auth-delegator";
    documents.push(KIT.cluster_wide(RBAC, "ClusterRoleBinding", name, delegator));
    documents.push(KIT.reads_authentication("bedplate:metrics-server:authentication", NAME));
    documents.extend([service(), deployment(settings, kubelets), api_service()]);
    AddOn::new(NAME, settings.images.tag(&minor.metrics_server()), None, documents)
}

const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// Lets everyone who may view, edit or administer a namespace see the usage of its pods.
fn metrics_reader() -> Value {
    let rules = json!([rule("metrics.k8s.io", &["pods", "nodes"], &["get", "list", "watch"])]);
    let mut role =
        KIT.cluster_wide(RBAC, "ClusterRole", "bedplate:metrics-reader", json!({"rules": rules}));
    for to in ["admin", "edit", "view"] {
        let label = format!("rbac.authorization.k8s.io/aggregate-to-{to}");
        role["metadata"]["labels"][label] = json!("true");
    }
    role
}

fn service() -> Value {
    let spec = json!({
        "selector": KIT.selector(NAME),
        "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": "https"}],
    });
    KIT.object("v1", "Service", NAME, json!({"spec": spec}))
}

/// Registers the metrics API without verifying its certificate: metrics-server makes a new self-signed certificate at each start.
fn api_service() -> Value {
    let spec = json!({
        "group": "metrics.k8s.io",
        "version": "v1beta1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "insecureSkipTLSVerify": true,
        "service": {"name": NAME, "namespace": KIT.namespace, "port": 443},
    });
    let (api, name) = ("apiregistration.k8s.io/v1", "v1beta1.metrics.k8s.io");
    KIT.cluster_wide(api, "APIService", name, json!({"spec": spec}))
}

fn deployment(settings: &Settings, kubelets: KubeletCertificates) -> Value {
    let port = format!("--secure-port={PORT}");
    let trust = match kubelets {
        KubeletCertificates::SelfSigned => "--kubelet-insecure-tls",
        KubeletCertificates::Signed => {
            "--kubelet-certificate-authority=/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
        }
    };
    let args = [
        "--cert-dir=/tmp",
        &port,
        "--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
        "--kubelet-use-node-status-port",
        "--metric-resolution=15s",
        trust,
    ];
    let image = settings.images.reference(&AddOnVersions::of(settings.kubernetes).metrics_server());
    let mut server = container(NAME, image, &args, (100, 200));
    server["ports"] = json!([{"name": "https", "containerPort": PORT, "protocol": "TCP"}]);
    let probe = |path: &str, after: u32| {
        json!({
            "httpGet": {"path": path, "port": "https", "scheme": "HTTPS"},
            "initialDelaySeconds": after, "periodSeconds": 10, "failureThreshold": 3,
        })
    };
    server["readinessProbe"] = probe("/readyz", 20);
    server["livenessProbe"] = probe("/livez", 30);
    server["volumeMounts"] = json!([mount("tmp", "/tmp")]);
    let pod = json!({
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": control_plane_tolerations(),
        "serviceAccountName": NAME,
        "automountServiceAccountToken": true,
        "securityContext": {
            "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [server],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    });
    KIT.deployment(NAME, &[], pod)
}
