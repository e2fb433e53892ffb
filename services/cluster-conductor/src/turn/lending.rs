//! The lease of a cluster in its turn: the notices about its stages, and the servers that are switched off and on.

use cluster_core::{Cluster, ClusterOutcome, LeaseNotice, tag};
use futures::future::join_all;
use jiff::Timestamp;
use newtype_uuid::GenericUuid;
use notices::{Letter, Notice, NoticeSubject};
use openstack::compute::actions::{ServerAction, act};
use openstack::compute::servers::{self, Server, ServerStatus};
use serde_json::{Map, Value};
use tracing::{info, warn};
use uuid::Uuid;

use crate::cloud::CloudWorkError;
use crate::context::ConductorContext;
use crate::tenancy::CloudAccess;

/// Returns the letters about a stage of a cluster's lease: to the administrator's webhook, and to the contact address of the lease.
pub(super) fn letters(
    context: &ConductorContext,
    cluster: &Cluster,
    lease_notice: &LeaseNotice,
    now: Timestamp,
) -> Vec<Letter> {
    let contact = cluster.lending.as_ref().and_then(|it| it.notify.as_ref());
    context.settings.lending.addressees.letters(&notice(cluster, lease_notice, now), contact)
}

fn notice(cluster: &Cluster, lease_notice: &LeaseNotice, now: Timestamp) -> Notice {
    let happens_at =
        lease_notice.happens_at.map(|at| ("happens_at".to_owned(), Value::from(at.to_string())));
    let until = cluster.lending.as_ref().map(|it| it.lease.until.to_string());
    let until = until.map(|until| ("lease_until".to_owned(), Value::from(until)));
    let ways = "Extend the lease with bedplate cluster extend, undo its end with bedplate cluster undo, or use PUT \
                /bedplate/v1/clusters/ID/lease.";
    Notice {
        id: Uuid::new_v4(),
        at: now,
        event: lease_notice.event.to_owned(),
        subject: format!("Kubernetes cluster {}: {}", cluster.name, lease_notice.message),
        text: format!(
            "Kubernetes cluster {} ({}): {}.\n\n{ways}",
            cluster.name, cluster.id, lease_notice.message
        ),
        project_id: Some(cluster.project.clone()),
        about: NoticeSubject {
            kind: "cluster".to_owned(),
            id: cluster.id.into_untyped_uuid().to_string(),
            name: cluster.name.to_string(),
        },
        details: Map::from_iter(happens_at.into_iter().chain(until)),
    }
}

/// Switches off the servers of a cluster whose lease ended.
pub(super) async fn switch_off(cloud_access: &CloudAccess, cluster: &Cluster) -> ClusterOutcome {
    match switch(cloud_access, cluster, &ServerAction::Stop).await {
        Ok(still_on) => ClusterOutcome::SwitchedOff { still_on },
        Err(trouble) => {
            warn!("cannot switch off the members of a cluster whose lease ended: {trouble}");
            let problem = trouble.problem("switch off the members");
            ClusterOutcome::SwitchOffFailed(problem.message)
        }
    }
}

/// Switches on the servers of a cluster whose lease was extended after its end.
pub(super) async fn switch_on(cloud_access: &CloudAccess, cluster: &Cluster) {
    match switch(cloud_access, cluster, &ServerAction::Start).await {
        Ok(0) => {}
        Ok(still_off) => {
            info!("switching on {still_off} members of cluster {}", cluster.id)
        }
        Err(trouble) => warn!("cannot switch on the members of a cluster: {trouble}"),
    }
}

/// Stops or starts all servers of the cluster. Returns how many are not in the wanted state yet.
async fn switch(
    cloud_access: &CloudAccess,
    cluster: &Cluster,
    action: &ServerAction,
) -> Result<usize, CloudWorkError> {
    let (on, off) = (ServerStatus::Active, ServerStatus::Shutoff);
    let (from, wanted) = if *action == ServerAction::Stop { (on, off) } else { (off, on) };
    let session = &cloud_access.of(cluster, true).await?;
    let all = servers::tagged(session, &tag(cluster.id)).await?;
    let others: Vec<Server> = all.into_iter().filter(|server| server.status != wanted).collect();
    let idle = others.iter().filter(|it| it.status == from && it.task_state.is_none());
    let asked = join_all(idle.map(|server| act(session, &server.id, action))).await;
    for answer in asked {
        match answer {
            Ok(()) => {}
            // The server is busy, or in the wanted state already: the next look shows which.
            Err(error) if error.is_conflict() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(others.len())
}
