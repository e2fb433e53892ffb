//! A machine whose firmware loads iPXE by HTTPS, and trusts only the rack's CA. With fast track, one boot of the ramdisk inspects, cleans and
//! installs it.

use real::stations::{
    ManagementAccess, deploy, enroll, give_back, inspect, keeps_ramdisk, provide_running,
};
use real::{Firmware, Story, image};

#[test]
fn a_machine_is_deployed_by_uefi_https_boot_and_undeployed() {
    let Some(mut story) = Story::begin("https", &[Firmware::Https]) else { return };
    let machine = story.machine(0);
    let reach = ManagementAccess::redfish(&machine, "http-ipxe");
    enroll(&mut story, &machine, &reach);
    keeps_ramdisk(&mut story, &machine, true);
    inspect(&mut story, &machine);
    provide_running(&mut story, &machine);
    deploy(&mut story, &machine, &image("tiny.raw"));
    keeps_ramdisk(&mut story, &machine, false);
    give_back(&mut story, &machine, 1);
    let printed = machine.printed();
    assert!(
        printed.contains("https://10.78.0.1:6387/ipxe/snponly.efi"),
        "the firmware never tried HTTPS"
    );
}
