//! Limits, and the use that counts towards them.

use cluster_core::{Account, Cluster, Defaults, Denial, LimitChanges, Limits, NodeGroup, Whose};
use database::Extent::AnyDecides;
use database::StoreError;
use jiff::Timestamp;

use super::allowance::{self, Asked};
use crate::Store;
use crate::table::{grant, quota};

impl Store {
    /// Returns the use and the limits of a project or a person; `defaults` apply to resources for which an administrator set no limit.
    pub async fn account(&self, whose: &Whose, defaults: &Defaults) -> Result<Account, StoreError> {
        let (whose, defaults) = (whose.clone(), defaults.clone());
        self.database
            .read(|c| Box::pin(async move { allowance::account(c, whose, &defaults).await }))
            .await
    }

    /// Checks whether limits allow a new cluster now. Writes nothing.
    pub async fn may_have(
        &self,
        new: &Cluster,
        groups: &[NodeGroup],
        defaults: &Defaults,
    ) -> Result<Result<(), Denial>, StoreError> {
        let (new, defaults, asked) = (new.clone(), defaults.clone(), Asked::anew(new, groups));
        self.database
            .read(|c| {
                Box::pin(async move {
                    allowance::check(c, (&new, new.user.as_str()), &asked, &defaults).await
                })
            })
            .await
    }

    /// Changes some limits of `whose`. All others stay, including those that another caller changes at the same time.
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

    /// Replaces all limits of `whose`.
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
