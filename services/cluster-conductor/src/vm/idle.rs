//! Checks whether a VM is idle, with one call to the cloud from time to time.

use cluster_core::{IdleCheck, ServerState, Vm};
use jiff::{SignedDuration, Timestamp};
use openstack::Session;
use openstack::compute::diagnostics;

/// Returns the result of a check, if one is due. A running VM is never reported idle when Nova gives no diagnostics.
pub(super) async fn look(
    session: &Session,
    vm: &Vm,
    every: SignedDuration,
    now: Timestamp,
) -> Option<IdleCheck> {
    let server = vm.server.as_ref().filter(|_| vm.built_at.is_some())?;
    if vm.idle.as_ref().is_some_and(|idle| now.duration_since(idle.at) < every) {
        return None;
    }
    if server.is != ServerState::On {
        return Some(IdleCheck::by_power(server, now));
    }
    match diagnostics::show(session, &server.id).await {
        Ok(seen) => Some(match seen.and_then(|seen| seen.processor_time()) {
            Some(worked) => IdleCheck::by_diagnostics(vm.idle.as_ref(), worked, now),
            None => IdleCheck::by_power(server, now),
        }),
        Err(error) if error.is_transient() => None,
        // Nova usually gives diagnostics to administrators only.
        Err(error) => {
            tracing::debug!("cannot read the diagnostics of the VM: {error}");
            Some(IdleCheck::by_power(server, now))
        }
    }
}
