//! Calls to the OpenStack that machines join: observations of one host, and the actions of joining.

use baremetal_core::{
    AggregateSeen, CloudSeen, Hypervisor, HypervisorSeen, JoinAction, JoinState, Node, Problem,
    Reason, ServiceSeen,
};
use openstack::compute::services::{self, State, Status};
use openstack::compute::{aggregates, hypervisors};
use openstack::placement::providers;
use openstack::{CloudError, Session};

use crate::context::TurnContext;
use crate::problem::chain;

impl TurnContext {
    /// Observes the part of the cloud that the state of the node's host is about.
    pub(crate) async fn look_at_cloud(&self, node: &Node) -> CloudSeen {
        let Some(host) = &node.hypervisor else { return CloudSeen::Service(None) };
        let Some(cloud) = &self.settings.cloud else { return CloudSeen::Failed(no_cloud()) };
        look(cloud, host).await.unwrap_or_else(|error| CloudSeen::Failed(problem(&error)))
    }

    /// Makes a call to the cloud for the host. Every call may be repeated without harm.
    pub(crate) async fn ask_cloud(
        &self,
        host: &Hypervisor,
        action: &JoinAction,
    ) -> Result<(), Problem> {
        let Some(cloud) = &self.settings.cloud else { return Err(no_cloud()) };
        let asked = match action {
            JoinAction::MakeAggregate { name, zone } => {
                match aggregates::create(cloud, name, zone.as_deref()).await {
                    // Another host has created the aggregate. The next look finds it.
                    Err(error) if error.is_conflict() => Ok(()),
                    made => made.map(drop),
                }
            }
            JoinAction::AddHost { aggregate } => add_host(cloud, aggregate, &host.host).await,
            JoinAction::Enable { service } => services::enable(cloud, service).await,
            JoinAction::Forget { service } => services::delete(cloud, service).await,
        };
        asked.map_err(|error| problem(&error))
    }
}

async fn look(cloud: &Session, host: &Hypervisor) -> Result<CloudSeen, CloudError> {
    let name = host.host.as_str();
    Ok(match host.state {
        JoinState::AwaitingService | JoinState::Enabling | JoinState::Leaving => {
            let found = services::find_compute(cloud, name).await?;
            CloudSeen::Service(found.map(|it| ServiceSeen {
                up: it.state == State::Up,
                enabled: it.status == Status::Enabled,
                reported_at: it.updated_at,
                id: it.id,
            }))
        }
        JoinState::AwaitingHypervisor => {
            let found = hypervisors::find_by_host(cloud, name).await?;
            CloudSeen::Hypervisor(
                found.map(|it| HypervisorSeen { up: it.state == State::Up, id: it.id }),
            )
        }
        JoinState::AwaitingProvider => {
            let id = host.id.as_deref().unwrap_or_default();
            let has = providers::inventories(cloud, id).await?;
            CloudSeen::Provider(has.is_some_and(|all| all.values().any(|total| *total > 0)))
        }
        JoinState::Zoning | JoinState::Grouping => {
            let all = aggregates::list(cloud).await?.into_iter();
            CloudSeen::Aggregates(all.map(|one| seen(one, name)).collect())
        }
        JoinState::Installing | JoinState::Joined | JoinState::Failed => CloudSeen::Service(None),
    })
}

fn seen(one: aggregates::Aggregate, host: &str) -> AggregateSeen {
    AggregateSeen {
        has_host: one.hosts.iter().any(|name| name == host),
        id: one.id,
        name: one.name,
        zone: one.availability_zone,
    }
}

/// Adds the host to an aggregate. A conflict is a success if the host is a member already, as after a lost answer.
async fn add_host(cloud: &Session, aggregate: &str, host: &str) -> Result<(), CloudError> {
    match aggregates::add_host(cloud, aggregate, host).await {
        Err(error) if error.is_conflict() => {
            let all = aggregates::list(cloud).await?;
            let has = |it: &aggregates::Aggregate| it.hosts.iter().any(|name| name == host);
            match all.iter().any(|it| it.id == aggregate && has(it)) {
                true => Ok(()),
                false => Err(error),
            }
        }
        asked => asked,
    }
}

/// The problem of a service without a cloud.
pub(crate) fn no_cloud() -> Problem {
    let cause = "no cloud is configured for this service ([cloud] in its configuration)";
    Problem { reason: Reason::CloudRefuses, cause: cause.to_owned(), transient: false }
}

/// Converts an error of the cloud into a problem of the node's work.
pub(crate) fn problem(error: &CloudError) -> Problem {
    let transient = error.is_transient() || error.is_outcome_unknown();
    let reason = if transient { Reason::CloudUnreachable } else { Reason::CloudRefuses };
    Problem { reason, cause: chain(error), transient }
}

#[cfg(test)]
mod tests;
