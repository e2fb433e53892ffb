//! A whole rack: a manifest and one command install all its machines.

use std::time::Duration;

use real::{Firmware, Story, image};

#[test]
fn a_mixed_rack_is_brought_up_by_one_command() {
    let Some(story) = Story::begin("mixed", &[Firmware::Bios, Firmware::Uefi]) else { return };
    let manifest = story.rack.folder.join("rack.yaml");
    let manifest = manifest.to_str().expect("the cache's path is text");
    let image = image("tiny.qcow2");

    story.bedplate(&["rack", "enroll", manifest]);
    // The table has the age of each state, which changes between two calls; the JSON has its time.
    let status = ["rack", "status", "mixed", "-o", "json"];
    let enrolled = story.bedplate(&status);
    let again = story.bedplate(&["rack", "enroll", manifest]);
    assert_eq!(story.bedplate(&status), enrolled, "enrolling again changed something: {again}");

    let checksum = format!("sha256:{}", image.sha256);
    let reported = story.bedplate(&[
        "rack",
        "up",
        "mixed",
        "--yes",
        // Before the test runner's own limit, so that a failure says how far the machines came.
        "--timeout",
        "15m",
        "--image",
        &image.url,
        "--checksum",
        &checksum,
    ]);
    for machine in &story.rack.machines {
        assert!(reported.contains(&machine.name), "not a word of {}:\n{reported}", machine.name);
        machine.prints(machine.firmware.boots_as(), 1, Duration::from_secs(400));
        let status = story.bedplate(&["rack", "status", "mixed"]);
        let line = status.lines().find(|line| line.contains(&machine.name)).unwrap_or_default();
        assert!(line.contains("active") || line.contains("installed"), "{status}");
        let explained = story.bedplate(&["node", "explain", &machine.name]);
        assert!(explained.contains("active"), "{explained}");
    }
}
