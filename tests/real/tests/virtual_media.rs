//! A machine whose BMC puts a CD into it: no DHCP, no TFTP, no network boot at all.

use real::road::{ASKS_BY_DHCP, Reach, there_and_back};
use real::{Firmware, Story, image};

#[test]
fn a_machine_is_installed_by_virtual_media_and_given_back() {
    let Some(mut story) = Story::begin("media", &[Firmware::Uefi]) else { return };
    let machine = story.machine(0);
    let reach = Reach::redfish(&machine, "redfish-virtual-media");
    there_and_back(&mut story, &machine, &reach, &image("tiny.raw.gz"));
    let printed = machine.printed();
    // the address comes with the medium
    assert!(!printed.contains(ASKS_BY_DHCP), "the ramdisk asked for an address");
    for attempt in ["Start PXE", "Start HTTP Boot"] {
        assert!(!printed.contains(attempt), "the machine booted from the network");
    }
}
