//! baremetald is killed at every step of a deployment, and started again.

use bmc_emulator::{Outcome, PowerRequest, Request};
use futures::{StreamExt, stream};
use lab::{Killed, Lab, Machine, Placed, Settings, until};
use machine_emulator::{Content, Event, Stage};

/// How many labs run at once.
const AT_ONCE: usize = 3;
/// No deployment has more steps and states than this.
const MOST_LINES: usize = 60;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_over_redfish_outlives_a_kill_at_any_of_its_steps() {
    check(|| Machine::redfish("r1u1")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_over_ipmi_outlives_a_kill_at_any_of_its_steps() {
    check(|| Machine::ipmi("r1u2")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_by_virtual_media_outlives_a_kill_at_any_of_its_steps() {
    check(|| Machine::redfish("r1u3").uefi().boot("redfish-virtual-media")).await;
}

#[tokio::test]
async fn an_image_is_written_once_though_the_service_dies_meanwhile() {
    let lab = Lab::with_child(Settings::default()).await;
    let machine = lab.rack(Machine::redfish("r1u4")).await;
    let node = lab.available(&machine).await;
    let before = (machine.chassis().log().len(), machine.events().len());
    machine.misbehave(|faults| faults.download_rate = Some(400_000));
    let asked = lab.provision(node, "active").await;
    let amid = || matches!(machine.disks()[..], [Content::Broken { bytes: 1.. }]);
    until("an image that is being written", amid).await;

    lab.restart().await;
    assert!(amid(), "the service was back before the image was written");
    asked.reaches("active").await;
    machine.stage().wait_for(|stage| *stage == Stage::Installed).await.expect("it boots its disk");
    check_machine(&lab, &machine, &machine.events()[before.1..], "killed amid the image");
    check_bmc(&machine, before.0, "killed amid the image");
}

/// One deployment for each line the service says in a deployment, killed there.
async fn check(blueprint: fn() -> Machine) {
    let runs = stream::iter(1..MOST_LINES).map(|line| killed_at(line, blueprint()));
    let runs = runs.buffered(AT_ONCE);
    let killed = runs.take_while(|killed| std::future::ready(*killed == Killed::AtLine)).count();
    let killed = killed.await;
    // The ramdisk, on; write, next boot, flush; off, the disk, on; and three states after the first.
    assert!(killed >= 11, "a deployment says only {killed} lines");
    assert!(killed < MOST_LINES - 1, "a deployment says ever more");
}

/// Deploys a machine with a service that is killed at its `line`th line, or when it is done; then with one that is not.
async fn killed_at(line: usize, blueprint: Machine) -> Killed {
    let lab = Lab::with_child(Settings::default()).await;
    let machine = lab.rack(blueprint).await;
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

/// The machine got what was asked for, and went there by the shortest way.
fn check_machine(lab: &Lab, machine: &Placed, events: &[Event], story: &str) {
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

/// Its power was never switched while that would have harmed, nor twice to the same end.
fn check_bmc(machine: &Placed, before: usize, story: &str) {
    let log = machine.chassis().log();
    let changes = log[before..].iter().filter(|entry| entry.outcome == Outcome::Accepted);
    let power: Vec<PowerRequest> = changes
        .filter_map(
            |entry| if let Request::Power(power) = entry.request { Some(power) } else { None },
        )
        .collect();
    use PowerRequest::{ForceOff, On};
    assert_eq!(power, [On, ForceOff, On], "{story}");
}
