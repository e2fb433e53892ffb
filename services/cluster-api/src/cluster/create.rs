//! Creates clusters: gathers the facts that the rules of `cluster-core` need, and records what they accept.

use cluster_core::{Cluster, ClusterRequest, ClusterUuid, NodeGroup, NodeGroupUuid, Owner};
use cluster_store::{QuotaWriteError, StoreError};
use newtype_uuid::GenericUuid;
use openstack_api::{ApiError, Microversion};

use crate::app::App;
use crate::body::Body;
use crate::error::{Error, Result};
use crate::microversion as since;
use crate::request::Request;

/// Returns the cluster and the node groups that `body` describes. Nothing is recorded.
pub(crate) async fn requested(
    request: &Request,
    body: Body<Cluster>,
) -> Result<(Cluster, Vec<NodeGroup>)> {
    let template = request.template(&body.base).await;
    let template = template.map_err(|why| in_body(why, request.asked))?;
    let owner = Owner::new(request.project()?, request.user());
    let id = ClusterUuid::from_untyped_uuid((request.app.ids)());
    let mut wanted = ClusterRequest::new(id, owner.clone(), &template, (request.app.clock)());
    body.write(&mut wanted)?;
    since::check_zero(wanted.workers, request.asked)?;
    let mut wanted = wanted.checked()?;

    request.admit().await?;
    let known = request.app.checked_blueprint(&template, &owner.project);
    let blueprint = wanted.cluster.blueprint.clone();
    wanted.cluster.blueprint = request.borrowed(known, blueprint).await?;
    if let Some(name) = &wanted.cluster.blueprint.keypair {
        wanted.cluster.ssh_key = request.ssh_key(name).await?;
    }
    let terms = request.app.lease_terms(request.app.settings.leases, &owner).await?;
    let ids = [(); 2].map(|()| NodeGroupUuid::from_untyped_uuid((request.app.ids)()));
    let (cluster, groups) = wanted.granted(terms, ids)?;
    request.app.conductor.check_member_configs(&cluster, &groups)?;
    Ok((cluster, groups))
}

/// Turns 404 into 400 before version 1.10, as in Magnum: the path of the request exists, but its body names a template that does not.
fn in_body(why: Error, asked: Microversion) -> ApiError {
    match ApiError::from(why) {
        why if why.status == http::StatusCode::NOT_FOUND && !asked.has(since::ZERO_NODES) => {
            ApiError::bad_field("cluster_template_id", why.message)
        }
        why => why,
    }
}

/// Records a new cluster, if the limits of its project and its user permit it.
pub(super) async fn record(app: &App, cluster: &Cluster, mut groups: Vec<NodeGroup>) -> Result<()> {
    if !cluster.suits_0_1() {
        app.check_upgraded()?;
    }
    let unmeasured = app.measure(cluster, &mut groups).await;
    let members: u32 = groups.iter().map(NodeGroup::node_count).sum();
    let said = format!("cluster of {members} members requested");
    let event = app.request_event(cluster, "CreateRequested", said);
    let warning = app.label_event(cluster, &cluster.blueprint.labels);
    let events: Vec<_> = [event].into_iter().chain(warning).collect();
    let within = Some(&app.settings.quotas);
    match app.store.insert_cluster(cluster, &groups, &events, within).await {
        Ok(()) => Ok(()),
        Err(QuotaWriteError::Store(StoreError::NoOwner { .. })) => {
            let why = "the template was deleted meanwhile";
            Err(ApiError::bad_field("cluster_template_id", why).into())
        }
        Err(error) => Err(Error::unmeasured(error, unmeasured)),
    }
}
