//! Drains of hosts: requested through the API, and carried out turn by turn.
//!
//! Calls are recorded before they are made, and every call may be repeated without harm: Nova ignores a second disable, and a second
//! request for a migration in progress; Kubernetes ignores a second cordon.

use std::collections::BTreeSet;

use cluster_core::{
    ClusterUuid, DesiredState, Drain, DrainAction, DrainObservation, DrainOutcome, DrainRefused,
    DrainRules, DrainUuid, HostName, Member, RecordChange, after_drain_actions, machine_name,
    plan_drain,
};
use cluster_store::{DrainGrantError, StoreError};
use openstack::CloudError;
use openstack::compute::actions::{self, ServerAction};
use openstack::compute::services;
use reconcile::{Decided, Mutation, Requeue, Turn, begin_span, end_span, execute};
use tracing::field::Empty;
use tracing::{Span, info, instrument, warn};
use uuid::Uuid;

use crate::Conductor;
use crate::cluster_secrets::KeysError;
use crate::context::{ConductorContext, ResourceRef};
use crate::hosts::{Host, HostError, OUR_REASON};
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
            let forced = forced(ask, &host);
            let asked = Drain::new((ask.id, host.name.clone()), by, forced, host.members(), now);
            let asked = Drain { trace: spans::current(), ..asked };
            match self.context.store.grant_drain(&asked).await {
                Ok(granted) => {
                    self.context.wake(ResourceRef::Drain(granted.id));
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
        let forced = forced(ask, &host);
        let asked = Drain::new((ask.id, host.name.clone()), by, forced, host.members(), now);
        Ok(self.context.store.check_drain(&asked).await?)
    }

    /// Ends a drain, so that the host accepts servers again. `None` when the host is not drained.
    pub async fn end_drain(&self, host: &HostName) -> Result<Option<Drain>, StoreError> {
        let ending = self.context.store.end_drain(host).await?;
        if let Some(drain) = &ending {
            self.context.wake(ResourceRef::Drain(drain.id));
        }
        Ok(ending)
    }
}

/// Returns the clusters that may lose their etcd quorum by the drain of this host.
fn forced(ask: &DrainRequest, host: &Host) -> BTreeSet<ClusterUuid> {
    match Mutation::NoQuorumCheck.is_made() {
        true => host.members().into_iter().map(|member| member.cluster).collect(),
        false => ask.forced.clone(),
    }
}

/// Runs one turn of a drain, on behalf of the request that started it.
#[instrument(skip_all, fields(drain.id = %id, drain.host = Empty, request.id = Empty))]
pub(crate) async fn turn(context: &ConductorContext, id: DrainUuid) -> Result<Requeue, TurnError> {
    let Some(drain) = context.store.drain_of(id).await? else { return Ok(Requeue::OnChange) };
    Span::current().record("drain.host", drain.host.as_str());
    let request = drain.request.clone().unwrap_or_else(|| format!("req-{}", Uuid::new_v4()));
    Span::current().record("request.id", &request);
    let (tracer, subject) = (&context.settings.tracer, ("bedplate.drain.id", id));
    let span = begin_span(tracer, drain.trace_in_progress(), "drain turn", subject);
    let turn = DrainTurn(context);
    let executed = Box::pin(span.run(execute(&turn, drain)));
    let ended = openstack::on_behalf_of(request, executed).await;
    end_span(span, &ended);
    Ok(ended?.1)
}

struct DrainTurn<'a>(&'a ConductorContext);

impl DrainTurn<'_> {
    fn rules(&self) -> DrainRules {
        let (settings, repair) = (&self.0.settings, &self.0.settings.repair);
        DrainRules {
            shows_within: DrainRules::SHOWS_WITHIN.min(repair.lands_within),
            backoff: repair.backoff,
            pauses: settings.pauses(),
        }
    }
}

impl Turn for DrainTurn<'_> {
    type Record = Drain;
    type Seen = DrainObservation;
    type Change = RecordChange<Drain>;
    type Action = DrainAction;
    type Outcome = DrainOutcome;
    type Error = TurnError;

    async fn observe(&self, drain: &Drain) -> Result<DrainObservation, TurnError> {
        match self.0.host(&drain.host).await {
            Ok(host) => Ok(DrainObservation::Host(host.seen((self.0.settings.clock)()))),
            Err(HostError::Store(error)) => Err(error.into()),
            Err(error @ HostError::NoHost(_)) => Ok(DrainObservation::NoHost(error.to_string())),
            Err(error @ (HostError::NoCloud | HostError::NotAdmin(_) | HostError::Cloud(_))) => {
                Ok(DrainObservation::Unknown(error.to_string()))
            }
        }
    }

    fn decide(&self, drain: &Drain, seen: &DrainObservation) -> Decided<Self> {
        Ok(plan_drain(drain, seen, &self.rules()))
    }

    async fn write(&self, drain: Drain, change: RecordChange<Drain>) -> Result<Drain, TurnError> {
        let after = match change {
            RecordChange::Write(after) => after,
            RecordChange::Delete => {
                self.0.store.forget_drain(&drain).await?;
                return Ok(drain);
            }
        };
        let written = self.0.store.update_drain(&after).await?;
        if written.phase != drain.phase {
            let (from, to) = (drain.phase.as_str(), written.phase.as_str());
            info!(state.from = from, state.to = to, "host {} is now {to}", written.host);
        }
        Ok(written)
    }

    async fn perform(&self, drain: &Drain, action: DrainAction) -> Result<DrainOutcome, TurnError> {
        info!(action.name = ?action, "performing {action:?} on host {}", drain.host);
        let asking = self.0.act_for_drain(&action);
        Ok(match self.0.membership.fence().hold(asking).await {
            Ok(outcome) => outcome,
            Err(error) => {
                warn!("cannot perform {action:?} on host {}: {error}", drain.host);
                DrainOutcome::Failed(action)
            }
        })
    }

    fn skips_rest(&self, outcome: &DrainOutcome) -> bool {
        outcome.skips_rest()
    }

    fn conclude(&self, drain: &Drain, outcomes: Vec<DrainOutcome>) -> Decided<Self> {
        Ok(after_drain_actions(drain, &outcomes, &self.rules()))
    }
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
enum ActionError {
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

impl ConductorContext {
    async fn act_for_drain(&self, action: &DrainAction) -> Result<DrainOutcome, ActionError> {
        let session = self.administrator()?;
        match action {
            DrainAction::Disable { service } => {
                services::disable(session, service, OUR_REASON).await?;
                Ok(DrainOutcome::Done)
            }
            DrainAction::Enable { service } => {
                services::enable(session, service).await?;
                Ok(DrainOutcome::Done)
            }
            DrainAction::Migrate(server) => Ok(migrate(session, server).await),
            DrainAction::Evict(member) => self.evict(member).await,
            DrainAction::Uncordon(member) => self.uncordon(member).await,
        }
    }

    async fn evict(&self, member: &Member) -> Result<DrainOutcome, ActionError> {
        let Some(cluster) = self.cluster(member.cluster).await? else {
            return Ok(DrainOutcome::Done);
        };
        let client = self.clients.client(&cluster).await?.ok_or(ActionError::NoClient)?;
        let name = machine_name(&cluster, &member.machine);
        let left = kubernetes::drain::drain(&client, &name).await?;
        Ok(match left.is_empty() {
            true => DrainOutcome::Emptied(member.clone()),
            false => DrainOutcome::Done,
        })
    }

    async fn uncordon(&self, member: &Member) -> Result<DrainOutcome, ActionError> {
        let refilled = DrainOutcome::Refilled(member.clone());
        let cluster = self.cluster(member.cluster).await?;
        // Members of a deleted cluster need no uncordon.
        let Some(cluster) = cluster.filter(|it| it.desire == DesiredState::Exist) else {
            return Ok(refilled);
        };
        let client = self.clients.client(&cluster).await?.ok_or(ActionError::NoClient)?;
        let name = machine_name(&cluster, &member.machine);
        if kubernetes::nodes::find(&client, &name).await?.is_some() {
            kubernetes::nodes::uncordon(&client, &name).await?;
        }
        Ok(refilled)
    }
}

/// Requests a migration. When the answer is unclear, the next turn observes whether the server migrates.
async fn migrate(session: &openstack::Session, server: &str) -> DrainOutcome {
    match actions::act(session, server, &ServerAction::MigrateLive).await {
        Ok(()) => DrainOutcome::Done,
        Err(error) if error.is_transient() || error.is_conflict() => {
            tracing::debug!("server {server} cannot migrate now: {error}");
            DrainOutcome::Done
        }
        Err(CloudError::NotFound(_)) => DrainOutcome::Done,
        Err(error) => {
            let why = error.refusal().map_or_else(|| error.to_string(), |it| it.message.clone());
            DrainOutcome::Refused(server.to_owned(), why)
        }
    }
}
