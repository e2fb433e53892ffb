//! Performs the calls that are ready, and those that become ready by them, until none is left. `next_calls` decides which calls start.

use std::sync::Arc;

use cluster_core::{
    CallFailure, CallResults, CloudGoal, ClusterObservation, Ledger, LedgerUuid, ObjectOwner,
    Problem, TurnCalls, next_calls,
};
use cluster_store::{Store, StoreError};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use replicas::Fence;

use super::action_context::ActionContext;
use crate::cloud::{CloudLookups, CloudWorkError, missing_capacity, shortage};
use crate::member_configs::MemberConfigs;
use crate::nodes::Nodes;

/// The context of a turn in the cloud.
#[derive(Clone, Copy)]
pub(crate) struct TurnContext<'a> {
    pub(crate) store: &'a Store,
    /// The fence of this conductor's effects.
    pub(crate) fence: &'a Fence,
    pub(crate) site: &'a CloudLookups<'a>,
    pub(crate) member_configs: &'a MemberConfigs,
    pub(crate) goal: CloudGoal<'a>,
    /// The cluster's Kubernetes API; `None` for a VM.
    pub(crate) nodes: Option<&'a Nodes<'a>>,
}

/// Performs calls until none is ready. Afterwards `seen` includes their results.
///
/// The intent of every action is in the ledger before the action is performed.
pub(crate) async fn act(
    turn_context: TurnContext<'_>,
    ledger: &mut Ledger,
    seen: &mut ClusterObservation,
) -> Result<CallResults, StoreError> {
    let (mut calls, mut in_flight) = (TurnCalls::default(), FuturesUnordered::new());
    let mut action_context = Arc::new(turn_context.action_context(ledger, seen));
    loop {
        let next = next_calls(&turn_context.goal, seen, ledger, &calls);
        if next.checks_capacity {
            calls.note_capacity(turn_context.shortage(seen).await);
            continue;
        }
        calls.begin(&next, ledger);
        if !next.planned.is_empty() {
            let shape = turn_context.goal.shape;
            let intents = ledger.intend(&next.planned, shape, LedgerUuid::new_v4);
            if !intents.is_empty() {
                turn_context.store.record_intents(&intents).await?;
            }
            action_context = Arc::new(turn_context.action_context(ledger, seen));
        }
        for action in next.start {
            let action_context = action_context.clone();
            let fence = turn_context.fence;
            in_flight
                .push(async move { fence.hold(Box::pin(action_context.perform(action))).await });
        }
        let Some(first) = in_flight.next().await else { break };
        let mut finished = vec![first];
        // Results that arrived at the same time.
        while let Some(Some(other)) = in_flight.next().now_or_never() {
            finished.push(other);
        }
        for (action, outcome) in finished {
            match &outcome {
                Ok(_) => tracing::info!("done: {action}"),
                Err(trouble) => tracing::warn!("cannot {action}: {trouble}"),
            }
            let outcome = outcome.map_err(|trouble| trouble.failure(&action.to_string()));
            calls.finish(&action, outcome, seen);
        }
    }
    Ok(calls.results)
}

impl<'a> TurnContext<'a> {
    /// Checks the cloud's quotas, and the free capacity of its hosts, for everything that is still to be created. Images and keys are
    /// looked up at the same time.
    async fn shortage(&self, seen: &ClusterObservation) -> Result<Option<Problem>, CallFailure> {
        let shape = self.goal.shape;
        let (short, (), keys) = tokio::join!(
            async {
                // Placement and the quotas are queried at the same time, which saves the shorter of both waits.
                let (short, lack) = tokio::try_join!(
                    shortage(self.site, shape, seen),
                    missing_capacity(self.site, shape, seen),
                )?;
                Ok::<_, CloudWorkError>(short.or(lack))
            },
            self.site.prefetch_images(shape),
            async {
                match self.goal.owner {
                    ObjectOwner::Cluster(spec) => {
                        self.member_configs.secrets.pki(spec.cluster).await.map(drop)
                    }
                    ObjectOwner::Vm(_) => Ok(()),
                }
            },
        );
        if let Err(error) = keys {
            tracing::debug!("no server can be created: {error}");
        }
        short.map_err(|trouble| trouble.failure("read the quotas of the project"))
    }

    fn action_context(&self, ledger: &Ledger, seen: &ClusterObservation) -> ActionContext<'a> {
        ActionContext {
            store: self.store,
            site: self.site,
            member_configs: self.member_configs,
            of: self.goal.owner,
            shape: self.goal.shape,
            ledger: ledger.clone(),
            nodes: self.nodes,
            seen: seen.clone(),
        }
    }
}
