//! A machine that boots from the network by HTTP only: its firmware sends the class HTTPClient, and TFTP is not used. With fast track, one boot
//! of the ramdisk inspects, cleans and installs it.

use real::stations::{
    ASKS_BY_DHCP, ManagementAccess, deploy, enroll, give_back, inspect, keeps_ramdisk,
    provide_running,
};
use real::{Firmware, Story, image};

#[test]
fn a_machine_is_deployed_by_uefi_http_boot_and_undeployed() {
    let Some(mut story) = Story::begin("http", &[Firmware::Http]) else { return };
    let machine = story.machine(0);
    let reach = ManagementAccess::redfish(&machine, "http-ipxe");
    enroll(&mut story, &machine, &reach);
    keeps_ramdisk(&mut story, &machine, true);
    inspect(&mut story, &machine);
    provide_running(&mut story, &machine);
    deploy(&mut story, &machine, &image("tiny.raw"));
    let boots = || machine.printed().matches(ASKS_BY_DHCP).count();
    assert_eq!(boots(), 1, "the ramdisk booted again");
    keeps_ramdisk(&mut story, &machine, false);
    give_back(&mut story, &machine, 1);
    assert_eq!(boots(), 2);
    assert!(machine.printed().contains("Start HTTP Boot"), "the firmware never tried HTTP boot");
    assert!(!machine.printed().contains("Start PXE"), "the firmware tried PXE");
}
