//! Shows VMs, snapshots and images to people.

use clap::Args;
use serde_json::Value;
use url::form_urlencoded::Serializer;

use crate::api::Api;
use crate::output::{Answer, draw_table, plain, text};
use crate::paging;
use crate::values::{mib, time};

use super::route::{MACHINES, SNAPSHOTS, path};

/// The filter of a list of VMs.
#[derive(Args, Default)]
pub(crate) struct Filter {
    /// Only VMs of this user, by id.
    #[arg(long)]
    user: Option<String>,
    /// Only VMs of this project, by id.
    #[arg(long)]
    project: Option<String>,
}

/// The filter of a list of idle VMs.
#[derive(Args)]
pub(crate) struct IdleFilter {
    /// Minimum idle time, for example 7d or 36h.
    #[arg(long = "for", value_name = "LENGTH")]
    length: Option<String>,
}

/// Returns the path of a list with the given ones of these query parameters.
fn filtered(route: &str, query: &[(&str, Option<&String>)]) -> String {
    let mut filter = Serializer::new(String::new());
    filter.extend_pairs(query.iter().filter_map(|(name, value)| Some((*name, value.as_ref()?))));
    format!("{route}?{}", filter.finish())
}

/// `bedplate vm list`: lists VMs.
pub(super) async fn list(api: &Api, filter: &Filter) -> anyhow::Result<Answer> {
    let query = [("user_id", filter.user.as_ref()), ("project_id", filter.project.as_ref())];
    let machines = paging::all(api, &filtered(MACHINES, &query), "machines").await?;
    let row = |vm: &Value| {
        vec![
            text(&vm["name"]),
            text(&vm["status"]),
            text(&vm["flavor"]),
            reached(vm).unwrap_or_default(),
            ends(vm),
            text(&vm["user_id"]),
        ]
    };
    let header = ["VM", "Status", "Flavor", "Address", "Lease ends", "User"];
    Ok(listed(machines, &header, row))
}

/// A table with a row for each element.
fn listed(all: Vec<Value>, header: &[&str], row: impl Fn(&Value) -> Vec<String>) -> Answer {
    let rows: Vec<_> = all.iter().map(row).collect();
    Answer::table(Value::Array(all), header, rows)
}

/// `bedplate vm show`: shows a VM.
pub(super) async fn one(api: &Api, vm: &str, events: bool) -> anyhow::Result<Answer> {
    let found = api.get(&path(vm, "")?).await?;
    if !events {
        return Ok(answer(found));
    }
    let happened = api.get(&path(vm, "/events")?).await?;
    let rows = happened["events"].as_array().into_iter().flatten().map(|event| {
        let [severity, reason, message] =
            ["severity", "reason", "message"].map(|key| text(&event[key]));
        vec![time(&event["at"]), severity, reason, message]
    });
    let events = draw_table(&["Time", "Severity", "Reason", "Message"], rows);
    let words = format!("{}\n\n{events}", described(&found));
    Ok(Answer::sentence(happened, words))
}

/// Describes a VM.
pub(super) fn answer(vm: Value) -> Answer {
    let words = described(&vm);
    Answer::sentence(vm, words)
}

fn described(vm: &Value) -> String {
    let rows = [
        ("Reason", text(&vm["status_reason"])),
        ("Hint", text(&vm["next_action"])),
        ("ID", text(&vm["uuid"])),
        ("Image", text(&vm["image"])),
        ("Flavor", text(&vm["flavor"])),
        ("DNS name", text(&vm["dns_name"])),
        ("Address", text(&vm["address"])),
        ("Floating IP", text(&vm["floating_ip"])),
        ("Lease ends", ends(vm)),
        ("Next stage", next(&vm["lease"])),
    ];
    let rows = rows.into_iter().filter(|(_, said)| !said.is_empty());
    let rows = rows.map(|(label, said)| vec![label.to_owned(), said]);
    let head = format!("{}: {}", text(&vm["name"]), text(&vm["status"]));
    format!("{head}\n{}", draw_table(&["", ""], rows))
}

/// The best address of a VM: its DNS name, floating IP or fixed IP.
fn reached(vm: &Value) -> Option<String> {
    let keys = ["dns_name", "floating_ip", "address"];
    keys.iter().map(|key| text(&vm[*key])).find(|said| !said.is_empty())
}

fn ends(vm: &Value) -> String {
    let lease = &vm["lease"];
    if lease["ended_at"].is_string() {
        return format!("ended {}", time(&lease["ended_at"]));
    }
    time(&lease["until"])
}

/// The next stage of a lease.
fn next(lease: &Value) -> String {
    let (step, at) = (&lease["next"]["step"], time(&lease["next"]["at"]));
    let what = match step.as_str() {
        Some("warn") => "the owner is warned",
        Some("shut_off") => "the VM is switched off",
        Some("keep_copy") => "a snapshot is made",
        Some("warn_of_deletion") => "the owner is warned of the deletion",
        Some("delete") => "the VM is deleted",
        Some(other) => other,
        None => return String::new(),
    };
    plain(&format!("{what}, at {at}"))
}

/// Describes a snapshot.
pub(super) fn snapshot_row(snapshot: Value) -> Answer {
    let (name, status) = (text(&snapshot["name"]), text(&snapshot["status"]));
    let words = format!("snapshot {name} of {}: {status}", text(&snapshot["machine"]));
    Answer::sentence(snapshot, words)
}

/// `bedplate vm snapshots`: lists snapshots.
pub(super) async fn snapshots(api: &Api, vm: Option<&str>) -> anyhow::Result<Answer> {
    let route = match vm {
        Some(vm) => path(vm, "/snapshots")?,
        None => SNAPSHOTS.to_owned(),
    };
    let snapshots = paging::all(api, &route, "snapshots").await?;
    let row = |one: &Value| {
        let texts = ["name", "machine", "status", "image_id"].map(|key| text(&one[key]));
        let times = ["created_at", "keep_until"].map(|key| time(&one[key]));
        texts.into_iter().chain(times).collect()
    };
    let header = ["Snapshot", "VM", "Status", "Image", "Created", "Kept until"];
    Ok(listed(snapshots, &header, row))
}

/// `bedplate vm images`: lists images.
pub(super) async fn images(api: &Api) -> anyhow::Result<Answer> {
    let images = paging::all(api, "/bedplate/v1/images", "images").await?;
    let size = |value: &Value, mib_per_unit: u64| {
        value.as_u64().map(|it| mib(it.saturating_mul(mib_per_unit))).unwrap_or_default()
    };
    let row = |image: &Value| {
        vec![
            text(&image["name"]),
            size(&image["min_ram_mib"], 1),
            size(&image["min_disk_gib"], 1024),
        ]
    };
    let rows: Vec<Vec<String>> = images.iter().map(row).collect();
    Ok(Answer::table(paging::whole("images", images), &["Image", "Min RAM", "Min disk"], rows))
}

/// `bedplate vm idle`: lists idle VMs.
pub(super) async fn idle(api: &Api, filter: &IdleFilter) -> anyhow::Result<Answer> {
    let query = [("for", filter.length.as_ref())];
    let route = filtered("/bedplate/v1/machines/idle", &query);
    let machines = paging::all(api, &route, "machines").await?;
    let row = |vm: &Value| {
        let [name, user, flavor, why] =
            ["name", "user_id", "flavor", "why"].map(|key| text(&vm[key]));
        vec![name, user, flavor, time(&vm["idle_since"]), why]
    };
    let header = ["VM", "User", "Flavor", "Idle since", "Reason"];
    Ok(listed(machines, &header, row))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn empty_fields_of_a_vm_are_left_out() {
        let vm = json!({
            "name": "lab-1", "status": "STOPPED", "uuid": "u1", "image": "debian-12", "flavor": "m1.small",
            "address": "10.7.0.4", "dns_name": null, "floating_ip": null, "status_reason": "its lease ended",
            "next_action": "bedplate vm undo lab-1",
            "lease": {"until": "2030-01-31T00:00:00Z", "ended_at": "2030-01-31T00:00:01.123456Z",
                      "next": {"step": "delete", "at": "2030-02-07T00:00:00Z"}},
        });
        let want = expect![[r#"
            lab-1: STOPPED
             Reason      its lease ended
             Hint        bedplate vm undo lab-1
             ID          u1
             Image       debian-12
             Flavor      m1.small
             Address     10.7.0.4
             Lease ends  ended 2030-01-31T00:00:01Z
             Next stage  the VM is deleted, at 2030-02-07T00:00:00Z"#]];
        want.assert_eq(&described(&vm));
    }
}
