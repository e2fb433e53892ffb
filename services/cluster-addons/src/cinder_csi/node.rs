//! The node part of the driver: mounts volumes on every node. This part does not call the cluster's API.

use serde_json::{Value, json};

use super::driver::{self, DRIVER, KIT};
use crate::Settings;
use crate::object::{container, host_path, mount, mount_to_read};
use crate::version::AddOnVersions;

pub(super) const ACCOUNT: &str = "csi-cinder-node-sa";
pub(super) const CONFIG: &str = "cinder-csi-node-config";
const NAME: &str = "csi-cinder-nodeplugin";
const KUBELET: &str = "/var/lib/kubelet";

pub(super) fn daemon_set(settings: &Settings, config: &Value) -> Value {
    let minor = AddOnVersions::of(settings.kubernetes);
    let image = |image| settings.images.reference(&image);

    let path = format!("--kubelet-registration-path={KUBELET}/plugins/{DRIVER}/csi.sock");
    let args = ["--csi-address=/csi/csi.sock", &path];
    let name = "node-driver-registrar";
    let mut registrar = container(name, image(minor.registrar()), &args, (10, 16));
    registrar["volumeMounts"] =
        json!([mount("socket", "/csi"), mount("registration", "/registration")]);

    let args = ["--csi-address=/csi/csi.sock"];
    let mut probe = container("liveness-probe", image(minor.liveness_probe()), &args, (10, 16));
    probe["volumeMounts"] = json!([mount("socket", "/csi")]);

    let more: &[&str] = match minor.nodes_need_no_cloud() {
        true => &["--provide-controller-service=false"],
        false => &[],
    };
    let mut driver = driver::container(settings, more, (20, 48));
    // The driver formats and mounts disks for all pods of its node.
    driver["securityContext"] = json!({"privileged": true});
    let mut kubelet = mount("kubelet", KUBELET);
    kubelet["mountPropagation"] = json!("Bidirectional");
    let mut devices = mount("devices", "/dev");
    devices["mountPropagation"] = json!("HostToContainer");
    driver["volumeMounts"] =
        json!([mount("socket", "/csi"), kubelet, devices, mount_to_read("config", "/etc/config")]);

    let pod = json!({
        // The driver asks the metadata service for its server id, and not every pod network reaches the metadata service.
        "hostNetwork": true,
        "dnsPolicy": "Default",
        "priorityClassName": "system-node-critical",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"operator": "Exists"}],
        "serviceAccountName": ACCOUNT,
        "automountServiceAccountToken": false,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [registrar, probe, driver],
        "volumes": [
            host_path("socket", &format!("{KUBELET}/plugins/{DRIVER}"), "DirectoryOrCreate"),
            host_path("registration", &format!("{KUBELET}/plugins_registry"), "Directory"),
            host_path("kubelet", KUBELET, "Directory"),
            host_path("devices", "/dev", "Directory"),
            {"name": "config", "secret": {"secretName": CONFIG, "defaultMode": 0o400}},
        ],
    });
    KIT.daemon_set(NAME, &[config], pod)
}
