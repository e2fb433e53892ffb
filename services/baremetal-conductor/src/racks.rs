//! Brings racks up: makes the next request for their machines, within each rack's limit.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use baremetal_core::{
    HistoryEntry, HostPlacement, Hypervisor, HypervisorMachine, Node, Rack, RackAction, RackGoal,
    RackRequest, RequestRefused, Verb, WorkUuid, check_deploy, config_drive, join_again, plan_rack,
    request_verb,
};
use baremetal_store::StoreError;
use decision::{Decision, Requeue};
use jiff::Timestamp;
use reconcile::{Decided, Turn, execute};
use serde_json::Value;
use tokio::time::{interval, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::context::TurnContext;
use crate::problem::chain;
use crate::rack_changes::{self, ChangedRacks};

/// How often racks are examined when nothing happens: the machine of a rack may have left maintenance.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// How many racks are examined then. At a large site, a rack waits for its turn: reading all nodes every few seconds would cost as much as
/// all other work.
const MOST_IN_TURN: usize = 20;

/// How long changes are collected before racks are examined.
const GATHER: Duration = Duration::from_millis(100);

/// Brings racks up until `stop` is cancelled.
pub(crate) async fn run(context: Arc<TurnContext>, stop: CancellationToken) {
    let mut due = interval(LOOK_EVERY);
    // The first examination resumes all racks.
    let mut turns = RackTurns { last: String::new(), most: usize::MAX };
    loop {
        let is_due = tokio::select! {
            () = stop.cancelled() => return,
            () = context.rack_changes.noted() => {
                sleep(GATHER).await;
                false
            }
            _ = due.tick() => true,
        };
        let ChangedRacks { mut names, all } = context.rack_changes.take();
        let looked = async {
            if all {
                names.extend(racks_with_goals(&context).await?);
            } else if is_due {
                names.extend(turns.following(&racks_with_goals(&context).await?));
            }
            look(&context, &names).await
        };
        let looked = looked.await;
        if let Err(error) = looked {
            warn!(error = chain(&error), "cannot bring racks up now");
            context.rack_changes.put_back(ChangedRacks { names, all });
        }
    }
}

/// The racks take turns at being examined when nothing happens.
struct RackTurns {
    /// The name of the rack that was examined last.
    last: String,
    /// How many racks are examined next.
    most: usize,
}

impl RackTurns {
    /// Returns the racks that follow the last one among these, whose names are sorted.
    fn following(&mut self, names: &[String]) -> Vec<String> {
        let first = names.partition_point(|name| *name <= self.last);
        let count = self.most.min(names.len());
        let next: Vec<String> = names.iter().cycle().skip(first).take(count).cloned().collect();
        self.last = next.last().cloned().unwrap_or_default();
        self.most = MOST_IN_TURN;
        next
    }
}

/// Returns the names of the racks with a goal that this conductor brings up, sorted. A rack that cannot be read counts as one.
async fn racks_with_goals(context: &TurnContext) -> Result<Vec<String>, StoreError> {
    let racks = context.store.list_racks().await?.into_iter();
    let mut names: Vec<String> = racks
        .filter(|(name, _, _)| context.membership.has_task(&rack_changes::task(name)))
        .filter_map(|(name, document, _)| {
            let rests = Rack::read(&name, document).is_ok_and(|rack| rack.goal.is_none());
            (!rests).then_some(name)
        })
        .collect();
    names.sort();
    Ok(names)
}

/// Examines those of these racks that this conductor brings up.
async fn look(context: &TurnContext, names: &BTreeSet<String>) -> Result<(), StoreError> {
    for name in names {
        if !context.membership.has_task(&rack_changes::task(name)) {
            continue;
        }
        let Some((document, _)) = context.store.find_rack(name).await? else { continue };
        let goal = match Rack::read(name, document) {
            Ok(rack) => rack.goal,
            Err(why) => {
                warn!(error = chain(&why), "cannot bring up rack {name}");
                continue;
            }
        };
        let Some(mut goal) = goal else { continue };
        if let Err(why) = context.store.secrets().open_rack(name, &mut goal.instance_info) {
            warn!("cannot bring up rack {name}: cannot unseal its secrets: {why}");
            continue;
        }
        let nodes = context.nodes_of_rack(name).await?;
        execute(&RackTurn(context), BringUp { goal, nodes }).await?;
    }
    Ok(())
}

/// The goal of a rack, with its secrets unsealed, and its machines.
struct BringUp {
    goal: RackGoal,
    nodes: Vec<Node>,
}

/// The turn of a rack. Each action changes the record of one node.
struct RackTurn<'a>(&'a TurnContext);

impl Turn for RackTurn<'_> {
    type Record = BringUp;
    type Seen = ();
    type Change = Infallible;
    type Action = RackAction;
    type Outcome = ();
    type Error = StoreError;

    async fn observe(&self, _: &BringUp) -> Result<(), StoreError> {
        Ok(())
    }

    fn decide(&self, rack: &BringUp, (): &()) -> Decided<Self> {
        Ok(plan_rack(&rack.goal, &rack.nodes))
    }

    async fn write(&self, _: BringUp, change: Infallible) -> Result<BringUp, StoreError> {
        match change {}
    }

    async fn perform(&self, rack: &BringUp, action: RackAction) -> Result<(), StoreError> {
        let Some(node) = rack.nodes.iter().find(|node| node.id == action.node) else {
            return Ok(());
        };
        match begin(self.0, &rack.goal, node, action.request).await {
            // Another writer was faster. The next examination uses the new record.
            Ok(()) | Err(StoreError::Stale) => Ok(()),
            Err(StoreError::Duplicate { field, value }) => {
                let label = node.label();
                warn!(node.id = %node.id, "cannot bring up node {label}: another node has {field} {value} already");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn conclude(&self, _: &BringUp, _: Vec<()>) -> Decided<Self> {
        Ok(Decision::rest(Requeue::OnChange))
    }
}

async fn begin(
    context: &TurnContext,
    goal: &RackGoal,
    node: &Node,
    request: RackRequest,
) -> Result<(), StoreError> {
    let now = context.now();
    let asked = match request {
        RackRequest::Verb(Verb::Deploy) => deploy(context, goal, node.clone(), now).await,
        RackRequest::Verb(verb) => request_verb(node, verb, WorkUuid::new_v4(), now)
            .map(|(to, entry)| (to, Some(entry)))
            .map_err(BeginError::Refused),
        RackRequest::Join => join_again(node, now).map_err(BeginError::Refused),
    };
    let (mut asked, entry) = match asked {
        Ok(asked) => asked,
        Err(BeginError::Store(error)) => return Err(error),
        Err(BeginError::Refused(refusal)) => {
            warn!(node.id = %node.id, %refusal, "cannot bring up node {}", node.label());
            return Ok(());
        }
    };
    asked.updated_at = Some(now);
    context.store.update_node(&asked, entry.as_slice()).await?;
    let what = match request {
        RackRequest::Verb(verb) => verb.as_str(),
        RackRequest::Join => "join",
    };
    info!(node.id = %node.id, "bringing up node {}: {what}", node.label());
    context.wake(node.id);
    Ok(())
}

/// Why a machine does not get its next request.
#[derive(Debug, thiserror::Error)]
enum BeginError {
    #[error(transparent)]
    Refused(#[from] RequestRefused),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Requests the installation of a machine with the goal's image and, if the goal names a profile, the config drive of a hypervisor.
async fn deploy(
    context: &TurnContext,
    goal: &RackGoal,
    mut node: Node,
    now: Timestamp,
) -> Result<(Node, Option<HistoryEntry>), BeginError> {
    for (key, value) in &goal.instance_info {
        node.instance_info.insert(key.clone(), value.clone());
    }
    if let Some(profile) = &goal.profile {
        node = with_hypervisor_config(context, node, profile, now).await?;
    }
    check_deploy(&node)?;
    let (asked, entry) = request_verb(&node, Verb::Deploy, WorkUuid::new_v4(), now)?;
    Ok((asked, Some(entry)))
}

/// Returns the node with the config drive and the record that make its machine a hypervisor of this profile after the installation.
async fn with_hypervisor_config(
    context: &TurnContext,
    mut node: Node,
    profile: &str,
    now: Timestamp,
) -> Result<Node, BeginError> {
    let refuse = |problem: String| {
        BeginError::Refused(RequestRefused::Field { field: "profile".to_owned(), problem })
    };
    let Some(row) = context.store.find_profile(profile).await? else {
        return Err(refuse(format!("hypervisor profile {profile:?} not found")));
    };
    let profile = context.store.secrets().with_profile(&row.profile);
    let profile = profile.map_err(|why| refuse(format!("cannot unseal its secrets: {why}")))?;
    let mut ports = context.store.ports_of(node.id).await?;
    // `network_data` gives DHCP to the first port, so the port that the machine boots from comes first.
    ports.sort_by_key(|port| !port.pxe_enabled);
    let macs: Vec<_> = ports.iter().map(|port| port.address).collect();
    let host = HostPlacement::of(&node, &profile.placement)?;
    let guest = HypervisorMachine { id: node.id, host: &host.name, macs: &macs };
    let drive = Value::Object(config_drive(&profile, &guest));
    node.instance_info.insert("configdrive".to_owned(), drive);
    node.hypervisor = Some(Hypervisor::new(&profile, host, now));
    Ok(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn racks_take_turns_and_none_is_left_out() {
        let names: Vec<String> = (10..55).map(|number| format!("r{number}")).collect();
        let mut turns = RackTurns { last: String::new(), most: usize::MAX };
        assert_eq!(turns.following(&names), names);
        assert_eq!(turns.following(&names), names[..20]);
        assert_eq!(turns.following(&names), names[20..40]);
        assert_eq!(turns.following(&names), [&names[40..], &names[..15]].concat());
        // The last rack is gone meanwhile.
        assert_eq!(turns.following(&names[20..]), names[20..40]);
        assert_eq!(turns.following(&names[..3]), names[..3]);
        assert!(turns.following(&[]).is_empty());
    }
}
