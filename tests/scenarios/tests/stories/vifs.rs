//! A machine is installed for a port of Neutron: the port is bound to the machine until the machine is undeployed.

use lab::{Lab, Machine, Node, RackedMachine, Settings};
use openstack_emulator::{Kind, Object};
use reqwest::Method;
use serde_json::{Value, json};

use crate::lab_in_cloud::LabInCloud;

/// A machine in a lab whose node attaches VIFs to its port.
pub(crate) struct VifSite {
    pub(crate) lab: LabInCloud,
    pub(crate) machine: RackedMachine,
    pub(crate) node: Node,
    /// The id of a port in Neutron.
    pub(crate) vif: String,
}

impl VifSite {
    pub(crate) async fn start(
        start: impl AsyncFnOnce(Settings) -> Lab,
        settings: Settings,
    ) -> VifSite {
        let lab = LabInCloud::start(start, settings).await;
        let machine = lab.rack(Machine::redfish("r1u1").without_tls()).await;
        let node = lab.available(&machine).await;
        lab.set(node, "/network_interface", json!("flat")).await;
        let vif = neutron_port(&lab).await;
        VifSite { lab, machine, node, vif }
    }

    /// Asks for a VIF to be attached, and returns the status.
    pub(crate) async fn attach(&self, vif: &str) -> u16 {
        let path = format!("{}/vifs", self.node.path());
        self.lab.api().send(Method::POST, &path, Some(&json!({"id": vif}))).await.status
    }

    /// Checks that the port in Neutron has the machine's address and is bound to the node.
    pub(crate) fn is_bound(&self) {
        let port = self.port();
        assert_eq!(port.text("binding:host_id"), self.node.0.to_string());
        assert_eq!(port.text("binding:vnic_type"), "baremetal");
        assert!(self.has_mac_of_machine(&port), "{port:?}");
    }

    /// Checks that the port in Neutron can be used elsewhere.
    pub(crate) fn is_unbound(&self) {
        let port = self.port();
        assert_eq!(port.text("binding:host_id"), "");
        assert!(!self.has_mac_of_machine(&port), "{port:?}");
    }

    /// Checks that no VIF is attached, and that the port in Neutron can be used elsewhere.
    pub(crate) async fn is_released(&self) {
        self.is_unbound();
        assert_eq!(self.lab.vifs(self.node).await, []);
        assert!(self.lab.ports(self.node).await[0].internal_info.is_empty());
    }

    fn port(&self) -> Object {
        let mut ports = self.lab.cloud.objects(Kind::Port).into_iter();
        ports.find(|port| port.id == self.vif).expect("a port")
    }

    fn has_mac_of_machine(&self, port: &Object) -> bool {
        let mac = self.machine.spec().nics[0].mac.to_string();
        port.text("mac_address").eq_ignore_ascii_case(&mac)
    }
}

/// Creates a network with a port, and returns the id of the port.
async fn neutron_port(lab: &LabInCloud) -> String {
    let create = async |path: &str, kind: &str, body: Value| {
        lab.admin.create(&format!("/network/v2.0/{path}"), kind, body).await
    };
    let network = create("networks", "network", json!({"name": "tenants"})).await;
    let subnet = json!({"network_id": network, "cidr": "10.9.0.0/24", "ip_version": 4});
    create("subnets", "subnet", subnet).await;
    create("ports", "port", json!({"network_id": network})).await
}

#[tokio::test]
async fn a_port_of_neutron_is_bound_to_a_machine_until_it_is_undeployed() {
    let site = VifSite::start(async |it| Lab::start_with(it).await, Settings::default()).await;
    let (lab, node) = (&site.lab, site.node);
    let failed = lab.provision(node, "active").await.fails("deploy failed").await;
    assert!(failed.contains("no VIF is attached to the node"), "{failed}");

    assert_eq!(site.attach("00000000-0000-4000-8000-000000000000").await, 400, "Neutron lacks it");
    assert_eq!(site.attach(&site.vif).await, 204);
    assert_eq!(site.attach(&site.vif).await, 409);
    lab.provision(node, "active").await.reaches("active").await;
    site.is_bound();
    let path = format!("{}/vifs/{}", node.path(), site.vif);
    let detached = lab.api().send(Method::DELETE, &path, None).await;
    assert_eq!(detached.status, 204, "{}", detached.body);
    lab::until("the release", || !site.has_mac_of_machine(&site.port())).await;
    site.is_released().await;
    assert_eq!(site.attach(&site.vif).await, 204);
    lab::until("the binding", || site.has_mac_of_machine(&site.port())).await;
    site.is_bound();

    lab.provision(node, "rebuild").await.reaches("active").await;
    site.is_bound();
    lab.provision(node, "deleted").await.reaches("available").await;
    site.is_released().await;
    let detached = lab.api().send(Method::DELETE, &path, None).await;
    assert_eq!(detached.status, 400, "{}", detached.body);
}
