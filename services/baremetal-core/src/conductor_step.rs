//! Steps that the conductor runs itself: those of the fake interfaces, as in `ironic/drivers/modules/fake.py`, and those that a BMC carries
//! out.

use crate::{
    BiosInterface, FirmwareInterface, Interface, Node, OfferedStep, StepKind, VendorInterface,
};

/// The step that changes BIOS settings.
pub const APPLY_BIOS_SETTINGS: &str = "apply_configuration";

/// The step that resets all BIOS settings.
pub const RESET_BIOS_SETTINGS: &str = "factory_reset";

/// Returns the steps that the conductor offers for `node`, besides the general ones.
pub(crate) fn conductor_steps(node: &Node, kind: StepKind) -> Vec<OfferedStep> {
    let mut steps = Vec::new();
    if node.vendor_interface() == VendorInterface::Fake {
        match kind {
            StepKind::Clean => {
                steps.push(OfferedStep::of_conductor(Interface::Vendor, "log_passthrough", 1))
            }
            StepKind::Service => {
                let log = OfferedStep::of_conductor(Interface::Vendor, "log_passthrough", 0);
                steps.push(OfferedStep { needs_ramdisk: false, ..log });
                steps.push(OfferedStep::of_conductor(Interface::Vendor, "trigger_servicewait", 0));
            }
            StepKind::Deploy => {}
        }
    }
    if kind == StepKind::Clean && node.bios_interface() == BiosInterface::Fake {
        let apply = OfferedStep::of_conductor(Interface::Bios, APPLY_BIOS_SETTINGS, 0);
        steps.push(apply.with_argument("settings", true, "the BIOS settings"));
        steps.push(OfferedStep::of_conductor(Interface::Bios, RESET_BIOS_SETTINGS, 0));
        steps.push(OfferedStep::of_conductor(Interface::Bios, "cache_bios_settings", 0));
    }
    if node.bios_interface() == BiosInterface::Redfish {
        let without_ramdisk = |step| OfferedStep { needs_ramdisk: false, ..step };
        let apply = OfferedStep::of_conductor(Interface::Bios, APPLY_BIOS_SETTINGS, 0);
        let apply = apply.with_argument("settings", true, "the BIOS settings");
        let reset = OfferedStep::of_conductor(Interface::Bios, RESET_BIOS_SETTINGS, 0);
        steps.extend([apply, reset].map(without_ramdisk));
    }
    if kind == StepKind::Clean && node.firmware_interface() == FirmwareInterface::Fake {
        let update = OfferedStep::of_conductor(Interface::Firmware, "update", 0);
        steps.push(update.with_argument("settings", true, "the firmware components"));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Driver, NodeUuid};

    #[test]
    fn fake_interfaces_and_bmcs_have_steps_of_the_conductor() {
        let names = |driver, kind| {
            let node = Node::new(NodeUuid::nil(), driver, jiff::Timestamp::UNIX_EPOCH);
            let steps = conductor_steps(&node, kind);
            steps.into_iter().map(|step| step.name.to_string()).collect::<Vec<_>>()
        };
        let clean = [
            "vendor.log_passthrough",
            "bios.apply_configuration",
            "bios.factory_reset",
            "bios.cache_bios_settings",
            "firmware.update",
        ];
        assert_eq!(names(Driver::FakeHardware, StepKind::Clean), clean);
        let service = ["vendor.log_passthrough", "vendor.trigger_servicewait"];
        assert_eq!(names(Driver::FakeHardware, StepKind::Service), service);
        for kind in [StepKind::Clean, StepKind::Deploy, StepKind::Service] {
            let bios = ["bios.apply_configuration", "bios.factory_reset"];
            assert_eq!(names(Driver::Redfish, kind), bios);
            assert!(names(Driver::Ipmi, kind).is_empty());
        }
    }
}
