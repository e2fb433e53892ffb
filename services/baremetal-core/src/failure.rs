//! Why the work of a node failed, and what an operator can do about it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why the work of a node failed. The node keeps the failure until the next work begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub reason: Reason,
    /// The cause as a sentence without a full stop.
    pub cause: String,
    /// The advice as a sentence without a full stop.
    pub next_action: String,
}

/// The reasons for which work fails. Each reason has its own advice, see `next_action`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The BMC does not answer, or answers something that is not its protocol.
    BmcUnreachable,
    /// The BMC rejects the credentials, or its certificate is not trusted.
    BmcRefusesUs,
    /// The BMC answered with an error.
    BmcFailed,
    /// The BMC accepted a change of power that then did not happen.
    PowerStuck,
    /// The machine was booted, and its agent never reported.
    NoCallback,
    /// The agent reported once and then fell silent, or the machine restarted.
    AgentLost,
    /// The agent reports, but refuses or does not answer the conductor's calls.
    AgentRefuses,
    /// The agent reported that a step failed.
    StepFailed,
    /// The step was not finished before its deadline.
    StepTimedOut,
    /// The fields of the node do not allow the requested work.
    BadRequest,
    /// An operator aborted the work.
    Aborted,
    /// The compute service of a new host did not come up in time.
    ServiceMissing,
    /// The hypervisor of a new host was not listed in time.
    HypervisorMissing,
    /// The resource provider of a new host did not appear in time.
    ProviderMissing,
    /// The cloud refuses a call that a new host needs.
    CloudRefuses,
    /// The cloud did not answer in time.
    CloudUnreachable,
    /// clusterd refuses to drain the compute host, or somebody ended the drain.
    DrainRefused,
    /// The drain of the compute host makes no progress.
    DrainWaits,
}

/// A problem during work, which becomes a failure if it does not pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The reason of the failure that this problem becomes.
    pub reason: Reason,
    /// The cause as a sentence without a full stop.
    pub cause: String,
    /// Whether a retry may succeed without anybody changing anything.
    pub transient: bool,
}

impl Reason {
    /// Returns the advice for operators: a sentence without a full stop.
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
    /// Makes a failure with the advice that belongs to `reason`.
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
