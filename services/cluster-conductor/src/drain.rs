//! Drains of hosts: requested through the API, and carried out turn by turn.
//!
//! Steps are recorded before they are performed, and every step may be performed twice without harm: Nova ignores a second disable, and a
//! second request for a migration in progress; Kubernetes ignores a second cordon.

use std::collections::BTreeSet;

use cluster_core::{
    ClusterUuid, Drain, DrainDecision, DrainOutcome, DrainPhase, DrainRefused, DrainRules,
    DrainStep, DrainUuid, HostName, Member, drain_turn, machine_name,
};
use cluster_store::{DrainGrantError, StoreError};
use openstack::CloudError;
use openstack::compute::actions::{self, ServerAction};
use openstack::compute::services;
use reconcile::{Requeue, time_left};
use tracing::field::Empty;
use tracing::{Span, info, instrument, warn};
use uuid::Uuid;

use crate::Conductor;
use crate::cluster_secrets::KeysError;
use crate::context::{ConductorContext, ResourceRef};
use crate::hosts::{Host, HostError, OUR_REASON, cluster_of};
use crate::turn_error::TurnError;

/// A request for a drain.
#[derive(Clone, Debug)]
pub struct DrainRequest {
    /// The id of the drain, if it is a new one.
    pub id: DrainUuid,
    /// The user who requests it.
    pub by: String,
    /// The id of the request.
    pub request: Option<String>,
    /// The clusters that may lose their etcd quorum.
    pub forced: BTreeSet<ClusterUuid>,
}

/// Why a host is not drained.
#[derive(Debug, thiserror::Error)]
pub enum DrainError {
    /// A cluster would lose its etcd quorum.
    #[error(transparent)]
    Refused(#[from] DrainRefused),
    /// The servers on the host are unknown.
    #[error(transparent)]
    Host(#[from] HostError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<DrainGrantError> for DrainError {
    fn from(error: DrainGrantError) -> Self {
        match error {
            DrainGrantError::Refused(refused) => DrainError::Refused(refused),
            DrainGrantError::Store(error) => DrainError::Store(error),
        }
    }
}

/// How often a request is checked again because one of its clusters changed meanwhile.
const ATTEMPTS: usize = 8;

impl Conductor {
    /// Starts the drain of a host. Observes the servers on the host, then checks the quorums and records the drain in one transaction.
    ///
    /// # Errors
    ///
    /// When a cluster that was not forced would lose its quorum, or the servers on the host are unknown.
    pub async fn drain(&self, name: &HostName, ask: &DrainRequest) -> Result<Drain, DrainError> {
        let now = (self.context.settings.clock)();
        for _ in 0..ATTEMPTS {
            let host = self.context.host(name).await?;
            let by = (ask.by.clone(), ask.request.clone());
            let forced = ask.forced.clone();
            let asked = Drain::new((ask.id, host.name.clone()), by, forced, host.members(), now);
            match self.context.store.grant_drain(&asked).await {
                Ok(granted) => {
                    self.queue.wake(ResourceRef::Drain(granted.id));
                    return Ok(granted);
                }
                Err(DrainGrantError::Store(StoreError::Stale)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(StoreError::Stale.into())
    }

    /// Checks whether a host could be drained now. Returns the existing drain, if there is one. Changes nothing.
    ///
    /// # Errors
    ///
    /// As [`Conductor::drain`].
    pub async fn check_drain(
        &self,
        name: &HostName,
        ask: &DrainRequest,
    ) -> Result<Option<Drain>, DrainError> {
        let now = (self.context.settings.clock)();
        let host = self.context.host(name).await?;
        let by = (ask.by.clone(), ask.request.clone());
        let asked =
            Drain::new((ask.id, host.name.clone()), by, ask.forced.clone(), host.members(), now);
        Ok(self.context.store.check_drain(&asked).await?)
    }

    /// Ends a drain, so that the host accepts servers again. `None` when the host is not drained.
    pub async fn end_drain(&self, host: &HostName) -> Result<Option<Drain>, StoreError> {
        let ending = self.context.store.end_drain(host).await?;
        if let Some(drain) = &ending {
            self.queue.wake(ResourceRef::Drain(drain.id));
        }
        Ok(ending)
    }
}

/// Runs one turn of a drain, on behalf of the request that started it.
#[instrument(skip_all, fields(drain.id = %id, drain.host = Empty, request.id = Empty))]
pub(crate) async fn turn(context: &ConductorContext, id: DrainUuid) -> Result<Requeue, TurnError> {
    let Some(drain) = context.store.drain_of(id).await? else { return Ok(Requeue::OnChange) };
    Span::current().record("drain.host", drain.host.as_str());
    let request = drain.request.clone().unwrap_or_else(|| format!("req-{}", Uuid::new_v4()));
    Span::current().record("request.id", &request);
    match openstack::on_behalf_of(request, Box::pin(work(context, drain))).await {
        // The drain was changed by another request.
        Err(StoreError::Stale) => Ok(Requeue::Now),
        worked => Ok(worked?),
    }
}

async fn work(context: &ConductorContext, drain: Drain) -> Result<Requeue, StoreError> {
    let host = match context.host(&drain.host).await {
        Ok(host) => host,
        // The record of a drained host that was removed from the cloud is deleted, and nobody has to end the drain. A host that gets the
        // name later is a new one.
        Err(HostError::NoHost(_))
            if [DrainPhase::Ending, DrainPhase::Drained].contains(&drain.phase) =>
        {
            context.store.forget_drain(&drain).await?;
            info!("the host was removed from the cloud, so its drain is over");
            return Ok(Requeue::OnChange);
        }
        Err(HostError::Store(error)) => return Err(error),
        Err(error) => {
            warn!("cannot observe the host: {error}");
            return Ok(Requeue::After(context.settings.look_every));
        }
    };
    let now = (context.settings.clock)();
    let here = Drain { takes: host.members(), ..drain.clone() };
    let DrainDecision { drain: turned, steps, due, is_over } =
        drain_turn(&here, &host.seen(now), &rules(context));
    let noted = note(context, &drain, turned).await?;
    let (outcomes, is_done) = perform(context, &host, &steps).await;
    let noted = match outcomes.as_slice() {
        [] => noted,
        outcomes => note(context, &noted, noted.with_outcomes(outcomes)).await?,
    };
    if is_over && is_done {
        context.store.forget_drain(&noted).await?;
        info!("the host accepts servers again");
        return Ok(Requeue::OnChange);
    }
    let due = due.map(|due| time_left(due, now));
    let pause = match noted.phase {
        DrainPhase::Draining | DrainPhase::Ending => context.settings.soon(),
        DrainPhase::Drained | DrainPhase::Stuck => context.settings.look_every,
    };
    Ok(Requeue::After(due.map_or(pause, |due| due.min(pause))))
}

/// Returns the times that rule a drain.
fn rules(context: &ConductorContext) -> DrainRules {
    let repair = &context.settings.repair;
    let shows_within = DrainRules::DEFAULT.shows_within.min(repair.lands_within);
    DrainRules { shows_within, backoff: repair.backoff }
}

/// Records a drain, if anything changed.
async fn note(
    context: &ConductorContext,
    before: &Drain,
    after: Drain,
) -> Result<Drain, StoreError> {
    // As long as members are on a host that may be switched off, the quorum check is repeated in every turn.
    let is_weighed = before.phase == DrainPhase::Drained && !before.takes.is_empty();
    if *before == after && !is_weighed {
        return Ok(after);
    }
    let noted = context.store.update_drain(&after).await?;
    if noted.phase != before.phase {
        let (from, to) = (before.phase.as_str(), noted.phase.as_str());
        info!(state.from = from, state.to = to, "host {} is now {to}", noted.host);
    }
    Ok(noted)
}

/// Performs the steps. Returns their results, and whether all were performed.
async fn perform(
    context: &ConductorContext,
    host: &Host,
    steps: &[DrainStep],
) -> (Vec<DrainOutcome>, bool) {
    let (mut outcomes, mut is_done) = (Vec::new(), true);
    for step in steps {
        info!(action.name = ?step, "performing {step:?} on host {}", host.name);
        match take(context, host, step).await {
            Ok(outcome) => outcomes.extend(outcome),
            Err(error) => {
                warn!("cannot perform {step:?} on host {}: {error}", host.name);
                is_done = false;
                // Servers must not leave a host on which the scheduler could place new ones.
                if *step == DrainStep::Disable {
                    break;
                }
            }
        }
    }
    (outcomes, is_done)
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
enum StepError {
    #[error(transparent)]
    Host(#[from] HostError),
    #[error(transparent)]
    Keys(#[from] KeysError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Cloud(#[from] CloudError),
    #[error("the cluster's API does not answer: {0}")]
    Kubernetes(#[from] kubernetes::KubernetesError),
    #[error("the address of the cluster's API is not known yet")]
    NoClient,
}

async fn take(
    context: &ConductorContext,
    host: &Host,
    step: &DrainStep,
) -> Result<Option<DrainOutcome>, StepError> {
    let session = context.administrator()?;
    match step {
        DrainStep::Disable => services::disable(session, &host.service.id, OUR_REASON).await?,
        DrainStep::Enable => services::enable(session, &host.service.id).await?,
        DrainStep::Migrate(server) => return Ok(migrate(session, server).await),
        DrainStep::Evict(member) => return evict(context, host, member).await,
        DrainStep::Uncordon(member) => return uncordon(context, member).await,
    }
    Ok(None)
}

/// Requests a migration. When the answer is unclear, the next turn observes whether the server migrates.
async fn migrate(session: &openstack::Session, server: &str) -> Option<DrainOutcome> {
    match actions::act(session, server, &ServerAction::MigrateLive).await {
        Ok(()) => None,
        Err(error) if error.is_transient() || error.is_conflict() => {
            tracing::debug!("server {server} cannot migrate now: {error}");
            None
        }
        Err(CloudError::NotFound(_)) => None,
        Err(error) => {
            let why = error.refusal().map_or_else(|| error.to_string(), |it| it.message.clone());
            Some(DrainOutcome::Refused(server.to_owned(), why))
        }
    }
}

async fn evict(
    context: &ConductorContext,
    host: &Host,
    member: &Member,
) -> Result<Option<DrainOutcome>, StepError> {
    let Some((cluster, _)) = cluster_of(&host.ours, member) else { return Ok(None) };
    let client = context.clients.client(cluster).await?.ok_or(StepError::NoClient)?;
    let left = kubernetes::drain::drain(&client, &machine_name(cluster, &member.machine)).await?;
    Ok(left.is_empty().then(|| DrainOutcome::Emptied(member.clone())))
}

async fn uncordon(
    context: &ConductorContext,
    member: &Member,
) -> Result<Option<DrainOutcome>, StepError> {
    let refilled = Some(DrainOutcome::Refilled(member.clone()));
    let cluster = context.cluster(member.cluster).await?;
    // Members of a deleted cluster need no uncordon.
    let Some(cluster) = cluster.filter(|it| it.desire == cluster_core::DesiredState::Exist) else {
        return Ok(refilled);
    };
    let client = context.clients.client(&cluster).await?.ok_or(StepError::NoClient)?;
    let name = machine_name(&cluster, &member.machine);
    if kubernetes::nodes::find(&client, &name).await?.is_some() {
        kubernetes::nodes::uncordon(&client, &name).await?;
    }
    Ok(refilled)
}
