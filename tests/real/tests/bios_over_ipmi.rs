//! A machine with a BIOS, whose BMC speaks IPMI: its network card's iPXE asks by DHCP and gets its ramdisk by HTTP.

use real::road::{ASKS_BY_DHCP, Reach, there_and_back};
use real::{Firmware, Story, image};

#[test]
fn a_bios_machine_is_installed_over_ipmi_and_given_back() {
    let Some(mut story) = Story::begin("bios", &[Firmware::Bios]) else { return };
    let machine = story.machine(0);
    let reach = Reach::ipmi(&machine, "ipxe");
    there_and_back(&mut story, &machine, &reach, &image("tiny.raw.gz"));
    assert!(machine.printed().contains(ASKS_BY_DHCP), "the ramdisk never asked for an address");
}
