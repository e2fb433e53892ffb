//! `bedplate dev`: everything here, with an emulated rack, and its story.
//!
//! The services and the emulators are child processes: the same programs an administrator runs, and nothing of them is linked into
//! this one.

mod children;
mod files;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;

use crate::api::{Api, Connection};
use crate::image::ImageOptions;
use crate::output::{Format, line};
use crate::rack::{self, Reach};

use children::Child;

/// How long a child may take to be ready.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// What `bedplate dev` is told.
#[derive(Args)]
pub(crate) struct Options {
    /// The folder with baremetald.toml, machines.yaml and rack.yaml.
    #[arg(long, default_value = "deploy/dev")]
    from: PathBuf,
    /// The folder for logs, disks and the database, as baremetald.toml names it.
    #[arg(long, default_value = ".state/dev")]
    state: PathBuf,
    /// Begins anew: removes the state folder first.
    #[arg(long)]
    reset: bool,
    /// Ends when the story is told, instead of staying up.
    #[arg(long)]
    once: bool,
}

/// Tells the story, then stays up until interrupted.
pub(crate) async fn run(options: &Options) -> anyhow::Result<()> {
    if options.reset && options.state.exists() {
        std::fs::remove_dir_all(&options.state).context("cannot remove the state folder")?;
    }
    let image = files::make(&options.state)?;
    let certificate = options.state.join("bmc.pem");
    let log = |name: &str| options.state.join(format!("{name}.log"));

    line("Starting four emulated machines: BMCs, firmware, disks")?;
    let mut emulator = Child::start("machine-emulator", &log("machine-emulator"), |command| {
        command.arg("--machines").arg(options.from.join("machines.yaml"));
        command.args(["--dhcp", "127.0.0.1:6767", "--tftp", "127.0.0.1:6969"]);
        command.arg("--certificate-out").arg(&certificate);
    })?;
    let written = certificate.clone();
    emulator.ready(START_TIMEOUT, move || std::future::ready(written.is_file())).await?;

    line("Starting baremetald, with SQLite in its state folder")?;
    let mut daemon = Child::start("baremetald", &log("baremetald"), |command| {
        command.arg("--config").arg(options.from.join("baremetald.toml"));
    })?;
    let url = "http://127.0.0.1:6385".parse().context("the API's address makes no URL")?;
    let api = Api::connect(&Connection { url, user: None, password_file: None, cacert: None })?;
    daemon.ready(START_TIMEOUT, || async { api.get("/v1").await.is_ok() }).await?;

    tokio::select! {
        told = story(&api, options, &image) => told?,
        ended = emulator.ended() => return ended,
        ended = daemon.ended() => return ended,
    }
    if options.once {
        return Ok(());
    }
    whats_next(options)?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted.context("cannot listen for signals"),
        ended = emulator.ended() => ended,
        ended = daemon.ended() => ended,
    }
}

async fn story(api: &Api, options: &Options, image: &ImageOptions) -> anyhow::Result<()> {
    let manifest = options.from.join("rack.yaml");
    line(&format!("\nbedplate rack enroll {}", manifest.display()))?;
    rack::enroll(api, &manifest, None, Format::Table).await?;

    line("\nbedplate rack up dev --reach inspected")?;
    rack::ask_up(api, "dev", Reach::Inspected, None, None).await?;
    rack::watch(api, "dev").await?;

    let url = image.image.as_deref().unwrap_or_default();
    line(&format!(
        "\nbedplate rack up dev --image {url} --checksum {}",
        image.checksum.as_deref().unwrap_or_default()
    ))?;
    rack::ask_up(api, "dev", Reach::Installed, image.instance_info()?, None).await?;
    rack::watch(api, "dev").await
}

fn whats_next(options: &Options) -> anyhow::Result<()> {
    line(&format!(
        "\nThe rack is installed, and all of it stays up until Ctrl-C. In another terminal:\n\
         \n  target/debug/bedplate rack status dev\
         \n  target/debug/bedplate node explain dev-1\
         \n  curl http://127.0.0.1:6385/v1/nodes\
         \n  pip install python-openstackclient python-ironicclient\
         \n  openstack --os-auth-type none --os-endpoint http://127.0.0.1:6385 baremetal node list\
         \n  openstack --os-auth-type none --os-endpoint http://127.0.0.1:6385 baremetal node undeploy dev-1\
         \n\nLogs and state are in {}; the API describes itself at http://127.0.0.1:6385/openapi.json.",
        options.state.display()
    ))
}
