//! The rules that hold for a whole simulation.

use std::sync::Arc;
use std::time::Duration;

use machine_emulator::Event;
use simulated_kernel::Request;

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
