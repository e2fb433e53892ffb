//! The controller part of the driver: creates, attaches and deletes volumes.

use serde_json::{Value, json};

use super::driver::{self, KIT};
use crate::image::Image;
use crate::object::{
    container, control_plane_nodes, control_plane_tolerations, mount, mount_to_read,
};
use crate::version::AddOnVersions;
use crate::{Settings, Volumes};

pub(super) const ACCOUNT: &str = "csi-cinder-controller-sa";
pub(super) const CONFIG: &str = "cinder-csi-cloud-config";
const NAME: &str = "csi-cinder-controllerplugin";

pub(super) fn deployment(settings: &Settings, volumes: &Volumes, config: &Value) -> Value {
    let minor = AddOnVersions::of(settings.kubernetes);
    let sidecar = |name: &str, image: Image, args: &[&str]| {
        let mut all = vec!["--csi-address=/csi/csi.sock"];
        all.extend(args);
        let mut sidecar = container(name, settings.images.reference(&image), &all, (10, 32));
        sidecar["volumeMounts"] = json!([mount("socket", "/csi")]);
        sidecar
    };
    const LEADER: &str = "--leader-election=true";
    let mut provisioner = vec!["--timeout=3m", LEADER, "--feature-gates=Topology=true"];
    provisioner.extend(minor.provisioner_arguments());
    let mut containers = vec![
        sidecar("csi-attacher", minor.attacher(), &["--timeout=3m", LEADER]),
        sidecar("csi-provisioner", minor.provisioner(), &provisioner),
        sidecar("csi-resizer", minor.resizer(), &[minor.resizer_timeout(), LEADER]),
    ];
    if volumes.snapshots {
        containers.push(sidecar("csi-snapshotter", minor.snapshotter(), &["--timeout=3m", LEADER]));
    }
    containers.push(sidecar("liveness-probe", minor.liveness_probe(), &[]));

    let cluster = format!("--cluster={}", settings.cluster);
    let mut driver = driver::container(settings, &[&cluster], (20, 48));
    driver["volumeMounts"] =
        json!([mount("socket", "/csi"), mount_to_read("cloud-config", "/etc/config")]);
    containers.push(driver);

    let pod = json!({
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": control_plane_nodes(),
        "tolerations": control_plane_tolerations(),
        "serviceAccountName": ACCOUNT,
        "automountServiceAccountToken": true,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": containers,
        "volumes": [
            {"name": "socket", "emptyDir": {}},
            {"name": "cloud-config", "secret": {"secretName": CONFIG, "defaultMode": 0o400}},
        ],
    });
    KIT.deployment(NAME, &[config], pod)
}
