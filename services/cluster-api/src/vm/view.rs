//! A VM and a snapshot in a response.

use axum::response::Response;
use cluster_core::{Snapshot, Vm, VmPhase};
use http::StatusCode;
use jiff::Timestamp;
use lease::{Lease, LeaseSchedule, MailAddress};
use openstack_api::{JsonShape, Time, json, shaped};
use serde::Serialize;

use crate::app::App;
use crate::lease_stage::NextStage;

shaped! {
    #[derive(Serialize)]
    pub(super) struct View<'a> {
        uuid: String,
        name: &'a str,
        project_id: &'a str,
        user_id: &'a str,
        status: VmPhase = JsonShape::text(),
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
}

impl<'a> View<'a> {
    pub(super) fn of(vm: &'a Vm, schedule: &LeaseSchedule, now: Timestamp) -> View<'a> {
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
            lease: vm.lease.as_ref().map(|lease| ShownLease::of(lease, schedule, now)),
            notify: vm.notify.as_ref().map(MailAddress::as_str),
            off_by_lease: vm.off_by_lease,
            created_at: Time(vm.created_at),
            updated_at: Time::some(vm.updated_at),
        }
    }
}

impl App {
    pub(crate) fn shown(&self, status: StatusCode, vm: &Vm) -> Response {
        json(status, &View::of(vm, &self.settings.machines.schedule, (self.clock)()))
    }
}

shaped! {
    /// A lease in a response, with its next stage.
    #[derive(Serialize)]
    pub(crate) struct ShownLease {
        since: Time,
        until: Time,
        ended_at: Option<Time>,
        deleted_at: Option<Time>,
        next: Option<NextStage>,
    }
}

impl ShownLease {
    pub(crate) fn of(lease: &Lease, schedule: &LeaseSchedule, now: Timestamp) -> ShownLease {
        ShownLease {
            since: Time(lease.since),
            until: Time(lease.until),
            ended_at: Time::some(lease.taken.ended_at),
            deleted_at: Time::some(lease.taken.deleted_at),
            next: NextStage::of(|at| schedule.due(lease, at), now),
        }
    }
}

shaped! {
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
            lease_ended: it.why == cluster_core::SnapshotOrigin::LeaseEnded,
            size_gib: it.size_gib,
            image_id: it.image.as_deref(),
            created_at: Time(it.created_at),
            made_at: Time::some(it.made_at),
            keep_until: Time::some(it.keep_until),
        }
    }
}
