//! The ramdisk, which runs on a machine after the kernel has started. Without an agent it is a live system.

mod commands;
mod inventory;
mod light;
mod outcome;
mod parameters;
mod program;
mod raid;
mod steps;
mod write;

use std::convert::Infallible;
use std::time::Duration;

use crate::event::{BootSource, Event, Stage};
use crate::handover::Handover;
use crate::machine::{AgentKind, Machine};
use crate::rack_context::RackContext;
use crate::relay::Speaker;

use parameters::Parameters;

/// The pause of a ramdisk that found no network.
const PAUSE: Duration = Duration::from_secs(1);
const LEAST_PAUSE: Duration = Duration::from_millis(100);

/// Runs the ramdisk until the power goes off.
pub(crate) async fn run(
    machine: &Machine,
    world: &RackContext,
    source: BootSource,
    handover: Handover,
) -> Infallible {
    machine.tell(Event::KernelRuns(handover.kernel_bytes, handover.ramdisk_bytes));
    if handover.ramdisk_bytes == 0 {
        return machine.hang("the kernel has no ramdisk").await;
    }
    tokio::time::sleep(world.pace.kernel()).await;
    if !handover.command_line.contains("ipa-api-url=") {
        machine.now(Stage::Live(source, handover.command_line));
        return std::future::pending().await;
    }
    machine.now(Stage::Ramdisk(source));
    find_network(machine, world, &handover.command_line).await;
    if machine.faults().never_call_back {
        return machine.hang("the ramdisk's agent does not start").await;
    }
    match machine.agent() {
        AgentKind::Light => match Parameters::parse(&handover.command_line) {
            Ok(parameters) => light::run(machine, world, source, parameters).await,
            Err(why) => machine.hang(&why).await,
        },
        AgentKind::Program { path, folder } => {
            program::run(machine, path, folder, &handover.command_line, source).await
        }
    }
}

/// Finds a network like the ramdisk's init: uses the address in the command line, or asks by DHCP until an offer comes.
async fn find_network(machine: &Machine, world: &RackContext, command_line: &str) {
    let mut words = command_line.split_ascii_whitespace();
    if words.any(|word| word.starts_with("bedplate.address=")) {
        return;
    }
    while world.lease(machine, Speaker::Ramdisk).await.is_err() {
        tokio::time::sleep(world.pace.of(PAUSE).max(LEAST_PAUSE)).await;
    }
}
