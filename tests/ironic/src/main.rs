//! Records the answers of a service, or compares them with the recorded ones.
#![expect(clippy::print_stdout, reason = "the program prints the differences")]

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::{Parser, Subcommand};
use compat::Service;
use ironic::answer::{Answer, Status};
use ironic::difference::{Difference, compare, counts};
use ironic::walk::{self, Walk};
use ironic::walker::InternalErrors::{self, Defects, Same};
use ironic::walker::{Answered, REACHED, Walker};
use ironic::{CONFIGURATION, PATIENCE, known, path, recording};

/// The longest time of one wait in a real Ironic.
const PATIENCE_WITH_IRONIC: Duration = Duration::from_secs(60);

/// Sends the requests of the walk to a service without authentication, which has no nodes.
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Writes the answers of a real Ironic to `recorded`
    Record { url: String },
    /// Fails if a real Ironic answers otherwise than recorded
    Verify { url: String },
    /// Prints the differences between the recorded answers and those of baremetald, or of the service at URL
    Compare {
        url: Option<String>,
        /// Write the differences to `differences.yaml`
        #[arg(long)]
        accept: bool,
    },
}

fn main() -> Result<()> {
    let walk = walk::read(&path("walk"))?;
    match Options::parse().command {
        Command::Record { url } => {
            let mut walker = Walker::new(&url, PATIENCE_WITH_IRONIC);
            let answered = walker.walk(&walk, &Answered::new(), Same);
            for (subject, requests) in &answered {
                let is_over = |(_, it): &(_, Answer)| {
                    it.status.is_http() || it.status == Status::Other(REACHED.to_owned())
                };
                let failed = requests.iter().find(|(_, answers)| !answers.iter().all(is_over));
                ensure!(failed.is_none(), "{subject} is not recorded: {failed:?}");
            }
            recording::write(&path("recorded"), &answered)
        }
        Command::Verify { url } => {
            let found = differences(&walk, &url, PATIENCE_WITH_IRONIC, Same)?;
            ensure!(found.is_empty(), "{} answers differ from the recorded ones", found.len());
            Ok(())
        }
        Command::Compare { url: Some(url), accept } => {
            accept_if(accept, &differences(&walk, &url, PATIENCE, Defects)?)
        }
        Command::Compare { url: None, accept } => {
            let service = Service::machines_with(CONFIGURATION);
            accept_if(accept, &differences(&walk, &service.url, PATIENCE, Defects)?)
        }
    }
}

/// Sends the walk, and prints the differences and their number by kind.
fn differences(
    walk: &Walk,
    url: &str,
    patience: Duration,
    errors: InternalErrors,
) -> Result<Vec<Difference>> {
    let recorded = recording::read(&path("recorded"), walk.keys())?;
    let answered = Walker::new(url, patience).walk(walk, &recorded, errors);
    let differences = compare(&recorded, &answered, errors);
    for difference in &differences {
        println!("{difference}");
    }
    println!("{} differences", differences.len());
    for (kind, count) in counts(&differences) {
        println!("{count:6} {kind}");
    }
    Ok(differences)
}

fn accept_if(accept: bool, differences: &[Difference]) -> Result<()> {
    if accept { known::write(&path("differences.yaml"), differences) } else { Ok(()) }
}
