//! `bedplate keys`: the keys with which the services seal secrets. The keys themselves never leave the services.

use api_client::WithJson;
use api_client::shared::Key;
use clap::{Args, Subcommand};
use serde::de::IgnoredAny;
use serde_json::json;

use crate::connection::Connection;
use crate::output::{Answer, Format, plain};
use crate::policy::Service;
use crate::wait_options::WaitOptions;
use crate::watch::Watch;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List the keys with the number of secrets sealed by each.
    List {
        #[command(flatten)]
        of: ServiceSelection,
        #[command(flatten)]
        watch: Watch,
    },
    /// Create a new key and re-encrypt all secrets in the background; with --wait, until no secret is sealed by an older key.
    Rotate {
        #[command(flatten)]
        of: ServiceSelection,
        #[command(flatten)]
        patience: WaitOptions,
    },
    /// Remove an unused key.
    Retire(Retire),
}

/// The selected services.
#[derive(Args)]
pub(crate) struct ServiceSelection {
    /// Service; default: both.
    #[arg(value_enum)]
    service: Option<Service>,
}

#[derive(Args)]
pub(crate) struct Retire {
    /// Service.
    #[arg(value_enum)]
    service: Service,
    /// Id of the key.
    id: String,
}

/// The columns of the table.
const HEADER: [&str; 5] = ["Service", "Key", "State", "Records", "Machines"];

pub(crate) async fn run(
    command: Command,
    connection: &Connection,
    format: Format,
) -> anyhow::Result<()> {
    match command {
        Command::List { of, watch } => {
            watch.show(format, async || list(of.services(), connection).await).await
        }
        Command::Rotate { of, patience } => {
            for service in of.services() {
                let api = service.api(connection).await?;
                api.post::<IgnoredAny>("/bedplate/v1/keys/rotate", &json!({})).await?;
            }
            let deadline = patience.begin();
            let mut tables = tables(&of.services(), connection).await?;
            while patience.wait && tables.iter().any(|(_, keys)| is_rotating(keys)) {
                deadline.pause("the key rotation").await?;
                tables = self::tables(&of.services(), connection).await?;
            }
            listed(tables).write(format)
        }
        Command::Retire(Retire { service, id }) => {
            let id = percent_encoded(&id);
            service.api(connection).await?.delete(&format!("/bedplate/v1/keys/{id}")).await?;
            list(vec![service], connection).await?.write(format)
        }
    }
}

impl ServiceSelection {
    fn services(&self) -> Vec<Service> {
        Service::all_or(self.service)
    }
}

async fn list(services: Vec<Service>, connection: &Connection) -> anyhow::Result<Answer> {
    Ok(listed(tables(&services, connection).await?))
}

fn listed(tables: Vec<(&str, Vec<WithJson<Key>>)>) -> Answer {
    Answer::of_services(tables, &HEADER, line)
}

/// Fetches the keys of each service.
async fn tables(
    services: &[Service],
    connection: &Connection,
) -> anyhow::Result<Vec<(&'static str, Vec<WithJson<Key>>)>> {
    let mut tables = Vec::new();
    for service in services {
        let keys = service.api(connection).await?.all("/bedplate/v1/keys").await?;
        tables.push((service.name(), keys));
    }
    Ok(tables)
}

/// Whether a record is still sealed with an older key.
fn is_rotating(keys: &[WithJson<Key>]) -> bool {
    keys.iter().any(|key| !key.seals && key.records > 0)
}

fn line(service: &str, key: &Key) -> Vec<String> {
    let needed = key.records > 0 || key.machines > 0;
    let state = match (key.in_file, key.seals, needed) {
        (false, _, _) => "missing: restore the key in the key file",
        (true, true, _) => "seals",
        (true, false, true) => "opens",
        (true, false, false) => "unused, can be retired",
    };
    vec![
        service.to_owned(),
        plain(&key.id),
        state.to_owned(),
        key.records.to_string(),
        key.machines.to_string(),
    ]
}

/// Percent-encodes an id: any other text than letters and digits is not an id, and must not lead to another path.
fn percent_encoded(id: &str) -> String {
    let encoded = |byte: u8| match byte {
        b if b.is_ascii_alphanumeric() => char::from(b).to_string(),
        b => format!("%{b:02X}"),
    };
    id.bytes().map(encoded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_the_state_of_a_key() {
        let key = |seals: bool, in_file: bool, records: u64| {
            let json = json!({"id": "1", "seals": seals, "in_file": in_file, "records": records, "machines": 0});
            serde_json::from_value::<WithJson<Key>>(json).unwrap()
        };
        let state = |key: WithJson<Key>| line("machines", &key)[2].clone();
        assert_eq!(line("machines", &key(true, true, 3)), ["machines", "1", "seals", "3", "0"]);
        assert_eq!(state(key(false, true, 3)), "opens");
        assert_eq!(state(key(false, true, 0)), "unused, can be retired");
        assert_eq!(state(key(false, false, 3)), "missing: restore the key in the key file");
        assert!(is_rotating(&[key(true, true, 3), key(false, true, 1)]));
        assert!(!is_rotating(&[key(true, true, 3), key(false, true, 0)]));
    }

    #[test]
    fn an_id_cannot_lead_to_another_path() {
        assert_eq!(percent_encoded("12a"), "12a");
        assert_eq!(percent_encoded("../x"), "%2E%2E%2Fx");
    }
}
