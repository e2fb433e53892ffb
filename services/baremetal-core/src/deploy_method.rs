//! How the machine of a node is installed: as its instance says, or as the node says. `autodetect` leaves it to the instance's image.

use serde_json::Value;

use crate::fast_track::flag;
use crate::instance::refuse;
use crate::{DeployInterface, Interface, Node, RequestRefused};

/// The key of an image that is booted at every start (ironic, `RamdiskDeploy.supports_deploy`).
const DISKLESS: &str = "ironic_ramdisk_deploy";

/// How a machine is installed and cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeployMethod {
    /// Nothing is installed.
    Fake,
    /// The agent writes an image to the disk.
    Direct,
    /// Steps of the agent that the request names install the machine.
    CustomAgent,
    /// The agent runs a container, whose program installs it to the disk.
    Bootc,
    /// The machine boots an ISO image or a kernel of its user.
    Ramdisk,
}

impl Node {
    /// Returns how the machine is installed. The interface that the instance names comes before the node's (ironic, `Node.get_interface`).
    pub fn deploy_method(&self) -> DeployMethod {
        let own = || self.interfaces.deploy.unwrap_or(DeployInterface::default_of(self.driver));
        match chosen_by_instance(self).unwrap_or_else(own) {
            DeployInterface::Autodetect if boots_without_disk(self) => DeployMethod::Ramdisk,
            DeployInterface::Autodetect | DeployInterface::Direct => DeployMethod::Direct,
            DeployInterface::CustomAgent => DeployMethod::CustomAgent,
            DeployInterface::Bootc => DeployMethod::Bootc,
            DeployInterface::Ramdisk => DeployMethod::Ramdisk,
            DeployInterface::Fake => DeployMethod::Fake,
        }
    }

    /// Returns whether the agent cleans and serves the machine.
    pub fn uses_agent(&self) -> bool {
        match self.deploy_method() {
            DeployMethod::Direct
            | DeployMethod::CustomAgent
            | DeployMethod::Bootc
            | DeployMethod::Ramdisk => true,
            DeployMethod::Fake => false,
        }
    }
}

/// Refuses interfaces in `instance_info` that an instance cannot choose. A user who could choose the network interface would leave the
/// networks that separate the machine.
pub(crate) fn check_chosen_interfaces(node: &Node) -> Result<(), RequestRefused> {
    for interface in Interface::ALL {
        let key = key_of(interface);
        let Some(value) = node.instance_info.get(&key).filter(|value| !value.is_null()) else {
            continue;
        };
        if interface != Interface::Deploy {
            let problem = "an instance can choose only its deploy interface";
            return Err(refuse(&key, problem.to_owned()));
        }
        let named = value.as_str().and_then(|name| DeployInterface::of_driver(node.driver, name));
        if named.is_none() {
            let known = node.driver.supported(interface).join(", ");
            let problem = format!("must be one that driver {} supports: {known}", node.driver);
            return Err(refuse(&key, problem));
        }
    }
    Ok(())
}

fn chosen_by_instance(node: &Node) -> Option<DeployInterface> {
    let name = node.instance_info.get(&key_of(Interface::Deploy))?.as_str()?;
    DeployInterface::of_driver(node.driver, name)
}

fn key_of(interface: Interface) -> String {
    format!("{}_interface", interface.as_str())
}

/// Whether the instance asks for the boot of its own image at every start, and names the image.
fn boots_without_disk(node: &Node) -> bool {
    let info = &node.instance_info;
    let has = |key: &str| info.get(key).and_then(Value::as_str).is_some_and(|url| !url.is_empty());
    info.get(DISKLESS).and_then(flag) == Some(true)
        && (has("boot_iso") || has("kernel") && has("ramdisk"))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::{Driver, NodeUuid, check_deploy};

    fn node(driver: Driver, own: &str, info: Value) -> Node {
        let mut node = Node::new(NodeUuid::nil(), driver, Timestamp::UNIX_EPOCH);
        assert!(node.interfaces.choose(Interface::Deploy, own), "{own}");
        node.instance_info = info.as_object().expect("an object").clone();
        node
    }

    #[test]
    fn the_image_of_the_instance_decides_for_autodetect() {
        let check = |info: Value, want| {
            let detected = node(Driver::Redfish, "autodetect", info.clone()).deploy_method();
            assert_eq!(detected, want, "{info}");
            // A node that names its interface ignores the image.
            assert_eq!(node(Driver::Redfish, "direct", info).deploy_method(), DeployMethod::Direct);
        };
        check(json!({}), DeployMethod::Direct);
        check(json!({"image_source": "http://h/i"}), DeployMethod::Direct);
        check(json!({"boot_iso": "http://h/i"}), DeployMethod::Direct);
        for asked in [json!(true), json!("true"), json!("True")] {
            let iso = json!({"ironic_ramdisk_deploy": asked, "boot_iso": "http://h/i"});
            check(iso, DeployMethod::Ramdisk);
            let kernel = json!({"ironic_ramdisk_deploy": asked, "kernel": "http://h/k", "ramdisk": "http://h/r"});
            check(kernel, DeployMethod::Ramdisk);
            for nothing in [
                json!({"ironic_ramdisk_deploy": asked, "boot_iso": ""}),
                json!({"ironic_ramdisk_deploy": asked, "kernel": "http://h/k"}),
            ] {
                check(nothing, DeployMethod::Direct);
            }
        }
        let not = json!({"ironic_ramdisk_deploy": "false", "boot_iso": "http://h/i"});
        check(not, DeployMethod::Direct);
    }

    #[test]
    fn an_instance_chooses_its_deploy_interface() {
        let iso = json!({"deploy_interface": "ramdisk", "boot_iso": "http://h/i"});
        for own in ["direct", "autodetect", "custom-agent"] {
            let mut machine = node(Driver::Redfish, own, iso.clone());
            assert!(machine.interfaces.choose(Interface::Boot, "redfish-virtual-media"));
            assert_eq!(machine.deploy_method(), DeployMethod::Ramdisk, "{own}");
            assert_eq!(check_deploy(&machine), Ok(()));
            assert_eq!(machine.interface(Interface::Deploy), own, "the node's own stays");
        }
        let none = node(Driver::Redfish, "bootc", json!({"deploy_interface": null}));
        assert_eq!(none.deploy_method(), DeployMethod::Bootc);
    }

    #[test]
    fn an_instance_chooses_no_other_interface_and_no_unknown_one() {
        let refused = |info: Value| {
            check_deploy(&node(Driver::FakeHardware, "fake", info)).unwrap_err().to_string()
        };
        let why =
            "instance_info.network_interface: an instance can choose only its deploy interface";
        assert_eq!(refused(json!({"network_interface": "noop"})), why);
        for unknown in [json!("ramdisk"), json!("ansible"), json!(""), json!(5)] {
            let why = "instance_info.deploy_interface: must be one that driver fake-hardware supports: fake, direct";
            assert_eq!(refused(json!({"deploy_interface": unknown})), why);
        }
    }
}
