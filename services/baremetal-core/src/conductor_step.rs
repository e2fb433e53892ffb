//! Steps that the conductor runs itself: those of the fake interfaces, as in `ironic/drivers/modules/fake.py`, and those that a BMC carries
//! out.

use crate::bmc_clock::{OFFSET, TIME};
use crate::{
    BiosInterface, FirmwareInterface, Interface, Node, OfferedStep, SET_BMC_CLOCK, StepKind,
    VendorInterface,
};

/// The step that changes BIOS settings.
pub const APPLY_BIOS_SETTINGS: &str = "apply_configuration";

/// The step that resets all BIOS settings.
pub const RESET_BIOS_SETTINGS: &str = "factory_reset";

/// The step that updates firmware.
pub const UPDATE_FIRMWARE: &str = "update";

/// The step that makes the target RAID configuration of the node.
pub const CREATE_RAID: &str = "create_configuration";

/// The step that makes the RAID configuration of its argument.
pub const APPLY_RAID: &str = "apply_configuration";

/// The step that deletes all RAID volumes.
pub const DELETE_RAID: &str = "delete_configuration";

/// The step that replaces the keys of Secure Boot by those of the machine's maker.
pub const RESET_SECURE_BOOT_KEYS: &str = "reset_secure_boot_keys_to_default";

/// The step that deletes the keys of Secure Boot.
pub const CLEAR_SECURE_BOOT_KEYS: &str = "clear_secure_boot_keys";

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
    if node.bios_interface().is_redfish() {
        let without_ramdisk = |step| OfferedStep { needs_ramdisk: false, ..step };
        let apply = OfferedStep::of_conductor(Interface::Bios, APPLY_BIOS_SETTINGS, 0);
        let apply = apply.with_argument("settings", true, "the BIOS settings");
        let reset = OfferedStep::of_conductor(Interface::Bios, RESET_BIOS_SETTINGS, 0);
        steps.extend([apply, reset].map(without_ramdisk));
    }
    let update = OfferedStep::of_conductor(Interface::Firmware, UPDATE_FIRMWARE, 0);
    let update = update.with_argument("settings", true, "the firmware components");
    match node.firmware_interface() {
        FirmwareInterface::Redfish => {
            steps.push(OfferedStep { needs_ramdisk: false, ..update });
        }
        FirmwareInterface::Fake if kind == StepKind::Clean => steps.push(update),
        FirmwareInterface::Fake | FirmwareInterface::NoFirmware => {}
    }
    if node.raid_interface().is_redfish() {
        steps.extend(raid_steps(kind));
    }
    if node.management_interface().is_redfish() {
        steps.extend(management_steps(kind));
    }
    steps
}

/// Returns the steps of the management interface `redfish`, of the kinds that Ironic has.
fn management_steps(kind: StepKind) -> Vec<OfferedStep> {
    let step = |name| {
        let step = OfferedStep::of_conductor(Interface::Management, name, 0);
        OfferedStep { needs_ramdisk: false, ..step }
    };
    let keys = [RESET_SECURE_BOOT_KEYS, CLEAR_SECURE_BOOT_KEYS];
    let mut steps = match kind {
        StepKind::Clean | StepKind::Deploy => Vec::from(keys.map(step)),
        StepKind::Service => Vec::new(),
    };
    if kind == StepKind::Clean {
        let clock = step(SET_BMC_CLOCK).with_argument(TIME, false, "the time to set (now)");
        steps.push(clock.with_argument(OFFSET, false, "the offset of local time from UTC"));
    }
    steps
}

/// Returns the steps of the RAID interface `redfish`. Ironic has the target configuration made in cleaning alone, and that of an argument in
/// deployment and service.
fn raid_steps(kind: StepKind) -> [OfferedStep; 2] {
    let step = |name| {
        let step = OfferedStep::of_conductor(Interface::Raid, name, 0);
        OfferedStep { needs_ramdisk: false, ..step }
    };
    let make = match kind {
        StepKind::Clean => step(CREATE_RAID),
        StepKind::Deploy | StepKind::Service => {
            step(APPLY_RAID).with_argument("raid_config", true, "the RAID configuration")
        }
    };
    let others = if kind == StepKind::Clean { "true" } else { "false" };
    let make = make
        .with_argument("create_root_volume", false, "whether to make the root volume (true)")
        .with_argument(
            "create_nonroot_volumes",
            false,
            &format!("whether to make the other volumes ({others})"),
        )
        .with_argument("delete_existing", false, "whether to delete all volumes first (false)");
    [make, step(DELETE_RAID)]
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::{Driver, NodeUuid, RaidInterface};

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
            let management = [
                "management.reset_secure_boot_keys_to_default",
                "management.clear_secure_boot_keys",
                "management.set_bmc_clock",
            ];
            let management = match kind {
                StepKind::Clean => &management[..],
                StepKind::Deploy => &management[..2],
                StepKind::Service => &[],
            };
            let raid = match kind {
                StepKind::Clean => "raid.create_configuration",
                StepKind::Deploy | StepKind::Service => "raid.apply_configuration",
            };
            let others = ["firmware.update", raid, "raid.delete_configuration"];
            assert_eq!(names(Driver::Redfish, kind), [&bios, &others[..], management].concat());
            assert!(names(Driver::Ipmi, kind).is_empty());
            let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, jiff::Timestamp::UNIX_EPOCH);
            let update = conductor_steps(&node, kind).swap_remove(2);
            assert_eq!(
                (update.name.to_string().as_str(), update.needs_ramdisk),
                ("firmware.update", false)
            );
            let raid = conductor_steps(&node, kind).split_off(3);
            let raid = raid.iter().take(2).map(|step| (step.name.step.as_str(), step.args.len()));
            let make = match kind {
                StepKind::Clean => ("create_configuration", 3),
                StepKind::Deploy | StepKind::Service => ("apply_configuration", 4),
            };
            assert_eq!(raid.collect::<Vec<_>>(), [make, ("delete_configuration", 0)]);
            node.interfaces.firmware = Some(FirmwareInterface::NoFirmware);
            node.interfaces.raid = Some(RaidInterface::NoRaid);
            let names = conductor_steps(&node, kind);
            assert_eq!(names.len(), bios.len() + management.len());
        }
    }

    #[test]
    fn steps_that_a_bmc_carries_out_need_no_ramdisk() {
        let node = Node::new(NodeUuid::nil(), Driver::Redfish, jiff::Timestamp::UNIX_EPOCH);
        for kind in [StepKind::Clean, StepKind::Deploy, StepKind::Service] {
            for step in conductor_steps(&node, kind) {
                assert!(!step.needs_ramdisk, "{}", step.name);
            }
        }
        let fake = Node { driver: Driver::FakeHardware, ..node };
        let vendor = conductor_steps(&fake, StepKind::Service);
        let vendor = vendor.iter().map(|step| (step.name.step.as_str(), step.needs_ramdisk));
        let want = [("log_passthrough", false), ("trigger_servicewait", true)];
        assert_eq!(vendor.take(2).collect::<Vec<_>>(), want);
    }

    #[test]
    fn the_words_for_the_other_volumes_name_the_default_of_each_kind() {
        for (kind, word) in
            [(StepKind::Clean, "true"), (StepKind::Deploy, "false"), (StepKind::Service, "false")]
        {
            let [make, _] = raid_steps(kind);
            let others = &make.args["create_nonroot_volumes"].description;
            assert_eq!(*others, format!("whether to make the other volumes ({word})"));
        }
    }

    #[test]
    fn the_arguments_of_the_clock_are_checked_before_the_step_runs() {
        let node = Node::new(NodeUuid::nil(), Driver::Redfish, jiff::Timestamp::UNIX_EPOCH);
        let clock = conductor_steps(&node, StepKind::Clean).pop().unwrap();
        let check = |time: &str| {
            let args = Map::from_iter([(TIME.to_owned(), time.into())]);
            clock.check(&args).map_err(|why| why.to_string())
        };
        assert_eq!(check("2026-01-31T23:59:00Z"), Ok(()));
        let want = "the step management.set_bmc_clock has a wrong argument target_datetime: must be a time of ISO 8601 with its offset from UTC, \
                    such as 2026-01-31T23:59:00Z";
        assert_eq!(check("now"), Err(want.to_owned()));
    }
}
