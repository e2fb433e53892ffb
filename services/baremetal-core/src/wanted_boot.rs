//! The boot settings that an instance wants from its machine, and the boot mode that its operator declares: `capabilities` of
//! `instance_info` and of `properties`, as in Ironic.

use hardware::BootMode;
use serde_json::Value;

use crate::Node;

/// The boot settings that the instance of a node wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WantedBoot {
    /// The machine starts in this mode.
    pub(crate) mode: Option<BootMode>,
    /// The machine starts only signed programs while the instance runs.
    pub(crate) secure_boot: bool,
}

/// Returns the boot settings that the work of `node` has to change. A machine whose interface changes no settings keeps those it has.
///
/// An instance that wants no boot mode gets the declared one, if the machine is known to start in the other.
pub(crate) fn changed_boot(node: &Node) -> WantedBoot {
    if !node.management_interface().is_redfish() {
        return WantedBoot::default();
    }
    let wanted = wanted_boot(node);
    let starts_otherwise = |declared: &BootMode| node.boot_mode.is_some_and(|is| is != *declared);
    let declared = declared_boot_mode(node).filter(starts_otherwise);
    WantedBoot { mode: wanted.mode.or(declared), ..wanted }
}

/// Returns the boot mode that `properties.capabilities` declares (`boot_mode:uefi`, after ironic's `get_boot_mode_for_deploy`). A word that
/// is no boot mode counts as none; `check_deploy` refuses it.
pub fn declared_boot_mode(node: &Node) -> Option<BootMode> {
    declared_word(node).and_then(boot_mode)
}

/// Returns the word after `boot_mode:` in `properties.capabilities`.
pub(crate) fn declared_word(node: &Node) -> Option<&str> {
    declared_capability(node, "boot_mode")
}

/// Returns the value of a capability in `properties.capabilities`, which is text such as `boot_mode:uefi,disk_label:gpt`.
pub(crate) fn declared_capability<'a>(node: &'a Node, wanted: &str) -> Option<&'a str> {
    let capabilities = node.properties.get("capabilities")?.as_str()?;
    let mut pairs = capabilities.split(',').filter_map(|pair| pair.split_once(':'));
    pairs.find_map(|(name, value)| (name.trim() == wanted).then_some(value.trim()))
}

fn boot_mode(word: &str) -> Option<BootMode> {
    let mut modes = [BootMode::Bios, BootMode::Uefi].into_iter();
    modes.find(|mode| word.eq_ignore_ascii_case(mode.as_str()))
}

/// Returns the boot settings that the instance of `node` wants. A value that is no setting counts as none; `check_deploy` refuses it.
pub(crate) fn wanted_boot(node: &Node) -> WantedBoot {
    let capabilities = node.instance_info.get("capabilities");
    let value = |name: &str| capabilities.and_then(|capabilities| capabilities.get(name));
    let mode = value("boot_mode").and_then(Value::as_str).and_then(boot_mode);
    let secure_boot = value("secure_boot").is_some_and(|wanted| match wanted {
        Value::Bool(wanted) => *wanted,
        Value::String(wanted) => wanted.eq_ignore_ascii_case("true"),
        Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => false,
    });
    WantedBoot { mode, secure_boot }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::{Driver, NodeUuid};

    fn node(driver: Driver, capabilities: &str, starts_in: Option<BootMode>) -> Node {
        let mut node = Node::new(NodeUuid::nil(), driver, Timestamp::UNIX_EPOCH);
        node.properties.insert("capabilities".to_owned(), capabilities.into());
        node.boot_mode = starts_in;
        node
    }

    #[test]
    fn a_declared_boot_mode_is_read_among_other_capabilities() {
        for (capabilities, want) in [
            ("boot_mode:uefi", Some(BootMode::Uefi)),
            ("gpu:true, boot_mode:BIOS ,cpu_vt:true", Some(BootMode::Bios)),
            ("boot_mode:legacy", None),
            ("supported_boot_mode:uefi", None),
            ("boot_mode", None),
            ("", None),
        ] {
            let node = node(Driver::Redfish, capabilities, None);
            assert_eq!(declared_boot_mode(&node), want, "{capabilities}");
        }
        let mut listed = node(Driver::Redfish, "", None);
        listed.properties.insert("capabilities".to_owned(), json!(["boot_mode:uefi"]));
        assert_eq!(declared_boot_mode(&listed), None);
    }

    #[test]
    fn a_machine_that_starts_otherwise_is_changed_to_the_declared_boot_mode() {
        let changed = |driver, starts_in| changed_boot(&node(driver, "boot_mode:uefi", starts_in));
        assert_eq!(changed(Driver::Redfish, Some(BootMode::Bios)).mode, Some(BootMode::Uefi));
        assert_eq!(changed(Driver::Redfish, Some(BootMode::Uefi)), WantedBoot::default());
        assert_eq!(changed(Driver::Redfish, None), WantedBoot::default());
        assert_eq!(changed(Driver::Ipmi, Some(BootMode::Bios)), WantedBoot::default());
    }

    #[test]
    fn an_instance_may_want_another_boot_mode_than_the_declared_one() {
        let mut node = node(Driver::Redfish, "boot_mode:uefi", Some(BootMode::Bios));
        node.instance_info.insert("capabilities".to_owned(), json!({"boot_mode": "bios"}));
        assert_eq!(changed_boot(&node).mode, Some(BootMode::Bios));
    }
}
