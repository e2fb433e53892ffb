//! The first half of the demonstration: machines that are powered off become hypervisors.

use std::path::Path;

use anyhow::Context;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::api::{Api, Service};
use crate::image::ImageOptions;
use crate::output::{Format, line};
use crate::profile;
use crate::rack::{self, BringUpTarget, Goal};
use crate::wait_options::Deadline;

use super::children::{Children, START_TIMEOUT};
use super::files::remove_file;
use super::options::Options;
use super::state_folder::{DemoStep, Folder};

/// Starts the emulated rack and baremetald.
pub(super) async fn start(options: &Options, children: &mut Children) -> anyhow::Result<Api> {
    line("Starting four emulated machines: BMCs, firmware, disks")?;
    let certificate = options.state.join("bmc.pem");
    remove_file(&certificate)?;
    children.start("machine-emulator", &options.log("machine-emulator"), |command| {
        command.arg("--compute-hosts").arg("--speed").arg(options.speed.to_string());
        command.arg("--state").arg(options.state.join("machines.json"));
        command.arg("--machines").arg(options.from.join("machines.yaml"));
        command.args(["--dhcp", "127.0.0.1:6767", "--tftp", "127.0.0.1:6969"]);
        command.arg("--certificate-out").arg(&certificate);
    })?;
    children.ready(START_TIMEOUT, || std::future::ready(certificate.is_file())).await?;

    line("Starting baremetald, with SQLite in its state folder")?;
    children.start("baremetald", &options.log("baremetald"), |command| {
        command.arg("--config").arg(options.from.join("baremetald.toml"));
    })?;
    let api = Api::nearby(Service::Baremetald)?;
    children.ready(START_TIMEOUT, || async { api.get::<IgnoredAny>("/v1").await.is_ok() }).await?;
    Ok(api)
}

/// Enrolls and inspects a rack, and makes its nodes hypervisors of the cloud.
pub(super) async fn story(
    api: &Api,
    options: &Options,
    folder: &Folder,
    image: &ImageOptions,
) -> anyhow::Result<()> {
    if folder.is_complete(DemoStep::Joined)? {
        line("\nbedplate rack status dev")?;
        rack::status(api, "dev").await?.write(Format::Table)?;
        line("\nbedplate profile list")?;
        return profile::list(api).await?.write(Format::Table);
    }
    if !folder.is_complete(DemoStep::Inspected)? {
        let manifest = options.from.join("rack.yaml");
        line(&format!("\nbedplate rack enroll {}", manifest.display()))?;
        rack::enroll(api, &manifest, None, Format::Table).await?;

        line("\nbedplate rack up dev --reach inspected")?;
        up(api, || Goal::of(BringUpTarget::Inspected)).await?;
        folder.mark_complete(DemoStep::Inspected)?;
    }
    if api.find::<IgnoredAny>("/bedplate/v1/hypervisor-profiles/kvm").await?.is_none() {
        let file = options.state.join("kvm.yaml");
        write_profile(&file, &options.state.join("clouds.yaml"), image)?;
        line(&format!("\nbedplate profile create {}", file.display()))?;
        profile::create(api, &file, Format::Table).await?;
    }
    line("\nbedplate rack up dev --profile kvm")?;
    up(api, || Goal { profile: Some("kvm".to_owned()), ..Goal::of(BringUpTarget::Installed) })
        .await?;
    folder.mark_complete(DemoStep::Joined)
}

/// Brings the rack up, and a second time if nodes failed: an interrupted run leaves machines restarted in the middle of their work.
async fn up(api: &Api, goal: impl Fn() -> Goal) -> anyhow::Result<()> {
    rack::set_goal(api, "dev", goal()).await?;
    let first = rack::settled(api, "dev", Deadline::after(None), Format::Table).await;
    let Err(why) = first else { return Ok(()) };
    line(&format!("{why:#}: retrying once"))?;
    rack::set_goal(api, "dev", goal()).await?;
    rack::settled(api, "dev", Deadline::after(None), Format::Table).await
}

/// Writes a hypervisor profile for the emulated cloud, as an administrator would. Its passwords are emulated too.
fn write_profile(file: &Path, clouds: &Path, image: &ImageOptions) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(clouds).context("cannot read the cloud's clouds.yaml")?;
    let clouds: Value = serde_saphyr::from_str(&text).context("cannot parse clouds.yaml")?;
    let url = clouds["clouds"]["admin"]["auth"]["auth_url"].as_str();
    let url = url.context("clouds.yaml has no auth_url")?;
    // The emulated cloud's message bus is at the address of its APIs.
    let address = url.trim_start_matches("http://").split('/').next().unwrap_or_default();
    let profile = json!({
        "name": "kvm",
        "description": "hypervisors of the emulated cloud",
        "kind": "cloud-init",
        "instance_info": image.instance_info()?,
        "settings": {
            "keystone": {"auth_url": url, "username": "nova", "password": "nova-secret"},
            "message_bus": {"transport_url": format!("rabbit://nova:emulated-only@{address}/")},
            "hugepages": [{"size": "1G", "count": 8}],
        },
        "placement": {"aggregate": "rack"},
    });
    std::fs::write(file, serde_json::to_string_pretty(&profile)?)
        .with_context(|| format!("cannot write {}", file.display()))
}
