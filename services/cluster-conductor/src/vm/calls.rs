//! The calls to Nova for a VM, besides those for its cloud objects.

use cluster_core::{VmActionKind, VmCall, VmCallResult, VmRequest};
use openstack::Session;
use openstack::compute::actions::{self, ServerAction};
use openstack::compute::diagnostics;

pub(super) async fn perform(session: &Session, call: VmCall) -> VmCallResult {
    match call {
        VmCall::ReconcileObjects => failed(&call, "this call needs the ledger of the VM"),
        VmCall::ReadDiagnostics { server } => read_diagnostics(session, &server).await,
        VmCall::ReadLastRequest { server } => match actions::last_request(session, &server).await {
            Ok(last) => VmCallResult::LastRequest(last),
            Err(error) => VmCallResult::LastRequestUnknown(error.to_string()),
        },
        VmCall::Send { server, request } => send(session, &server, request).await,
    }
}

/// Returns the result of a call that could not be made.
pub(super) fn failed(call: &VmCall, why: &str) -> VmCallResult {
    match call {
        VmCall::ReadDiagnostics { .. } => VmCallResult::DiagnosticsUnknown,
        VmCall::ReadLastRequest { .. } => VmCallResult::LastRequestUnknown(why.to_owned()),
        VmCall::ReconcileObjects | VmCall::Send { .. } => VmCallResult::Unanswered(why.to_owned()),
    }
}

async fn read_diagnostics(session: &Session, server: &str) -> VmCallResult {
    match diagnostics::show(session, server).await {
        Ok(seen) => match seen.and_then(|seen| seen.processor_time()) {
            Some(worked) => VmCallResult::ProcessorTime(worked),
            None => VmCallResult::NoDiagnostics,
        },
        Err(error) if error.is_transient() => VmCallResult::DiagnosticsUnknown,
        // Nova usually gives diagnostics to administrators only.
        Err(error) => {
            tracing::debug!("cannot read the diagnostics of the VM: {error}");
            VmCallResult::NoDiagnostics
        }
    }
}

/// Sends a request. A request that may have arrived is judged by the next observation.
async fn send(session: &Session, server: &str, request: VmRequest) -> VmCallResult {
    match actions::act(session, server, &action(&request)).await {
        Ok(()) => VmCallResult::Sent,
        Err(error) if error.is_transient() || error.is_outcome_unknown() => {
            VmCallResult::Unanswered(error.to_string())
        }
        Err(error) => VmCallResult::Refused { request, why: error.to_string() },
    }
}

fn action(request: &VmRequest) -> ServerAction {
    match request {
        VmRequest::Confirm => ServerAction::ConfirmResize,
        VmRequest::Action(VmActionKind::Start) => ServerAction::Start,
        VmRequest::Action(VmActionKind::Stop) => ServerAction::Stop,
        VmRequest::Action(VmActionKind::RebootSoft) => ServerAction::RebootSoftly,
        VmRequest::Action(VmActionKind::RebootHard) => ServerAction::RebootHard,
        VmRequest::Action(VmActionKind::Resize(flavor)) => {
            ServerAction::Resize { flavor_id: flavor.id.clone() }
        }
    }
}
