//! A machine that boots from the network by HTTP alone: its firmware asks as HTTPClient and no byte goes over TFTP.

use real::road::{Reach, there_and_back};
use real::{Firmware, Story, image};

#[test]
fn a_machine_is_installed_by_uefi_http_boot_and_given_back() {
    let Some(mut story) = Story::begin("http", &[Firmware::Http]) else { return };
    let machine = story.machine(0);
    let reach = Reach::redfish(&machine, "http-ipxe");
    there_and_back(&mut story, &machine, &reach, &image("tiny.raw"));
    assert!(machine.printed().contains("Start HTTP Boot"), "the firmware never tried HTTP boot");
    assert!(!machine.printed().contains("Start PXE"), "the firmware tried PXE");
}
