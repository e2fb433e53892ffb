//! `bedplate reservation`: whole nodes for a limited time.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use api_client::WithJson;
use api_client::baremetald::Reservation;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::api::Api;
use crate::confirmation::Confirmation;
use crate::exit::Failure;
use crate::image::ImageOptions;
use crate::output::{Answer, Format, elements, line, plain, text};
use crate::progress::{Display, Row};
use crate::values::time;
use crate::wait_options::WaitOptions;
use crate::watch::Watch;

const RESERVATIONS: &str = "/bedplate/v1/reservations";

/// The subcommands of `bedplate reservation`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Reserve a whole machine, installed with an image.
    Request {
        #[command(flatten)]
        wish: RequestOptions,
        #[command(flatten)]
        patience: WaitOptions,
    },
    /// List the reservations of the project; operators see all.
    List {
        #[command(flatten)]
        watch: Watch,
    },
    /// Show a reservation with the state of its machine and the end of its lease.
    Show {
        /// Name or id of the reservation.
        reservation: String,
        #[command(flatten)]
        watch: Watch,
    },
    /// Extend the lease, counted from now.
    Extend {
        /// Name or id of the reservation.
        reservation: String,
        #[command(flatten)]
        term: LeaseEnd,
    },
    /// Undo the end of a lease before the machine is erased.
    Undo {
        /// Name or id of the reservation.
        reservation: String,
    },
    /// Release the machine: it is switched off and erased.
    Delete {
        /// Name or id of the reservation.
        reservation: String,
        #[command(flatten)]
        consent: Confirmation,
        #[command(flatten)]
        patience: WaitOptions,
    },
}

/// The options of a request for a reservation.
#[derive(Args)]
pub(crate) struct RequestOptions {
    /// Name of the reservation, also the host name of the machine.
    name: Option<String>,
    /// Resource class of the machine.
    #[arg(long)]
    resource_class: String,
    /// Required trait; repeatable.
    #[arg(long = "trait", value_name = "TRAIT")]
    traits: Vec<String>,
    #[command(flatten)]
    image: ImageOptions,
    /// File with SSH public keys, for example ~/.ssh/id_ed25519.pub; repeatable.
    #[arg(long = "ssh-key", value_name = "FILE")]
    ssh_keys: Vec<PathBuf>,
    /// File with user data for the first boot: cloud-init or Ignition.
    #[arg(long, value_name = "FILE")]
    user_data: Option<PathBuf>,
    /// Lease duration, for example 14d, 36h or 1d12h; default: the configured duration.
    #[arg(long, value_name = "LENGTH")]
    lease: Option<String>,
    /// Mail address for warnings before the lease ends.
    #[arg(long, value_name = "ADDRESS")]
    notify: Option<String>,
}

/// The new end of a lease.
#[derive(Args)]
pub(crate) struct LeaseEnd {
    /// Lease duration from now, for example 14d, 36h or 1d12h; default: the configured duration.
    #[arg(long = "for", value_name = "LENGTH", conflicts_with = "until")]
    length: Option<String>,
    /// End of the lease, for example 2026-12-01T18:00:00Z.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

impl LeaseEnd {
    pub(crate) fn body(&self) -> Value {
        let given = [("for", &self.length), ("until", &self.until)];
        let given =
            given.into_iter().filter_map(|(key, it)| Some((key.to_owned(), json!(it.as_ref()?))));
        Value::Object(given.collect())
    }
}

impl RequestOptions {
    fn body(&self) -> anyhow::Result<Value> {
        let needed = || Failure::usage("--image is required: a machine is installed with an image");
        let image = self.image.image.as_ref().ok_or_else(needed)?;
        let checksum = self.image.checked_checksum()?;
        let mut whole = Map::from_iter([("url".to_owned(), json!(image))]);
        whole.extend(checksum.map(|it| ("checksum".to_owned(), json!(it))));
        whole.extend(self.image.format.as_ref().map(|it| ("format".to_owned(), json!(it))));
        let mut keys = Vec::new();
        for file in &self.ssh_keys {
            keys.extend(read_keys(file)?);
        }
        let mut body = json!({
            "resource_class": self.resource_class, "traits": self.traits, "image": whole, "ssh_keys": keys,
        });
        if let Some(name) = &self.name {
            body["name"] = json!(name);
        }
        if let Some(lease) = &self.lease {
            body["lease"] = json!(lease);
        }
        if let Some(address) = &self.notify {
            body["notify"] = json!(address);
        }
        if let Some(file) = &self.user_data {
            let text = fs::read_to_string(file);
            body["user_data"] =
                json!(text.with_context(|| format!("cannot read {}", file.display()))?);
        }
        Ok(body)
    }
}

/// Reads the keys in a file, without comments and empty lines.
fn read_keys(file: &Path) -> anyhow::Result<Vec<String>> {
    let text = fs::read_to_string(file);
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

pub(crate) async fn run(command: Command, api: &Api, format: Format) -> anyhow::Result<()> {
    match command {
        Command::Request { wish, patience } => {
            let asked = api.post(RESERVATIONS, &wish.body()?).await?;
            show_outcome(api, asked, patience, format).await
        }
        Command::List { watch } => watch.show(format, async || list(api).await).await,
        Command::Show { reservation, watch } => {
            let look = async || Ok(shown(api.get(&path(&reservation, "")).await?));
            watch.show(format, look).await
        }
        Command::Extend { reservation, term } => {
            shown(api.put(&path(&reservation, "/lease"), &term.body()).await?).write(format)
        }
        Command::Undo { reservation } => {
            shown(api.post(&path(&reservation, "/lease/undo"), &json!({})).await?).write(format)
        }
        Command::Delete { reservation, consent, patience } => {
            delete(api, &reservation, consent, patience).await
        }
    }
}

/// Shows the reservation. With `--wait`, waits until the installation succeeded or failed.
async fn show_outcome(
    api: &Api,
    asked: WithJson<Reservation>,
    patience: WaitOptions,
    format: Format,
) -> anyhow::Result<()> {
    if !patience.wait {
        return shown(asked).write(format);
    }
    let id = &asked.uuid;
    let (begun, deadline) = (Timestamp::now(), patience.begin());
    let mut display = format.is_for_people().then(Display::fitting);
    let settled = loop {
        let it: WithJson<Reservation> = api.get(&path(id, "")).await?;
        if let Some(display) = &mut display {
            display.show(vec![row(&it)], begun)?;
        }
        if it.state != "installing" {
            break it;
        }
        deadline.pause(&format!("reservation {}", label(&it))).await?;
    };
    if let Some(display) = display {
        display.finish();
    }
    if settled.state == "active" {
        return shown(settled).write(format);
    }
    let (name, state) = (label(&settled), plain(&settled.state));
    let node = text(settled.node.as_ref().map(|node| node.uuid.as_str()));
    bail!(
        "reservation {name} is {state}. Hint: an operator can see the reason with `bedplate node explain {node}`"
    )
}

async fn delete(
    api: &Api,
    reservation: &str,
    consent: Confirmation,
    patience: WaitOptions,
) -> anyhow::Result<()> {
    // From here on the reservation is identified by its id, because another one may get its name.
    let Reservation { uuid, .. } = api.get(&path(reservation, "")).await?;
    let name = plain(reservation);
    consent.to(
        &format!("the machine of reservation {name} is switched off and erased"),
        reservation,
    )?;
    api.delete(&path(&uuid, "")).await?;
    if !patience.wait {
        return line(&format!(
            "reservation {name} is being deleted: its machine is switched off and erased"
        ));
    }
    let (begun, deadline) = (Timestamp::now(), patience.begin());
    let mut display = Display::fitting();
    while let Some(it) = api.find(&path(&uuid, "")).await? {
        display.show(vec![row(&it)], begun)?;
        deadline.pause(&format!("the deletion of reservation {name}")).await?;
    }
    display.finish();
    line(&format!("reservation {name} is deleted, and its machine is erased"))
}

fn label(it: &Reservation) -> String {
    plain(it.label())
}

fn row(it: &Reservation) -> Row {
    let (label, state) = (label(it), plain(&it.state));
    let node = text(it.node.as_ref().map(|node| node.provision_state.as_str()));
    Row {
        key: label.clone(),
        live: format!("{state}, its machine is {node}"),
        log: Some(format!("{label}: {state}, its machine is {node}")),
        label,
    }
}

/// The path of a reservation. Characters that have a meaning in a URL are not permitted in names, so replacing them only leads to a missing
/// reservation.
fn path(reservation: &str, part: &str) -> String {
    let legal = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
    let ident: String = reservation.chars().map(|c| if legal(c) { c } else { '_' }).collect();
    format!("{RESERVATIONS}/{ident}{part}")
}

async fn list(api: &Api) -> anyhow::Result<Answer> {
    let all = api.all::<WithJson<Reservation>>(RESERVATIONS).await?;
    let row = |it: &WithJson<Reservation>| {
        vec![
            text(it.name.as_deref()),
            plain(&it.uuid),
            plain(&it.state),
            text(it.resource_class.as_deref()),
            text(it.node.as_ref().and_then(|node| node.name.as_deref())),
            time(it.lease.as_ref().map(|lease| lease.until)),
        ]
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    let header = ["Name", "UUID", "State", "Resource class", "Node", "Lease until"];
    Ok(Answer::table(elements(all), &header, rows))
}

fn shown(it: WithJson<Reservation>) -> Answer {
    let (lease, node) = (it.lease.as_ref(), it.node.as_ref());
    let next = lease.and_then(|lease| lease.next.as_ref());
    let name = text(node.and_then(|node| node.name.as_deref()));
    let id = text(node.map(|node| node.uuid.as_str()));
    let step = text(next.map(|next| next.step.as_str())).replace('_', " ");
    let fields = [
        ("Name", text(it.name.as_deref())),
        ("UUID", plain(&it.uuid)),
        ("State", plain(&it.state)),
        ("Resource class", text(it.resource_class.as_deref())),
        ("Image", text(it.image.as_deref())),
        ("Node", format!("{name} {id}")),
        ("Power", text(node.and_then(|node| node.power_state.as_deref()))),
        ("Lease until", time(lease.map(|lease| lease.until))),
        ("Next stage", format!("{step} {}", time(next.map(|next| next.at)))),
    ];
    let lines = fields.map(|(label, value)| format!("{label:14} {value}").trim_end().to_owned());
    Answer::sentence(it.json, lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_part_of_a_path() {
        assert_eq!(path("job-1", "/lease"), "/bedplate/v1/reservations/job-1/lease");
        assert_eq!(path("../nodes?x", ""), "/bedplate/v1/reservations/.._nodes_x");
    }

    #[test]
    fn the_request_body_has_the_fields_of_the_api() {
        let term = LeaseEnd { length: Some("3d".to_owned()), until: None };
        assert_eq!(term.body(), json!({"for": "3d"}));
        let wish = RequestOptions {
            name: Some("job".to_owned()),
            resource_class: "gpu".to_owned(),
            traits: vec!["CUSTOM_A".to_owned()],
            image: ImageOptions {
                image: Some("http://i/d.raw".to_owned()),
                checksum: Some("sha256:00".to_owned()),
                format: None,
            },
            ssh_keys: Vec::new(),
            user_data: None,
            lease: Some("7d".to_owned()),
            notify: None,
        };
        let want = json!({
            "name": "job", "resource_class": "gpu", "traits": ["CUSTOM_A"], "ssh_keys": [], "lease": "7d",
            "image": {"url": "http://i/d.raw", "checksum": "sha256:00"},
        });
        assert_eq!(wish.body().expect("a body"), want);
    }
}
