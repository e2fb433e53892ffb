//! What machines look like to people.

use clap::Args;
use serde_json::Value;
use url::Url;

use crate::api::Api;
use crate::output::{self, Format, line, plain};

use super::{MACHINES, SNAPSHOTS, path};

/// Which machines are listed.
#[derive(Args)]
pub(crate) struct Filter {
    /// Only those of this user, by id.
    #[arg(long)]
    user: Option<String>,
    /// Only those of this project, by id.
    #[arg(long)]
    project: Option<String>,
}

/// Which machines are idle.
#[derive(Args)]
pub(crate) struct IdleFilter {
    /// For how long at least they have done nothing: 7d, 36h.
    #[arg(long = "for", value_name = "LENGTH")]
    length: Option<String>,
}

/// As long as a page may be.
const PAGE: &str = "1000";

/// All pages of a list.
async fn all(
    api: &Api,
    route: &str,
    key: &str,
    query: &[(&str, Option<&String>)],
) -> anyhow::Result<Vec<Value>> {
    let mut url = api.url(route)?;
    let (mut found, mut marker) = (Vec::new(), None::<String>);
    loop {
        url.query_pairs_mut().clear().append_pair("limit", PAGE);
        let given =
            query.iter().filter_map(|(name, value)| Some((*name, value.as_ref()?.as_str())));
        url.query_pairs_mut().extend_pairs(given);
        if let Some(marker) = &marker {
            url.query_pairs_mut().append_pair("marker", marker);
        }
        let mut page = api.get(&format!("{route}?{}", url.query().unwrap_or_default())).await?;
        if let Value::Array(rows) = page[key].take() {
            found.extend(rows);
        }
        marker = page["next"].as_str().and_then(marker_of);
        if marker.is_none() {
            return Ok(found);
        }
    }
}

/// After what the next page begins. The link itself may lead to where we cannot ask.
fn marker_of(next: &str) -> Option<String> {
    let next = Url::parse(next).ok()?;
    let found = next.query_pairs().find(|(name, _)| name == "marker");
    found.map(|(_, marker)| marker.into_owned())
}

/// `bedplate vm list`.
pub(super) async fn list(api: &Api, filter: Filter, format: Format) -> anyhow::Result<()> {
    let query = [("user_id", filter.user.as_ref()), ("project_id", filter.project.as_ref())];
    let machines = all(api, MACHINES, "machines", &query).await?;
    if format == Format::Json {
        return output::json(&Value::Array(machines));
    }
    let rows = machines.iter().map(|vm| {
        vec![
            text(&vm["name"]),
            text(&vm["status"]),
            text(&vm["flavor"]),
            reached(vm).unwrap_or_default(),
            ends(vm),
            text(&vm["user_id"]),
        ]
    });
    output::table(&["VM", "Status", "Flavor", "Reached at", "Lease ends", "User"], rows)
}

/// `bedplate vm show`.
pub(super) async fn one(api: &Api, vm: &str, events: bool, format: Format) -> anyhow::Result<()> {
    let found = api.get(&path(vm, "")?).await?;
    if !events {
        return told(&found, format);
    }
    let happened = api.get(&path(vm, "/events")?).await?;
    if format == Format::Json {
        return output::json(&happened);
    }
    told(&found, format)?;
    line("")?;
    let rows =
        happened["events"].as_array().into_iter().flatten().map(|event| {
            ["at", "severity", "reason", "message"].map(|key| text(&event[key])).to_vec()
        });
    output::table(&["At", "Severity", "Reason", "Message"], rows)
}

/// A machine, whole.
pub(super) fn told(vm: &Value, format: Format) -> anyhow::Result<()> {
    if format == Format::Json {
        return output::json(vm);
    }
    line(&format!("{}: {}", text(&vm["name"]), text(&vm["status"])))?;
    let mut rows = Vec::new();
    let mut row = |label: &str, said: String| {
        if !said.is_empty() {
            rows.push(vec![label.to_owned(), said]);
        }
    };
    row("Why", text(&vm["status_reason"]));
    row("To go on", text(&vm["next_action"]));
    row("Id", text(&vm["uuid"]));
    row("Image", text(&vm["image"]));
    row("Flavor", text(&vm["flavor"]));
    row("Name in DNS", text(&vm["dns_name"]));
    row("Address", text(&vm["address"]));
    row("Floating IP", text(&vm["floating_ip"]));
    row("Lease ends", ends(vm));
    row("Then", next(&vm["lease"]));
    output::table(&["", ""], rows)
}

/// By what a machine is best reached.
fn reached(vm: &Value) -> Option<String> {
    let keys = ["dns_name", "floating_ip", "address"];
    keys.iter().map(|key| text(&vm[*key])).find(|said| !said.is_empty())
}

fn ends(vm: &Value) -> String {
    let lease = &vm["lease"];
    if lease["ended_at"].is_string() {
        return format!("ended {}", text(&lease["ended_at"]));
    }
    text(&lease["until"])
}

/// What comes next by its lease.
fn next(lease: &Value) -> String {
    let (step, at) = (&lease["next"]["step"], text(&lease["next"]["at"]));
    let what = match step.as_str() {
        Some("warn") => "its owner is warned",
        Some("shut_off") => "it is switched off",
        Some("keep_copy") => "a copy of it is kept",
        Some("warn_of_deletion") => "its owner is warned that it will be deleted",
        Some("delete") => "it is deleted",
        Some(other) => other,
        None => return String::new(),
    };
    plain(&format!("{what}, at {at}"))
}

/// A snapshot, whole.
pub(super) fn kept(snapshot: &Value, format: Format) -> anyhow::Result<()> {
    if format == Format::Json {
        return output::json(snapshot);
    }
    let (name, status) = (text(&snapshot["name"]), text(&snapshot["status"]));
    line(&format!("snapshot {name} of {}: {status}", text(&snapshot["machine"])))
}

/// `bedplate vm snapshots`.
pub(super) async fn snapshots(api: &Api, vm: Option<&str>, format: Format) -> anyhow::Result<()> {
    let snapshots = match vm {
        Some(vm) => {
            let told = api.get(&path(vm, "/snapshots")?).await?;
            told["snapshots"].as_array().cloned().unwrap_or_default()
        }
        None => all(api, SNAPSHOTS, "snapshots", &[]).await?,
    };
    if format == Format::Json {
        return output::json(&Value::Array(snapshots));
    }
    let keys = ["name", "machine", "status", "image_id", "created_at", "keep_until"];
    let rows = snapshots.iter().map(|one| keys.map(|key| text(&one[key])).to_vec());
    output::table(&["Snapshot", "VM", "Status", "Image", "Asked for", "Kept until"], rows)
}

/// `bedplate vm images`.
pub(super) async fn images(api: &Api, format: Format) -> anyhow::Result<()> {
    let told = api.get("/bedplate/v1/images").await?;
    if format == Format::Json {
        return output::json(&told);
    }
    let number = |value: &Value| value.as_u64().map(|it| it.to_string()).unwrap_or_default();
    let rows = told["images"].as_array().into_iter().flatten().map(|image| {
        vec![text(&image["name"]), number(&image["min_ram_mib"]), number(&image["min_disk_gib"])]
    });
    output::table(&["Image", "RAM at least, MiB", "Disk at least, GiB"], rows)
}

/// `bedplate vm idle`.
pub(super) async fn idle(api: &Api, filter: IdleFilter, format: Format) -> anyhow::Result<()> {
    let machines =
        all(api, "/bedplate/v1/machines/idle", "machines", &[("for", filter.length.as_ref())])
            .await?;
    if format == Format::Json {
        return output::json(&Value::Array(machines));
    }
    let rows = machines.iter().map(|vm| {
        ["name", "user_id", "flavor", "idle_since", "why"].map(|key| text(&vm[key])).to_vec()
    });
    output::table(&["VM", "User", "Flavor", "Idle since", "Why"], rows)
}

fn text(value: &Value) -> String {
    plain(value.as_str().unwrap_or_default())
}
