//! A guest, and the server on which it runs.

use async_trait::async_trait;
use serde_json::Value;

use super::progress::Progress;
use crate::cloud::Cloud;

/// The behaviour of a server after the first boot with Ignition.
///
/// A guest's future is dropped when its server is stopped, rebooted or deleted.
#[async_trait]
pub trait Guest: Send + Sync + 'static {
    /// Runs a server. `config` is its final Ignition config, or null if the user data is not an Ignition config.
    async fn run(&self, machine: GuestMachine, config: Value);

    /// Called after a server was stopped, rebooted or deleted.
    fn halted(&self, _server: &str) {}

    /// A counter that changes whenever the result of [`Guest::kept`] changes.
    fn changes(&self) -> u64 {
        0
    }

    /// The state of all guests, to store with the cloud.
    fn kept(&self) -> Value {
        Value::Null
    }

    /// Restores the stored state, before any guest runs.
    fn take_up(&self, _kept: Value) -> serde_json::Result<()> {
        Ok(())
    }
}

/// A guest that reports to have joined as soon as it runs, and does nothing else.
#[derive(Clone, Copy, Debug, Default)]
pub struct Joins;

#[async_trait]
impl Guest for Joins {
    async fn run(&self, machine: GuestMachine, _: Value) {
        machine.report(Progress::Joined);
    }
}

/// A running server, as its guest sees it.
#[derive(Clone, Debug)]
pub struct GuestMachine {
    pub id: String,
    pub name: String,
    pub project: String,
    /// The addresses of the server, in the order of its ports.
    pub addresses: Vec<String>,
    pub zone: String,
    /// The user data, decoded from base64.
    pub user_data: Vec<u8>,
    pub cloud: Cloud,
}

impl GuestMachine {
    /// Reports the progress of the guest. The console shows it too.
    pub fn report(&self, progress: Progress) {
        self.cloud.report(&self.id, progress);
    }
}
