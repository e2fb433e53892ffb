//! Drains of hosts, and the cluster members and VMs on a host.

use std::collections::{BTreeMap, BTreeSet};

use cluster_core::{
    Cluster, ClusterUuid, Drain, DrainPhase, DrainRefused, DrainUuid, EtcdQuorum, HostName, Member,
    MemberName, NodeGroup, OwnServer, Vm, admit_drain,
};
use database::WriteKind::{AnyStatementCanFail, OneStatement};
use database::{Connection, Result, StoreError, reading, writing};

use super::admission::Admission;
use crate::Store;
use crate::refusal::DrainGrantError;
use crate::table::{cluster, drain, ledger, node_group, vm};

/// The name of the lock that every writer of drains takes.
const IN_TURN: &str = "drains";

/// The cluster members and VMs that some servers of the cloud are.
#[derive(Clone, Debug, Default)]
pub struct ServerOwners {
    /// The member or VM of each server, by the server's id in the cloud. Servers of other owners are missing.
    pub servers: BTreeMap<String, OwnServer>,
    /// The clusters of these members, with their node groups.
    pub clusters: Vec<(Cluster, Vec<NodeGroup>)>,
    pub vms: Vec<Vm>,
}

impl Store {
    /// Records a new drain, or a second request for one, unless a cluster would lose its quorum by it and the drains before.
    ///
    /// Of two requests at the same time the second one sees the first, even when two processes work on the database. `Stale` when one of
    /// the clusters changed since it was read.
    pub async fn grant_drain(&self, asked: &Drain) -> Result<Drain, DrainGrantError> {
        let asked = asked.clone();
        let granted = writing!(self.database, AnyStatementCanFail, |c| grant(c, &asked).await)?;
        granted.granted()
    }

    /// Checks whether a drain would be granted now. Returns the existing drain of the host, if there is one. Writes nothing.
    pub async fn check_drain(&self, asked: &Drain) -> Result<Option<Drain>, DrainGrantError> {
        let asked = asked.clone();
        let (weighed, before) = reading!(self.database, |c| {
            let before = drain::find(c, &asked.host).await?;
            let again = before.as_ref().map(|old| old.asked_again(&asked));
            let (weighed, _) = check_quorum(c, again.as_ref().unwrap_or(&asked)).await?;
            Ok((weighed, before))
        })?;
        weighed?;
        Ok(before)
    }

    /// Writes the progress of a drain, if its version is still the one that was read.
    ///
    /// The quorum check is repeated with the members that are on the host now. A result that breaks a quorum is written too, because the
    /// members are there; the drain then says why the host must not be switched off. `Stale` also when a cluster of a new member changed.
    pub async fn update_drain(&self, changed: &Drain) -> Result<Drain> {
        let changed = changed.clone();
        writing!(self.database, AnyStatementCanFail, |c| {
            c.lock_name(IN_TURN).await?;
            let before = drain::find(c, &changed.host).await?.ok_or(StoreError::Stale)?;
            let (weighed, clusters) = check_quorum(c, &changed).await?;
            let came: BTreeSet<ClusterUuid> =
                changed.takes.difference(&before.takes).map(|member| member.cluster).collect();
            for touched in &clusters {
                // As for a grant.
                if came.contains(&touched.id) {
                    cluster::touch(c, touched).await?;
                }
            }
            let weighed = changed.with_admission(weighed, &before.takes);
            drain::update(c, &weighed, &before.takes).await
        })
    }

    /// Sets a drain to ending; `None` when the host is not drained.
    pub async fn end_drain(&self, host: &HostName) -> Result<Option<Drain>> {
        let host = host.clone();
        writing!(self.database, AnyStatementCanFail, |c| {
            c.lock_name(IN_TURN).await?;
            let Some(found) = drain::find(c, &host).await? else { return Ok(None) };
            let ending = Drain { phase: DrainPhase::Ending, ..found.clone() };
            drain::update(c, &ending, &found.takes).await.map(Some)
        })
    }

    /// Deletes a drain, if its version is still the one that was read.
    pub async fn forget_drain(&self, old: &Drain) -> Result<()> {
        let old = old.clone();
        writing!(self.database, OneStatement, |c| drain::delete(c, &old).await)
    }

    /// Returns the drain of a host.
    pub async fn find_drain(&self, host: &HostName) -> Result<Option<Drain>> {
        let host = host.clone();
        reading!(self.database, |c| drain::find(c, &host).await)
    }

    /// Returns the drain with this id.
    pub async fn drain_of(&self, id: DrainUuid) -> Result<Option<Drain>> {
        reading!(self.database, |c| match drain::host_of(c, id).await? {
            Some(host) => drain::find(c, &host).await,
            None => Ok(None),
        })
    }

    /// Returns the ids of all drains, with which a conductor starts.
    pub async fn drain_ids(&self) -> Result<Vec<DrainUuid>> {
        reading!(self.database, |c| drain::ids(c).await)
    }

    /// Returns all drains, sorted by host.
    pub async fn drains(&self) -> Result<Vec<Drain>> {
        reading!(self.database, |c| drain::all(c).await)
    }

    /// Returns the members of a cluster that drains take out.
    pub async fn drained_of(&self, of: ClusterUuid) -> Result<BTreeSet<MemberName>> {
        reading!(self.database, |c| drain::of_cluster(c, of).await)
    }

    /// Returns the cluster members and VMs that these servers are.
    pub async fn server_owners(&self, servers: &[String]) -> Result<ServerOwners> {
        let servers = servers.to_vec();
        reading!(self.database, |c| server_owners(c, &servers).await)
    }
}

async fn grant(
    connection: &mut Connection,
    asked: &Drain,
) -> Result<Admission<Drain, DrainRefused>> {
    connection.lock_name(IN_TURN).await?;
    let before = drain::find(connection, &asked.host).await?;
    let wanted = before.as_ref().map_or_else(|| asked.clone(), |old| old.asked_again(asked));
    let (weighed, clusters) = check_quorum(connection, &wanted).await?;
    if let Err(refused) = weighed {
        return Ok(Admission::Refused(refused));
    }
    // The new version makes stale any decision that was taken on the clusters as they were before, such as the replacement of another
    // member.
    for touched in &clusters {
        cluster::touch(connection, touched).await?;
    }
    let granted = match before {
        Some(before) => drain::update(connection, &wanted, &before.takes).await?,
        None => {
            drain::insert(connection, &wanted).await?;
            wanted
        }
    };
    Ok(Admission::Granted(granted))
}

/// Runs the quorum check. Returns its result and the clusters with members on the host.
async fn check_quorum(
    connection: &mut Connection,
    wanted: &Drain,
) -> Result<(Result<(), DrainRefused>, Vec<Cluster>)> {
    let ids: BTreeSet<ClusterUuid> = wanted.takes.iter().map(|member| member.cluster).collect();
    let listed: Vec<ClusterUuid> = ids.iter().copied().collect();
    let clusters = cluster::some(connection, &listed).await?;
    let groups = node_group::of_each(connection, &listed).await?;
    let others = drain::takes(connection, Some(&ids)).await?;
    let none = Vec::new();
    let quorums: Vec<EtcdQuorum> = clusters
        .iter()
        .map(|cluster| EtcdQuorum::of(cluster, groups.get(&cluster.id).unwrap_or(&none)))
        .collect();
    let weighed = admit_drain(&wanted.host, &wanted.takes, &wanted.forced, &others, &quorums);
    Ok((weighed, clusters))
}

async fn server_owners(connection: &mut Connection, servers: &[String]) -> Result<ServerOwners> {
    let found = ledger::servers(connection, servers).await?;
    let (mut clusters, mut vms) = (BTreeSet::new(), BTreeSet::new());
    for what in found.values() {
        match what {
            OwnServer::Member(Member { cluster, .. }) => drop(clusters.insert(*cluster)),
            OwnServer::Vm(vm) => drop(vms.insert(*vm)),
        }
    }
    let clusters: Vec<ClusterUuid> = clusters.into_iter().collect();
    let vms: Vec<_> = vms.into_iter().collect();
    let mut groups = node_group::of_each(connection, &clusters).await?;
    let clusters = cluster::some(connection, &clusters).await?;
    let clusters = clusters.into_iter().map(|cluster| {
        let groups = groups.remove(&cluster.id).unwrap_or_default();
        (cluster, groups)
    });
    Ok(ServerOwners {
        servers: found,
        clusters: clusters.collect(),
        vms: vm::some(connection, &vms).await?,
    })
}
