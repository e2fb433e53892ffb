//! What is taken of limits, counted and written in the transaction that takes it.

use std::collections::BTreeMap;

use cluster_core::{
    Account, Amounts, Cluster, ClusterSpec, Defaults, Denial, Holding, LimitChanges, Limits, Name,
    NodeGroup, Whose, admit, admit_lease, holdings,
};
use database::Extent::AnyDecides;
use database::{Connection, StoreError};
use jiff::Timestamp;
use lease::Lease;

use crate::table::holding::{Held, Whom};
use crate::table::{cluster, grant, holding, node_group, quota};
use crate::{Change, Store};

impl Store {
    /// What `whose` is, and how much of it may be; `defaults` hold where nobody set a limit.
    pub async fn account(&self, whose: &Whose, defaults: &Defaults) -> Result<Account, StoreError> {
        let (whose, defaults) = (whose.clone(), defaults.clone());
        self.database.read(|c| Box::pin(async move { account(c, whose, &defaults).await })).await
    }

    /// Whether a new cluster would be let in by `defaults` and by what was set, as things are now.
    pub async fn may_have(
        &self,
        new: &Cluster,
        groups: &[NodeGroup],
        defaults: &Defaults,
    ) -> Result<Result<(), Denial>, StoreError> {
        let (new, defaults, asked) = (new.clone(), defaults.clone(), Asked::anew(new, groups));
        self.database
            .read(|c| {
                Box::pin(
                    async move { check(c, (&new, new.user.as_str()), &asked, &defaults).await },
                )
            })
            .await
    }

    /// Changes some limits of `whose`; the others stay as they are, also those that somebody else changes at the same time.
    pub async fn change_limits(
        &self,
        whose: &Whose,
        changes: &LimitChanges,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (Whose { project, person }, changes) = (whose.clone(), changes.clone());
        self.database
            .write(AnyDecides, move |c| {
                Box::pin(async move {
                    c.write_in_turn_as(&project).await?;
                    for (resource, limit) in &changes.0 {
                        let new = (*resource, *limit);
                        match &person {
                            None => quota::change(c, &project, new, now).await?,
                            Some(person) => grant::change(c, (&project, person), new, now).await?,
                        }
                    }
                    Ok(())
                })
            })
            .await
    }

    /// Sets the limits of `whose`, in place of all that were set.
    pub async fn set_limits(
        &self,
        whose: &Whose,
        limits: &Limits,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (Whose { project, person }, limits) = (whose.clone(), limits.clone());
        self.database
            .write(AnyDecides, move |c| {
                Box::pin(async move {
                    c.write_in_turn_as(&project).await?;
                    match &person {
                        None => quota::set(c, &project, &limits, now).await,
                        Some(person) => grant::set(c, (&project, person), &limits, now).await,
                    }
                })
            })
            .await
    }
}

async fn account(
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

/// Whether `asked` may be had by the project of `of` and by who asks. Where nobody else writes in the project's turn, that holds until
/// the transaction's end.
pub(crate) async fn check(
    connection: &mut Connection,
    (of, by): (&Cluster, &str),
    asked: &Asked,
    defaults: &Defaults,
) -> Result<Result<(), Denial>, StoreError> {
    let accounts = accounts(connection, (&of.project, by), defaults).await?;
    Ok(admit(&accounts, &asked.more, asked.is_measured))
}

/// Whether so much more may be had by `whom`, and be lent so, where it is lent anew.
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

/// What a project, and a person in it, have and may have.
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

/// What a cluster is to take otherwise than it does.
#[derive(Default)]
pub(crate) struct Asked {
    /// What has to be written, and whose it is.
    saved: Vec<(Holding, String)>,
    /// The machines that are to go.
    leaving: Vec<String>,
    /// How much more it is.
    more: Amounts,
    /// Whether all of that is known.
    is_measured: bool,
}

impl Asked {
    /// By a new cluster.
    pub(crate) fn anew(cluster: &Cluster, groups: &[NodeGroup]) -> Self {
        let all = holdings(&ClusterSpec { cluster, groups });
        Asked::beyond(&BTreeMap::new(), all, &cluster.user)
    }

    /// By a change: nothing, where it touches no node group.
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
            // What is there stays as it was when it was asked for.
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

    /// Machines that come for others of their node group, which nobody asked for, are of who had those.
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

    /// Writes it.
    pub(crate) async fn write(
        &self,
        connection: &mut Connection,
        cluster: &Cluster,
    ) -> Result<(), StoreError> {
        holding::save(connection, cluster, &self.saved).await?;
        holding::leave(connection, cluster, &self.leaving).await
    }
}

/// Counts the clusters of which that was never done.
pub(crate) async fn count_all(connection: &mut Connection) -> Result<(), StoreError> {
    connection.write_alone().await?;
    for cluster in cluster::uncounted(connection).await? {
        let groups = node_group::of(connection, cluster.id).await?;
        Asked::anew(&cluster, &groups).write(connection, &cluster).await?;
    }
    Ok(())
}
