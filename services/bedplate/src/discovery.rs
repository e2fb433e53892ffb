//! `bedplate discovery`: machines that sent a boot request and are not enrolled.

use api_client::baremetald::Discovery;
use api_client::element_path;
use clap::Subcommand;
use serde_json::Value;

use crate::api::Api;
use crate::output::{Answer, Format, plain, text};
use crate::watch::Watch;

const DISCOVERIES: &str = "/bedplate/v1/discoveries";

/// The subcommands of `bedplate discovery`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// List machines that requested a network boot and are not enrolled.
    List {
        #[command(flatten)]
        watch: Watch,
    },
    /// Remove a machine from the list; the next network boot lists the machine again.
    Dismiss {
        /// MAC address.
        mac: String,
    },
}

/// Runs a subcommand.
pub(crate) async fn run(command: Command, api: &Api, format: Format) -> anyhow::Result<()> {
    match command {
        Command::List { watch } => watch.show(format, async || list(api).await).await,
        Command::Dismiss { mac } => {
            api.delete(&element_path(DISCOVERIES, &mac, "")?).await?;
            let said = plain(&format!("{mac} was removed from the list"));
            Answer::sentence(Value::Null, said).write(format)
        }
    }
}

async fn list(api: &Api) -> anyhow::Result<Answer> {
    let found = api.all(DISCOVERIES).await?;
    let row = |one: &Discovery| {
        let vendor = |field: &str| text(one.reported(&format!("/system_vendor/{field}")));
        let machine = format!("{} {}", vendor("manufacturer"), vendor("product_name"));
        let [first, last] = [one.first_seen_at, one.last_seen_at].map(readable::time);
        vec![plain(&one.mac), first, last, machine.trim().to_owned()]
    };
    Ok(Answer::list("discoveries", found, &["MAC", "First seen", "Last seen", "Details"], row))
}
