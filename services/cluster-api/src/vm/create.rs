//! `POST /bedplate/v1/machines`: creates a VM.

use axum::response::Response;
use cluster_conductor::{ObjectUser, ResolvedVmObjects, VmRequestObjects};
use cluster_core::{Owner, Vm, VmEvent, VmUuid, grant_vm_lease};
use http::StatusCode;
use newtype_uuid::GenericUuid;
use openstack_api::{Origin, StrictJson, with_location};

use super::body::NewVm;
use crate::error::Result;
use crate::request::Request;

/// Records the request. The conductor creates the VM.
pub(super) async fn create(
    request: Request,
    origin: Origin,
    StrictJson(body): StrictJson<NewVm>,
) -> Result<Response> {
    let app = &request.app;
    request.admit().await?;
    let (vm, sealed) = requested(&request, body).await?;
    let event = VmEvent::info(&vm, "CreateRequested", "VM requested", vm.created_at);
    let within = Some(&app.settings.quotas);
    app.store.insert_vm(&vm, sealed.as_deref(), &[event], within).await?;
    app.conductor.wake_vm(vm.id);
    let url = format!("{origin}/bedplate/v1/machines/{}", vm.id);
    Ok(with_location(app.shown(StatusCode::ACCEPTED, &vm), &url))
}

/// Returns the VM that the body means, and its sealed user-data.
async fn requested(request: &Request, body: NewVm) -> Result<(Vm, Option<String>)> {
    let app = &request.app;
    let now = (app.clock)();
    let id = VmUuid::from_untyped_uuid((app.ids)());
    let name = body.name(&id.to_string())?;
    let (ssh_keys, user_data) = (body.keys()?, body.user_data()?);
    let owner = Owner::new(request.project()?, request.user());
    let terms = app.lease_terms(app.settings.machines.terms, &owner).await?;
    let lease = grant_vm_lease((body.lease, body.notify.as_ref()), terms, now)?;
    let found = resolved(request, &owner, &body).await?;
    let seal = |bytes: Vec<u8>| app.conductor.seal_user_data(id, &bytes);
    let (user_data, sealed) = user_data.map(seal).transpose()?.unzip();
    let vm = Vm {
        ssh_keys,
        root_volume: body.root_volume_gib,
        public: found.public,
        zone: found.zone,
        availability_zone: body.availability_zone,
        user_data,
        lease,
        notify: body.notify,
        trace: openstack_api::current_trace(),
        ..Vm::new(id, owner, name, (found.image, found.flavor, found.network), now)
    };
    Ok((vm, sealed))
}

/// Returns the cloud objects that the body names.
async fn resolved(request: &Request, owner: &Owner, body: &NewVm) -> Result<ResolvedVmObjects> {
    let order = VmRequestObjects {
        who: ObjectUser { project: &owner.project, is_admin: request.caller.is_admin() },
        image: &body.image,
        flavor: &body.flavor,
        network: body.network.as_deref(),
        is_public: body.floating_ip_enabled.unwrap_or(false),
        root_volume: body.root_volume_gib,
        snapshots: &request.visible_vms(),
    };
    Ok(request.app.conductor.resolve_vm(order).await?)
}
