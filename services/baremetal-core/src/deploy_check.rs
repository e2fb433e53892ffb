//! Checks whether a node can be deployed: its image, the boot of its ramdisk, and its boot settings.

use agent_protocol::RootDeviceHints;
use serde_json::{Map, Value};

use crate::bootc::bootable_container;
use crate::deploy_method::check_chosen_interfaces;
use crate::fast_track::check_fast_track;
use crate::instance::refuse;
use crate::partition_image::{check_layout, layout_at_url, mirrored_root};
use crate::unheeded::check_image_keys;
use crate::wanted_boot::{WantedBoot, declared_boot_mode, declared_word, wanted_boot};
use crate::{
    BootInterface, DeployMethod, Node, Port, RequestRefused, check_agent_ramdisk, config_drive_of,
    glance_image, image, oci_image, own_image,
};

/// Checks that `node` has everything that its installation needs. A node without an agent and a node with a custom agent need nothing, and
/// Glance and OCI registries know what their images need.
pub fn check_deploy(node: &Node) -> Result<(), RequestRefused> {
    check_chosen_interfaces(node)?;
    check_wanted_boot(node)?;
    check_agent_settings(node)?;
    match node.deploy_method() {
        DeployMethod::Direct if glance_image(node).is_some() => {
            check_layout(node)?;
            config_drive_of(node).map(drop)
        }
        DeployMethod::Direct if oci_image(node)?.is_some() => {
            check_layout(node)?;
            config_drive_of(node).map(drop)
        }
        DeployMethod::Direct => {
            image(node)?;
            layout_at_url(node).map(drop)
        }
        DeployMethod::Ramdisk => own_image(node).map(|_| ()),
        DeployMethod::Bootc => {
            bootable_container(node)?;
            config_drive_of(node).map(drop)
        }
        DeployMethod::CustomAgent => config_drive_of(node).map(|_| ()),
        DeployMethod::Fake => Ok(()),
    }
}

/// Refuses settings of the agent that are not valid: proxies, the root of the image, and root device hints. The hints of the instance come
/// before the node's own.
fn check_agent_settings(node: &Node) -> Result<(), RequestRefused> {
    match node.deploy_method() {
        DeployMethod::Direct | DeployMethod::CustomAgent | DeployMethod::Bootc => {}
        DeployMethod::Ramdisk | DeployMethod::Fake => return Ok(()),
    }
    check_image_keys(node)?;
    mirrored_root(node)?;
    let field = "root_device";
    let of = |object: &Map<String, Value>| object.get(field).filter(|it| !is_empty(it)).cloned();
    let (object, hints) = match (of(&node.instance_info), of(&node.properties)) {
        (Some(hints), _) => ("instance_info", hints),
        (None, Some(hints)) => ("properties", hints),
        (None, None) => return Ok(()),
    };
    let refused = |problem| RequestRefused::Field { field: format!("{object}.{field}"), problem };
    let Value::Object(hints) = hints else {
        return Err(refused("must be an object of root device hints".to_owned()));
    };
    RootDeviceHints::parse(&hints).map(drop).map_err(|why| refused(why.to_string()))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(object) => object.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => false,
    }
}

/// Refuses an instance that wants a boot setting which the node's interface cannot change, and an unknown boot mode, wanted or declared.
fn check_wanted_boot(node: &Node) -> Result<(), RequestRefused> {
    if declared_word(node).is_some() && declared_boot_mode(node).is_none() {
        let problem = "boot_mode must be bios or uefi".to_owned();
        return Err(RequestRefused::Field { field: "properties.capabilities".to_owned(), problem });
    }
    let WantedBoot { mode, secure_boot } = wanted_boot(node);
    let capabilities = node.instance_info.get("capabilities");
    let named = capabilities.and_then(|capabilities| capabilities.get("boot_mode"));
    if mode.is_none() && named.is_some_and(|named| !named.is_null()) {
        let problem = "must be bios or uefi".to_owned();
        return Err(refuse("capabilities.boot_mode", problem));
    }
    let interface = node.management_interface();
    if interface.is_redfish() {
        return Ok(());
    }
    let field = match (mode, secure_boot) {
        (_, true) => "capabilities.secure_boot",
        (Some(_), false) => "capabilities.boot_mode",
        (None, false) => return Ok(()),
    };
    let problem = format!("the management interface {} cannot change it", interface.as_str());
    Err(refuse(field, problem))
}

/// Checks that the ramdisk can reach the machine of `node`, which has these `ports`.
pub fn check_boot(node: &Node, ports: &[Port]) -> Result<(), RequestRefused> {
    check_agent_ramdisk(node)?;
    check_fast_track(node)?;
    match node.boot_interface() {
        BootInterface::Fake | BootInterface::VirtualMedia | BootInterface::IdracVirtualMedia => {
            Ok(())
        }
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
    fn root_device_hints_are_checked_before_the_deployment() {
        let mut machine =
            node(json!({"image_source": "http://h/i", "image_checksum": "0".repeat(64)}));
        machine.properties.insert("root_device".to_owned(), json!({"size": ">= 100"}));
        assert_eq!(check_deploy(&machine), Ok(()));
        let refused = |node: &Node| check_deploy(node).unwrap_err().to_string();
        for (hints, why) in [
            (
                json!({"colour": "red"}),
                "the root device hint \"colour\" names no property of a disk",
            ),
            (
                json!({"rotational": "maybe"}),
                "the root device hint rotational cannot be \"maybe\": it must be true or false",
            ),
            (json!("/dev/sda"), "must be an object of root device hints"),
        ] {
            machine.properties.insert("root_device".to_owned(), hints);
            assert_eq!(refused(&machine), format!("properties.root_device: {why}"));
        }
        // The hints of the instance come first.
        let hints = json!({"name": "/dev/vda"});
        machine.instance_info.insert("root_device".to_owned(), hints);
        assert_eq!(check_deploy(&machine), Ok(()));
        machine.instance_info.insert("root_device".to_owned(), json!({"name": 5}));
        assert!(refused(&machine).starts_with("instance_info.root_device: "));
        machine.driver = Driver::FakeHardware;
        assert_eq!(check_deploy(&machine), Ok(()));
    }

    #[test]
    fn an_image_is_read_without_a_proxy() {
        let mut machine =
            node(json!({"image_source": "http://h/i", "image_checksum": "0".repeat(64)}));
        machine.driver_info.insert("image_https_proxy".to_owned(), "".into());
        assert_eq!(check_deploy(&machine), Ok(()));
        machine.driver_info.insert("image_https_proxy".to_owned(), "http://proxy:3128".into());
        let refused = check_deploy(&machine).unwrap_err().to_string();
        assert_eq!(
            refused,
            "driver_info.image_https_proxy: must be empty: the machine uses no proxy"
        );
    }

    #[test]
    fn an_instance_that_wants_a_boot_setting_needs_an_interface_that_changes_it() {
        let wants = |capabilities: Value| {
            node(json!({
                "image_source": "http://h/i", "image_checksum": "0".repeat(64),
                "capabilities": capabilities,
            }))
        };
        let refused = |node: &Node| check_deploy(node).unwrap_err().to_string();
        for wanted in [
            json!({"secure_boot": "true"}),
            json!({"secure_boot": "True"}),
            json!({"secure_boot": true}),
            json!({"boot_mode": "uefi"}),
        ] {
            let mut machine = wants(wanted.clone());
            assert_eq!(check_deploy(&machine), Ok(()));
            machine.driver = Driver::Ipmi;
            let why = refused(&machine);
            let name = wanted.as_object().and_then(|all| all.keys().next()).unwrap();
            let words = format!(
                "instance_info.capabilities.{name}: the management interface ipmitool cannot"
            );
            assert!(why.starts_with(&words), "{why}");
        }
        let wrong = refused(&wants(json!({"boot_mode": "uefy"})));
        assert!(wrong.ends_with("capabilities.boot_mode: must be bios or uefi"), "{wrong}");
        let mut machine = wants(json!({}));
        machine.properties.insert("capabilities".to_owned(), "boot_mode:legacy".into());
        let wrong = refused(&machine);
        assert!(
            wrong.ends_with("properties.capabilities: boot_mode must be bios or uefi"),
            "{wrong}"
        );
        for wanted in
            [json!({"secure_boot": "false"}), json!({"secure_boot": null, "boot_mode": null})]
        {
            let mut machine = wants(wanted);
            machine.driver = Driver::Ipmi;
            assert_eq!(check_deploy(&machine), Ok(()));
        }
    }
}
