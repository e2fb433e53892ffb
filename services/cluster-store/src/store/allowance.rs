//! The check of limits, and the count of their use. The transaction that adds a use also counts it.

use std::collections::BTreeMap;

use cluster_core::{
    Account, Amounts, Cluster, ClusterSpec, Defaults, Denial, Holding, Name, NodeGroup, Whose,
    admit, admit_lease, holdings,
};
use database::{Connection, StoreError};
use lease::Lease;

use crate::Change;
use crate::table::holding::{Held, Whom};
use crate::table::{cluster, grant, holding, node_group, quota};

pub(crate) async fn account(
    connection: &mut Connection,
    whose: Whose,
    defaults: &Defaults,
) -> Result<Account, StoreError> {
    let own = match &whose.person {
        None => quota::of(connection, &whose.project).await?,
        Some(person) => grant::of(connection, (&whose.project, person)).await?,
    };
    let used = holding::sum(connection, &whose).await?;
    Ok(Account { limits: own.or(defaults.of(&whose)), used, whose })
}

/// Checks whether the limits of the cluster's project and of the user `by` allow `asked`. The result holds until the end of the
/// transaction, if every writer of the project takes its turn.
pub(crate) async fn check(
    connection: &mut Connection,
    (of, by): (&Cluster, &str),
    asked: &Asked,
    defaults: &Defaults,
) -> Result<Result<(), Denial>, StoreError> {
    let accounts = accounts(connection, (&of.project, by), defaults).await?;
    Ok(admit(&accounts, &asked.more, asked.is_measured))
}

/// Checks whether limits allow `whom` to use `more`, and the lease, when it is new or changed.
pub(crate) async fn check_vm(
    connection: &mut Connection,
    whom: &Whom,
    (more, lease): (&Amounts, Option<Option<&Lease>>),
    defaults: &Defaults,
) -> Result<Result<(), Denial>, StoreError> {
    let accounts = accounts(connection, (&whom.project, &whom.person), defaults).await?;
    let lent = lease.map_or(Ok(()), |lease| admit_lease(&accounts, lease));
    Ok(lent.and_then(|()| admit(&accounts, more, true)))
}

/// Returns the accounts of a project and of a person in it.
async fn accounts(
    connection: &mut Connection,
    (project, person): (&str, &str),
    defaults: &Defaults,
) -> Result<[Account; 2], StoreError> {
    let project = Whose { project: project.to_owned(), person: None };
    let person = Whose { person: Some(person.to_owned()), ..project.clone() };
    Ok([
        account(connection, project, defaults).await?,
        account(connection, person, defaults).await?,
    ])
}

/// The difference between the quota use of a cluster as recorded and as requested.
#[derive(Default)]
pub(crate) struct Asked {
    /// Rows to write, each with the user who requested the part.
    saved: Vec<(Holding, String)>,
    /// The members that are to be deleted.
    leaving: Vec<String>,
    /// How much more the request uses.
    more: Amounts,
    /// Whether the sizes of all flavors are known.
    is_measured: bool,
}

impl Asked {
    /// Computes the difference of a new cluster.
    pub(crate) fn anew(cluster: &Cluster, groups: &[NodeGroup]) -> Self {
        let all = holdings(&ClusterSpec { cluster, groups });
        Asked::beyond(&BTreeMap::new(), all, &cluster.user)
    }

    /// Computes the difference of a change; empty when the change has no node group.
    pub(crate) async fn by(
        connection: &mut Connection,
        change: &Change,
    ) -> Result<Self, StoreError> {
        if change.added.is_empty() && change.changed.is_empty() && change.removed.is_empty() {
            return Ok(Asked { is_measured: true, ..Asked::default() });
        }
        let mut groups = node_group::of(connection, change.cluster.id).await?;
        groups.retain(|group| change.removed.iter().all(|removed| removed.id != group.id));
        for group in &mut groups {
            let changed = change.changed.iter().find(|changed| changed.id == group.id);
            group.clone_from(changed.unwrap_or(&group.clone()));
        }
        groups.extend(change.added.iter().cloned());
        let before = holding::of(connection, &change.cluster).await?;
        let spec = ClusterSpec { cluster: &change.cluster, groups: &groups };
        let mut asked = Asked::beyond(&before, holdings(&spec), change.by());
        if change.by.is_none() {
            asked.inherit(&before);
        }
        Ok(asked)
    }

    fn beyond(before: &BTreeMap<String, Held>, now: Vec<Holding>, by: &str) -> Self {
        let named: BTreeMap<String, Holding> =
            now.into_iter().map(|holding| (holding::name(&holding), holding)).collect();
        let gone =
            before.iter().filter(|(name, held)| !held.is_leaving && !named.contains_key(*name));
        let leaving = gone.map(|(name, _)| name.clone()).collect();
        let mut asked = Asked { leaving, is_measured: true, ..Asked::default() };
        for (name, holding) in named {
            let had = before.get(&name);
            // A part that exists keeps the amounts of its first request.
            if had.is_some_and(|had| {
                !had.is_leaving && had.holding.is_measured >= holding.is_measured
            }) {
                continue;
            }
            let before = had.map(|had| had.holding.amounts).unwrap_or_default();
            asked.more += &holding.amounts.beyond(&before);
            asked.is_measured &= holding.is_measured;
            let is_kept = had.filter(|had| !had.is_leaving);
            let person = is_kept.map_or(by, |had| had.person.as_str()).to_owned();
            asked.saved.push((holding, person));
        }
        asked
    }

    /// Gives members that repair adds to the users whose members they replace, because nobody requested them.
    fn inherit(&mut self, before: &BTreeMap<String, Held>) {
        let mut gone: BTreeMap<Option<Name>, Vec<&str>> = BTreeMap::new();
        let group = |holding: &Holding| holding.machine.as_ref().map(|it| it.group.clone());
        for held in self.leaving.iter().filter_map(|name| before.get(name)) {
            gone.entry(group(&held.holding)).or_default().push(&held.person);
        }
        for (holding, person) in &mut self.saved {
            if let Some(heir) = gone.get_mut(&group(holding)).and_then(Vec::pop) {
                heir.clone_into(person);
            }
        }
    }

    pub(crate) async fn write(
        &self,
        connection: &mut Connection,
        cluster: &Cluster,
    ) -> Result<(), StoreError> {
        holding::save(connection, cluster, &self.saved).await?;
        holding::leave(connection, cluster, &self.leaving).await
    }
}

/// Writes the quota use of every cluster that has none yet: such clusters are older than the table.
pub(crate) async fn count_all(connection: &mut Connection) -> Result<(), StoreError> {
    connection.write_alone().await?;
    for cluster in cluster::uncounted(connection).await? {
        let groups = node_group::of(connection, cluster.id).await?;
        Asked::anew(&cluster, &groups).write(connection, &cluster).await?;
    }
    Ok(())
}
