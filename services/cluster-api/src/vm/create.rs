//! `POST /bedplate/v1/machines`: creates a VM.

use axum::response::Response;
use cluster_conductor::{ObjectUser, VmRequestObjects};
use cluster_core::{Owner, Vm, VmEvent, VmUuid};
use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use newtype_uuid::GenericUuid;
use openstack_api::{ApiError, Origin, StrictJson};

use super::body::NewVm;
use crate::error::Error;
use crate::request::Request;

/// Records the request. The conductor creates the VM.
pub(super) async fn create(
    request: Request,
    origin: Origin,
    StrictJson(body): StrictJson<NewVm>,
) -> Result<Response, Error> {
    let app = &request.app;
    request.admit().await?;
    let now = (app.clock)();
    let id = VmUuid::from_untyped_uuid((app.ids)());
    let name = body.name(&id.to_string())?;
    let (keys, told) = (body.keys()?, body.user_data()?);
    let owner = Owner::new(request.project()?, request.user());
    let terms = app.lease_terms(app.settings.machines.terms, &owner).await?;
    let lease = terms.grant(body.lease, now).map_err(|why| ApiError::bad_field("lease", why))?;
    if lease.is_none() && body.notify.is_some() {
        let why = "needs lease: a VM without a lease sends no notices";
        return Err(ApiError::bad_field("notify", why).into());
    }
    let snapshots = request.visible_vms();
    let order = VmRequestObjects {
        who: ObjectUser { project: &owner.project, is_admin: request.caller.is_admin() },
        image: &body.image,
        flavor: &body.flavor,
        network: body.network.as_deref(),
        is_public: body.floating_ip_enabled.unwrap_or(false),
        root_volume: body.root_volume_gib,
        snapshots: &snapshots,
    };
    let found = app.conductor.resolve_vm(order).await?;
    let sealed = match &told {
        Some(bytes) => Some(app.conductor.seal_user_data(id, bytes)?),
        None => None,
    };
    let (user_data, sealed) = sealed.unzip();
    let vm = Vm {
        ssh_keys: keys,
        root_volume: body.root_volume_gib,
        public: found.public,
        zone: found.zone,
        availability_zone: body.availability_zone,
        user_data,
        lease,
        notify: body.notify,
        ..Vm::new(id, owner, name, (found.image, found.flavor, found.network), now)
    };
    let event = VmEvent::info(&vm, "CreateAsked", "VM requested", now);
    let within = Some(&app.settings.quotas);
    app.store.insert_vm(&vm, sealed.as_deref(), &[event], within).await?;
    app.conductor.wake_vm(id);
    let mut answer = app.shown(StatusCode::ACCEPTED, &vm);
    if let Ok(location) = HeaderValue::try_from(format!("{origin}/bedplate/v1/machines/{id}")) {
        answer.headers_mut().insert(LOCATION, location);
    }
    Ok(answer)
}
