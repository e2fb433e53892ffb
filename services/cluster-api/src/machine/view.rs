//! A VM and a snapshot in a response.

use cluster_core::{Snapshot, Vm, VmPhase};
use jiff::Timestamp;
use lease::{Due, Ladder, Lease, MailAddress, Step};
use openstack_api::{Shape, Time};
use serde::Serialize;

/// A VM in a response.
#[derive(Serialize)]
pub(super) struct View<'a> {
    uuid: String,
    name: &'a str,
    project_id: &'a str,
    user_id: &'a str,
    status: VmPhase,
    /// Why the VM makes no progress; null if nothing is wrong.
    status_reason: Option<&'a str>,
    /// The action that a person has to take; empty if none is needed.
    next_action: &'a str,
    image: &'a str,
    image_id: &'a str,
    flavor: &'a str,
    flavor_id: &'a str,
    vcpus: u64,
    ram_mib: u64,
    disk_gib: u64,
    gpus: u64,
    root_volume_gib: Option<u32>,
    ssh_keys: &'a [String],
    network_id: &'a str,
    availability_zone: Option<&'a str>,
    address: Option<String>,
    floating_ip_enabled: bool,
    floating_ip: Option<String>,
    dns_name: Option<String>,
    /// Whether the VM has user data. The user data itself is never shown.
    has_user_data: bool,
    server_id: Option<&'a str>,
    lease: Option<ShownLease>,
    /// The mail address that gets the notices about the end of the lease.
    notify: Option<&'a str>,
    /// Whether the VM is off because its lease ended. An undo switches such a VM on again.
    off_by_lease: bool,
    created_at: Time,
    updated_at: Option<Time>,
}

impl<'a> View<'a> {
    pub(super) fn of(vm: &'a Vm, ladder: &Ladder, now: Timestamp) -> View<'a> {
        let problem = vm.problem.as_ref();
        View {
            uuid: vm.id.to_string(),
            name: vm.name.as_str(),
            project_id: &vm.project,
            user_id: &vm.user,
            status: vm.phase(),
            status_reason: problem.map(|it| it.message.as_str()),
            next_action: problem.map_or("", |it| &it.next_action),
            image: &vm.image.name,
            image_id: &vm.image.id,
            flavor: &vm.flavor.name,
            flavor_id: &vm.flavor.id,
            vcpus: vm.flavor.size.vcpus,
            ram_mib: vm.flavor.size.ram_mib,
            disk_gib: vm.disk_gib(),
            gpus: vm.flavor.size.gpus,
            root_volume_gib: vm.root_volume,
            ssh_keys: &vm.ssh_keys,
            network_id: &vm.network,
            availability_zone: vm.availability_zone.as_deref(),
            address: vm.address.map(|it| it.to_string()),
            floating_ip_enabled: vm.public.is_some(),
            floating_ip: vm.public_address.map(|it| it.to_string()),
            dns_name: vm.host(),
            has_user_data: vm.user_data.is_some(),
            server_id: vm.server.as_ref().map(|server| server.id.as_str()),
            lease: vm.lease.as_ref().map(|lease| ShownLease::of(lease, ladder, now)),
            notify: vm.notify.as_ref().map(MailAddress::as_str),
            off_by_lease: vm.off_by_lease,
            created_at: Time(vm.created_at),
            updated_at: Time::some(vm.updated_at),
        }
    }
}

/// The response schema of a VM.
pub(super) fn shape() -> Shape {
    Shape::object([
        ("uuid", Shape::text()),
        ("name", Shape::text()),
        ("project_id", Shape::text()),
        ("user_id", Shape::text()),
        ("status", Shape::text()),
        ("status_reason", Shape::text().or_null()),
        ("next_action", Shape::text()),
        ("image", Shape::text()),
        ("image_id", Shape::text()),
        ("flavor", Shape::text()),
        ("flavor_id", Shape::text()),
        ("vcpus", Shape::whole()),
        ("ram_mib", Shape::whole()),
        ("disk_gib", Shape::whole()),
        ("gpus", Shape::whole()),
        ("root_volume_gib", Shape::whole().or_null()),
        ("ssh_keys", Shape::list(Shape::text())),
        ("network_id", Shape::text()),
        ("availability_zone", Shape::text().or_null()),
        ("address", Shape::text().or_null()),
        ("floating_ip_enabled", Shape::flag()),
        ("floating_ip", Shape::text().or_null()),
        ("dns_name", Shape::text().or_null()),
        ("has_user_data", Shape::flag()),
        ("server_id", Shape::text().or_null()),
        ("lease", lease_shape().or_null()),
        ("notify", Shape::text().or_null()),
        ("off_by_lease", Shape::flag()),
        ("created_at", Shape::text()),
        ("updated_at", Shape::text().or_null()),
    ])
}

/// The response schema of a lease.
fn lease_shape() -> Shape {
    let next = Shape::object([("step", Shape::text()), ("at", Shape::text())]);
    Shape::object([
        ("since", Shape::text()),
        ("until", Shape::text()),
        ("ended_at", Shape::text().or_null()),
        ("deleted_at", Shape::text().or_null()),
        ("next", next.or_null()),
    ])
}

/// The response schema of a snapshot.
pub(super) fn snapshot_shape() -> Shape {
    Shape::object([
        ("uuid", Shape::text()),
        ("name", Shape::text()),
        ("project_id", Shape::text()),
        ("user_id", Shape::text()),
        ("machine_id", Shape::text()),
        ("machine", Shape::text()),
        ("status", Shape::text()),
        ("status_reason", Shape::text().or_null()),
        ("lease_ended", Shape::flag()),
        ("size_gib", Shape::whole()),
        ("image_id", Shape::text().or_null()),
        ("created_at", Shape::text()),
        ("made_at", Shape::text().or_null()),
        ("keep_until", Shape::text().or_null()),
    ])
}

/// A lease in a response, with its next stage.
#[derive(Serialize)]
pub(crate) struct ShownLease {
    since: Time,
    until: Time,
    ended_at: Option<Time>,
    deleted_at: Option<Time>,
    next: Option<NextStep>,
}

#[derive(Serialize)]
struct NextStep {
    step: &'static str,
    at: Time,
}

impl ShownLease {
    pub(crate) fn of(lease: &Lease, ladder: &Ladder, now: Timestamp) -> ShownLease {
        let next = match ladder.due(lease, now) {
            Due::Nothing => None,
            Due::Now(step) => Some((word(&step), now)),
            // The stage at that time depends only on the time, so it can be computed now.
            Due::At(at) => match ladder.due(lease, at) {
                Due::Now(step) => Some((word(&step), at)),
                Due::At(_) | Due::Nothing => None,
            },
        };
        ShownLease {
            since: Time(lease.since),
            until: Time(lease.until),
            ended_at: Time::some(lease.taken.ended_at),
            deleted_at: Time::some(lease.taken.deleted_at),
            next: next.map(|(step, at)| NextStep { step, at: Time(at) }),
        }
    }
}

fn word(step: &Step) -> &'static str {
    match step {
        Step::Warn { .. } => "warn",
        Step::ShutOff { .. } => "shut_off",
        Step::KeepCopy => "keep_copy",
        Step::WarnOfDeletion { .. } => "warn_of_deletion",
        Step::Delete => "delete",
    }
}

/// A snapshot in a response.
#[derive(Serialize)]
pub(super) struct ShownSnapshot<'a> {
    uuid: String,
    name: &'a str,
    project_id: &'a str,
    user_id: &'a str,
    machine_id: String,
    machine: &'a str,
    status: &'static str,
    status_reason: Option<&'a str>,
    /// Whether the snapshot was taken because the lease of its VM ended.
    lease_ended: bool,
    size_gib: u64,
    image_id: Option<&'a str>,
    created_at: Time,
    made_at: Option<Time>,
    keep_until: Option<Time>,
}

impl<'a> From<&'a Snapshot> for ShownSnapshot<'a> {
    fn from(it: &'a Snapshot) -> ShownSnapshot<'a> {
        ShownSnapshot {
            uuid: it.id.to_string(),
            name: it.name.as_str(),
            project_id: &it.project,
            user_id: &it.user,
            machine_id: it.vm.to_string(),
            machine: it.vm_name.as_str(),
            status: it.state.as_str(),
            status_reason: it.reason.as_deref(),
            lease_ended: it.why == cluster_core::SnapshotWhy::LeaseEnded,
            size_gib: it.size_gib,
            image_id: it.image.as_deref(),
            created_at: Time(it.created_at),
            made_at: Time::some(it.made_at),
            keep_until: Time::some(it.keep_until),
        }
    }
}
