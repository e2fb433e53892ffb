//! `bedplate doctor`: finds problems of an installation, the likeliest cause first, with what to do.
//!
//! The doctor changes nothing. A check that cannot run is reported as skipped, with the missing requirement.

mod bmcs;
mod clocks;
mod cloud;
mod configured;
mod delegation;
mod finding;
mod images;
mod ports;
mod segment;
mod services;
mod webhooks;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use crate::api::Service;
use crate::connection::Connection;
use crate::exit::{Exit, Failure};
use crate::output::Format;

use configured::Configured;
use finding::{Check, Findings};

/// The options of `bedplate doctor`.
#[derive(Args)]
pub(crate) struct Options {
    /// Configuration of baremetald, if it runs on this machine.
    #[arg(long, value_name = "FILE", default_value = "/etc/bedplate/baremetald.toml")]
    baremetald: PathBuf,
    /// Configuration of clusterd, if it runs on this machine.
    #[arg(long, value_name = "FILE", default_value = "/etc/bedplate/clusterd.toml")]
    clusterd: PathBuf,
    /// Network interface to search for other DHCP servers; default: the interface in baremetald's configuration.
    #[arg(long)]
    interface: Option<String>,
    /// DNS zone whose delegation is checked; default: the zone in clusterd's configuration.
    #[arg(long, value_name = "NAME")]
    zone: Option<String>,
    /// Name server for the delegation check; default: the name server of this machine.
    #[arg(long, value_name = "ADDRESS:PORT")]
    resolver: Option<SocketAddr>,
    /// Skip the download of images for the checksum check.
    #[arg(long)]
    no_images: bool,
}

/// Runs all checks and prints the findings. Returns an error if there is a problem.
pub(crate) async fn run(
    options: &Options,
    connection: &Connection,
    format: Format,
) -> anyhow::Result<()> {
    let mut findings = Findings::default();
    let machines = configured::read(&options.baremetald, Service::Baremetald, &mut findings);
    let clusters = configured::read(&options.clusterd, Service::Clusterd, &mut findings);
    let machines_api =
        service(Service::Baremetald, machines.as_ref(), connection, &mut findings).await;
    service(Service::Clusterd, clusters.as_ref(), connection, &mut findings).await;

    segment::look(options.interface.as_deref(), machines.as_ref(), &mut findings).await;
    match machines_api {
        Some(api) => {
            let api = Arc::new(api);
            let nodes = bmcs::nodes(&api, &mut findings).await;
            bmcs::look(&api, &nodes, &mut findings).await;
            clocks::of_bmcs(&nodes, &mut findings).await;
            match options.no_images {
                true => findings
                    .skipped(Check::Images, "images are not downloaded because of --no-images"),
                false => images::look(&nodes, &mut findings).await,
            }
        }
        None => {
            for check in [Check::Bmcs, Check::Images] {
                findings.skipped(check, "needs an answer of baremetald");
            }
        }
    }
    cloud::look(connection, clusters.as_ref(), &mut findings).await;
    let zone = options.zone.clone().or_else(|| clusters.as_ref()?.text(&["machines", "zone"]));
    delegation::look(zone.as_deref(), options.resolver, &mut findings).await;

    let (answer, wrong) = findings.into_answer();
    answer.write(format)?;
    match wrong {
        0 => Ok(()),
        1 => Err(Failure::new(Exit::Failed, "1 check failed").into()),
        wrong => Err(Failure::new(Exit::Failed, format!("{wrong} checks failed")).into()),
    }
}

/// Checks a service with its ports, database and clock. Returns its API if it answers.
async fn service(
    service: Service,
    configured: Option<&Configured>,
    connection: &Connection,
    findings: &mut Findings,
) -> Option<crate::api::Api> {
    let seen = services::look(service, configured, connection, findings).await;
    if let Some(configured) = configured {
        ports::look(configured, seen.answers(), findings);
        if !seen.answers() {
            services::look_at_database(configured, findings).await;
        }
    }
    seen.into_api()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The findings as lines of `verdict: what`.
    pub(crate) fn lines(findings: &Findings) -> Vec<String> {
        findings.all().map(|it| format!("{}: {}", it.verdict.as_str(), it.what)).collect()
    }
}
