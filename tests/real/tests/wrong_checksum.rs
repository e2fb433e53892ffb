//! An image with a wrong checksum never runs.

use real::stations::{self, ManagementAccess};
use real::{Firmware, Image, Story, image};

#[test]
fn an_image_with_a_wrong_checksum_leaves_no_bootable_disk() {
    let Some(mut story) = Story::begin("checksum", &[Firmware::Bios]) else { return };
    let machine = story.machine(0);
    let node = machine.name.as_str();
    stations::enroll(&mut story, &machine, &ManagementAccess::ipmi(&machine, "ipxe"));
    stations::provide(&mut story, &machine);

    let right = image("tiny.raw.gz");
    let wrong = Image { sha256: "0".repeat(64), ..right.clone() };
    stations::choose(&mut story, &machine, &wrong);
    let answer = story.client.run(&["node", "deploy", node, "--wait", "420"]);
    assert_ne!(answer.code, 0, "the deploy succeeded");
    assert_eq!(story.field(node, "provision_state"), "deploy failed");
    let error = story.field(node, "last_error").to_string();
    assert!(
        error.contains(&right.sha256) || error.contains("checksum") || error.contains("sha256"),
        "{error}"
    );

    // The machine must never run the image, also not after the failure.
    story.client.done(&["node", "power", "off", node, "--power-timeout", "60"]);
    compat::wait::wait_for("the machine to be off", std::time::Duration::from_secs(60), || {
        (story.field(node, "power_state") == "power off").then_some(())
    });
    assert_ne!(&machine.edges()[510..512], [0x55, 0xaa], "the disk has a boot sector");
    assert!(!machine.printed().contains("DISK-BOOTED"));

    stations::deploy(&mut story, &machine, &right);
}
