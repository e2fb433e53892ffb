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
    /// The driver of the node cannot change the requested setting of the firmware.
    Unsupported,
    /// The BMC applies a change of the firmware when the machine starts again, and this node must not be restarted for it.
    NeedsRestart,
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
    /// The work failed in the Ironic from which the node was imported.
    BeforeImport,
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
                "check the BMC's address, its cable and that its service runs; then repeat the request"
            }
            Reason::BmcRefusesUs => {
                "correct user, password or certificate in driver_info; then repeat the request"
            }
            Reason::BmcFailed => {
                "read the BMC's own event log; a reset of the BMC often helps; then repeat the request"
            }
            Reason::PowerStuck => {
                "check the machine's power button, power supply and BMC log; then repeat the request"
            }
            Reason::NoCallback => {
                "watch the machine's console while it boots; check that it boots from the network port that is \
                 enrolled and can reach the provisioning address; then repeat the request"
            }
            Reason::AgentLost => {
                "watch the machine's console for a crash or a reboot; then repeat the request"
            }
            Reason::AgentRefuses => {
                "check that nothing (a firewall, a proxy) stands between this service and the agent's address, and that \
                 the ramdisk is one of this service; then repeat the request"
            }
            Reason::StepFailed | Reason::BeforeImport => "fix the cause; then repeat the request",
            Reason::StepTimedOut => {
                "check the speed of the image server and of the disk; then repeat the request"
            }
            Reason::BadRequest => {
                "correct the node's fields that the cause names; then repeat the request"
            }
            Reason::Unsupported => "change the setting in the machine's firmware setup",
            Reason::NeedsRestart => "restart the machine when nobody needs it",
            Reason::Aborted => "repeat the request, or make another one",
            Reason::ServiceMissing => {
                "check the machine's console, and whether the log of its nova-compute shows a wrong message bus, Keystone or \
                 password in its profile; then request a new join"
            }
            Reason::HypervisorMissing => {
                "check that the cloud has discovered the host (nova-manage cell_v2 discover_hosts, or \
                 discover_hosts_in_cells_interval) and whether libvirt runs on it; then request a new join"
            }
            Reason::ProviderMissing => {
                "check in the log of the host's nova-compute whether Placement accepts the profile's user and password; then request a new join"
            }
            Reason::CloudRefuses => {
                "fix the cause in the cloud or in the profile; then request a new join"
            }
            Reason::CloudUnreachable => {
                "check that the cloud's APIs can be reached from here ([cloud] in the configuration of the service); then request a new join"
            }
            Reason::DrainRefused => {
                "wait until the cluster is healthy again, or allow the disruption with force; then repeat the request"
            }
            Reason::DrainWaits => {
                "fix the cause, and the request continues by itself; or cancel the request with `bedplate undrain` of the host"
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
        write!(f, "{}. Hint: {}.", self.cause, self.next_action)
    }
}
