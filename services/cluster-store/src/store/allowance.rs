//! The check of limits, and the count of their use. The transaction that adds a use also counts it.

use std::collections::BTreeMap;

use cluster_core::{
    Amounts, Cluster, ClusterSpec, DefaultLimits, Name, NodeGroup, QuotaRefused, QuotaScope,
    QuotaUsage, ResourceUse, check_lease_limit, check_quota, resource_uses,
};
use database::{Connection, Result};
use lease::Lease;

use crate::ClusterChange;
use crate::table::holding::{HoldingOwner, HoldingRow};
use crate::table::{cluster, grant, holding, node_group, quota};

pub(crate) async fn account(
    connection: &mut Connection,
    whose: QuotaScope,
    defaults: &DefaultLimits,
) -> Result<QuotaUsage> {
    let own = match &whose.person {
        None => quota::of(connection, &whose.project).await?,
        Some(person) => grant::of(connection, (&whose.project, person)).await?,
    };
    let used = holding::sum(connection, &whose).await?;
    Ok(QuotaUsage { limits: own.or(defaults.of(&whose)), used, whose })
}

/// Returns why the limits of the cluster's project or of the user `by` refuse `asked`; `None` when they allow it. The result holds until the
/// end of the transaction, if every writer of the project takes its turn.
pub(crate) async fn refusal(
    connection: &mut Connection,
    (of, by): (&Cluster, &str),
    asked: &QuotaDifference,
    defaults: &DefaultLimits,
) -> Result<Option<QuotaRefused>> {
    let accounts = accounts(connection, (&of.project, by), defaults).await?;
    Ok(check_quota(&accounts, &asked.more, asked.is_measured).err())
}

/// Returns why limits refuse that `whom` uses `more`, or the lease, when it is new or changed.
pub(crate) async fn vm_refusal(
    connection: &mut Connection,
    whom: &HoldingOwner,
    (more, lease): (&Amounts, Option<Option<&Lease>>),
    defaults: &DefaultLimits,
) -> Result<Option<QuotaRefused>> {
    let accounts = accounts(connection, (&whom.project, &whom.person), defaults).await?;
    let lent = lease.map_or(Ok(()), |lease| check_lease_limit(&accounts, lease));
    Ok(lent.and_then(|()| check_quota(&accounts, more, true)).err())
}

/// Returns the accounts of a project and of a person in it.
async fn accounts(
    connection: &mut Connection,
    (project, person): (&str, &str),
    defaults: &DefaultLimits,
) -> Result<[QuotaUsage; 2]> {
    let project = QuotaScope { project: project.to_owned(), person: None };
    let person = QuotaScope { person: Some(person.to_owned()), ..project.clone() };
    Ok([
        account(connection, project, defaults).await?,
        account(connection, person, defaults).await?,
    ])
}

/// The difference between the quota use of a cluster as recorded and as requested.
#[derive(Default)]
pub(crate) struct QuotaDifference {
    /// Rows to write, each with the user who requested the part.
    saved: Vec<(ResourceUse, String)>,
    /// The members that are to be deleted.
    leaving: Vec<String>,
    /// How much more the request uses.
    more: Amounts,
    /// Whether the sizes of all flavors are known.
    is_measured: bool,
}

impl QuotaDifference {
    /// Computes the difference of a new cluster.
    pub(crate) fn of_new(cluster: &Cluster, groups: &[NodeGroup]) -> Self {
        let all = resource_uses(&ClusterSpec { cluster, groups });
        QuotaDifference::between(&BTreeMap::new(), all, &cluster.user)
    }

    /// Makes the difference of members that are replaced by larger ones.
    pub(crate) fn of_growth(more: Amounts, is_measured: bool) -> Self {
        QuotaDifference { more, is_measured, ..QuotaDifference::default() }
    }

    /// Computes the difference of a change; empty when the change has no node group.
    pub(crate) async fn by(connection: &mut Connection, change: &ClusterChange) -> Result<Self> {
        if change.added.is_empty() && change.changed.is_empty() && change.removed.is_empty() {
            return Ok(QuotaDifference { is_measured: true, ..QuotaDifference::default() });
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
        let mut asked = QuotaDifference::between(&before, resource_uses(&spec), change.by());
        if change.by.is_none() {
            asked.inherit(&before);
        }
        Ok(asked)
    }

    fn between(before: &BTreeMap<String, HoldingRow>, now: Vec<ResourceUse>, by: &str) -> Self {
        let named: BTreeMap<String, ResourceUse> =
            now.into_iter().map(|holding| (holding::name(&holding), holding)).collect();
        let gone =
            before.iter().filter(|(name, held)| !held.is_leaving && !named.contains_key(*name));
        let leaving = gone.map(|(name, _)| name.clone()).collect();
        let mut asked =
            QuotaDifference { leaving, is_measured: true, ..QuotaDifference::default() };
        for (name, holding) in named {
            let had = before.get(&name);
            // A part that exists keeps the amounts of its first request.
            if had.is_some_and(|had| {
                !had.is_leaving && had.holding.is_measured >= holding.is_measured
            }) {
                continue;
            }
            let before = had.map(|had| had.holding.amounts).unwrap_or_default();
            asked.more += &holding.amounts.minus(&before);
            asked.is_measured &= holding.is_measured;
            let is_kept = had.filter(|had| !had.is_leaving);
            let person = is_kept.map_or(by, |had| had.person.as_str()).to_owned();
            asked.saved.push((holding, person));
        }
        asked
    }

    /// Gives members that repair adds to the users whose members they replace, because nobody requested them.
    fn inherit(&mut self, before: &BTreeMap<String, HoldingRow>) {
        let mut gone: BTreeMap<Option<Name>, Vec<&str>> = BTreeMap::new();
        let group = |holding: &ResourceUse| holding.machine.as_ref().map(|it| it.group.clone());
        for held in self.leaving.iter().filter_map(|name| before.get(name)) {
            gone.entry(group(&held.holding)).or_default().push(&held.person);
        }
        for (holding, person) in &mut self.saved {
            if let Some(heir) = gone.get_mut(&group(holding)).and_then(Vec::pop) {
                heir.clone_into(person);
            }
        }
    }

    pub(crate) async fn write(&self, connection: &mut Connection, cluster: &Cluster) -> Result<()> {
        holding::save(connection, cluster, &self.saved).await?;
        holding::mark_leaving(connection, cluster, &self.leaving).await
    }
}

/// Writes the quota use of every cluster that has none yet: such clusters are older than the table.
pub(crate) async fn count_all(connection: &mut Connection) -> Result<()> {
    connection.lock_bulk_writes().await?;
    for cluster in cluster::uncounted(connection).await? {
        let groups = node_group::of(connection, cluster.id).await?;
        QuotaDifference::of_new(&cluster, &groups).write(connection, &cluster).await?;
    }
    Ok(())
}
