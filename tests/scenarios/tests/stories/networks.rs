//! A machine with the network interface `neutron` lives in the networks of the service and in that of its tenant, one at a time, and no port
//! of the service is left behind in Neutron.

use lab::{Lab, Machine, Node, RackedMachine, Settings};
use machine_emulator::Stage;
use openstack_emulator::{Act, Kind, Object, Rule};
use reqwest::Method;
use serde_json::{Value, json};

use crate::lab_in_cloud::LabInCloud;
use crate::rescue::{can_log_in, rescue};

/// A machine whose node has a switch port, and networks in Neutron: `provisioning`, `cleaning`, `rescuing`, `servicing` and `tenants`.
pub(crate) struct NetworkSite {
    pub(crate) lab: LabInCloud,
    pub(crate) machine: RackedMachine,
    pub(crate) node: Node,
    /// The id of a port in the network `tenants`.
    pub(crate) vif: String,
}

impl NetworkSite {
    /// Starts the lab with an available node.
    pub(crate) async fn start(
        start: impl AsyncFnOnce(Settings) -> Lab,
        settings: Settings,
    ) -> NetworkSite {
        let lab = LabInCloud::start(start, settings).await;
        let machine = lab.rack(Machine::redfish("r1u1").without_tls()).await;
        let node = lab.available(&machine).await;
        let mut site = NetworkSite { lab, machine, node, vif: String::new() };
        let mut patch = vec![
            json!({"op": "add", "path": "/network_interface", "value": "neutron"}),
            json!({"op": "add", "path": "/rescue_interface", "value": "agent"}),
        ];
        for (number, name) in
            ["provisioning", "cleaning", "rescuing", "servicing"].iter().enumerate()
        {
            site.network(name, number).await;
            let path = format!("/driver_info/{name}_network");
            patch.push(json!({"op": "add", "path": path, "value": name}));
        }
        let path = site.node.path();
        site.lab.api().send(Method::PATCH, &path, Some(&patch.into())).await.expect("the node");
        let tenants = site.network("tenants", 9).await;
        site.vif = site.create("ports", "port", json!({"network_id": tenants})).await;
        site
    }

    async fn create(&self, path: &str, kind: &str, body: Value) -> String {
        self.lab.admin.create(&format!("/network/v2.0/{path}"), kind, body).await
    }

    async fn network(&self, name: &str, number: usize) -> String {
        let network = self.create("networks", "network", json!({"name": name})).await;
        let cidr = format!("10.{}.0.0/24", 70 + number);
        let subnet = json!({"network_id": network, "cidr": cidr, "ip_version": 4});
        self.create("subnets", "subnet", subnet).await;
        network
    }

    /// Records the switch port of the node's port.
    pub(crate) async fn link(&self) {
        let link = json!({"switch_id": "0a:1b:2c:3d:4e:5f", "port_id": "Eth1/7"});
        self.lab.link(self.node, &link).await;
    }

    pub(crate) async fn attach(&self) -> u16 {
        let path = format!("{}/vifs", self.node.path());
        self.lab.api().send(Method::POST, &path, Some(&json!({"id": self.vif}))).await.status
    }

    async fn detach(&self) -> u16 {
        let path = format!("{}/vifs/{}", self.node.path(), self.vif);
        self.lab.api().send(Method::DELETE, &path, None).await.status
    }

    /// Returns the names of the networks in which the service has ports for the machine.
    pub(crate) fn networks(&self) -> Vec<String> {
        let networks = self.lab.cloud.objects(Kind::Network);
        let name = |port: Object| {
            let network = networks.iter().find(|it| it.id == port.text("network_id"));
            network.expect("a network").text("name").to_owned()
        };
        let ports = self.lab.cloud.objects(Kind::Port).into_iter();
        ports.filter(|port| port.text("device_owner") == "baremetal:none").map(name).collect()
    }

    /// Returns whether the tenant's port is bound to the machine's switch port.
    pub(crate) fn is_bound(&self) -> bool {
        let mut ports = self.lab.cloud.objects(Kind::Port).into_iter();
        let vif = ports.find(|port| port.id == self.vif).expect("the port of the tenant");
        let profile = vif.body.get("binding:profile");
        let port = profile.and_then(|it| it.pointer("/local_link_information/0/port_id"));
        let is_told = port.is_some_and(|port| port == "Eth1/7");
        is_told && vif.text("binding:host_id") == self.node.0.to_string()
    }

    /// Requests `target` and returns the networks of the machine while its ramdisk has ended, and the service cannot delete a port yet.
    async fn networks_during(&self, target: Value, waits: &str) -> Vec<String> {
        let refuse = Act::Answer { status: 503, retry_after: None, message: None };
        let rule = Rule::new("DELETE", "/network/v2.0/ports/**", refuse);
        let rule = self.lab.cloud.misbehave(rule);
        let before = self.lab.node(self.node).await;
        self.lab.ask_once(self.node, &before, &target).await;
        lab::until(waits, || self.lab.cloud.hits(rule) > 0).await;
        let networks = self.networks();
        assert!(!self.is_bound(), "it is in one network at a time");
        self.lab.cloud.end_rule(rule);
        networks
    }
}

#[tokio::test]
async fn a_machine_lives_in_one_network_at_a_time_and_leaves_no_port_behind() {
    let site = NetworkSite::start(async |it| Lab::start_with(it).await, Settings::default()).await;
    let (lab, node) = (&site.lab, site.node);
    let why = lab.validate(node, "network").await.reason.expect("a reason");
    assert!(
        why.contains("local_link_connection: is required by network_interface neutron"),
        "{why}"
    );
    let failed = lab.provision(node, "active").await.fails("deploy failed").await;
    assert!(failed.contains("local_link_connection"), "{failed}");
    assert_eq!(site.attach().await, 400, "no port has a switch port");
    site.link().await;
    let validated = lab.validate(node, "network").await;
    assert!(validated.result, "{validated:?}");
    assert_eq!(site.attach().await, 204);

    let during =
        site.networks_during(json!({"target": "active"}), "the provisioning network").await;
    assert_eq!(during, ["provisioning"]);
    lab.reaches(node, "active").await;
    assert!(site.is_bound());
    assert_eq!(site.networks(), [""; 0]);

    let during = site.networks_during(rescue(), "the rescuing network").await;
    assert_eq!(during, ["rescuing"]);
    lab.reaches(node, "rescue").await;
    can_log_in(&site.machine).await;
    assert!(site.is_bound(), "the rescue system is in the network of the tenant");
    lab.provision(node, "unrescue").await.reaches("active").await;
    site.machine.stage().wait_for(|it| *it == Stage::Installed).await.expect("its disk");
    assert!(site.is_bound());
    assert_eq!(site.networks(), [""; 0]);

    let during = site.networks_during(json!({"target": "deleted"}), "the cleaning network").await;
    assert_eq!(during, ["cleaning"]);
    lab.reaches(node, "available").await;
    assert_eq!(site.networks(), [""; 0]);
    assert!(!site.is_bound());
}

#[tokio::test]
async fn the_vif_of_a_machine_in_use_is_bound_and_released_at_once() {
    let site = NetworkSite::start(async |it| Lab::start_with(it).await, Settings::default()).await;
    site.link().await;
    assert_eq!(site.attach().await, 204);
    assert!(!site.is_bound(), "the machine is not in use");
    site.lab.provision(site.node, "active").await.reaches("active").await;
    assert_eq!(site.detach().await, 204);
    lab::until("the release", || !site.is_bound()).await;
    assert_eq!(site.attach().await, 204);
    lab::until("the binding", || site.is_bound()).await;
}

#[tokio::test]
async fn the_ports_of_work_that_fails_are_deleted() {
    let site = NetworkSite::start(async |it| Lab::start_with(it).await, Settings::default()).await;
    site.link().await;
    assert_eq!(site.attach().await, 204);
    let wrong = json!("0".repeat(64));
    site.lab.set(site.node, "/instance_info/image_os_hash_value", wrong).await;
    site.lab.provision(site.node, "active").await.fails("deploy failed").await;
    lab::until("no port in the provisioning network", || site.networks().is_empty()).await;

    site.lab.set(site.node, "/driver_info/cleaning_network", json!("nowhere")).await;
    let failed = site.lab.provision(site.node, "deleted").await.fails("clean failed").await;
    assert!(failed.contains("Neutron has no network nowhere"), "{failed}");
    assert_eq!(site.networks(), [""; 0]);
}
