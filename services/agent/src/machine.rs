//! What the steps work on: the machine, and what was said about it.

use std::sync::{Mutex, PoisonError};

use agent_protocol::KernelParameters;
use rustix::system::{RebootCommand, reboot};
use serde_json::{Map, Value};
use tokio::sync::watch;

use crate::hints::LEAST_MIB;
use crate::image::{Patience, TrustAnchors};
use crate::logs::Logs;
use crate::root::Root;

/// How an agent's life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The machine is switched off.
    PowerOff,
    /// The machine restarts.
    Reboot,
}

/// One machine.
pub struct Machine {
    /// Where its files are.
    pub root: Root,
    /// What it was booted with.
    pub parameters: KernelParameters,
    /// Whom its downloads may come from.
    pub anchors: TrustAnchors,
    /// How patient its downloads are.
    pub patience: Patience,
    /// What the agent said so far.
    pub logs: Logs,
    /// The node's properties as of lookup, root device hints among them.
    pub properties: Mutex<Map<String, Value>>,
    /// The disk the last image went to.
    pub written: Mutex<Option<String>>,
    /// Set once the agent is to end.
    pub ending: watch::Sender<Option<Ending>>,
}

impl Machine {
    /// The least size of a disk that is chosen without hints.
    pub fn least_mib(&self) -> u64 {
        self.parameters.root_disk_minimum_mib.unwrap_or(LEAST_MIB)
    }

    /// The hints to choose the root disk by: the command's own node first, then what lookup said.
    pub fn hints(&self, node: &Map<String, Value>) -> Map<String, Value> {
        let known = self.properties.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |holder: Option<&Map<String, Value>>| {
            holder.and_then(|map| map.get("root_device")?.as_object().cloned())
        };
        let part = |name: &str| node.get(name).and_then(Value::as_object);
        of(part("instance_info"))
            .or_else(|| of(part("properties")))
            .or_else(|| of(Some(&known)))
            .unwrap_or_default()
    }
}

/// Switches this machine off or restarts it; a pretended one is left to whoever pretends.
pub fn end(root: &Root, ending: Ending) -> std::io::Result<()> {
    rustix::fs::sync();
    if !root.is_this_machine() {
        return Ok(());
    }
    let command = match ending {
        Ending::PowerOff => RebootCommand::PowerOff,
        Ending::Reboot => RebootCommand::Restart,
    };
    reboot(command)?;
    Ok(())
}
