//! An operator aborts work in progress.

use lab::{Lab, Machine};
use machine_emulator::{BootSource, Stage};

#[tokio::test]
async fn cleaning_is_aborted_and_repeated() {
    let lab = Lab::start().await;
    let machine = lab.rack(Machine::redfish("r1u1")).await;
    let node = lab.manageable(&machine).await;
    machine.misbehave(|faults| faults.never_call_back = true);
    lab.provision(node, "provide").await.reaches("clean wait").await;

    let error = lab.provision(node, "abort").await.fails("clean failed").await;
    assert!(error.contains("abort"), "{error}");

    machine.misbehave(|faults| faults.never_call_back = false);
    lab.provision(node, "manage").await.reaches("manageable").await;
    lab.provision(node, "provide").await.reaches("available").await;
}

#[tokio::test]
async fn an_inspection_is_aborted_and_repeated() {
    let lab = Lab::start().await;
    let machine = lab.rack(Machine::ipmi("r1u2")).await;
    let node = lab.manageable(&machine).await;
    machine.misbehave(|faults| faults.hang_in_firmware = true);
    lab.provision(node, "inspect").await.reaches("inspect wait").await;

    let error = lab.provision(node, "abort").await.fails("inspect failed").await;
    assert!(error.contains("abort"), "{error}");

    machine.misbehave(|faults| faults.hang_in_firmware = false);
    lab.provision(node, "inspect").await.reaches("manageable").await;
}

#[tokio::test]
async fn an_aborted_deployment_is_undone() {
    let lab = Lab::start().await;
    let machine = lab.rack(Machine::redfish("r1u3")).await;
    let node = lab.available(&machine).await;
    machine.misbehave(|faults| faults.download_rate = Some(10_000));
    lab.provision(node, "active").await.reaches("wait call-back").await;
    let in_ramdisk = |stage: &Stage| *stage == Stage::Ramdisk(BootSource::Network);

    machine.misbehave(|faults| faults.download_rate = None);
    machine.stage().wait_for(in_ramdisk).await.expect("the ramdisk runs");
    lab.provision(node, "deleted").await.reaches("available").await;
    assert!(machine.disks_are_blank());
}
