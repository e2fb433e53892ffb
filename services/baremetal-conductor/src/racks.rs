//! Brings racks up: gives their machines the next step, within each rack's limit.

use std::sync::Arc;
use std::time::Duration;

use baremetal_core::{
    HistoryEntry, Node, NodeFilter, NodeSort, Page, Rack, RackGoal, RackStep, RequestRefused, Verb,
    WorkUuid, check_deploy, join_again, plan_rack, request_verb,
};
use baremetal_store::StoreError;
use jiff::Timestamp;
use newtype_uuid::GenericUuid;
use tokio::time::{interval, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::handle::{RunError, TurnContext};
use crate::problem::chain;

/// How often racks are examined when nothing happens.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// How long changes are collected before racks are examined.
const GATHER: Duration = Duration::from_millis(100);

/// How many nodes are read per query.
const PAGE: u32 = 1000;

/// Brings racks up until `stop` is cancelled.
pub(crate) async fn run(
    context: Arc<TurnContext>,
    stop: CancellationToken,
) -> Result<(), RunError> {
    let mut due = interval(LOOK_EVERY);
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = context.rack_changed.notified() => sleep(GATHER).await,
            _ = due.tick() => {}
        }
        if let Err(error) = look(&context).await {
            warn!(error = chain(&error), "cannot bring racks up now");
        }
    }
}

async fn look(context: &TurnContext) -> Result<(), StoreError> {
    for (name, document, _) in context.store.list_racks().await? {
        let goal = match Rack::read(&name, document) {
            Ok(rack) => rack.goal,
            Err(why) => {
                warn!(error = chain(&why), "cannot bring up rack {name}");
                continue;
            }
        };
        let Some(mut goal) = goal else { continue };
        if let Err(why) = context.store.secrets().open_rack(&name, &mut goal.instance_info) {
            warn!("cannot bring up rack {name}: cannot unseal its secrets: {why}");
            continue;
        }
        let nodes = context.nodes_of_rack(&name).await?;
        for (id, step) in plan_rack(&goal, &nodes) {
            let Some(node) = nodes.iter().find(|node| node.id == id) else { continue };
            match begin(context, &goal, node, step).await {
                // Another writer was faster. The next examination uses the new record.
                Ok(()) | Err(StoreError::Stale) => {}
                Err(StoreError::Duplicate { field, value }) => {
                    let label = node.label();
                    warn!(node.id = %id, "cannot bring up node {label}: another node has {field} {value} already");
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

async fn begin(
    context: &TurnContext,
    goal: &RackGoal,
    node: &Node,
    step: RackStep,
) -> Result<(), StoreError> {
    let now = Timestamp::now();
    let asked = match step {
        RackStep::Ask(Verb::Deploy) => deploy(context, goal, node.clone(), now).await?,
        RackStep::Ask(verb) => {
            request_verb(node, verb, WorkUuid::new_v4(), now).map(|(to, it)| (to, Some(it)))
        }
        RackStep::Join => join_again(node, now),
    };
    match asked {
        Ok((mut asked, entry)) => {
            asked.updated_at = Some(now);
            context.store.update_node(&asked, entry.as_slice()).await?;
            let what = match step {
                RackStep::Ask(verb) => verb.as_str(),
                RackStep::Join => "join",
            };
            info!(node.id = %node.id, "bringing up node {}: {what}", node.label());
            context.queue.wake(node.id);
        }
        Err(refusal) => {
            warn!(node.id = %node.id, %refusal, "cannot bring up node {}", node.label())
        }
    }
    Ok(())
}

type RequestResult = Result<(Node, Option<HistoryEntry>), RequestRefused>;

/// Requests the installation of a machine with the goal's image and, if the goal names a profile, the config drive of a hypervisor.
async fn deploy(
    context: &TurnContext,
    goal: &RackGoal,
    mut node: Node,
    now: Timestamp,
) -> Result<RequestResult, StoreError> {
    for (key, value) in &goal.instance_info {
        node.instance_info.insert(key.clone(), value.clone());
    }
    if let Some(profile) = &goal.profile {
        node = match context.with_hypervisor_config(node, profile, now).await? {
            Ok(node) => node,
            Err(refusal) => return Ok(Err(refusal)),
        };
    }
    let asked = check_deploy(&node)
        .and_then(|()| request_verb(&node, Verb::Deploy, WorkUuid::new_v4(), now));
    Ok(asked.map(|(to, entry)| (to, Some(entry))))
}

impl TurnContext {
    /// Returns the nodes of a rack, in the order of their positions.
    pub(crate) async fn nodes_of_rack(&self, name: &str) -> Result<Vec<Node>, StoreError> {
        let filter = NodeFilter {
            rack: Some(name.to_owned()),
            include_children: true,
            ..NodeFilter::default()
        };
        let mut nodes: Vec<Node> = Vec::new();
        loop {
            let marker = nodes.last().map(|node| node.id.into_untyped_uuid());
            let page = Page { limit: PAGE, marker, sort: NodeSort::Position, descending: false };
            let more = self.store.list_nodes(&filter, &page).await?;
            let last = more.len() < PAGE as usize;
            nodes.extend(more);
            if last {
                return Ok(nodes);
            }
        }
    }
}
