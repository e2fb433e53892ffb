//! `bedplate policy`: the role that each route requires.

use api_client::shared::PolicyRow;
use clap::{Args, ValueEnum};

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
    let mut tables = Vec::new();
    for service in Service::all_or(options.service) {
        let api = service.api(connection).await?;
        tables.push((service.name(), api.all("/bedplate/v1/policy").await?));
    }
    Answer::of_services(tables, &HEADER, line).write(format)
}

fn line(service: &str, row: &PolicyRow) -> Vec<String> {
    let role = |role: &Option<String>| match role {
        _ if row.public => "anyone".to_owned(),
        Some(role) => plain(role),
        None => "-".to_owned(),
    };
    let services = match row.services {
        _ if row.public => "anyone",
        Some(true) => "yes",
        Some(false) | None => "-",
    };
    let [cloud, owner, lessee] = [&row.cloud, &row.owner, &row.lessee].map(role);
    vec![
        service.to_owned(),
        plain(&row.method),
        plain(&row.path),
        cloud,
        services.to_owned(),
        owner,
        lessee,
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_row_shows_the_required_roles() {
        let check = |row: Value, want: [&str; 7]| {
            let row: PolicyRow = serde_json::from_value(row).unwrap();
            assert_eq!(line("machines", &row), want);
        };
        let row = json!({"method": "PUT", "path": "/p", "public": false, "cloud": "member", "services": true,
                         "owner": "member", "lessee": null});
        check(row, ["machines", "PUT", "/p", "member", "yes", "member", "-"]);
        let row = json!({"method": "GET", "path": "/", "public": true});
        check(row, ["machines", "GET", "/", "anyone", "anyone", "anyone", "anyone"]);
    }
}
