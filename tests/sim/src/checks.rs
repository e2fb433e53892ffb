//! The rules that hold for a whole simulation.

use std::sync::Arc;
use std::time::Duration;

use bmc_emulator::{BmcLogEntry, Outcome, Protocol};
use machine_emulator::Event;
use openstack_emulator::Kind;
use simulated_kernel::{Datagram, FIRST_SECOND, Request};
use tokio::time::sleep;

use crate::site::Site;

/// Whether a request changes a machine. A session changes nothing.
pub(crate) fn changes_a_machine(request: &Request) -> bool {
    request.line.contains(" /redfish/") && !request.line.contains("Sessions")
}

/// Checks that no process changed a machine after its lease had passed.
pub(crate) fn leases(site: &Arc<Site>, requests: &[Request]) {
    for replica in &site.baremetalds {
        let leases = replica.leases();
        for request in requests.iter().filter(|it| it.from == replica.host) {
            if !leases.iter().any(|(since, until)| (*since..=*until).contains(&request.at)) {
                let (name, line, at) = (&replica.name, &request.line, request.at);
                site.trace.violation(format!("{name} sent {line} at {at:?} without a lease"));
            }
        }
    }
}

/// How long a slow BMC takes for a datagram at most, with all datagrams that wait before it.
const LONGEST_ANSWER: Duration = Duration::from_secs(20);

/// Checks the same for IPMI, which encrypts its requests. Of a change it is known when the BMC made it. If only one process sent datagrams to
/// the BMC shortly before, the process sent one of them before its lease had passed.
pub(crate) fn leases_by_ipmi(site: &Arc<Site>, datagrams: &[Datagram]) {
    for machine in &site.machines {
        let address = machine.bmc().address();
        let own: Vec<_> = datagrams.iter().filter(|it| Some(it.to) == address).collect();
        for entry in machine.chassis().log().iter().filter(|it| is_change_by_ipmi(it)) {
            let at = since_the_beginning(entry);
            let before = |it: &&&Datagram| it.at <= at && at - it.at < LONGEST_ANSWER;
            let sent: Vec<_> = own.iter().filter(before).collect();
            let Some(last) = sent.last() else { continue };
            let sender = site.baremetalds.iter().find(|it| it.host == last.from);
            let Some(sender) = sender.filter(|_| sent.iter().all(|it| it.from == last.from)) else {
                continue;
            };
            let leases = sender.leases();
            let has_lease =
                |at: Duration| leases.iter().any(|(since, until)| (*since..=*until).contains(&at));
            if !sent.iter().any(|it| has_lease(it.at)) {
                let (name, to) = (&sender.name, machine.name());
                site.trace.violation(format!("{name} changed {to} without a lease: {entry}"));
            }
        }
    }
}

fn is_change_by_ipmi(entry: &BmcLogEntry) -> bool {
    entry.face == Protocol::Ipmi && entry.outcome == Outcome::Accepted
}

/// The end of the millisecond in which the BMC made an entry.
fn since_the_beginning(entry: &BmcLogEntry) -> Duration {
    let millis = u64::try_from(entry.at.as_millisecond()).unwrap_or_default();
    Duration::from_millis((millis + 1).saturating_sub(FIRST_SECOND * 1000))
}

/// How soon after each other two processes must not change one machine in turns: a machine moves from one process to another and back only
/// after both have looked at the others.
const IN_TURNS: Duration = Duration::from_secs(2);

/// Checks that no two processes changed one machine at the same time.
pub(crate) fn one_at_a_time(site: &Arc<Site>, requests: &[Request]) {
    for machine in &site.machines {
        let address = machine.bmc().address();
        let own: Vec<_> = requests.iter().filter(|it| Some(it.to) == address).collect();
        for three in own.windows(3) {
            let [first, second, third] = three else { continue };
            let is_in_turns = first.from == third.from && first.from != second.from;
            if is_in_turns && third.at - first.at < IN_TURNS {
                let name = machine.name();
                site.trace.violation(format!("two processes change {name} in turns: {three:?}"));
            }
        }
    }
}

/// How late a request can come that was on its way when the faults ended, and its object is deleted.
const LATE: Duration = Duration::from_secs(120);

/// Checks that the cloud has no object of a cluster, VM, snapshot or backup, all of which were deleted.
pub(crate) async fn nothing_is_left(site: &Arc<Site>) {
    sleep(LATE).await;
    let images = site.cloud.objects(Kind::Image).into_iter();
    let snapshots: Vec<_> =
        images.filter(|it| it.text("image_type") == "snapshot").map(|it| it.id).collect();
    let left = site.objects();
    if !left.is_empty() || !snapshots.is_empty() {
        site.trace.violation(format!("the cloud still has {left:?} and the images {snapshots:?}"));
    }
    let backups = site.cloud.stored();
    if !backups.is_empty() {
        site.trace.violation(format!("the store still has the backups {backups:?}"));
    }
}

/// Checks that no step ran twice in one boot of a machine.
pub(crate) fn steps(site: &Arc<Site>) {
    for machine in &site.machines {
        let mut begun = Vec::new();
        for event in machine.events() {
            if event == Event::Started {
                begun.clear();
            }
            let Event::Begins(step) = event else { continue };
            if !step.starts_with("erase") && step != "write_image" {
                continue;
            }
            if begun.contains(&step) {
                let (name, all) = (machine.name(), machine.events());
                site.trace.violation(format!("{name} ran {step} twice in one boot: {all:?}"));
            }
            begun.push(step);
        }
    }
}
