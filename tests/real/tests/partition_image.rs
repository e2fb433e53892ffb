//! Machines that are installed with the image of a partition, by our agent: it makes the partitions and the boot loader.

use real::stations::{self, ManagementAccess};
use real::{Firmware, Story};

#[test]
fn a_uefi_machine_boots_the_image_of_a_partition() {
    let Some(mut story) = Story::begin("partition-uefi", &[Firmware::Uefi]) else { return };
    let machine = story.machine(0);
    stations::enroll(&mut story, &machine, &ManagementAccess::redfish(&machine, "ipxe"));
    stations::provide(&mut story, &machine);
    stations::deploy_partition(&mut story, &machine, &["image_type=partition"]);
    stations::give_back(&mut story, &machine, 1);
}

#[test]
fn a_bios_machine_boots_the_image_of_a_partition() {
    let Some(mut story) = Story::begin("partition-bios", &[Firmware::Bios]) else { return };
    let machine = story.machine(0);
    stations::enroll(&mut story, &machine, &ManagementAccess::ipmi(&machine, "ipxe"));
    stations::provide(&mut story, &machine);
    stations::deploy_partition(&mut story, &machine, &["image_type=partition"]);
    stations::give_back(&mut story, &machine, 1);
}
