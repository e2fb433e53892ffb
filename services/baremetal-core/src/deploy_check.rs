//! Checks whether a node can be deployed: its image, the boot of its ramdisk, and Secure Boot.

use serde_json::Value;

use crate::instance::refuse;
use crate::{
    BootInterface, DeployInterface, Node, Port, RequestRefused, check_agent_ramdisk,
    config_drive_of, glance_image, image, own_image,
};

/// Checks that `node` has everything that its installation needs. A node without an agent and a node with a custom agent need nothing, and
/// Glance knows what its images need.
pub fn check_deploy(node: &Node) -> Result<(), RequestRefused> {
    check_secure_boot(node)?;
    match node.deploy_interface() {
        DeployInterface::Direct if glance_image(node).is_some() => config_drive_of(node).map(drop),
        DeployInterface::Direct => image(node).map(drop),
        DeployInterface::Ramdisk => own_image(node).map(|_| ()),
        DeployInterface::CustomAgent => config_drive_of(node).map(|_| ()),
        DeployInterface::Fake => Ok(()),
    }
}

/// Refuses to install a node with Secure Boot on a machine where it is off. Ironic would switch it on as a part of the deployment.
fn check_secure_boot(node: &Node) -> Result<(), RequestRefused> {
    let capabilities = node.instance_info.get("capabilities");
    let wanted = capabilities.and_then(|capabilities| capabilities.get("secure_boot"));
    let is_wanted = wanted.is_some_and(|wanted| match wanted {
        Value::Bool(wanted) => *wanted,
        Value::String(wanted) => wanted.eq_ignore_ascii_case("true"),
        Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => false,
    });
    if is_wanted && node.secure_boot != Some(true) {
        let problem = "secure boot is not on; switch it on with states/secure_boot before";
        return Err(refuse("capabilities.secure_boot", problem.to_owned()));
    }
    Ok(())
}

/// Checks that the ramdisk can reach the machine of `node`, which has these `ports`.
pub fn check_boot(node: &Node, ports: &[Port]) -> Result<(), RequestRefused> {
    check_agent_ramdisk(node)?;
    match node.boot_interface() {
        BootInterface::Fake | BootInterface::VirtualMedia => Ok(()),
        BootInterface::Ipxe | BootInterface::HttpIpxe
            if ports.iter().any(|port| port.pxe_enabled) =>
        {
            Ok(())
        }
        BootInterface::Ipxe | BootInterface::HttpIpxe => {
            let problem =
                "no port has pxe_enabled; network boot needs one to recognize the machine";
            Err(RequestRefused::Field { field: "ports".to_owned(), problem: problem.to_owned() })
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::{Driver, NodeUuid, PortUuid};

    fn node(info: Value) -> Node {
        let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        node.instance_info = info.as_object().expect("an object").clone();
        node
    }

    #[test]
    fn a_network_boot_needs_a_port_that_boots() {
        let mut machine = node(json!({}));
        let port = |pxe_enabled| {
            let mac = hardware::MacAddress::new([2, 0, 0, 0, 0, 1]);
            let port = Port::new(PortUuid::nil(), NodeUuid::nil(), mac, Timestamp::UNIX_EPOCH);
            Port { pxe_enabled, ..port }
        };
        for boot in [BootInterface::Ipxe, BootInterface::HttpIpxe] {
            machine.interfaces.boot = Some(boot);
            assert!(check_boot(&machine, &[]).is_err());
            assert!(check_boot(&machine, &[port(false)]).is_err());
            assert_eq!(check_boot(&machine, &[port(false), port(true)]), Ok(()));
        }
        for boot in [BootInterface::Fake, BootInterface::VirtualMedia] {
            machine.interfaces.boot = Some(boot);
            assert_eq!(check_boot(&machine, &[]), Ok(()));
        }
    }

    #[test]
    fn a_node_without_a_machine_needs_no_image() {
        let mut fake = node(json!({}));
        fake.driver = Driver::FakeHardware;
        assert_eq!(check_deploy(&fake), Ok(()));
        assert!(check_deploy(&node(json!({}))).is_err());
    }

    #[test]
    fn a_node_that_wants_secure_boot_needs_a_machine_where_it_is_on() {
        let wants = |wanted: Value| {
            node(json!({
                "image_source": "http://h/i", "image_checksum": "0".repeat(64),
                "capabilities": {"secure_boot": wanted},
            }))
        };
        for wanted in [json!("true"), json!("True"), json!(true)] {
            let mut machine = wants(wanted);
            for off in [None, Some(false)] {
                machine.secure_boot = off;
                let refused = check_deploy(&machine).unwrap_err().to_string();
                assert!(
                    refused.starts_with("instance_info.capabilities.secure_boot: "),
                    "{refused}"
                );
            }
            machine.secure_boot = Some(true);
            assert_eq!(check_deploy(&machine), Ok(()));
        }
        for wanted in [json!("false"), json!(false), json!(null)] {
            assert_eq!(check_deploy(&wants(wanted)), Ok(()));
        }
    }
}
