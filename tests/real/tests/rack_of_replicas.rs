//! Three baremetald manage a QEMU machine, and the one that works on the machine is killed in each phase: another one goes on, the machine gets
//! active, and boots and writes its image no more often than without the kills.

use std::time::Duration;

use compat::wait::wait_for;
use real::stations::{self, ManagementAccess};
use real::{Firmware, Machine, Story, image};

/// The line that the ramdisk prints once for each boot, when it has its network.
const RAMDISK_RUNS: &str = "network on ";
/// How long a change of state that boots the machine may take.
const PHASE_TIMEOUT: Duration = Duration::from_secs(420);
/// How long it may take until another one works on the machine. `make test-replicas` measures the time elsewhere.
const TAKEN_OVER: Duration = Duration::from_secs(30);

#[test]
fn a_machine_gets_active_although_a_baremetald_dies_in_each_phase() {
    let Some(mut story) = Story::begin_with_replicas("replicas", &[Firmware::Bios]) else { return };
    let machine = story.machine(0);
    let image = image("tiny.raw.gz");
    stations::create(&mut story, &machine, &ManagementAccess::redfish(&machine, "ipxe"));
    stations::choose(&mut story, &machine, &image);

    killed(&mut story, &machine, "manage", None, "manageable");
    killed(&mut story, &machine, "inspect", Some("inspect wait"), "manageable");
    killed(&mut story, &machine, "provide", Some("clean wait"), "available");
    killed(&mut story, &machine, "deploy", Some("wait call-back"), "active");
    machine.prints(machine.firmware.boots_as(), 1, PHASE_TIMEOUT);
    killed_at_a_reboot(&mut story, &machine);
    machine.prints(machine.firmware.boots_as(), 2, PHASE_TIMEOUT);

    // The inspection, the cleaning and the deployment have booted the ramdisk once each, and the image was downloaded once.
    let printed = machine.printed();
    let boots = [RAMDISK_RUNS, machine.firmware.boots_as()];
    assert_eq!(boots.map(|line| printed.matches(line).count()), [3, 2], "{printed}");
    let served = std::fs::read_to_string(story.rack.log("images")).expect("the log of the images");
    assert_eq!(served.matches("\"GET /tiny.raw.gz").count(), 1, "{served}");
    assert_eq!(story.field(&machine.name, "provision_state"), "active");
    assert_eq!(story.field(&machine.name, "power_state"), "power on");
}

/// Requests a change of state, kills the baremetald that works on the node when the node is in the state `busy`, or at once, and waits for the
/// end.
#[track_caller]
fn killed(story: &mut Story, machine: &Machine, verb: &str, busy: Option<&str>, end: &str) {
    story.client.done(&["node", verb, &machine.name]);
    if let Some(busy) = busy {
        is_in(story, machine, busy);
    }
    let dead = kill_owner(story, machine);
    is_in(story, machine, end);
    story.replicas().start_again(&dead);
}

/// Reboots the machine, and kills the baremetald that does it.
#[track_caller]
fn killed_at_a_reboot(story: &mut Story, machine: &Machine) {
    story.client.done(&["node", "reboot", &machine.name]);
    let dead = kill_owner(story, machine);
    wait_for("the end of the reboot", PHASE_TIMEOUT, || {
        story.field(&machine.name, "target_power_state").is_null().then_some(())
    });
    story.replicas().start_again(&dead);
}

/// Waits until the node is in a state. A node that failed never will be.
#[track_caller]
fn is_in(story: &mut Story, machine: &Machine, state: &str) {
    wait_for(&format!("{} to be {state}", machine.name), PHASE_TIMEOUT, || {
        let now = story.field(&machine.name, "provision_state");
        if now.as_str().is_some_and(|now| now.ends_with("failed") || now == "error") {
            panic!("{now}: {}", story.field(&machine.name, "last_error"));
        }
        (now == state).then_some(())
    });
}

/// Kills the baremetald that works on the node, and waits until another one does. Returns its host name.
#[track_caller]
fn kill_owner(story: &mut Story, machine: &Machine) -> String {
    let owner = story.field(&machine.name, "conductor");
    let owner = owner.as_str().expect("a conductor works on the node").to_owned();
    story.replicas().kill(&owner);
    wait_for("another conductor of the node", TAKEN_OVER, || {
        (story.field(&machine.name, "conductor") != owner.as_str()).then_some(())
    });
    owner
}
