//! The first half of the story: powered-off machines become installed ones.

use crate::api::{Api, Service};
use crate::image::ImageOptions;
use crate::output::{Format, line};
use crate::patience::Deadline;
use crate::rack::{self, Goal, Reach};

use super::children::Children;
use super::{Options, START_TIMEOUT, remove_file};

/// Starts the emulated rack, and baremetald.
pub(super) async fn start(options: &Options, children: &mut Children) -> anyhow::Result<Api> {
    line("Starting four emulated machines: BMCs, firmware, disks")?;
    let certificate = options.state.join("bmc.pem");
    remove_file(&certificate)?;
    children.start("machine-emulator", &options.log("machine-emulator"), |command| {
        command.arg("--machines").arg(options.from.join("machines.yaml"));
        command.args(["--dhcp", "127.0.0.1:6767", "--tftp", "127.0.0.1:6969"]);
        command.arg("--certificate-out").arg(&certificate);
    })?;
    children.ready(START_TIMEOUT, || std::future::ready(certificate.is_file())).await?;

    line("Starting baremetald, with SQLite in its state folder")?;
    children.start("baremetald", &options.log("baremetald"), |command| {
        command.arg("--config").arg(options.from.join("baremetald.toml"));
    })?;
    let api = Api::nearby(Service::Machines)?;
    children.ready(START_TIMEOUT, || async { api.get("/v1").await.is_ok() }).await?;
    Ok(api)
}

/// A rack is enrolled, inspected, installed.
pub(super) async fn story(
    api: &Api,
    options: &Options,
    image: &ImageOptions,
) -> anyhow::Result<()> {
    let manifest = options.from.join("rack.yaml");
    line(&format!("\nbedplate rack enroll {}", manifest.display()))?;
    rack::enroll(api, &manifest, None, Format::Table).await?;

    line("\nbedplate rack up dev --reach inspected")?;
    rack::ask_up(api, "dev", Goal::of(Reach::Inspected)).await?;
    rack::settled(api, "dev", Deadline::after(None), Format::Table).await?;

    let url = image.image.as_deref().unwrap_or_default();
    line(&format!(
        "\nbedplate rack up dev --image {url} --checksum {}",
        image.checksum.as_deref().unwrap_or_default()
    ))?;
    let instance_info = image.instance_info()?;
    let goal = Goal { instance_info, ..Goal::of(Reach::Installed) };
    rack::ask_up(api, "dev", goal).await?;
    rack::settled(api, "dev", Deadline::after(None), Format::Table).await
}
