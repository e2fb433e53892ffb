//! A machine that boots from the network by HTTP only: its firmware sends the class HTTPClient, and TFTP is not used.

use real::road::{Reach, there_and_back};
use real::{Firmware, Story, image};

#[test]
fn a_machine_is_deployed_by_uefi_http_boot_and_undeployed() {
    let Some(mut story) = Story::begin("http", &[Firmware::Http]) else { return };
    let machine = story.machine(0);
    let reach = Reach::redfish(&machine, "http-ipxe");
    there_and_back(&mut story, &machine, &reach, &image("tiny.raw"));
    assert!(machine.printed().contains("Start HTTP Boot"), "the firmware never tried HTTP boot");
    assert!(!machine.printed().contains("Start PXE"), "the firmware tried PXE");
}
