//! Creates clusters: gathers the facts that the rules of `cluster-core` need, and records what they accept.

use cluster_core::{Cluster, ClusterRequest, ClusterUuid, NodeGroup, NodeGroupUuid, Owner};
use cluster_store::{QuotaWriteError, StoreError};
use newtype_uuid::GenericUuid;
use openstack_api::{ApiError, Caller, Microversion};

use crate::app::App;
use crate::body::Body;
use crate::error::Error;
use crate::microversion as since;

/// Returns the cluster and the node groups that `body` describes. Nothing is recorded.
pub(crate) async fn requested(
    body: Body<Cluster>,
    app: &App,
    caller: &Caller,
    asked: Microversion,
) -> Result<(Cluster, Vec<NodeGroup>), Error> {
    let template = app.template(caller, &body.base).await.map_err(in_body)?;
    let owner = Owner::new(app.project(caller)?, app.user(caller));
    let id = ClusterUuid::from_untyped_uuid((app.ids)());
    let mut request = ClusterRequest::new(id, owner.clone(), &template, (app.clock)());
    body.write(&mut request, asked)?;
    since::check_zero(request.workers, asked)?;
    let mut request = request.checked()?;

    app.admit(caller).await?;
    let known = app.checked_blueprint(&template, &owner.project);
    let blueprint = request.cluster.blueprint.clone();
    request.cluster.blueprint = app.borrowed(caller, known, blueprint).await?;
    let terms = app.lease_terms(app.settings.leases, &owner).await?;
    let ids = [(); 2].map(|()| NodeGroupUuid::from_untyped_uuid((app.ids)()));
    let (cluster, groups) = request.granted(terms, ids)?;
    app.conductor.check_member_configs(&cluster, &groups)?;
    Ok((cluster, groups))
}

/// Turns 404 into 400: the path of the request exists, but its body names a template that does not.
fn in_body(why: Error) -> ApiError {
    match ApiError::from(why) {
        why if why.status == http::StatusCode::NOT_FOUND => {
            ApiError::bad_field("cluster_template_id", why.message)
        }
        why => why,
    }
}

/// Records a new cluster, if the limits of its project and its user permit it.
pub(super) async fn record(
    app: &App,
    cluster: &Cluster,
    mut groups: Vec<NodeGroup>,
) -> Result<(), Error> {
    let unmeasured = app.measure(cluster, &mut groups).await;
    let members: u32 = groups.iter().map(NodeGroup::node_count).sum();
    let said = format!("cluster of {members} members requested");
    let event = app.request_event(cluster, "CreateAsked", said);
    let within = Some(&app.settings.quotas);
    match app.store.insert_cluster(cluster, &groups, &[event], within).await {
        Ok(()) => Ok(()),
        Err(QuotaWriteError::Store(StoreError::NoOwner { .. })) => {
            let why = "the template was deleted meanwhile";
            Err(ApiError::bad_field("cluster_template_id", why).into())
        }
        Err(error) => Err(Error::unmeasured(error, unmeasured)),
    }
}
