//! Shows VMs, snapshots and images to people.

use api_client::WithJson;
use api_client::clusterd::{Events, IdleVm, Image, Snapshot, Vm};
use api_client::shared::{Lease, LeaseStage};
use clap::Args;
use url::form_urlencoded::Serializer;

use crate::api::Api;
use crate::cluster::event_row;
use crate::output::{Answer, draw_table, elements, plain, text};
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
    let machines = api.all(&filtered(MACHINES, &query)).await?;
    let row = |vm: &Vm| {
        vec![
            plain(&vm.name),
            plain(&vm.status),
            plain(&vm.flavor),
            reached(vm).unwrap_or_default(),
            ends(vm.lease.as_ref()),
            plain(&vm.user_id),
        ]
    };
    let header = ["VM", "Status", "Flavor", "Address", "Lease ends", "User"];
    Ok(listed(machines, &header, row))
}

/// A table with a row for each element.
fn listed<T>(all: Vec<WithJson<T>>, header: &[&str], row: impl Fn(&T) -> Vec<String>) -> Answer {
    let rows: Vec<_> = all.iter().map(|one| row(one)).collect();
    Answer::table(elements(all), header, rows)
}

/// `bedplate vm show`: shows a VM.
pub(super) async fn one(api: &Api, vm: &str, events: bool) -> anyhow::Result<Answer> {
    let found = api.get(&path(vm, "")?).await?;
    if !events {
        return Ok(answer(found));
    }
    let happened: WithJson<Events> = api.get(&path(vm, "/events")?).await?;
    let rows = happened.events.iter().map(|event| event_row(event));
    let events = draw_table(&["Time", "Severity", "Reason", "Message"], rows);
    let words = format!("{}\n\n{events}", described(&found));
    Ok(Answer::sentence(happened.json, words))
}

pub(super) fn answer(vm: WithJson<Vm>) -> Answer {
    let words = described(&vm);
    Answer::sentence(vm.json, words)
}

fn described(vm: &Vm) -> String {
    let lease = vm.lease.as_ref();
    let rows = [
        ("Reason", text(vm.status_reason.as_deref())),
        ("Hint", plain(&vm.next_action)),
        ("ID", plain(&vm.uuid)),
        ("Image", plain(&vm.image)),
        ("Flavor", plain(&vm.flavor)),
        ("DNS name", text(vm.dns_name.as_deref())),
        ("Address", text(vm.address.as_deref())),
        ("Floating IP", text(vm.floating_ip.as_deref())),
        ("Lease ends", ends(lease)),
        ("Next stage", lease.and_then(|lease| lease.next.as_ref()).map(next).unwrap_or_default()),
    ];
    let rows = rows.into_iter().filter(|(_, said)| !said.is_empty());
    let rows = rows.map(|(label, said)| vec![label.to_owned(), said]);
    let head = format!("{}: {}", plain(&vm.name), plain(&vm.status));
    format!("{head}\n{}", draw_table(&["", ""], rows))
}

/// The best address of a VM: its DNS name, floating IP or fixed IP.
fn reached(vm: &Vm) -> Option<String> {
    let addresses = [&vm.dns_name, &vm.floating_ip, &vm.address];
    addresses.into_iter().flatten().find(|said| !said.is_empty()).map(|said| plain(said))
}

fn ends(lease: Option<&Lease>) -> String {
    match lease.map(|lease| (lease.ended_at, lease.until)) {
        Some((Some(at), _)) => format!("ended {}", readable::time(at)),
        Some((None, until)) => readable::time(until),
        None => String::new(),
    }
}

fn next(stage: &LeaseStage) -> String {
    let what = match stage.step.as_str() {
        "warn" => "the owner is warned",
        "shut_off" => "the VM is switched off",
        "keep_copy" => "a snapshot is made",
        "warn_of_deletion" => "the owner is warned of the deletion",
        "delete" => "the VM is deleted",
        other => other,
    };
    plain(&format!("{what}, at {}", readable::time(stage.at)))
}

pub(super) fn snapshot_row(snapshot: WithJson<Snapshot>) -> Answer {
    let [name, machine, status] =
        [&snapshot.name, &snapshot.machine, &snapshot.status].map(|text| plain(text));
    Answer::sentence(snapshot.json, format!("snapshot {name} of {machine}: {status}"))
}

/// `bedplate vm snapshots`: lists snapshots.
pub(super) async fn snapshots(api: &Api, vm: Option<&str>) -> anyhow::Result<Answer> {
    let route = match vm {
        Some(vm) => path(vm, "/snapshots")?,
        None => SNAPSHOTS.to_owned(),
    };
    let snapshots = api.all(&route).await?;
    let row = |one: &Snapshot| {
        vec![
            plain(&one.name),
            plain(&one.machine),
            plain(&one.status),
            text(one.image_id.as_deref()),
            readable::time(one.created_at),
            time(one.keep_until),
        ]
    };
    let header = ["Snapshot", "VM", "Status", "Image", "Created", "Kept until"];
    Ok(listed(snapshots, &header, row))
}

/// `bedplate vm images`: lists images.
pub(super) async fn images(api: &Api) -> anyhow::Result<Answer> {
    let images = api.all("/bedplate/v1/images").await?;
    let row = |image: &Image| {
        let disk_mib = image.min_disk_gib.saturating_mul(1024);
        vec![plain(&image.name), mib(image.min_ram_mib), mib(disk_mib)]
    };
    Ok(Answer::list("images", images, &["Image", "Min RAM", "Min disk"], row))
}

/// `bedplate vm idle`: lists idle VMs.
pub(super) async fn idle(api: &Api, filter: &IdleFilter) -> anyhow::Result<Answer> {
    let query = [("for", filter.length.as_ref())];
    let machines = api.all(&filtered("/bedplate/v1/machines/idle", &query)).await?;
    let row = |vm: &IdleVm| {
        let [name, user, flavor, why] =
            [&vm.name, &vm.user_id, &vm.flavor, &vm.why].map(|it| plain(it));
        vec![name, user, flavor, readable::time(vm.idle_since), why]
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
            "next_action": "bedplate vm undo lab-1", "user_id": "mia", "off_by_lease": true, "updated_at": null,
            "ram_mib": 2048, "has_user_data": false,
            "lease": {"deleted_at": null, "until": "2030-01-31T00:00:00Z", "ended_at": "2030-01-31T00:00:01.123456Z",
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
        want.assert_eq(&described(&serde_json::from_value(vm).unwrap()));
    }
}
