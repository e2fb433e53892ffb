//! Flannel: the pod network, in which packets between nodes travel in VXLAN.
//!
//! flannel-io/flannel, Documentation/kubernetes.md. The controller manager assigns each node its part of the pod range (`podCIDR`).

use cluster_core::Cidr;
use serde_json::{Value, json};

use crate::image::Image;
use crate::object::{AddOnObjects, container, host_path, mount, mount_to_read, rule};
use crate::{AddOn, Settings};

const NAME: &str = "flannel";
const KIT: AddOnObjects = AddOnObjects { add_on: NAME, namespace: "kube-flannel" };
const CONFIG: &str = "kube-flannel-cfg";
/// Runs on Kubernetes 1.17 and later.
const DAEMON: Image = Image::new("ghcr.io/flannel-io", "flannel", "v0.27.4");
const PLUGIN: Image = Image::new("ghcr.io/flannel-io", "flannel-cni-plugin", "v1.8.0-flannel1");

pub(crate) fn add_on(settings: &Settings) -> AddOn {
    let mut namespace = KIT.cluster_wide("v1", "Namespace", KIT.namespace, json!({}));
    // Flannel's pods use the host network, which a namespace with a stricter pod security level forbids.
    namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = json!("privileged");
    let rules = json!([
        rule("", &["pods"], &["get"]),
        rule("", &["nodes"], &["get", "list", "watch"]),
        rule("", &["nodes/status"], &["patch"]),
    ]);
    let config = config_map(settings.pods);
    let workload = daemon_set(settings, &config);
    let mut documents = vec![namespace, KIT.service_account(NAME)];
    documents.extend(KIT.cluster_access("bedplate:flannel", NAME, rules));
    documents.extend([config, workload]);
    AddOn::new(NAME, settings.images.tag(&DAEMON), None, documents)
}

/// The CNI configuration for the container runtime and the network configuration for flannel's daemon.
fn config_map(pods: Cidr) -> Value {
    let plugins = json!({
        "name": "cbr0",
        "cniVersion": "0.3.1",
        "plugins": [
            {"type": "flannel", "delegate": {"hairpinMode": true, "isDefaultGateway": true}},
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    });
    let mut network = json!({"EnableNFTables": false, "Backend": {"Type": "vxlan"}});
    if pods.is_v4() {
        network["Network"] = json!(pods.to_string());
    } else {
        network["EnableIPv4"] = json!(false);
        network["EnableIPv6"] = json!(true);
        network["IPv6Network"] = json!(pods.to_string());
    }
    let data = json!({"cni-conf.json": format!("{plugins:#}\n"), "net-conf.json": format!("{network:#}\n")});
    KIT.object("v1", "ConfigMap", CONFIG, json!({"data": data}))
}

fn daemon_set(settings: &Settings, config: &Value) -> Value {
    let (daemon, plugin) = (settings.images.reference(&DAEMON), settings.images.reference(&PLUGIN));

    let mut install_plugin = container(
        "install-cni-plugin",
        plugin,
        &["-f", "/flannel", "/opt/cni/bin/flannel"],
        (10, 16),
    );
    install_plugin["command"] = json!(["cp"]);
    install_plugin["volumeMounts"] = json!([mount("cni-plugin", "/opt/cni/bin")]);

    let args = ["-f", "/etc/kube-flannel/cni-conf.json", "/etc/cni/net.d/10-flannel.conflist"];
    let mut install_config = container("install-cni", daemon.clone(), &args, (10, 16));
    install_config["command"] = json!(["cp"]);
    install_config["volumeMounts"] =
        json!([mount("cni", "/etc/cni/net.d"), mount_to_read("config", "/etc/kube-flannel")]);

    let args = ["--ip-masq", "--kube-subnet-mgr", "--healthz-ip=127.0.0.1", "--healthz-port=8285"];
    let mut flannel = container("kube-flannel", daemon, &args, (100, 50));
    flannel["command"] = json!(["/opt/bin/flanneld"]);
    flannel["env"] = json!([
        {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
    ]);
    flannel["livenessProbe"] = json!({
        "httpGet": {"host": "127.0.0.1", "path": "/healthz", "port": 8285, "scheme": "HTTP"},
        "initialDelaySeconds": 10, "periodSeconds": 30,
    });
    // The daemon links the iptables variant of its node into its own folder when it starts, so its root file system is writable.
    flannel["securityContext"] = json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN", "NET_RAW"]},
    });
    flannel["volumeMounts"] = json!([
        mount("run", "/run/flannel"),
        mount("xtables-lock", "/run/xtables.lock"),
        mount_to_read("config", "/etc/kube-flannel"),
    ]);

    let pod = json!({
        "hostNetwork": true,
        "priorityClassName": "system-node-critical",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"operator": "Exists"}],
        "serviceAccountName": NAME,
        "automountServiceAccountToken": true,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "initContainers": [install_plugin, install_config],
        "containers": [flannel],
        "volumes": [
            host_path("run", "/run/flannel", "DirectoryOrCreate"),
            host_path("cni-plugin", "/opt/cni/bin", "DirectoryOrCreate"),
            host_path("cni", "/etc/cni/net.d", "DirectoryOrCreate"),
            host_path("xtables-lock", "/run/xtables.lock", "FileOrCreate"),
            {"name": "config", "configMap": {"name": CONFIG}},
        ],
    });
    KIT.daemon_set("kube-flannel-ds", &[config], pod)
}
