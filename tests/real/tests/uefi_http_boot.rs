//! A machine that boots from the network by HTTP only: its firmware sends the class HTTPClient, and TFTP is not used.

use real::stations::{ManagementAccess, deploy_and_undeploy};
use real::{Firmware, Story, image};

#[test]
fn a_machine_is_deployed_by_uefi_http_boot_and_undeployed() {
    let Some(mut story) = Story::begin("http", &[Firmware::Http]) else { return };
    let machine = story.machine(0);
    let reach = ManagementAccess::redfish(&machine, "http-ipxe");
    deploy_and_undeploy(&mut story, &machine, &reach, &image("tiny.raw"));
    assert!(machine.printed().contains("Start HTTP Boot"), "the firmware never tried HTTP boot");
    assert!(!machine.printed().contains("Start PXE"), "the firmware tried PXE");
}
