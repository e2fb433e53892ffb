//! Guests of servers: each reads its user data as Ignition does, then runs as the chosen guest type.

mod fetch;
mod ignition;
mod merge;

use std::fmt;

use async_trait::async_trait;
use base64::Engine;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tracing::debug;

use crate::cloud::Cloud;
use crate::object::Kind;
use crate::settings::millis;

pub(crate) use fetch::plain_client;
pub use ignition::files;

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
    /// The id of the server.
    pub id: String,
    /// The name of the server.
    pub name: String,
    /// The id of the server's project.
    pub project: String,
    /// The addresses of the server, in the order of its ports.
    pub addresses: Vec<String>,
    /// The availability zone of the server.
    pub zone: String,
    /// The user data, decoded from base64.
    pub user_data: Vec<u8>,
    /// The cloud of the server.
    pub cloud: Cloud,
}

impl GuestMachine {
    /// Reports the progress of the guest. The console shows it too.
    pub fn report(&self, progress: Progress) {
        self.cloud.report(&self.id, progress);
    }
}

/// How far a guest has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// The guest reads its user data.
    Booting,
    /// The user data could not be applied, for this reason.
    Failed(String),
    /// The guest has its final config and runs.
    Running,
    /// The guest has joined its cluster.
    Joined,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Progress::Booting => write!(f, "guest: booting"),
            Progress::Failed(why) => write!(f, "guest: emergency: {why}"),
            Progress::Running => write!(f, "guest: running"),
            Progress::Joined => write!(f, "guest: joined"),
        }
    }
}

/// Boots the guest of a server that has become ACTIVE.
pub(crate) async fn boot(cloud: Cloud, id: String) {
    let wait = cloud.shared.with(|world| world.settings.times.guest_boot);
    tokio::time::sleep(millis(wait)).await;
    let Some(machine) = machine(&cloud, &id) else { return };
    machine.report(Progress::Booting);
    let config = if machine.user_data.is_empty() {
        Ok(Value::Null)
    } else {
        ignition::final_config(&machine).await
    };
    match config {
        Ok(config) => {
            if cloud.shared.is_kept() {
                cloud.shared.with(|world| world.configs.insert(id, config.clone()));
            }
            machine.report(Progress::Running);
            cloud.shared.guest.run(machine, config).await;
        }
        Err(error) => {
            let mut why = error.to_string();
            let mut cause = std::error::Error::source(&error);
            while let Some(next) = cause {
                why = format!("{why}: {next}");
                cause = next.source();
            }
            debug!("the guest of {id} fails: {why}");
            machine.report(Progress::Failed(why));
        }
    }
}

/// Continues the guest of a server whose final config is on its disk.
pub(crate) async fn resume(cloud: Cloud, id: String) {
    let config = cloud.shared.with(|world| world.configs.get(&id).cloned());
    if let (Some(machine), Some(config)) = (machine(&cloud, &id), config) {
        cloud.shared.guest.run(machine, config).await;
    }
}

fn machine(cloud: &Cloud, id: &str) -> Option<GuestMachine> {
    cloud.shared.with(|world| {
        let server = world.store.get(Kind::Server, id)?;
        let ports = server.hidden.get("ports").and_then(Value::as_array).into_iter().flatten();
        let ports = ports.filter_map(|port| world.store.get(Kind::Port, port.as_str()?));
        let addresses = ports
            .flat_map(|port| port.list("fixed_ips"))
            .filter_map(|ip| ip["ip_address"].as_str().map(str::to_owned));
        let data = world.user_data.get(id).and_then(|data| {
            base64::engine::general_purpose::STANDARD.decode(data.as_bytes()).ok()
        });
        Some(GuestMachine {
            id: id.to_owned(),
            name: server.text("name").to_owned(),
            project: server.project.clone(),
            addresses: addresses.collect(),
            zone: server.note("zone").to_owned(),
            user_data: data.unwrap_or_default(),
            cloud: cloud.clone(),
        })
    })
}
