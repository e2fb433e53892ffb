//! One turn's work: look, write down, then do all that is ready, and what that makes ready, until nothing is.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cluster_core::{
    Action, AddOnsSeen, ClusterSpec, Event, FoundState, Key, Kind, LedgerEntry, MachineRef,
    Problem, Seen, Severity, late, plan, shape,
};
use futures::StreamExt;
use jiff::Timestamp;
use openstack::Session;
use reconcile::Requeue;

use super::ledger::{Agreed, Ledger};
use super::observe::observe;
use super::perform::{Changed, Means};
use super::quota;
use super::site::Site;
use super::trouble::Trouble;
use crate::handle::{KeysError, World};
use crate::nodes::Nodes;

/// How many calls of a cluster are under way at once.
const WIDE: usize = 16;
/// How long to leave a cloud alone that is at work, or busy.
const PAUSE: Duration = Duration::from_secs(1);

/// What a turn's work came to.
pub(crate) struct Worked {
    /// How the cluster is now.
    pub(crate) seen: Seen,
    /// When its next turn is due.
    pub(crate) next: Requeue,
}

/// Brings the cloud as near to what the cluster is to be as it goes now.
///
/// Every action has its intent in the ledger before it is carried out, and is carried out once a turn at most: what
/// fails is tried again by a later turn, which looks first.
pub(crate) async fn work(
    world: &World,
    session: &Session,
    spec: &ClusterSpec<'_>,
    lines: Vec<LedgerEntry>,
) -> Result<Worked, KeysError> {
    let now = (world.settings.clock)();
    let site = Site::new(session, &spec.cluster.blueprint);
    let shape = shape(spec);
    let mut ledger = Ledger::new(&world.store, spec.cluster.id, now, lines);
    let (observed, nodes) =
        tokio::join!(observe(&site, spec, &ledger), Nodes::reach(world, spec, &shape));
    let nodes = nodes?;
    let mut seen = match observed {
        Ok(objects) => Seen { at: Some(now), objects, ..Seen::default() },
        Err(trouble) => {
            let problem = Some(trouble.problem("look at the cloud"));
            tracing::warn!("cannot look at the cloud: {trouble}");
            let next = Requeue::After(pause(world, &[trouble]));
            return Ok(Worked { seen: Seen { problem, ..Seen::default() }, next });
        }
    };
    let agreed = ledger.agree(&seen, &shape).await?;
    let asked_at = |machine: &MachineRef| {
        let line = ledger.line(&Key::Server(machine.clone()))?;
        Some(line.updated_at.unwrap_or(line.created_at))
    };
    nodes.observe(&mut seen, asked_at).await?;
    nodes.admit(&seen).await;

    let (mut tried, mut is_gone_soon, mut troubles) = (BTreeSet::new(), false, Vec::new());
    let mut events = Vec::new();
    let (mut problem, mut may_create): (Option<Problem>, bool) = (None, true);
    if let Err(trouble) = nodes.mark_gpu_nodes(&site).await {
        tracing::warn!("cannot mark nodes with GPUs: {trouble}");
    }
    match nodes.apply_add_ons(&site, &seen).await {
        Ok(add_ons) => seen.add_ons = add_ons,
        Err(trouble) => {
            tracing::warn!("cannot apply what is to run in the cluster: {trouble}");
            let told = trouble.problem("apply what is to run in the cluster");
            let missing = BTreeMap::from([("add-ons".to_owned(), told.message)]);
            seen.add_ons = Some(AddOnsSeen { missing, credential: None });
            troubles.push(trouble);
        }
    }

    loop {
        let again = late(spec, &seen, &world.settings.repair, now);
        let again = again.into_iter().map(|machine| Action::Delete(Key::Server(machine)));
        let mut ready: Vec<Action> = plan(spec, &seen)
            .into_iter()
            .chain(again)
            .filter(|action| !tried.contains(action))
            .collect();
        if ready.is_empty() {
            break;
        }
        let asked_first = |action: &Action| match action {
            Action::Delete(key) => !ledger.is_leaving(key) && goes_at_once(key),
            Action::Create(_)
            | Action::SetRules(_)
            | Action::SetAddresses(..)
            | Action::Drain(_)
            | Action::LeaveEtcd(_)
            | Action::ForgetNode(_) => false,
        };
        let is_new =
            |action: &Action| matches!(action, Action::Create(key) if ledger.line(key).is_none());
        if tried.is_empty() && ready.iter().any(is_new) {
            match quota::shortage(&site, &shape, &seen).await {
                Ok(None) => {}
                Ok(Some(short)) => {
                    problem = Some(short);
                    may_create = false;
                }
                Err(trouble) => {
                    problem = Some(trouble.problem("ask for what the cluster may have"));
                    troubles.push(trouble);
                    break;
                }
            }
        }
        ready.retain(|action| may_create || !matches!(action, Action::Create(_)));
        if ready.is_empty() {
            break;
        }
        is_gone_soon |= ready.iter().any(asked_first);
        ledger.intend(&ready, &shape).await?;
        tried.extend(ready.iter().cloned());
        let means = Means {
            site: &site,
            world,
            spec,
            shape: &shape,
            ledger: &ledger,
            nodes: &nodes,
            seen: &seen,
        };
        let calls: Vec<_> = ready.into_iter().map(|action| means.perform(action)).collect();
        let outcomes: Vec<_> = futures::stream::iter(calls).buffer_unordered(WIDE).collect().await;
        for (action, outcome) in outcomes {
            match outcome {
                Ok(Changed::Object(key, found)) => {
                    tracing::info!("done: {action}");
                    events.extend(given_up(spec, &action, &seen, now));
                    seen.objects.insert(key, found);
                }
                Ok(Changed::Machine(machine, said)) => {
                    tracing::info!("done: {action}");
                    seen.machines.insert(machine, said);
                }
                Err(trouble) => {
                    tracing::warn!("cannot {action}: {trouble}");
                    let news = trouble.problem(&action.to_string());
                    if problem.as_ref().is_none_or(|old| news.is_final && !old.is_final) {
                        problem = Some(news);
                    }
                    troubles.push(trouble);
                }
            }
        }
    }

    let is_at_work = seen
        .objects
        .values()
        .any(|found| matches!(found.state, FoundState::Working | FoundState::Leaving));
    let next = if !troubles.is_empty() {
        Requeue::After(pause(world, &troubles))
    } else if agreed == Agreed::Struck || is_gone_soon {
        Requeue::Now
    } else if is_at_work || agreed == Agreed::MayStillCome || nodes.is_under_way(&seen) {
        Requeue::After(PAUSE.min(world.settings.look_every))
    } else {
        Requeue::After(world.settings.look_every)
    };
    if !events.is_empty() {
        world.store.append_events(spec.cluster.id, &events).await?;
    }
    seen.problem = problem;
    Ok(Worked { seen, next })
}

/// What is to be said of an object that is deleted because the cloud failed at it.
fn given_up(spec: &ClusterSpec<'_>, action: &Action, seen: &Seen, at: Timestamp) -> Option<Event> {
    let Action::Delete(key) = action else { return None };
    let FoundState::Failed(why) = &seen.objects.get(key)?.state else { return None };
    Some(Event {
        id: None,
        cluster: spec.cluster.id,
        at,
        severity: Severity::Warning,
        reason: "CloudFailed".to_owned(),
        message: format!("the cloud failed at {key}: {why}"),
    })
}

/// Whether such an object is gone as soon as the cloud has agreed to delete it.
fn goes_at_once(key: &Key) -> bool {
    !matches!(key.kind(), Kind::LoadBalancer | Kind::Record | Kind::Server)
}

/// How long to wait after these.
fn pause(world: &World, troubles: &[Trouble]) -> Duration {
    let asked = troubles.iter().filter_map(Trouble::retry_after).max();
    let all = if troubles.iter().any(Trouble::is_transient) { PAUSE } else { Duration::MAX };
    asked.unwrap_or(all.min(world.settings.look_every))
}
