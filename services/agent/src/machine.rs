//! The machine that the steps work on, and its state.

use std::sync::{Mutex, PoisonError};

use agent_protocol::KernelParameters;
use rustix::system::{RebootCommand, reboot};
use serde_json::{Map, Value};
use tokio::sync::watch;

use crate::hints::LEAST_MIB;
use crate::image::{DownloadPolicy, TrustAnchors};
use crate::logs::Logs;
use crate::root::Root;

/// The ways in which the agent ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The machine is switched off.
    PowerOff,
    /// The machine restarts.
    Reboot,
    /// The machine stays on, and its ramdisk lets the user `rescue` log in.
    Rescue,
}

/// The machine that the agent works on.
pub struct Machine {
    pub root: Root,
    /// The parameters of the kernel's command line.
    pub parameters: KernelParameters,
    /// The certificate authorities to trust for downloads.
    pub anchors: TrustAnchors,
    /// Timeouts and retries of downloads.
    pub patience: DownloadPolicy,
    pub logs: Logs,
    /// The node's properties at lookup, including root device hints.
    pub properties: Mutex<Map<String, Value>>,
    /// The disk that the last image was written to.
    pub written: Mutex<Option<String>>,
    /// The ids of the partitions that were made for the last image, if it was a partition image.
    pub partition_ids: Mutex<Map<String, Value>>,
    /// Set when the agent has to end.
    pub ending: watch::Sender<Option<Ending>>,
}

impl Machine {
    /// Returns the minimum size, in MiB, of a disk that is chosen without hints.
    pub fn least_mib(&self) -> u64 {
        self.parameters.root_disk_minimum_mib.unwrap_or(LEAST_MIB)
    }

    /// Returns the hints for the root disk: from the command's node, otherwise from lookup.
    pub fn hints(&self, node: &Map<String, Value>) -> Map<String, Value> {
        let known = self.properties.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |holder: Option<&Map<String, Value>>| {
            let hints = holder.and_then(|map| map.get("root_device")?.as_object());
            hints.filter(|hints| !hints.is_empty()).cloned()
        };
        let part = |name: &str| node.get(name).and_then(Value::as_object);
        of(part("instance_info"))
            .or_else(|| of(part("properties")))
            .or_else(|| of(Some(&known)))
            .unwrap_or_default()
    }
}

/// Switches this machine off or restarts it. Does nothing for an emulated machine and for a rescue: the caller handles the exit status.
pub fn end(root: &Root, ending: Ending) -> std::io::Result<()> {
    rustix::fs::sync();
    if !root.is_this_machine() {
        return Ok(());
    }
    let command = match ending {
        Ending::PowerOff => RebootCommand::PowerOff,
        Ending::Reboot => RebootCommand::Restart,
        Ending::Rescue => return Ok(()),
    };
    reboot(command)?;
    Ok(())
}
