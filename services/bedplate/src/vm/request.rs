//! `bedplate vm request`: creates a VM.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use serde_json::{Map, Value, json};

use crate::api::Api;
use crate::output::Format;
use crate::patience::Patience;

use super::wait::Goal;
use super::{MACHINES, told};

/// Nova's limit for user data, in characters of base64.
const LARGEST_USER_DATA: usize = 65535;

/// The options of `bedplate vm request`.
#[derive(Args)]
pub(crate) struct Options {
    /// Its name: a DNS label, by which it is found there where clusterd names machines. One is made up, unless given.
    name: Option<String>,
    /// What it boots, by name or id: see `bedplate vm images`.
    #[arg(long)]
    image: String,
    /// How large it is, by name or id.
    #[arg(long)]
    flavor: String,
    /// A file with public SSH keys that may log in, as ~/.ssh/id_ed25519.pub; may be given again. Keypairs of your account in Nova
    /// are not seen: clusterd asks for machines as itself, and tells them your keys.
    #[arg(long = "ssh-key", value_name = "FILE")]
    ssh_keys: Vec<PathBuf>,
    /// The size of a volume that it boots from, in GiB; without it, it boots from the disk of its flavor.
    #[arg(long, value_name = "GIB")]
    root_volume: Option<u32>,
    /// The network it is on, by name or id; the one that clusterd has for that, unless told.
    #[arg(long)]
    network: Option<String>,
    /// The availability zone it is in.
    #[arg(long)]
    availability_zone: Option<String>,
    /// Whether it has an address that is reached from outside.
    #[arg(long)]
    floating_ip: bool,
    /// A file with what its system is told at its first boot: cloud-init's or Ignition's.
    #[arg(long, value_name = "FILE")]
    user_data: Option<PathBuf>,
    /// For how long: 14d, 36h, 1d12h. As long as machines are lent by default, unless told.
    #[arg(long, value_name = "LENGTH")]
    lease: Option<String>,
    /// A mail address that is told before it ends.
    #[arg(long, value_name = "ADDRESS")]
    notify: Option<String>,
    #[command(flatten)]
    patience: Patience,
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
            "{} is a private key, which is not sent to anybody. To go on: give the file that ends in .pub",
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
            "{} is too large: as base64 it has {} bytes, and Nova takes {LARGEST_USER_DATA}. To go on: have it fetch the rest",
            file.display(),
            text.len()
        );
    }
    Ok(text)
}

/// Creates a VM.
pub(super) async fn run(options: Options, api: &Api, format: Format) -> anyhow::Result<()> {
    let asked = api.post(MACHINES, &options.body()?).await;
    let vm = asked.map_err(|why| match &options.name {
        Some(name) if why.to_string().contains("is taken already") => anyhow::anyhow!(
            "{why}. To go on: choose another name, or see `bedplate vm show {name}` for the machine that has it"
        ),
        _ => why,
    })?;
    told(api, vm, Goal::Is("ACTIVE"), options.patience, format).await
}
