//! Why work ended badly, and what an operator can do.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a node's work ended badly: kept until the next work begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind of failure it is.
    pub reason: Reason,
    /// What happened: a sentence without a full stop.
    pub cause: String,
    /// What to do about it: a sentence without a full stop.
    pub next_action: String,
}

/// Kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The BMC does not answer, or answers nonsense.
    BmcUnreachable,
    /// The BMC refuses the password, or its certificate is not trusted.
    BmcRefusesUs,
    /// The BMC answered with an error.
    BmcFailed,
    /// The BMC accepted a change of power, which did not happen.
    PowerStuck,
    /// The machine was booted and its agent never reported.
    NoCallback,
    /// The agent had reported and fell silent, or the machine restarted.
    AgentLost,
    /// The agent reports, and does not answer when it is called, or answers no.
    AgentRefuses,
    /// The agent could not carry out a step.
    StepFailed,
    /// The step took too long.
    StepTimedOut,
    /// What was asked for cannot be done with what the node says.
    BadRequest,
    /// An operator aborted the work.
    Aborted,
    /// The compute service of a hypervisor did not come up in time.
    ServiceMissing,
    /// A hypervisor was not listed in time.
    HypervisorMissing,
    /// A hypervisor had no resource provider in time.
    ProviderMissing,
    /// The cloud refuses what is asked for a hypervisor.
    CloudRefuses,
    /// The cloud did not answer in time.
    CloudUnreachable,
    /// The node's compute host may not be drained, or is not any more.
    DrainRefused,
    /// The drain of the node's compute host does not go on.
    DrainWaits,
}

/// A difficulty, and whether it may pass by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// What kind of failure it becomes when it does not pass.
    pub reason: Reason,
    /// What happened: a sentence without a full stop.
    pub cause: String,
    /// Whether the same may succeed later without anyone changing anything.
    pub transient: bool,
}

impl Reason {
    /// What to do about it.
    pub const fn next_action(self) -> &'static str {
        match self {
            Reason::BmcUnreachable => {
                "check the BMC's address, its cable and that its service runs; then ask for the same again"
            }
            Reason::BmcRefusesUs => {
                "correct user, password or certificate in driver_info; then ask for the same again"
            }
            Reason::BmcFailed => {
                "read the BMC's own event log; a reset of the BMC often helps; then ask for the same again"
            }
            Reason::PowerStuck => {
                "look at the machine: its power button, supply and BMC log; then ask for the same again"
            }
            Reason::NoCallback => {
                "watch the machine's console while it boots; check that it boots from the network port that is \
                 enrolled and can reach the provisioning address; then ask for the same again"
            }
            Reason::AgentLost => {
                "watch the machine's console for a crash or a reboot; then ask for the same again"
            }
            Reason::AgentRefuses => {
                "check that nothing (a firewall, a proxy) stands between this service and the agent's address, and that \
                 the ramdisk is one of this service; then ask for the same again"
            }
            Reason::StepFailed => "mend what the cause names; then ask for the same again",
            Reason::StepTimedOut => {
                "check the speed of the image server and of the disk; then ask for the same again"
            }
            Reason::BadRequest => {
                "correct the node's fields that the cause names; then ask for the same again"
            }
            Reason::Aborted => "ask for the same again, or for something else",
            Reason::ServiceMissing => {
                "look at the machine's console and at the log of its nova-compute: whether its profile has the right \
                 message bus, Keystone and passwords; then have it join again"
            }
            Reason::HypervisorMissing => {
                "see whether the cloud has discovered the host (nova-manage cell_v2 discover_hosts, or \
                 discover_hosts_in_cells_interval) and whether libvirt runs on it; then have it join again"
            }
            Reason::ProviderMissing => {
                "look at the log of its nova-compute: whether Placement takes the profile's user and password; then \
                 have it join again"
            }
            Reason::CloudRefuses => {
                "mend in the cloud or in the profile what the cause names; then have it join again"
            }
            Reason::CloudUnreachable => {
                "see whether the cloud's APIs answer from here (cloud in the service's configuration); then have it join \
                 again"
            }
            Reason::DrainRefused => {
                "wait until the cluster is whole again, or name in force what may break; then ask for the same again"
            }
            Reason::DrainWaits => {
                "mend what the cause names, and the request goes on by itself; `bedplate undrain` of its host takes the \
                 request back"
            }
        }
    }
}

impl Failure {
    /// A failure for this reason.
    pub fn new(reason: Reason, cause: impl Into<String>) -> Self {
        Failure { reason, cause: cause.into(), next_action: reason.next_action().to_owned() }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Failure {
        Failure::new(problem.reason, problem.cause)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}. To go on: {}.", self.cause, self.next_action)
    }
}
