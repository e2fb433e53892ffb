//! Performs the actions that are ready, and those that become ready by them, until none is left.
//!
//! A create request starts as soon as its dependencies exist, whatever else is in progress. All other actions wait until nothing is in
//! progress, because their outcome depends on more than their dependencies.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use cluster_core::{
    Action, CloudObjectState, ClusterObservation, DesiredObjects, Failure, Key, Kind, Problem,
    RepairLimits, plan, servers_to_recreate, vm_plan,
};
use cluster_store::StoreError;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use jiff::Timestamp;

use super::action_context::ActionContext;
use super::perform::{ActionChange, Outcome};
use crate::cloud::{CloudLookups, CloudWorkError, Ledger, Owner, missing_capacity, shortage};
use crate::member_configs::MemberConfigs;
use crate::nodes::Nodes;

/// How many actions of a cluster run at once.
const MAX_IN_PROGRESS: usize = 32;

/// The context of a turn in the cloud.
#[derive(Clone, Copy)]
pub(crate) struct TurnContext<'a> {
    pub(crate) site: &'a CloudLookups<'a>,
    pub(crate) member_configs: &'a MemberConfigs,
    /// When members are replaced.
    pub(crate) repair: &'a RepairLimits,
    /// The cluster or VM whose turn it is.
    pub(crate) of: Owner<'a>,
    /// The desired objects.
    pub(crate) shape: &'a DesiredObjects,
    /// The cluster's Kubernetes API; `None` for a VM.
    pub(crate) nodes: Option<&'a Nodes<'a>>,
    /// When the turn began.
    pub(crate) now: Timestamp,
}

/// The result of all actions of a turn.
#[derive(Default)]
pub(crate) struct ActionResults {
    /// The most severe problem.
    pub(crate) problem: Option<Problem>,
    /// All failures.
    pub(crate) troubles: Vec<CloudWorkError>,
    /// Descriptions of objects that were deleted because the cloud failed at them.
    pub(crate) given_up: Vec<String>,
    /// Whether an object was deleted that disappears at once, so that the next turn need not wait.
    pub(crate) is_gone_soon: bool,
    /// Whether any action ran besides creates and changes of rules.
    pub(crate) has_changed: bool,
}

/// Performs actions until none is ready. Afterwards `seen` includes their results.
///
/// The intent of every action is in the ledger before the action is performed. No action is performed twice in a turn.
pub(crate) async fn act(
    turn_context: TurnContext<'_>,
    ledger: &mut Ledger<'_>,
    seen: &mut ClusterObservation,
) -> Result<ActionResults, StoreError> {
    let mut acted = ActionResults::default();
    let mut tried: BTreeSet<Action> = BTreeSet::new();
    let (mut may_begin, mut may_create) = (true, true);
    let (mut waiting, mut under_way) = (VecDeque::new(), FuturesUnordered::new());
    loop {
        let mut ready = Vec::new();
        // While actions wait for a free slot, a new plan could start nothing.
        if may_begin && waiting.is_empty() {
            ready = turn_context.ready(seen, &tried);
        }
        if !under_way.is_empty() {
            ready.retain(may_run_in_parallel);
        }
        if tried.is_empty() && ready.iter().any(|action| is_new(action, ledger)) {
            may_create = turn_context.fits(seen, &mut acted).await;
            may_begin = acted.troubles.is_empty();
        }
        ready.retain(|action| may_begin && (may_create || !matches!(action, Action::Create(_))));
        if !ready.is_empty() {
            acted.is_gone_soon |= ready.iter().any(|action| is_asked_first(action, ledger));
            acted.has_changed |= !ready.iter().all(may_run_in_parallel);
            ledger.record_intents(&ready, turn_context.shape).await?;
            tried.extend(ready.iter().cloned());
            let action_context = Arc::new(turn_context.action_context(ledger, seen));
            waiting.extend(ready.into_iter().map(|action| (action_context.clone(), action)));
        }
        while under_way.len() < MAX_IN_PROGRESS
            && let Some((action_context, action)) = waiting.pop_front()
        {
            under_way.push(async move { action_context.perform(action).await });
        }
        let Some(first) = under_way.next().await else { break };
        turn_context.note(first, seen, &mut acted);
        // Results that arrived at the same time.
        while let Some(Some(other)) = under_way.next().now_or_never() {
            turn_context.note(other, seen, &mut acted);
        }
        // A service that asked for a later retry must not get more requests in this turn.
        if acted.troubles.iter().any(|trouble| trouble.retry_after().is_some()) {
            may_begin = false;
            waiting.clear();
        }
    }
    Ok(acted)
}

impl<'a> TurnContext<'a> {
    /// Returns the actions that can be performed now and were not tried in this turn.
    fn ready(&self, seen: &ClusterObservation, tried: &BTreeSet<Action>) -> Vec<Action> {
        let mut all = match self.of {
            Owner::Cluster(spec) => {
                let again = servers_to_recreate(spec, seen, self.repair, self.now);
                let again = again.into_iter().map(|machine| Action::Delete(Key::Server(machine)));
                plan(spec, seen).into_iter().chain(again).collect()
            }
            Owner::Vm(vm) => vm_plan(vm, self.shape, seen),
        };
        all.retain(|action| !tried.contains(action));
        all
    }

    /// Checks the cloud's quotas, and the free capacity of its hosts, for everything that is still to be created. Images and keys are
    /// looked up at the same time.
    async fn fits(&self, seen: &ClusterObservation, acted: &mut ActionResults) -> bool {
        let (short, (), keys) = tokio::join!(
            async {
                // Placement and the quotas are queried at the same time, which saves the shorter of both waits.
                let (short, lack) = tokio::try_join!(
                    shortage(self.site, self.shape, seen),
                    missing_capacity(self.site, self.shape, seen),
                )?;
                Ok::<_, CloudWorkError>(short.or(lack))
            },
            self.site.prefetch_images(self.shape),
            async {
                match self.of {
                    Owner::Cluster(spec) => {
                        self.member_configs.secrets.pki(spec.cluster).await.map(drop)
                    }
                    Owner::Vm(_) => Ok(()),
                }
            },
        );
        if let Err(error) = keys {
            tracing::debug!("no server can be created: {error}");
        }
        match short {
            Ok(None) => true,
            Ok(short) => {
                acted.problem = short;
                false
            }
            Err(trouble) => {
                acted.problem = Some(trouble.problem("read the quotas of the project"));
                acted.troubles.push(trouble);
                false
            }
        }
    }

    fn action_context(&self, ledger: &Ledger<'a>, seen: &ClusterObservation) -> ActionContext<'a> {
        ActionContext {
            site: self.site,
            member_configs: self.member_configs,
            of: self.of,
            shape: self.shape,
            ledger: ledger.clone(),
            nodes: self.nodes,
            seen: seen.clone(),
        }
    }

    fn note(
        &self,
        (action, outcome): (Action, Outcome),
        seen: &mut ClusterObservation,
        acted: &mut ActionResults,
    ) {
        match outcome {
            Ok(ActionChange::Object(key, found)) => {
                tracing::info!("done: {action}");
                acted.given_up.extend(given_up(&action, seen));
                seen.objects.insert(key, found);
            }
            Ok(ActionChange::Machine(machine, said)) => {
                tracing::info!("done: {action}");
                seen.machines.insert(machine, said);
            }
            Err(trouble) => {
                tracing::warn!("cannot {action}: {trouble}");
                if let (Action::Create(key), Some(why)) = (&action, trouble.create_failure()) {
                    seen.failures.insert(key.clone(), Failure { why, object: None });
                }
                let news = trouble.problem(&action.to_string());
                if acted.problem.as_ref().is_none_or(|old| news.is_final && !old.is_final) {
                    acted.problem = Some(news);
                }
                acted.troubles.push(trouble);
            }
        }
    }
}

/// Whether the action may start while others are in progress.
fn may_run_in_parallel(action: &Action) -> bool {
    matches!(action, Action::Create(_) | Action::SetRules(_))
}

/// Whether the action creates an object that was never requested before.
fn is_new(action: &Action, ledger: &Ledger<'_>) -> bool {
    matches!(action, Action::Create(key) if ledger.line(key).is_none())
}

/// Whether the action is the first delete request for an object that disappears at once.
fn is_asked_first(action: &Action, ledger: &Ledger<'_>) -> bool {
    let Action::Delete(key) = action else { return false };
    !ledger.is_leaving(key)
        && !matches!(key.kind(), Kind::LoadBalancer | Kind::Record | Kind::Server)
}

/// Describes an object that is deleted because the cloud failed at it.
fn given_up(action: &Action, seen: &ClusterObservation) -> Option<String> {
    let Action::Delete(key) = action else { return None };
    let CloudObjectState::Failed(why) = &seen.objects.get(key)?.state else { return None };
    Some(format!("deleting {key}, which failed in the cloud: {why}"))
}
