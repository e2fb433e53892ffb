//! A machine with a mirror of two disks, made by our agent. It boots with either disk pulled.

use std::time::Duration;

use real::stations::{self, ManagementAccess};
use real::{Firmware, Machine, RackOptions, Story, image};
use serde_json::json;

/// How long an installed machine may take to boot.
const BOOT_TIMEOUT: Duration = Duration::from_secs(400);

/// The sizes of the machine. The agent chooses no array below 4 GiB, and 551 MiB of each disk are not in the array.
const SIZES: [(&str, &str); 2] = [("RACK_DISK", "5G"), ("RACK_DISKS", "2")];

/// Makes a mirror by a clean step, cleans the machine, installs an image on the mirror, and boots it with both disks and with each alone.
#[test]
fn our_agent_makes_a_mirror_that_boots_with_either_disk_pulled() {
    let options = RackOptions { sizes: &SIZES, ..RackOptions::default() };
    let Some(mut story) = Story::begin_given("mirror", &[Firmware::Uefi], &options) else { return };
    let machine = story.machine(0);
    stations::enroll(&mut story, &machine, &ManagementAccess::redfish(&machine, "ipxe"));
    let disk = json!({
        "controller": "software", "raid_level": "1", "size_gb": "MAX", "is_root_volume": true,
    });
    let wanted = json!({"logical_disks": [disk]});
    let config = wanted.to_string();
    let words = ["node", "set", &machine.name, "--raid-interface", "agent"];
    story.client.done(&words);
    story.client.done(&["node", "set", &machine.name, "--target-raid-config", &config]);

    let steps = json!([{"interface": "raid", "step": "create_configuration"}]);
    stations::clean(&mut story, &machine, &steps);
    built(&mut story, &machine, &wanted);
    stations::provide_with_raid(&mut story, &machine);
    built(&mut story, &machine, &wanted);

    stations::deploy(&mut story, &machine, &image("tiny-mirror.qcow2"));
    machine.prints("MIRROR-CONTENT 2/2 on ", 1, BOOT_TIMEOUT);
    for (pulled, left) in
        [("vda", format!("{}-2", machine.disk_serial)), ("vdb", machine.disk_serial.clone())]
    {
        stations::power(&mut story, &machine, "off");
        story.rack.pull(&machine, pulled);
        stations::power(&mut story, &machine, "on");
        let line = format!("MIRROR-CONTENT 2/1 on {left}\r\n");
        machine.prints(&line, 1, BOOT_TIMEOUT);
        stations::power(&mut story, &machine, "off");
        story.rack.plug(&machine, pulled);
    }
}

/// Checks that the node records the configuration.
#[track_caller]
fn built(story: &mut Story, machine: &Machine, wanted: &serde_json::Value) {
    let mut recorded = story.field(&machine.name, "raid_config");
    let updated = recorded.as_object_mut().and_then(|config| config.remove("last_updated"));
    assert!(updated.is_some_and(|time| time.is_string()), "{recorded}");
    assert_eq!(&recorded, wanted);
}
