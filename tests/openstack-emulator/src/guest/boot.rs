//! Boots the guests of servers.

use std::sync::Arc;

use base64::Engine;
use serde_json::Value;
use tracing::debug;

use super::ignition;
use super::machine::{Guest, GuestMachine};
use super::progress::Progress;
use crate::cloud::Cloud;
use crate::nova;
use crate::object::Kind;
use crate::settings::millis;

/// Boots the guest of a server that has become ACTIVE.
pub(crate) async fn boot(cloud: Cloud, guest: Arc<dyn Guest>, id: String) {
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
            if cloud.shared.is_kept {
                cloud.shared.with(|world| world.records.configs.insert(id, config.clone()));
            }
            machine.report(Progress::Running);
            guest.run(machine, config).await;
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
pub(crate) async fn resume(cloud: Cloud, guest: Arc<dyn Guest>, id: String) {
    let config = cloud.shared.with(|world| world.records.configs.get(&id).cloned());
    if let (Some(machine), Some(config)) = (machine(&cloud, &id), config) {
        guest.run(machine, config).await;
    }
}

fn machine(cloud: &Cloud, id: &str) -> Option<GuestMachine> {
    cloud.shared.with(|world| {
        let server = world.store.get(Kind::Server, id)?;
        let addresses = nova::ports(world, server)
            .flat_map(|port| port.list("fixed_ips"))
            .filter_map(|ip| ip["ip_address"].as_str().map(str::to_owned));
        let data = world.records.user_data.get(id).and_then(|data| {
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
