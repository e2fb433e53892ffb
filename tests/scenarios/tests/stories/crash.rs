//! baremetald is killed at every step of a deployment and started again.

use bmc_emulator::{Outcome, PowerRequest, Request};
use futures::{StreamExt, stream};
use lab::{KillResult, Lab, Machine, RackedMachine, Settings, until};
use machine_emulator::{Content, Event, Stage};

/// How many labs run in parallel.
const AT_ONCE: usize = 3;
/// A deployment logs fewer lines than this.
const MOST_LINES: usize = 60;

/// Runs one deployment for each line that a deployment logs, and kills the service at that line.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_survives_a_kill_at_any_step() {
    let runs = stream::iter(1..MOST_LINES).map(killed_at).buffered(AT_ONCE);
    let killed =
        runs.take_while(|killed| std::future::ready(*killed == KillResult::AtLine)).count();
    let killed = killed.await;
    // The ramdisk, on; write, next boot, flush; off, the disk, on; and three states after the first.
    assert!(killed >= 11, "a deployment says only {killed} lines");
    assert!(killed < MOST_LINES - 1, "a deployment says ever more");
}

#[tokio::test]
async fn an_image_is_written_only_once_if_the_service_dies() {
    let lab = Lab::with_child(Settings::default()).await;
    let machine = lab.rack(Machine::redfish("r1u4")).await;
    let node = lab.available(&machine).await;
    let before = (machine.chassis().log().len(), machine.events().len());
    // The download waits until the service is back.
    machine.misbehave(|faults| faults.hold_image = true);
    let asked = lab.provision(node, "active").await;
    let amid = || matches!(machine.disks()[..], [Content::Broken { bytes: 1.. }]);
    until("an image that is being written", amid).await;

    lab.restart().await;
    assert!(amid(), "the image was written before the service was back");
    machine.misbehave(|faults| faults.hold_image = false);
    asked.reaches("active").await;
    machine.stage().wait_for(|stage| *stage == Stage::Installed).await.expect("it boots its disk");
    check_machine(&lab, &machine, &machine.events()[before.1..], "killed amid the image");
    check_bmc(&machine, before.0, "killed amid the image");
}

/// Deploys a machine with a service that is killed at its `line`-th line, or when the deployment is done. A second service, which is not
/// killed, finishes the work.
async fn killed_at(line: usize) -> KillResult {
    let lab = Lab::with_child(Settings::default()).await;
    let machine = lab.rack(Machine::redfish("r1u1")).await;
    let node = lab.available(&machine).await;
    let before = (machine.chassis().log().len(), machine.events().len());

    lab.restart_to_be_killed_at(line).await;
    let asked = lab.provision_and_be_killed(node, "active").await;
    let killed = lab.killed_or(node, "active").await;
    lab.restart().await;
    asked.reaches("active").await;
    machine.stage().wait_for(|stage| *stage == Stage::Installed).await.expect("it boots its disk");

    let said = lab.steps().await.join("\n");
    let story = format!("killed at line {line}:\n{said}\n{:#?}", machine.events());
    check_machine(&lab, &machine, &machine.events()[before.1..], &story);
    check_bmc(&machine, before.0, &story);
    killed
}

/// Checks that the machine has the requested image, without detours.
fn check_machine(lab: &Lab, machine: &RackedMachine, events: &[Event], story: &str) {
    let disks = machine.disks();
    let [Content::Image { name, checksum, .. }] = &disks[..] else {
        panic!("the disk holds {:?}, {story}", machine.disks());
    };
    assert_eq!((name, checksum), (&lab.image().url, &lab.image().checksum));
    let count = |wanted: &Event| events.iter().filter(|event| *event == wanted).count();
    assert_eq!(
        count(&Event::Started),
        2,
        "it started once for the ramdisk and once for the disk, {story}"
    );
    for step in ["write_image", "install_bootloader", "sync"] {
        assert_eq!(count(&Event::Begins(step.to_owned())), 1, "{step} was begun once, {story}");
        assert_eq!(count(&Event::Did(step.to_owned())), 1, "{step} was done once, {story}");
    }
}

/// Checks that power was never switched at a harmful moment, nor twice to the same state.
fn check_bmc(machine: &RackedMachine, before: usize, story: &str) {
    let log = machine.chassis().log();
    let changes = log[before..].iter().filter(|entry| entry.outcome == Outcome::Accepted);
    let power: Vec<PowerRequest> = changes
        .filter_map(
            |entry| if let Request::Power(power) = entry.request { Some(power) } else { None },
        )
        .collect();
    use PowerRequest::{ForceOff, On};
    // The agent shuts the machine down, unless the service was killed before it gave that command.
    let allowed = [vec![On, On], vec![On, ForceOff, On]];
    assert!(allowed.contains(&power), "{power:?}, {story}");
}
