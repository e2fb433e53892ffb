//! Hosts that are taken out, and what of ours is on one.

use std::collections::{BTreeMap, BTreeSet};

use cluster_core::{
    Cluster, ClusterUuid, Drain, DrainPhase, DrainRefused, DrainUuid, HostName, Known, MachineRef,
    Member, NodeGroup, Quorum, Vm, admit_drain,
};
use database::Extent::{AnyDecides, OneStatement};
use database::{Connection, StoreError};

use crate::Store;
use crate::table::{cluster, drain, ledger, node_group, vm};

/// Under which name those take turns that decide about drains.
const IN_TURN: &str = "drains";

/// What of ours some servers of the cloud are.
#[derive(Clone, Debug, Default)]
pub struct Belongings {
    /// What each server is, by its id in the cloud; others are somebody else's.
    pub servers: BTreeMap<String, Known>,
    /// The clusters whose machines are among them, with their node groups.
    pub clusters: Vec<(Cluster, Vec<NodeGroup>)>,
    /// The people's machines among them.
    pub vms: Vec<Vm>,
}

impl Store {
    /// Grants a drain, or one that is there already anew, unless by it and all that were granted before a cluster would lose its quorum.
    /// What it takes cannot have changed meanwhile: `Stale` where one of the clusters did.
    ///
    /// Of two that are asked for at once the second one knows of the first, however many programs work on the database.
    pub async fn grant_drain(
        &self,
        asked: &Drain,
    ) -> Result<Result<Drain, DrainRefused>, StoreError> {
        let asked = asked.clone();
        self.database.write(AnyDecides, |c| Box::pin(async move { grant(c, &asked).await })).await
    }

    /// Whether a drain would be granted as things are: the host's drain, where it is drained already. Nothing is written.
    pub async fn check_drain(
        &self,
        asked: &Drain,
    ) -> Result<Result<Option<Drain>, DrainRefused>, StoreError> {
        let asked = asked.clone();
        self.database
            .read(|c| {
                Box::pin(async move {
                    let before = drain::find(c, &asked.host).await?;
                    let again = before.as_ref().map(|old| old.asked_again(&asked));
                    let (weighed, _) = weigh(c, again.as_ref().unwrap_or(&asked)).await?;
                    Ok(weighed.map(|()| before))
                })
            })
            .await
    }

    /// Writes what became of a drain, if its version is still the one that was read. What it takes by now is weighed anew; what would break
    /// a quorum is written down all the same, for it is so, and the drain says why the host has to stay.
    pub async fn note_drain(&self, changed: &Drain) -> Result<Drain, StoreError> {
        let changed = changed.clone();
        self.database
            .write(AnyDecides, |c| {
                Box::pin(async move {
                    c.write_in_turn_as(IN_TURN).await?;
                    let before = drain::find(c, &changed.host).await?.ok_or(StoreError::Stale)?;
                    let (weighed, _) = weigh(c, &changed).await?;
                    drain::update(c, &changed.judged(weighed), &before.takes).await
                })
            })
            .await
    }

    /// Has a drain end; `None` where the host is not drained.
    pub async fn end_drain(&self, host: &HostName) -> Result<Option<Drain>, StoreError> {
        let host = host.clone();
        self.database
            .write(AnyDecides, |c| {
                Box::pin(async move {
                    c.write_in_turn_as(IN_TURN).await?;
                    let Some(found) = drain::find(c, &host).await? else { return Ok(None) };
                    let ending = Drain { phase: DrainPhase::Ending, ..found.clone() };
                    drain::update(c, &ending, &found.takes).await.map(Some)
                })
            })
            .await
    }

    /// Forgets a drain, if its version is still the one that was read.
    pub async fn forget_drain(&self, old: &Drain) -> Result<(), StoreError> {
        let old = old.clone();
        self.database
            .write(OneStatement, |c| Box::pin(async move { drain::delete(c, &old).await }))
            .await
    }

    /// The drain of a host.
    pub async fn find_drain(&self, host: &HostName) -> Result<Option<Drain>, StoreError> {
        let host = host.clone();
        self.database.read(|c| Box::pin(async move { drain::find(c, &host).await })).await
    }

    /// The drain of this id.
    pub async fn drain_of(&self, id: DrainUuid) -> Result<Option<Drain>, StoreError> {
        self.database
            .read(move |c| {
                Box::pin(async move {
                    match drain::host_of(c, id).await? {
                        Some(host) => drain::find(c, &host).await,
                        None => Ok(None),
                    }
                })
            })
            .await
    }

    /// All drains, for a conductor that starts.
    pub async fn drain_ids(&self) -> Result<Vec<DrainUuid>, StoreError> {
        self.database.read(|c| Box::pin(drain::ids(c))).await
    }

    /// All drains, by host.
    pub async fn drains(&self) -> Result<Vec<Drain>, StoreError> {
        self.database.read(|c| Box::pin(drain::all(c))).await
    }

    /// The machines of a cluster that drains take out.
    pub async fn drained_of(&self, of: ClusterUuid) -> Result<BTreeSet<MachineRef>, StoreError> {
        self.database.read(move |c| Box::pin(drain::of_cluster(c, of))).await
    }

    /// What of ours these servers of the cloud are, by their ids there.
    pub async fn belongings(&self, servers: &[String]) -> Result<Belongings, StoreError> {
        let servers = servers.to_vec();
        self.database.read(|c| Box::pin(async move { belongings(c, &servers).await })).await
    }
}

async fn grant(
    connection: &mut Connection,
    asked: &Drain,
) -> Result<Result<Drain, DrainRefused>, StoreError> {
    connection.write_in_turn_as(IN_TURN).await?;
    let before = drain::find(connection, &asked.host).await?;
    let wanted = before.as_ref().map_or_else(|| asked.clone(), |old| old.asked_again(asked));
    let (weighed, clusters) = weigh(connection, &wanted).await?;
    if let Err(refused) = weighed {
        return Ok(Err(refused));
    }
    // Who decides about one of these clusters by what it was like before, say about another of its machines, has to look again.
    for touched in &clusters {
        cluster::touch(connection, touched).await?;
    }
    match before {
        Some(before) => drain::update(connection, &wanted, &before.takes).await.map(Ok),
        None => {
            drain::insert(connection, &wanted).await?;
            Ok(Ok(wanted))
        }
    }
}

/// Whether a drain can be granted as things are, and the clusters of whose machines it takes some.
async fn weigh(
    connection: &mut Connection,
    wanted: &Drain,
) -> Result<(Result<(), DrainRefused>, Vec<Cluster>), StoreError> {
    let ids: BTreeSet<ClusterUuid> = wanted.takes.iter().map(|member| member.cluster).collect();
    let listed: Vec<ClusterUuid> = ids.iter().copied().collect();
    let clusters = cluster::some(connection, &listed).await?;
    let groups = node_group::of_each(connection, &listed).await?;
    let others = drain::takes(connection, Some(&ids)).await?;
    let none = Vec::new();
    let quorums: Vec<Quorum> = clusters
        .iter()
        .map(|cluster| Quorum::of(cluster, groups.get(&cluster.id).unwrap_or(&none)))
        .collect();
    let weighed = admit_drain(&wanted.host, &wanted.takes, &wanted.forced, &others, &quorums);
    Ok((weighed, clusters))
}

async fn belongings(
    connection: &mut Connection,
    servers: &[String],
) -> Result<Belongings, StoreError> {
    let found = ledger::servers(connection, servers).await?;
    let (mut clusters, mut vms) = (BTreeSet::new(), BTreeSet::new());
    for what in found.values() {
        match what {
            Known::Member(Member { cluster, .. }) => drop(clusters.insert(*cluster)),
            Known::Vm(vm) => drop(vms.insert(*vm)),
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
    Ok(Belongings {
        servers: found,
        clusters: clusters.collect(),
        vms: vm::some(connection, &vms).await?,
    })
}
