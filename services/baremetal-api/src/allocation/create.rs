//! Creates allocations: gathers the facts that the rules of `baremetal-core` need, and records the result.

use baremetal_core::{Allocation, AllocationUuid, Node, NodePool};
use baremetal_store::BackfillOutcome;
use http::StatusCode;
use openstack_api::ApiError;
use serde_json::{Map, Value};
use tracing::info;

use super::field::MOST_CANDIDATES;
use crate::app::App;
use crate::error::Result;
use crate::field::in_body;
use crate::microversion as since;
use crate::request::{Request, retry_if_stale, visible_project};
use crate::value::{list, text};
use crate::write::create;

pub(super) struct NewAllocation {
    allocation: Allocation,
    /// The node in use for which the allocation is recorded afterwards.
    node: Option<Node>,
}

/// Returns the allocation that `body` describes. Nothing is recorded.
pub(super) async fn requested(
    request: &Request,
    mut body: Map<String, Value>,
) -> Result<NewAllocation> {
    let (id, now) = (AllocationUuid::new_v4(), (request.app.clock)());
    let node = take_node(request, &mut body).await?;
    let mut allocation = match &node {
        Some(node) => Allocation::of_node_in_use(node, id, now),
        None => Allocation::new(id, now),
    };
    let candidates = take_candidates(&mut body)?;
    create(&mut allocation, body, request.asked)?;
    settle_owner(request, &mut allocation).await?;
    let candidates = request.nodes(&candidates).await;
    let candidates = candidates.map_err(in_body("candidate_nodes"))?;
    allocation.candidate_nodes = candidates.iter().map(|node| node.id).collect();
    if node.is_none() && allocation.resource_class.is_none() {
        let problem = "is required, unless the allocation is for a node in use";
        return Err(ApiError::bad_field("resource_class", problem).into());
    }
    Ok(NewAllocation { allocation, node })
}

/// Chooses a node and records the allocation. Returns the allocation that the answer shows.
///
/// Ironic chooses the node after the answer. Here the node is chosen before, but the answer is the same: the state is `allocating`, and
/// clients read the result with their next request.
pub(super) async fn record(app: &App, wanted: NewAllocation) -> Result<Allocation> {
    let NewAllocation { allocation, node } = wanted;
    let now = allocation.created_at;
    match node {
        Some(node) => {
            let backfill = || async { Ok(app.store.backfill(&allocation, node.id, now).await?) };
            match retry_if_stale(backfill).await? {
                BackfillOutcome::Done(written) => {
                    log_result(&written);
                    Ok(*written)
                }
                BackfillOutcome::Mismatch(mismatch) => Err(mismatch.into()),
            }
        }
        None => {
            let pool = NodePool::of(allocation.owner.as_deref());
            log_result(&app.store.allocate(&allocation, &pool, now).await?);
            Ok(allocation)
        }
    }
}

fn log_result(allocation: &Allocation) {
    match allocation.node {
        Some(node) => {
            info!(node.id = %node, "node {node} is reserved by allocation {}", allocation.id);
        }
        None => info!("no node matches allocation {}", allocation.id),
    }
}

/// Removes `node` from `body` and returns the node in use for which the allocation is recorded afterwards.
async fn take_node(request: &Request, body: &mut Map<String, Value>) -> Result<Option<Node>> {
    let Some(ident) = body.remove("node") else { return Ok(None) };
    if !request.asked.has(since::ALLOCATION_BACKFILL) {
        let problem = format!("is known since version {}", since::ALLOCATION_BACKFILL);
        return Err(ApiError::bad_field("node", problem).into());
    }
    let Some(ident) = text("node", ident, 255)? else { return Ok(None) };
    let node = request.node(&ident).await.map_err(in_body("node"))?;
    Ok(Some(node))
}

/// Removes the candidate nodes from `body`, as the client named them.
fn take_candidates(body: &mut Map<String, Value>) -> Result<Vec<String>, ApiError> {
    let name = "candidate_nodes";
    let named = list(name, body.remove(name).unwrap_or(Value::Null), MOST_CANDIDATES)?;
    let named = named.into_iter().map(|node| {
        text(name, node, 255)?.ok_or_else(|| ApiError::bad_field(name, "one of them has no name"))
    });
    named.collect()
}

/// Sets the owner of the allocation. A caller with access to one project can only request nodes for that project, which is also the
/// default.
async fn settle_owner(request: &Request, wanted: &mut Allocation) -> Result<()> {
    match (visible_project(&request.caller), &wanted.owner) {
        (Some(own), Some(owner)) if own != *owner => {
            let why = "owner: only operators may create an allocation for another project";
            Err(ApiError::new(StatusCode::FORBIDDEN, why).into())
        }
        (Some(own), _) => {
            wanted.owner = Some(own);
            Ok(())
        }
        (None, Some(owner)) => {
            Ok(request.app.auth.check_project(&request.caller, "owner", owner).await?)
        }
        (None, None) => Ok(()),
    }
}
