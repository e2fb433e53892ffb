//! Why a request to a node is refused.

use hardware::BootSetting;

use crate::State;

/// Why a request is refused. A refused request leaves the node unmodified.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestRefused {
    #[error(
        "the requested action \"{verb}\" can not be performed on node \"{node}\" while it is in state \"{state}\""
    )]
    State { node: String, state: State, verb: &'static str },
    #[error("node \"{node}\" is in maintenance; \"{verb}\" is not possible until maintenance ends")]
    Maintenance { node: String, verb: &'static str },
    #[error(
        "node \"{node}\" is protected; \"{verb}\" is not possible until the protection is removed"
    )]
    Protected { node: String, verb: &'static str },
    #[error("node \"{node}\" is retired; \"{verb}\" is not possible until retired is unset")]
    Retired { node: String, verb: &'static str },
    #[error("{field}: {problem}")]
    Field {
        /// The name of the field, such as `instance_info.image_source`.
        field: String,
        problem: String,
    },
    #[error(
        "the lease of node \"{node}\" has ended; \"{verb}\" is not possible until the lease is extended"
    )]
    LeaseEnded { node: String, verb: &'static str },
    #[error("inspect_interface: node \"{node}\" has no-inspect and cannot be inspected")]
    NoInspection { node: String },
    #[error("rescue_interface: node \"{node}\" has no-rescue and cannot boot a rescue system")]
    NoRescue { node: String },
    #[error("node \"{node}\" has disable_power_off set and cannot be powered off")]
    PowerOffDisabled { node: String },
    #[error(
        "node \"{node}\" waits for the drain of host {host} before \"{then}\"; \"{verb}\" is not possible meanwhile; cancel the waiting request with `bedplate undrain {host}`"
    )]
    Leaving {
        node: String,
        host: String,
        /// The waiting request in the API's words.
        then: &'static str,
        verb: &'static str,
    },
    /// The BMC updates firmware or changes RAID volumes, which an abort could not stop.
    #[error(
        "node \"{node}\" runs the step {step}, which cannot be aborted; try again when the step has ended"
    )]
    NotAbortable { node: String, step: String },
    /// A boot setting of the machine is being changed, which may restart the machine.
    #[error(
        "node \"{node}\" is locked while a change of the {wanted} is in progress; try again when it is done"
    )]
    BootSetting { node: String, wanted: BootSetting },
    /// The BMC may have another password than the record.
    #[error(
        "node \"{node}\" is locked while the change of the password of its BMC account has no known end; {advice}"
    )]
    Password { node: String, advice: &'static str },
    /// The password of this account is that of other nodes too.
    #[error(
        "node \"{node}\" shares its BMC with other nodes, whose password would be wrong: {others}"
    )]
    SharedBmc {
        node: String,
        /// The names of the other nodes.
        others: String,
    },
    /// Work is in progress that controls the machine's power.
    #[error("node \"{node}\" is locked while it is {state}; try again when its work is done")]
    Locked { node: String, state: State },
}
