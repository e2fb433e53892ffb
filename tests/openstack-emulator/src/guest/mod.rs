//! What runs in servers: reads the user-data, does what Ignition does, then is the guest it was told to be.

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
use crate::settings::millis;
use crate::store::Kind;

pub(crate) use fetch::plain_client;
pub use ignition::files;

/// What a machine is after its first boot has been through Ignition.
///
/// A guest's future is dropped when its server is stopped, rebooted or deleted.
#[async_trait]
pub trait Guest: Send + Sync + 'static {
    /// Runs the machine. `config` is its final Ignition config, or null when its user-data is nothing that Ignition reads.
    async fn run(&self, machine: GuestMachine, config: Value);

    /// A machine has been stopped, rebooted or deleted.
    fn halted(&self, _server: &str) {}

    /// Counts what changed of what [`Guest::kept`] tells.
    fn changes(&self) -> u64 {
        0
    }

    /// What machines have on their disks and among themselves, to be kept.
    fn kept(&self) -> Value {
        Value::Null
    }

    /// Takes up what was kept, before any machine runs.
    fn take_up(&self, _kept: Value) -> serde_json::Result<()> {
        Ok(())
    }
}

/// A guest that does nothing more: it has joined as soon as it runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Joins;

#[async_trait]
impl Guest for Joins {
    async fn run(&self, machine: GuestMachine, _: Value) {
        machine.report(Progress::Joined);
    }
}

/// A machine that runs.
#[derive(Clone, Debug)]
pub struct GuestMachine {
    /// The server's id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The id of its project.
    pub project: String,
    /// Its addresses, in the order of its ports.
    pub addresses: Vec<String>,
    /// Its availability zone.
    pub zone: String,
    /// The user-data, decoded.
    pub user_data: Vec<u8>,
    /// The cloud it runs in.
    pub cloud: Cloud,
}

impl GuestMachine {
    /// Says how far the guest is; the console shows it too.
    pub fn report(&self, progress: Progress) {
        self.cloud.report(&self.id, progress);
    }
}

/// How far a guest is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// It reads its user-data.
    Booting,
    /// It could not become what its user-data says.
    Failed(String),
    /// It has its final config and runs.
    Running,
    /// It is part of what it was made for.
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

/// Lets the guest of a server go on that has its final config on its disk.
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
