//! The parts of the life of a host: registration, inspection, provisioning, deprovisioning and deletion.

use lab::RackedMachine;
use reqwest::Method;
use serde_json::{Value, json};

use super::operator::{Operator, Updater, driver_info, node_name};

/// How a host gets its ramdisk, as keys of `driver_info` (`setDeployImage`).
pub(super) fn no_ramdisk() -> Value {
    json!({
        "deploy_kernel": null, "deploy_ramdisk": null, "deploy_iso": null,
        "kernel_append_params": null,
    })
}

pub(super) const USER_DATA: &str = "#cloud-config\nhostname: host\n";

impl Operator<'_> {
    /// Looks for the host, creates its node and port, and has its BMC verified (`Register`, state `registering`).
    pub(super) async fn registers(&mut self, machine: &RackedMachine, boot: &str) {
        let versions = self.get("/v1/").await;
        let newest = versions["version"]["version"].as_str().expect("a version");
        let minor = newest.strip_prefix("1.").and_then(|minor| minor.parse::<u32>().ok());
        assert!(minor >= Some(110), "{versions}");
        let drivers = self.get("/v1/drivers").await;
        assert!(drivers["drivers"].as_array().is_some_and(|drivers| !drivers.is_empty()));

        for name in [&node_name(self.host), self.host] {
            let (status, _) = self.send(Method::GET, &format!("/v1/nodes/{name}"), None).await;
            assert_eq!(status, 404, "{name}");
        }
        let mac = machine.spec().nics[0].mac.to_string();
        assert!(self.ports(&format!("address={mac}")).await.is_empty());
        let body = self.node_body(machine, boot);
        let made = self.call(Method::POST, "/v1/nodes", Some(&body), 201).await;
        self.node = made["uuid"].as_str().expect("a UUID").to_owned();
        assert!(self.ports(&format!("node_uuid={}", self.node)).await.is_empty());
        assert!(self.ports(&format!("address={mac}")).await.is_empty());
        let port = json!({"node_uuid": self.node, "address": mac, "pxe_enabled": true});
        self.call(Method::POST, "/v1/ports", Some(&port), 201).await;
        assert_eq!(self.node().await["provision_state"], "enroll");
        self.provision(json!({"target": "manage"})).await;
        self.reaches("manageable").await;

        let by_name = self.get(&format!("/v1/nodes/{}", node_name(self.host))).await;
        assert_eq!(by_name["uuid"], *self.node);
        let ports = self.ports(&format!("node_uuid={}", self.node)).await;
        assert_eq!((ports.len(), ports[0]["node_uuid"].as_str()), (1, Some(&*self.node)));
    }

    /// The body by which a node is created (`enrollNode`), without the fields that `omitempty` leaves out.
    fn node_body(&self, machine: &RackedMachine, boot: &str) -> Value {
        json!({
            "boot_interface": boot,
            "driver": "redfish",
            "driver_info": driver_info(machine),
            "firmware_interface": "redfish",
            "inspect_interface": "agent",
            "name": node_name(self.host),
            "properties": {"capabilities": "boot_mode:bios", "cpu_arch": ""},
            "raid_interface": "redfish",
            "disable_power_off": false,
        })
    }

    /// Updates what belongs to no phase: the ramdisk, automated cleaning and capabilities (`configureNode`).
    pub(super) async fn configures(&self, ramdisk: Value) {
        let node = self.node().await;
        let updater = Updater::default()
            .section(&node, "driver_info", ramdisk)
            .top(&node, "automated_clean", json!(true))
            .section(&node, "properties", json!({"capabilities": "boot_mode:bios"}));
        self.update(updater).await;
    }

    /// Inspects the host and returns what was found (`InspectHardware`).
    pub(super) async fn inspects(&self) -> Value {
        let path = format!("/v1/nodes/{}/inventory", self.node);
        assert_eq!(self.send(Method::GET, &path, None).await.0, 404, "it was not inspected yet");
        let node = self.node().await;
        let updater = Updater::default()
            .section(&node, "properties", json!({"capabilities": "boot_mode:bios"}))
            .top(&node, "inspect_interface", json!("agent"));
        self.update(updater).await;
        self.provision(json!({"target": "inspect"})).await;
        self.reaches("manageable").await;
        self.get(&path).await
    }

    /// Brings a prepared host to `available` (`Provision`, state `manageable`).
    pub(super) async fn provides(&self) {
        self.provision(json!({"target": "provide"})).await;
        self.reaches("available").await;
    }

    /// Chooses the image (`getInstanceUpdateOpts`) and validates the node (`validateNode`).
    pub(super) async fn chooses(&self, image: Value, deploy: Option<&str>) -> Value {
        let node = self.node().await;
        let mut updater = Updater::default()
            .top(&node, "instance_uuid", json!("5a1b8a51-6f0e-4d5c-9a61-8f0d1c9c7a11"))
            .section(&node, "instance_info", json!({"capabilities": {}, "root_device": {}}))
            .section(&node, "instance_info", image);
        let before = node["deploy_interface"].as_str().unwrap_or_default();
        if deploy.is_some() || ["ramdisk", "custom-agent"].contains(&before) {
            updater = updater.top(&node, "deploy_interface", json!(deploy));
        }
        let updater = updater.section(
            &node,
            "driver_info",
            json!({"force_persistent_boot_device": "Default"}),
        );
        self.update(updater).await;
        self.get(&format!("/v1/nodes/{}/validate", self.node)).await
    }

    /// Chooses the image, and requests the deployment of a valid node.
    pub(super) async fn deploys(&self, image: Value, deploy: Option<&str>, body: Value) {
        let valid = self.chooses(image, deploy).await;
        for interface in ["boot", "deploy"] {
            assert_eq!(valid[interface]["result"], true, "{interface}: {}", valid[interface]);
        }
        self.provision(body).await;
    }

    /// The config drive of the host (`getConfigDrive`).
    pub(super) fn config_drive(&self) -> Value {
        json!({
            "user_data": USER_DATA,
            "network_data": {"links": [], "networks": [], "services": []},
            "meta_data": {
                "uuid": "5a1b8a51-6f0e-4d5c-9a61-8f0d1c9c7a11", "metal3-namespace": "metal3",
                "metal3-name": self.host, "local-hostname": self.host,
                "local_hostname": self.host, "name": self.host,
            },
        })
    }

    /// Takes the host out of use (`Deprovision`).
    pub(super) async fn deprovisions(&self) -> Value {
        let node = self.node().await;
        if node["automated_clean"] != true {
            self.update(Updater::default().top(&node, "automated_clean", json!(true))).await;
        }
        self.provision(json!({"target": "deleted"})).await;
        self.reaches("available").await
    }

    /// Deletes the node, in maintenance if it is in use (`realDelete`).
    pub(super) async fn deletes(&self) {
        let node = self.node().await;
        let path = format!("/v1/nodes/{}", self.node);
        match node["provision_state"].as_str().unwrap_or_default() {
            "available" | "manageable" => {
                if !node["instance_uuid"].is_null() {
                    let updater = Updater::default().top(&node, "instance_uuid", Value::Null);
                    self.update(updater).await;
                }
            }
            "enroll" => {}
            _ => {
                let reason = json!({"reason": "forcing deletion in baremetal-operator"});
                self.call(Method::PUT, &format!("{path}/maintenance"), Some(&reason), 202).await;
                assert_eq!(self.node().await["maintenance"], true);
            }
        }
        self.call(Method::DELETE, &path, None, 204).await;
        assert_eq!(self.send(Method::GET, &path, None).await.0, 404);
    }
}
