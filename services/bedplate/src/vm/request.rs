//! `bedplate vm request`: creates a VM.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use serde_json::{Map, Value, json};

use crate::api::Api;
use crate::output::Format;
use crate::wait_options::WaitOptions;

use super::outcome::show_outcome;
use super::route::MACHINES;
use super::wait::Goal;

/// Nova's limit for user data, in characters of base64.
const LARGEST_USER_DATA: usize = 65535;

/// The options of `bedplate vm request`.
#[derive(Args)]
pub(crate) struct Options {
    /// Name of the VM, a DNS label, also its DNS name if clusterd has a DNS zone; default: a generated name.
    name: Option<String>,
    /// Image, by name or id: see `bedplate vm images`.
    #[arg(long)]
    image: String,
    /// Flavor, by name or id.
    #[arg(long)]
    flavor: String,
    /// File with SSH public keys, for example ~/.ssh/id_ed25519.pub; repeatable. Nova keypairs of your account are not available, because
    /// clusterd creates the server with its own account.
    #[arg(long = "ssh-key", value_name = "FILE")]
    ssh_keys: Vec<PathBuf>,
    /// Size of the boot volume in GiB; default: boot from the disk of the flavor.
    #[arg(long, value_name = "GIB")]
    root_volume: Option<u32>,
    /// Network, by name or id; default: clusterd's configured network.
    #[arg(long)]
    network: Option<String>,
    /// Availability zone.
    #[arg(long)]
    availability_zone: Option<String>,
    /// Assign a floating IP.
    #[arg(long)]
    floating_ip: bool,
    /// File with user data for the first boot: cloud-init or Ignition.
    #[arg(long, value_name = "FILE")]
    user_data: Option<PathBuf>,
    /// Lease duration, for example 14d, 36h or 1d12h; default: the configured duration.
    #[arg(long, value_name = "LENGTH")]
    lease: Option<String>,
    /// Mail address for warnings before the lease ends.
    #[arg(long, value_name = "ADDRESS")]
    notify: Option<String>,
    #[command(flatten)]
    patience: WaitOptions,
}

impl Options {
    fn body(&self) -> anyhow::Result<Value> {
        let mut body = Map::from_iter([
            ("image".to_owned(), json!(self.image)),
            ("flavor".to_owned(), json!(self.flavor)),
        ]);
        let data = self.user_data.as_deref().map(read_user_data).transpose()?;
        let mut keys = Vec::new();
        for file in &self.ssh_keys {
            keys.extend(read_keys(file)?);
        }
        let given = [
            ("name", self.name.as_ref().map(|it| json!(it))),
            ("ssh_keys", Some(json!(keys)).filter(|_| !keys.is_empty())),
            ("root_volume_gib", self.root_volume.map(|it| json!(it))),
            ("network", self.network.as_ref().map(|it| json!(it))),
            ("availability_zone", self.availability_zone.as_ref().map(|it| json!(it))),
            ("floating_ip_enabled", self.floating_ip.then_some(json!(true))),
            ("user_data", data.map(|it| json!(it))),
            ("lease", self.lease.as_ref().map(|it| json!(it))),
            ("notify", self.notify.as_ref().map(|it| json!(it))),
        ];
        body.extend(given.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
        Ok(Value::Object(body))
    }
}

/// Reads the keys in a file, without comments and empty lines.
fn read_keys(file: &Path) -> anyhow::Result<Vec<String>> {
    let text = std::fs::read_to_string(file);
    let text = text.with_context(|| format!("cannot read {}", file.display()))?;
    if text.contains("PRIVATE KEY") {
        bail!(
            "{} is a private key, which must not be sent. Hint: use the file that ends in .pub",
            file.display()
        );
    }
    let lines = text.lines().map(str::trim).filter(|it| !it.is_empty() && !it.starts_with('#'));
    Ok(lines.map(str::to_owned).collect())
}

fn read_user_data(file: &Path) -> anyhow::Result<String> {
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let text = STANDARD.encode(bytes);
    if text.len() > LARGEST_USER_DATA {
        bail!(
            "{} is too large: base64 needs {} bytes, and Nova accepts {LARGEST_USER_DATA}. Hint: let the user data download the rest",
            file.display(),
            text.len()
        );
    }
    Ok(text)
}

pub(super) async fn run(options: Options, api: &Api, format: Format) -> anyhow::Result<()> {
    let asked = api.post(MACHINES, &options.body()?).await;
    let vm = asked.map_err(|why| match &options.name {
        Some(name) if why.to_string().contains("is already in use") => anyhow::anyhow!(
            "{why}. Hint: choose another name, or show the existing VM with `bedplate vm show {name}`"
        ),
        _ => why,
    })?;
    show_outcome(api, vm, Goal::Is("ACTIVE"), options.patience, format).await
}
