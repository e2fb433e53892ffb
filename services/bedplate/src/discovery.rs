//! `bedplate discovery`: machines that sent a boot request and are not enrolled.

use clap::Subcommand;
use serde_json::Value;

use crate::api::Api;
use crate::output::{Answer, Format, plain, text};
use crate::paging;
use crate::path::element_path;
use crate::values::time;
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
    let found = paging::all(api, DISCOVERIES, "discoveries").await?;
    let rows = found.iter().map(|one| {
        let vendor = &one["data"]["inventory"]["system_vendor"];
        let machine =
            format!("{} {}", text(&vendor["manufacturer"]), text(&vendor["product_name"]));
        let [first, last] = ["first_seen_at", "last_seen_at"].map(|key| time(&one[key]));
        vec![text(&one["mac"]), first, last, machine.trim().to_owned()]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    Ok(Answer::table(
        paging::whole("discoveries", found),
        &["MAC", "First seen", "Last seen", "Details"],
        rows,
    ))
}
