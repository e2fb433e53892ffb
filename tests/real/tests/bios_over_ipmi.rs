//! A machine with a BIOS and an IPMI BMC: the network card's iPXE uses DHCP and downloads the ramdisk by HTTP.

use real::stations::{ASKS_BY_DHCP, ManagementAccess, deploy_and_undeploy};
use real::{Firmware, Story, image};

#[test]
fn a_bios_machine_is_deployed_over_ipmi_and_undeployed() {
    let Some(mut story) = Story::begin("bios", &[Firmware::Bios]) else { return };
    let machine = story.machine(0);
    let reach = ManagementAccess::ipmi(&machine, "ipxe");
    deploy_and_undeploy(&mut story, &machine, &reach, &image("tiny.raw.gz"));
    assert!(machine.printed().contains(ASKS_BY_DHCP), "the ramdisk never asked for an address");
}
