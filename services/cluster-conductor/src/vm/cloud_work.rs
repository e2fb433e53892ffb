//! The work on the cloud objects of a VM: observe, record, act, and decide when the next turn is due.

use std::slice;
use std::sync::Arc;
use std::time::Duration;

use cluster_core::{
    CloudGoal, CloudProgress, ClusterObservation, Ledger, LedgerEntry, ObjectOwner, Problem,
    RequestArrival, Vm, VmCloudWork, failures, next_turn, pause_after, vm_desired_objects,
};
use cluster_store::StoreError;
use openstack::Session;
use openstack::compute::actions;
use reconcile::Requeue;

use crate::actions::{TurnContext, act};
use crate::cloud::{CachedObservations, CloudLookups, CloudWorkError, observe, reconcile_ledger};
use crate::context::ConductorContext;
use crate::tenancy::TenancyError;

/// Brings the cloud as close to the desired objects as is possible now. Without access to the cloud, the observation says why.
pub(super) async fn work(
    context: &ConductorContext,
    vm: &Vm,
    lines: Vec<LedgerEntry>,
) -> Result<VmCloudWork, StoreError> {
    match context.session_for(&vm.project, vm.cloud_project.as_deref()).await {
        Ok(Some((session, own))) => work_in(context, (&session, own), vm, lines).await,
        Ok(None) => Ok(unseen(no_cloud(), context.settings.look_every)),
        Err(closed) => Ok(unseen(of_tenancy(&closed), context.settings.look_every)),
    }
}

/// Works in the project of the session. Nothing is retried within a turn: the next turn is the retry, and observes first.
async fn work_in(
    context: &ConductorContext,
    (session, own): (&Session, &Session),
    vm: &Vm,
    lines: Vec<LedgerEntry>,
) -> Result<VmCloudWork, StoreError> {
    let (now, repair) = ((context.settings.clock)(), &context.settings.repair);
    let zone = vm.zone_name();
    let site = CloudLookups::new((session, own), zone.as_deref(), Arc::default());
    let shape = vm_desired_objects(vm);
    let mut ledger = Ledger::new(vm.id, now, lines);
    let look = async {
        // A received request has its effect in an observation that begins later.
        let arrival = arrival(session, vm).await?;
        let objects =
            observe(&site, ObjectOwner::Vm(vm), &ledger, &CachedObservations::default()).await?;
        Ok::<_, CloudWorkError>((arrival, objects))
    };
    let (arrival, mut seen) = match look.await {
        Ok((arrival, objects)) => (
            arrival,
            ClusterObservation { at: Some(now), objects, ..ClusterObservation::default() },
        ),
        Err(trouble) => {
            tracing::warn!("cannot observe the cloud: {trouble}");
            let failure = trouble.failure("observe the cloud");
            let pause = pause_after(slice::from_ref(&failure), &context.settings.pauses());
            return Ok(unseen(failure.problem, pause));
        }
    };
    seen.failures = failures(&shape, &seen);
    // A failure that this observation shows starts the back-off at once.
    let counted = vm.with_setbacks(&shape, &seen, now);
    seen.held = counted.held(&repair.backoff, now);
    let compared = (&seen, &shape);
    let agreed =
        reconcile_ledger(&context.store, &mut ledger, compared, repair.lands_within).await?;
    let turn_context = TurnContext {
        store: &context.store,
        fence: context.membership.fence(),
        site: &site,
        member_configs: &context.member_configs,
        goal: CloudGoal { owner: ObjectOwner::Vm(vm), shape: &shape, repair, now },
        nodes: None,
    };
    let acted = act(turn_context, &mut ledger, &mut seen).await?;
    let progress = CloudProgress::of(&acted.failures, agreed, acted.is_gone_soon, &seen);
    let pauses = context.settings.pauses();
    let next_turn = next_turn(progress, &acted.failures, &seen.held, (&pauses, now));
    seen.problem = acted.problem;
    Ok(VmCloudWork { seen, arrival, given_up: acted.given_up, next_turn })
}

/// Returns whether Nova received the last request of the current action.
async fn arrival(session: &Session, vm: &Vm) -> Result<RequestArrival, CloudWorkError> {
    let sent = vm.action.as_ref().and_then(|action| action.sent.as_ref());
    let (Some(sent), Some(server)) = (sent, &vm.server) else { return Ok(RequestArrival::NotYet) };
    match actions::last_request(session, &server.id).await {
        Ok(last) if last == sent.after => Ok(RequestArrival::NotYet),
        Ok(_) => Ok(RequestArrival::Arrived),
        // The server is deleted, which the observation shows.
        Err(error) if error.is_not_found() => Ok(RequestArrival::NotYet),
        Err(error) => Err(error.into()),
    }
}

/// Returns the result of work without an observation.
fn unseen(problem: Problem, pause: Duration) -> VmCloudWork {
    VmCloudWork {
        seen: ClusterObservation { problem: Some(problem), ..ClusterObservation::default() },
        arrival: RequestArrival::NotYet,
        given_up: Vec::new(),
        next_turn: Requeue::After(pause),
    }
}

fn of_tenancy(closed: &TenancyError) -> Problem {
    let is_away = matches!(closed, TenancyError::KeystoneFailed(_));
    Problem {
        reason: if is_away { "CloudUnreachable" } else { "NoRole" }.to_owned(),
        message: format!("cannot work in the VM's project of the cloud: {closed}"),
        next_action:
            "check whether clusterd's user has a role in that project; clusterd keeps trying"
                .to_owned(),
        is_final: false,
    }
}

fn no_cloud() -> Problem {
    Problem {
        reason: "NoCloud".to_owned(),
        message: "clusterd has no cloud configured, so nothing was created".to_owned(),
        next_action: "delete the VM, or configure a cloud for clusterd".to_owned(),
        is_final: false,
    }
}

#[cfg(test)]
mod tests {
    use cluster_core::{
        ActionOrigin, Owner, SentRequest, ServerObservation, ServerState, UserDataFormat, VmAction,
        VmActionKind, VmFlavor, VmImage, VmUuid,
    };
    use jiff::Timestamp;
    use openstack::CloudConfig;
    use openstack_emulator::{Act, Emulator, Rule, Settings};

    use super::*;

    /// A VM whose server the cloud does not have, with a request that was sent.
    fn vm() -> Vm {
        let now = Timestamp::UNIX_EPOCH;
        let text = |text: &str| text.to_owned();
        let image = VmImage {
            id: text("i"),
            name: text("debian"),
            user_data_format: UserDataFormat::CloudInit,
            min_disk_gib: 0,
            min_ram_mib: 0,
        };
        let size = cluster_core::FlavorSize { vcpus: 1, ram_mib: 1, disk_gib: 1, gpus: 0 };
        let flavor = VmFlavor { id: text("f"), name: text("small"), size };
        let (owner, name) = (Owner::new("p", "u"), "dev".parse().unwrap());
        let sent = Some(SentRequest { at: now, after: None, times: 1 });
        let action = VmAction::new(VmActionKind::Stop, ActionOrigin::Owner, now);
        let is = ServerState::On;
        let server = ServerObservation { id: text("s"), is, since: now, flavor: text("small") };
        Vm {
            action: Some(VmAction { sent, ..action }),
            server: Some(server),
            ..Vm::new(VmUuid::new_v4(), owner, name, (image, flavor, text("n")), now)
        }
    }

    #[tokio::test]
    async fn a_request_to_a_deleted_server_did_not_arrive_and_an_outage_is_an_error() {
        let emulator = Emulator::start(Settings::default()).await.unwrap();
        let clouds = emulator.cloud.clouds_yaml();
        let config = CloudConfig::from_clouds_yaml(&clouds, Some("alice")).unwrap();
        let session = Session::new(config).unwrap();
        assert_eq!(arrival(&session, &vm()).await.unwrap(), RequestArrival::NotYet);
        let path = "/compute/**/os-instance-actions";
        let answer = Act::Answer { status: 403, retry_after: None, message: None };
        emulator.cloud.misbehave(Rule::new("GET", path, answer));
        assert!(arrival(&session, &vm()).await.is_err());
    }

    #[test]
    fn work_without_an_observation_names_the_problem() {
        let pause = Duration::from_secs(60);
        let nowhere = of_tenancy(&TenancyError::Nowhere);
        for (problem, reason) in [(no_cloud(), "NoCloud"), (nowhere, "NoRole")] {
            let work = unseen(problem, pause);
            assert_eq!(work.seen.problem.unwrap().reason, reason);
            assert_eq!((work.seen.at, work.next_turn), (None, Requeue::After(pause)));
        }
    }
}
