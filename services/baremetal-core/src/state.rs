//! The provision states of a node, and every legal change between them.

use std::str::FromStr;

use Event::*;
use State::*;

words::words! {
    /// The provision state of a node, in the words of the Bare Metal API. The states stand in the order in which a node lives through them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum State {
        /// The node is enrolled, and nobody has checked yet that its BMC answers.
        Enroll = "enroll",
        /// The conductor is checking that the BMC answers and accepts the credentials.
        Verifying = "verifying",
        /// The BMC answers. The conductor may inspect and clean the machine.
        Manageable = "manageable",
        /// The conductor is inspecting the hardware.
        Inspecting = "inspecting",
        /// The machine was booted for inspection; the conductor waits for the agent's report.
        InspectWait = "inspect wait",
        InspectFailed = "inspect failed",
        /// The conductor is erasing the disks, or prepares to erase them.
        Cleaning = "cleaning",
        /// The machine was booted for cleaning; the conductor waits for the agent.
        CleanWait = "clean wait",
        CleanFailed = "clean failed",
        /// Cleaning is at a step `hold` and continues with the verb `unhold`.
        CleanHold = "clean hold",
        /// The machine is clean and free to be deployed.
        Available = "available",
        /// The conductor is installing an image.
        Deploying = "deploying",
        /// The machine was booted for deployment; the conductor waits for the agent. The API calls this state `wait call-back`.
        DeployWait = "wait call-back",
        DeployFailed = "deploy failed",
        /// The deployment is at a step `hold` and continues with the verb `unhold`.
        DeployHold = "deploy hold",
        /// The machine is in use.
        Active = "active",
        /// The conductor is running service steps on a machine in use, or prepares to run them.
        Servicing = "servicing",
        /// The machine was booted for service; the conductor waits for the agent.
        ServiceWait = "service wait",
        ServiceFailed = "service failed",
        /// Service is at a step `hold` and continues with the verb `unhold`.
        ServiceHold = "service hold",
        /// The conductor is booting a rescue system on a machine in use.
        Rescuing = "rescuing",
        /// The machine was booted for the rescue; the conductor waits for the agent.
        RescueWait = "rescue wait",
        /// The machine runs a rescue system. The API calls this state `rescue`.
        Rescued = "rescue",
        RescueFailed = "rescue failed",
        /// The conductor is booting the installed system again.
        Unrescuing = "unrescuing",
        UnrescueFailed = "unrescue failed",
        /// The machine is being taken out of use. Cleaning follows.
        Deleting = "deleting",
        /// Taking the machine out of use failed.
        Error = "error",
        /// The conductor is taking over a machine that is already in use, without installing it.
        Adopting = "adopting",
        AdoptFailed = "adopt failed",
    }
}

words::words! {
    /// The cause of a change of provision state: a verb of the API, or progress of the node's work.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Event {
        Manage = "manage",
        Inspect = "inspect",
        Provide = "provide",
        Clean = "clean",
        /// The verbs `active` and `deploy`.
        Deploy = "deploy",
        Rebuild = "rebuild",
        /// The verbs `deleted` and `undeploy`.
        Undeploy = "undeploy",
        Abort = "abort",
        Adopt = "adopt",
        Service = "service",
        Rescue = "rescue",
        Unrescue = "unrescue",
        Unhold = "unhold",
        /// The work has reached a step `hold`.
        Hold = "hold",
        /// The work continues only after the machine or its agent reports.
        Wait = "wait",
        /// The machine or its agent has reported.
        Resume = "resume",
        /// All tasks of the work are done.
        Done = "done",
        /// Cleaning is done and leads back to `manageable`, because the verb `clean` started the cleaning or the node is retired.
        DoneManually = "done by hand",
        /// The work failed and cannot continue.
        Fail = "fail",
    }
}

/// Every legal change of provision state, in the order in which a node lives through them. A change that is not in this table cannot
/// happen.
#[rustfmt::skip]
pub const TRANSITIONS: &[(State, Event, State)] = &[
    (Enroll,        Manage,     Verifying),
    (Verifying,     Done,       Manageable),
    (Verifying,     Fail,       Enroll),

    (Manageable,    Inspect,    Inspecting),
    (Inspecting,    Wait,       InspectWait),
    (InspectWait,   Resume,     Inspecting),
    (Inspecting,    Done,       Manageable),
    (Inspecting,    Fail,       InspectFailed),
    (InspectWait,   Fail,       InspectFailed),
    (InspectWait,   Abort,      InspectFailed),
    (InspectFailed, Inspect,    Inspecting),
    (InspectFailed, Manage,     Manageable),

    (Manageable,    Adopt,      Adopting),
    (Adopting,      Done,       Active),
    (Adopting,      Fail,       AdoptFailed),
    (AdoptFailed,   Adopt,      Adopting),
    (AdoptFailed,   Manage,     Manageable),

    (Manageable,    Provide,    Cleaning),
    (Manageable,    Clean,      Cleaning),
    (Cleaning,      Wait,       CleanWait),
    (CleanWait,     Resume,     Cleaning),
    (Cleaning,      Done,       Available),
    (Cleaning,      DoneManually, Manageable),
    (Cleaning,      Fail,       CleanFailed),
    (CleanWait,     Fail,       CleanFailed),
    (CleanWait,     Abort,      CleanFailed),
    (CleanFailed,   Manage,     Manageable),
    (Cleaning,      Hold,       CleanHold),
    (CleanWait,     Hold,       CleanHold),
    (CleanHold,     Unhold,     CleanWait),
    (CleanHold,     Abort,      CleanFailed),

    (Available,     Manage,     Manageable),
    (Available,     Deploy,     Deploying),
    (Deploying,     Wait,       DeployWait),
    (DeployWait,    Resume,     Deploying),
    (Deploying,     Done,       Active),
    (Deploying,     Fail,       DeployFailed),
    (DeployWait,    Fail,       DeployFailed),
    (DeployWait,    Abort,      DeployFailed),
    (DeployFailed,  Deploy,     Deploying),
    (DeployFailed,  Rebuild,    Deploying),
    (Deploying,     Hold,       DeployHold),
    (DeployWait,    Hold,       DeployHold),
    (DeployHold,    Unhold,     DeployWait),
    (DeployHold,    Abort,      DeployFailed),
    (Active,        Rebuild,    Deploying),

    (Active,        Service,    Servicing),
    (Servicing,     Wait,       ServiceWait),
    (ServiceWait,   Resume,     Servicing),
    (Servicing,     Done,       Active),
    (Servicing,     Fail,       ServiceFailed),
    (ServiceWait,   Fail,       ServiceFailed),
    (ServiceWait,   Abort,      ServiceFailed),
    (ServiceFailed, Service,    Servicing),
    (ServiceFailed, Abort,      Active),
    (ServiceFailed, Rescue,     Rescuing),
    (Servicing,     Hold,       ServiceHold),
    (ServiceWait,   Hold,       ServiceHold),
    (ServiceHold,   Unhold,     ServiceWait),
    (ServiceHold,   Service,    Servicing),
    (ServiceHold,   Abort,      ServiceFailed),

    (Active,        Rescue,     Rescuing),
    (Rescuing,      Wait,       RescueWait),
    (RescueWait,    Resume,     Rescuing),
    (Rescuing,      Done,       Rescued),
    (Rescuing,      Fail,       RescueFailed),
    (RescueWait,    Fail,       RescueFailed),
    (RescueWait,    Abort,      RescueFailed),
    (Rescued,       Rescue,     Rescuing),
    (Rescued,       Unrescue,   Unrescuing),
    (RescueFailed,  Rescue,     Rescuing),
    (RescueFailed,  Unrescue,   Unrescuing),
    (Unrescuing,    Done,       Active),
    (Unrescuing,    Fail,       UnrescueFailed),
    (UnrescueFailed, Rescue,    Rescuing),
    (UnrescueFailed, Unrescue,  Unrescuing),

    (Active,        Undeploy,   Deleting),
    (DeployWait,    Undeploy,   Deleting),
    (DeployFailed,  Undeploy,   Deleting),
    (Error,         Undeploy,   Deleting),
    (ServiceWait,   Undeploy,   Deleting),
    (ServiceFailed, Undeploy,   Deleting),
    (RescueWait,    Undeploy,   Deleting),
    (Rescued,       Undeploy,   Deleting),
    (RescueFailed,  Undeploy,   Deleting),
    (UnrescueFailed, Undeploy,  Deleting),
    (Error,         Rebuild,    Deploying),
    (Deleting,      Done,       Cleaning),
    (Deleting,      Fail,       Error),
];

impl State {
    /// Returns the state after `event`, or an error if `event` is not legal in this state.
    pub fn on(self, event: Event) -> Result<State, IllegalEvent> {
        let row = TRANSITIONS.iter().find(|(from, on, _)| (*from, *on) == (self, event));
        row.map(|(_, _, to)| *to).ok_or(IllegalEvent { state: self, event })
    }

    /// Returns whether a node in this state has work in progress.
    pub const fn is_busy(self) -> bool {
        match self {
            Verifying | Inspecting | InspectWait | Cleaning | CleanWait | CleanHold | Deploying
            | DeployWait | DeployHold | Servicing | ServiceWait | ServiceHold | Rescuing
            | RescueWait | Unrescuing | Deleting | Adopting => true,
            Enroll | Manageable | InspectFailed | CleanFailed | Available | DeployFailed
            | Active | ServiceFailed | Rescued | RescueFailed | UnrescueFailed | Error
            | AdoptFailed => false,
        }
    }

    /// Returns whether the machine belongs to a user, and no work is in progress.
    pub const fn is_in_use(self) -> bool {
        matches!(self, Active | ServiceFailed | Rescued | RescueFailed | UnrescueFailed)
    }

    /// Returns whether the work in this state stands still until the verb `unhold`.
    pub const fn is_held(self) -> bool {
        matches!(self, CleanHold | DeployHold | ServiceHold)
    }

    /// Returns whether the work in this state waits for the machine or its agent, so that the conductor has nothing to do until a report or
    /// the deadline.
    pub const fn is_waiting(self) -> bool {
        match self {
            InspectWait | CleanWait | DeployWait | ServiceWait | RescueWait => true,
            Enroll | Verifying | Manageable | Inspecting | InspectFailed | Cleaning
            | CleanFailed | CleanHold | Available | Deploying | DeployFailed | DeployHold
            | Active | Servicing | ServiceFailed | ServiceHold | Rescuing | Rescued
            | RescueFailed | Unrescuing | UnrescueFailed | Deleting | Error | Adopting
            | AdoptFailed => false,
        }
    }

    /// Returns whether work failed in this state, so that an operator has to look at the node.
    pub const fn is_failed(self) -> bool {
        match self {
            InspectFailed | CleanFailed | DeployFailed | ServiceFailed | RescueFailed
            | UnrescueFailed | Error | AdoptFailed => true,
            Enroll | Verifying | Manageable | Inspecting | InspectWait | Cleaning | CleanWait
            | CleanHold | Available | Deploying | DeployWait | DeployHold | Active | Servicing
            | ServiceWait | ServiceHold | Rescuing | RescueWait | Rescued | Unrescuing
            | Deleting | Adopting => false,
        }
    }
}

impl Event {
    /// Returns the event that Ironic's state machine has in the state `from`: Ironic deletes where Bedplate undeploys, and two of its events
    /// have the names of verbs.
    pub(crate) fn ironic_word(self, from: State) -> &'static str {
        match (from, self) {
            (_, Undeploy) => "delete",
            (_, DoneManually) => "manage",
            (Deleting, Done) => "clean",
            (_, event) => event.as_str(),
        }
    }
}

/// The error for an event that is not legal in the current state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the event \"{event}\" cannot happen in state \"{state}\"")]
pub struct IllegalEvent {
    pub state: State,
    pub event: Event,
}

/// The error for a word that names no provision state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{raw:?} is not a provision state")]
pub struct UnknownState {
    /// The word that was given, cut to 64 characters for the message.
    pub raw: String,
}

impl FromStr for State {
    type Err = UnknownState;

    fn from_str(raw: &str) -> Result<Self, UnknownState> {
        State::find(raw).ok_or_else(|| UnknownState { raw: raw.chars().take(64).collect() })
    }
}

/// Renders the table of transitions as a Mermaid state diagram.
pub fn mermaid(transitions: &[(State, Event, State)]) -> String {
    let id = |state: State| state.as_str().replace([' ', '-'], "_");
    let mut text = String::from("stateDiagram-v2\n");
    for state in State::ALL.into_iter().filter(|state| id(*state) != state.as_str()) {
        text += &format!("    {}: {state}\n", id(state));
    }
    text += "    [*] --> enroll\n";
    for (from, event, to) in transitions {
        text += &format!("    {} --> {}: {}\n", id(*from), id(*to), event.as_str());
    }
    text
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::*;

    #[test]
    fn each_event_leads_to_one_state_only() {
        for (at, (from, event, _)) in TRANSITIONS.iter().enumerate() {
            let again =
                TRANSITIONS[at + 1..].iter().any(|(other, on, _)| (other, on) == (from, event));
            assert!(!again, "{from} has two rows for {event:?}");
        }
    }

    #[test]
    fn every_state_can_be_reached_from_enroll() {
        let mut reached = vec![Enroll];
        for _ in State::ALL {
            for (from, _, to) in TRANSITIONS {
                if reached.contains(from) && !reached.contains(to) {
                    reached.push(*to);
                }
            }
        }
        assert_eq!(reached.len(), State::ALL.len());
    }

    #[test]
    fn every_busy_state_can_fail_and_end() {
        for state in State::ALL.into_iter().filter(|state| state.is_busy() && !state.is_held()) {
            assert!(state.on(Fail).is_ok(), "{state} cannot fail");
            assert!(state.on(Done).is_ok() || state.on(Resume).is_ok(), "{state} cannot end");
        }
    }

    #[test]
    fn a_held_state_is_entered_and_left_as_ironic_does() {
        for held in State::ALL.into_iter().filter(|state| state.is_held()) {
            let entries = TRANSITIONS.iter().filter(|(_, event, to)| (*event, *to) == (Hold, held));
            let (waiting, working): (Vec<State>, Vec<State>) =
                entries.map(|(from, ..)| *from).partition(|from| from.is_waiting());
            assert_eq!(waiting, [held.on(Unhold).unwrap()]);
            assert_eq!(working, [waiting[0].on(Resume).unwrap()]);
            assert!(held.on(Abort).unwrap().is_failed());
        }
    }

    #[test]
    fn work_that_fails_leads_to_a_failed_state_but_for_an_unverified_node() {
        for (from, _, to) in TRANSITIONS.iter().filter(|(_, event, _)| *event == Fail) {
            assert_eq!(to.is_failed(), *from != Verifying, "{from} to {to}");
        }
    }

    #[test]
    fn every_failed_state_has_a_way_out() {
        for state in State::ALL.into_iter().filter(|state| state.is_failed()) {
            assert!(TRANSITIONS.iter().any(|(from, _, _)| *from == state), "{state} is a dead end");
        }
    }

    #[test]
    fn every_word_is_read_back() {
        for state in State::ALL {
            assert_eq!(state.as_str().parse(), Ok(state));
        }
    }

    /// A row in Ironic's words.
    fn in_words_of_ironic((from, event, to): &(State, Event, State)) -> String {
        format!("{from}, {}, {to}", event.ironic_word(*from))
    }

    /// `state/ironic.txt` has the transitions of `ironic/common/state_machine.py` of Ironic 39.
    #[test]
    fn the_table_is_that_of_ironic() {
        // The agent's report of an inspection is taken in by the conductor, which then works; and Ironic's conductor has events for a service
        // that has failed or is held.
        let unused = [
            "inspect wait, done, manageable",
            "service failed, hold, service hold",
            "service failed, wait, service wait",
            "service hold, fail, service failed",
        ];
        let ironic: Vec<&str> = include_str!("state/ironic.txt").lines().collect();
        let ours: Vec<String> = TRANSITIONS.iter().map(in_words_of_ironic).collect();
        for row in &ours {
            assert!(ironic.contains(&row.as_str()), "Ironic has no {row}");
        }
        let is_missing = |row: &&str| !ours.iter().any(|own| own == row);
        assert_eq!(ironic.into_iter().filter(is_missing).collect::<Vec<_>>(), unused);
    }

    #[test]
    fn the_diagram_is_the_table() {
        expect_file!["../docs/node-states.mmd"].assert_eq(&mermaid(TRANSITIONS));
    }
}
