//! `bedplate policy`: the role that each route requires.

use clap::{Args, ValueEnum};
use serde_json::{Map, Value};

use crate::api::Api;
use crate::connection::Connection;
use crate::output::{Answer, Format, plain};

/// The options of `bedplate policy`.
#[derive(Args)]
pub(crate) struct Options {
    /// Service; default: both.
    #[arg(value_enum)]
    service: Option<Service>,
}

/// A service, as it is named on the command line.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Service {
    /// Bare Metal service (baremetald).
    Machines,
    /// Container Infra service (clusterd).
    Clusters,
}

impl Service {
    /// Returns the named service, or both if none is named.
    pub(crate) fn all_or(named: Option<Service>) -> Vec<Service> {
        let both = || vec![Service::Machines, Service::Clusters];
        named.map_or_else(both, |one| vec![one])
    }

    /// The service's name in output.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Service::Machines => "machines",
            Service::Clusters => "clusters",
        }
    }

    /// Makes a client of the service's API.
    pub(crate) async fn api(self, connection: &Connection) -> anyhow::Result<Api> {
        match self {
            Service::Machines => Api::of_machines(connection).await,
            Service::Clusters => Api::of_clusters(connection).await,
        }
    }
}

/// The columns. "Cloud admin" is the role that a route requires of administrators of the cloud. "Services" tells whether services may use
/// the route. "Project role" and "Lessee role" are the roles in the resource's project and in the lessee's project.
const HEADER: [&str; 7] =
    ["Service", "Method", "Path", "Cloud admin", "Services", "Project role", "Lessee role"];

pub(crate) async fn run(
    options: &Options,
    connection: &Connection,
    format: Format,
) -> anyhow::Result<()> {
    let mut tables = Map::new();
    for service in Service::all_or(options.service) {
        let answer = service.api(connection).await?.get("/bedplate/v1/policy").await?;
        tables.insert(service.name().to_owned(), answer["policy"].clone());
    }
    let rows = rows(&tables);
    Answer::of_services(tables, &HEADER, rows).write(format)
}

fn rows(tables: &Map<String, Value>) -> Vec<Vec<String>> {
    let of = |(service, rows): (&String, &Value)| {
        let rows = rows.as_array().cloned().unwrap_or_default().into_iter();
        rows.map(|row| line(service, &row)).collect::<Vec<_>>()
    };
    tables.iter().flat_map(of).collect()
}

fn line(service: &str, row: &Value) -> Vec<String> {
    let text = |key: &str| plain(row[key].as_str().unwrap_or("-"));
    let public = row["public"] == true;
    let role = |key: &str| if public { "anyone".to_owned() } else { text(key) };
    let services = match row["services"].as_bool() {
        _ if public => "anyone",
        Some(true) => "yes",
        Some(false) | None => "-",
    };
    let (cloud, owner, lessee) = (role("cloud"), role("owner"), role("lessee"));
    vec![
        service.to_owned(),
        text("method"),
        text("path"),
        cloud,
        services.to_owned(),
        owner,
        lessee,
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_shows_the_required_roles() {
        let row = json!({"method": "PUT", "path": "/p", "public": false, "cloud": "member", "services": true,
                         "owner": "member", "lessee": null});
        assert_eq!(
            line("machines", &row),
            ["machines", "PUT", "/p", "member", "yes", "member", "-"]
        );
        let row = json!({"method": "GET", "path": "/", "public": true});
        assert_eq!(line("clusters", &row)[3..], ["anyone"; 4]);
    }
}
