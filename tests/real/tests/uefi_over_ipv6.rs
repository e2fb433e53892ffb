//! Machines on a network with IPv6 only: DHCPv6, iPXE by TFTP or by HTTP, the agent's reports and calls, and the image.

use real::stations::{
    ASKS_BY_DHCP, ManagementAccess, deploy, deploy_and_undeploy, enroll, give_back, inspect,
    keeps_ramdisk, provide_running,
};
use real::{Firmware, Machine, Network, RackOptions, Story, image_over};

fn begin(name: &str, firmware: Firmware) -> Option<Story> {
    let options = RackOptions { network: Network::V6, ..RackOptions::default() };
    Story::begin_given(name, &[firmware], &options)
}

/// Checks that the ramdisk had the leased address and no other way to one.
#[track_caller]
fn used_ipv6_only(machine: &Machine) {
    let printed = machine.printed();
    assert!(!printed.contains(ASKS_BY_DHCP), "the ramdisk asked for an address");
    assert!(printed.contains(" fd78::100/64 "), "the ramdisk had another address");
    assert!(!printed.contains("10.78."), "something used IPv4");
}

#[test]
fn a_machine_is_deployed_by_pxe_over_ipv6_and_undeployed() {
    let Some(mut story) = begin("ipv6", Firmware::Uefi) else { return };
    let machine = story.machine(0);
    let reach = ManagementAccess::redfish(&machine, "ipxe");
    let image = image_over(Network::V6, "tiny.raw.gz");
    deploy_and_undeploy(&mut story, &machine, &reach, &image);
    used_ipv6_only(&machine);
    assert!(machine.printed().contains("Start PXE over IPv6"), "the firmware never tried PXE");
}

#[test]
fn a_machine_is_deployed_by_uefi_http_boot_over_ipv6_and_undeployed() {
    let Some(mut story) = begin("http6", Firmware::Http) else { return };
    let machine = story.machine(0);
    let reach = ManagementAccess::redfish(&machine, "http-ipxe");
    enroll(&mut story, &machine, &reach);
    keeps_ramdisk(&mut story, &machine, true);
    inspect(&mut story, &machine);
    provide_running(&mut story, &machine);
    deploy(&mut story, &machine, &image_over(Network::V6, "tiny.raw"));
    keeps_ramdisk(&mut story, &machine, false);
    give_back(&mut story, &machine, 1);
    used_ipv6_only(&machine);
    let printed = machine.printed();
    assert!(printed.contains("Start HTTP Boot over IPv6"), "the firmware never tried HTTP boot");
    assert!(!printed.contains("Start PXE"), "the firmware tried PXE");
}
