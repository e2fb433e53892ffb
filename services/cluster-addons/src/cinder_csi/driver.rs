//! The driver itself: its names, and its container.

use serde_json::{Value, json};

use crate::Settings;
use crate::object::{self, AddOnObjects};
use crate::version::AddOnVersions;

pub(super) const NAME: &str = "cinder-csi";
pub(super) const KIT: AddOnObjects = AddOnObjects { add_on: NAME, namespace: "kube-system" };
/// The driver's name in Kubernetes.
pub(super) const DRIVER: &str = "cinder.csi.openstack.org";
/// The port of the driver's health check, the default of livenessprobe.
const HEALTH_PORT: u16 = 9808;

/// The container of the driver itself, which the controller pod and the node pods share.
pub(super) fn container(settings: &Settings, more: &[&str], needs: (u32, u32)) -> Value {
    let minor = AddOnVersions::of(settings.kubernetes);
    let mut args = vec![
        "/bin/cinder-csi-plugin",
        "--endpoint=unix://csi/csi.sock",
        "--cloud-config=/etc/config/cloud.conf",
        "--v=1",
    ];
    args.extend(more);
    if minor.names_its_node() {
        args.push("--nodeid=$(NODE_ID)");
    }
    let image = settings.images.reference(&minor.cinder_csi());
    let mut driver = object::container("cinder-csi-plugin", image, &args, needs);
    if minor.names_its_node() {
        driver["env"] =
            json!([{"name": "NODE_ID", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]);
    }
    driver["ports"] = json!([{"name": "healthz", "containerPort": HEALTH_PORT, "protocol": "TCP"}]);
    driver["livenessProbe"] = json!({
        "httpGet": {"path": "/healthz", "port": "healthz", "scheme": "HTTP"},
        "initialDelaySeconds": 10, "periodSeconds": 30, "timeoutSeconds": 10, "failureThreshold": 5,
    });
    driver
}
