//! Provision states, and every legal change of them.

use std::fmt;
use std::str::FromStr;

use Event::*;
use State::*;

/// Where a node is in its life. The words are the Bare Metal API's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// Known, but nobody has seen that its BMC answers.
    Enroll,
    /// Its BMC is being tried.
    Verifying,
    /// Its BMC answers; it is ours to inspect and to clean.
    Manageable,
    /// Its hardware is being looked at.
    Inspecting,
    /// It was booted for inspection and has to report.
    InspectWait,
    /// Inspection ended badly.
    InspectFailed,
    /// Its disks are being erased, or are about to be.
    Cleaning,
    /// It was booted for cleaning; its agent works or has to report.
    CleanWait,
    /// Cleaning ended badly.
    CleanFailed,
    /// Clean, and free to be deployed.
    Available,
    /// An image is about to be installed, or was.
    Deploying,
    /// It was booted for deployment; its agent works or has to report.
    DeployWait,
    /// Deployment ended badly.
    DeployFailed,
    /// In use.
    Active,
    /// Being taken out of use.
    Deleting,
    /// Could not be taken out of use.
    Error,
    /// Being taken over in use.
    Adopting,
    /// Could not be taken over.
    AdoptFailed,
}

/// What changes a provision state: an operator's verb, or how its work goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Verb `manage`.
    Manage,
    /// Verb `inspect`.
    Inspect,
    /// Verb `provide`.
    Provide,
    /// Verb `clean`.
    Clean,
    /// Verb `active` or `deploy`.
    Deploy,
    /// Verb `rebuild`.
    Rebuild,
    /// Verb `deleted` or `undeploy`.
    Undeploy,
    /// Verb `abort`.
    Abort,
    /// Verb `adopt`.
    Adopt,
    /// The machine, not we, has the next word.
    Wait,
    /// The machine has spoken.
    Resume,
    /// The work is done.
    Done,
    /// The work of cleaning is done, and was asked for by the verb `clean`, or the node is retired.
    DoneByHand,
    /// The work cannot go on.
    Fail,
}

/// Every legal change of provision state, in the order a node lives it.
/// What is not in this table cannot happen.
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
    (Cleaning,      DoneByHand, Manageable),
    (Cleaning,      Fail,       CleanFailed),
    (CleanWait,     Fail,       CleanFailed),
    (CleanWait,     Abort,      CleanFailed),
    (CleanFailed,   Manage,     Manageable),

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
    (Active,        Rebuild,    Deploying),

    (Active,        Undeploy,   Deleting),
    (DeployWait,    Undeploy,   Deleting),
    (DeployFailed,  Undeploy,   Deleting),
    (Error,         Undeploy,   Deleting),
    (Error,         Rebuild,    Deploying),
    (Deleting,      Done,       Cleaning),
    (Deleting,      Fail,       Error),
];

impl State {
    /// Every state, in the order a node lives them.
    pub const ALL: [State; 18] = [
        Enroll,
        Verifying,
        Manageable,
        Inspecting,
        InspectWait,
        InspectFailed,
        Cleaning,
        CleanWait,
        CleanFailed,
        Available,
        Deploying,
        DeployWait,
        DeployFailed,
        Active,
        Deleting,
        Error,
        Adopting,
        AdoptFailed,
    ];

    /// Where `event` leads from here, if it may happen here at all.
    pub fn on(self, event: Event) -> Result<State, IllegalEvent> {
        let row = TRANSITIONS.iter().find(|(from, on, _)| (*from, *on) == (self, event));
        row.map(|(_, _, to)| *to).ok_or(IllegalEvent { state: self, event })
    }

    /// The word of the Bare Metal API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Enroll => "enroll",
            Verifying => "verifying",
            Manageable => "manageable",
            Inspecting => "inspecting",
            InspectWait => "inspect wait",
            InspectFailed => "inspect failed",
            Cleaning => "cleaning",
            CleanWait => "clean wait",
            CleanFailed => "clean failed",
            Available => "available",
            Deploying => "deploying",
            DeployWait => "wait call-back",
            DeployFailed => "deploy failed",
            Active => "active",
            Deleting => "deleting",
            Error => "error",
            Adopting => "adopting",
            AdoptFailed => "adopt failed",
        }
    }

    /// Whether the node has work under way in this state.
    pub const fn is_busy(self) -> bool {
        match self {
            Verifying | Inspecting | InspectWait | Cleaning | CleanWait | Deploying
            | DeployWait | Deleting | Adopting => true,
            Enroll | Manageable | InspectFailed | CleanFailed | Available | DeployFailed
            | Active | Error | AdoptFailed => false,
        }
    }

    /// Whether the machine, not we, has the next word in this state.
    pub const fn is_waiting(self) -> bool {
        match self {
            InspectWait | CleanWait | DeployWait => true,
            Enroll | Verifying | Manageable | Inspecting | InspectFailed | Cleaning
            | CleanFailed | Available | Deploying | DeployFailed | Active | Deleting | Error
            | Adopting | AdoptFailed => false,
        }
    }

    /// Whether work ended badly in this state, and an operator has to look.
    pub const fn is_failed(self) -> bool {
        match self {
            InspectFailed | CleanFailed | DeployFailed | Error | AdoptFailed => true,
            Enroll | Verifying | Manageable | Inspecting | InspectWait | Cleaning | CleanWait
            | Available | Deploying | DeployWait | Active | Deleting | Adopting => false,
        }
    }
}

impl Event {
    /// The event as a word, for messages and diagrams.
    pub const fn as_str(self) -> &'static str {
        match self {
            Manage => "manage",
            Inspect => "inspect",
            Provide => "provide",
            Clean => "clean",
            Deploy => "deploy",
            Rebuild => "rebuild",
            Undeploy => "undeploy",
            Abort => "abort",
            Adopt => "adopt",
            Wait => "wait",
            Resume => "resume",
            Done => "done",
            DoneByHand => "done by hand",
            Fail => "fail",
        }
    }
}

/// The event cannot happen in this state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the event \"{}\" cannot happen in state \"{state}\"", event.as_str())]
pub struct IllegalEvent {
    /// Where the node is.
    pub state: State,
    /// What was to happen.
    pub event: Event,
}

/// The word names no state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{raw:?} is not a provision state")]
pub struct UnknownState {
    /// What was given, cut to a length fit for a message.
    pub raw: String,
}

impl FromStr for State {
    type Err = UnknownState;

    fn from_str(raw: &str) -> Result<Self, UnknownState> {
        let found = State::ALL.into_iter().find(|state| state.as_str() == raw);
        found.ok_or_else(|| UnknownState { raw: raw.chars().take(64).collect() })
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The table as a Mermaid state diagram.
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
    fn an_event_leads_to_one_state_only() {
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
        for state in State::ALL.into_iter().filter(|state| state.is_busy()) {
            assert!(state.on(Fail).is_ok(), "{state} cannot fail");
            assert!(state.on(Done).is_ok() || state.on(Resume).is_ok(), "{state} cannot end");
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

    #[test]
    fn the_diagram_is_the_table() {
        expect_file!["../docs/node-states.mmd"].assert_eq(&mermaid(TRANSITIONS));
    }
}
