//! `bedplate profile`: hypervisor profiles, which make nodes hypervisors of the cloud.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use api_client::baremetald::{PlaceName, Placement, Profile};
use api_client::{WithJson, element_path};
use clap::Subcommand;
use serde_json::Value;

use crate::api::Api;
use crate::confirmation::Confirmation;
use crate::output::{Answer, Format, plain, text};
use crate::values::length;
use crate::watch::Watch;

const PROFILES: &str = "/bedplate/v1/hypervisor-profiles";

/// The secrets of a profile, which a file can refer to instead of containing them.
const SECRETS: [&str; 2] = ["/settings/keystone/password", "/settings/message_bus/transport_url"];

/// The subcommands of `bedplate profile`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// List hypervisor profiles.
    List {
        #[command(flatten)]
        watch: Watch,
    },
    /// Show a profile, with secrets masked.
    Show {
        /// Name or id of the profile.
        profile: String,
        #[command(flatten)]
        watch: Watch,
    },
    /// Create a profile from a file.
    Create {
        /// YAML or JSON file. A secret can be `{file: PATH}` or `{env: VARIABLE}`.
        file: PathBuf,
    },
    /// Replace a profile with the content of a file; values of ****** keep their secrets.
    Set {
        /// YAML or JSON file with the name of the profile.
        file: PathBuf,
    },
    /// Delete a profile; existing hypervisors stay unchanged.
    Delete {
        /// Name or id of the profile.
        profile: String,
        #[command(flatten)]
        consent: Confirmation,
    },
}

pub(crate) async fn run(command: Command, api: &Api, format: Format) -> anyhow::Result<()> {
    match command {
        Command::List { watch } => watch.show(format, async || list(api).await).await,
        Command::Show { profile, watch } => {
            let path = format!("{PROFILES}/{profile}");
            watch.show(format, async || Ok(shown(api.get(&path).await?))).await
        }
        Command::Create { file } => create(api, &file, format).await,
        Command::Set { file } => {
            let asked = read(&file)?;
            let name = asked["name"].as_str().context("the file has no name of a profile: name")?;
            shown(api.put(&format!("{PROFILES}/{name}"), &asked).await?).write(format)
        }
        Command::Delete { profile, consent } => {
            consent.to(&format!("hypervisor profile {profile} is deleted"), &profile)?;
            api.delete(&element_path(PROFILES, &profile, "")?).await
        }
    }
}

/// Creates the profile that a file describes.
pub(crate) async fn create(api: &Api, file: &Path, format: Format) -> anyhow::Result<()> {
    shown(api.post(PROFILES, &read(file)?).await?).write(format)
}

pub(crate) async fn list(api: &Api) -> anyhow::Result<Answer> {
    let profiles = api.all(PROFILES).await?;
    let row = |profile: &Profile| {
        let Placement { availability_zone, aggregate } = &profile.placement;
        vec![
            plain(&profile.name),
            plain(&profile.kind),
            text(profile.image()),
            named(availability_zone.as_ref()),
            named(aggregate.as_ref()),
            text(profile.description.as_deref()),
        ]
    };
    let header =
        ["Profile", "Provisioned with", "Image", "Availability zone", "Aggregate", "Description"];
    Ok(Answer::list("hypervisor_profiles", profiles, &header, row))
}

fn shown(profile: WithJson<Profile>) -> Answer {
    let (keystone, joining) = (&profile.settings.keystone, &profile.joining);
    let as_whom = format!("{} as {}", plain(&keystone.auth_url), plain(&keystone.username));
    let lines = [
        ("Profile", plain(&profile.name)),
        ("Description", text(profile.description.as_deref())),
        ("Provisioned with", plain(&profile.kind)),
        ("Image", text(profile.image())),
        ("Keystone", as_whom),
        ("Availability zone", named(profile.placement.availability_zone.as_ref())),
        ("Aggregate", named(profile.placement.aggregate.as_ref())),
        ("Service timeout", length(joining.compute_service.as_deref())),
        ("Hypervisor timeout", length(joining.hypervisor.as_deref())),
        ("Provider timeout", length(joining.resource_provider.as_deref())),
    ];
    let lines = lines.map(|(label, value)| format!("{label:18} {value}").trim_end().to_owned());
    Answer::sentence(profile.json, lines.join("\n"))
}

/// Reads a profile from a file and looks up its secrets.
fn read(file: &Path) -> anyhow::Result<Value> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut profile: Value = serde_saphyr::from_str(&text)
        .with_context(|| format!("cannot parse {}", file.display()))?;
    for pointer in SECRETS {
        let Some(secret) = profile.pointer_mut(pointer).filter(|secret| secret.is_object()) else {
            continue;
        };
        let folder = file.parent().unwrap_or(Path::new("."));
        let found = look_up(secret, folder);
        *secret = Value::String(found.with_context(|| format!("{}: {pointer}", file.display()))?);
    }
    Ok(profile)
}

/// Looks up a secret. A relative path starts at the folder of the profile.
fn look_up(secret: &Value, folder: &Path) -> anyhow::Result<String> {
    match (secret["file"].as_str(), secret["env"].as_str()) {
        (Some(path), None) => {
            let path = folder.join(path);
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            Ok(text.lines().next().unwrap_or_default().to_owned())
        }
        (None, Some(variable)) => std::env::var(variable)
            .with_context(|| format!("the environment variable {variable} is not set")),
        (Some(_), Some(_)) | (None, None) => {
            bail!("must be a string, {{file: PATH}} or {{env: VARIABLE}}")
        }
    }
}

/// The availability zone or aggregate of hypervisors: a fixed name, or the rule that makes the name.
fn named(named: Option<&PlaceName>) -> String {
    match named {
        Some(PlaceName::Fixed { fixed }) => plain(fixed),
        Some(PlaceName::By(rule)) => format!("by {}", plain(rule).replace('_', " ")),
        None => String::new(),
    }
}
