//! Limits, and the use that counts towards them.

use cluster_core::{
    Amounts, Cluster, DefaultLimits, LimitChanges, Limits, NodeGroup, QuotaRefused, QuotaScope,
    QuotaUsage,
};
use database::WriteKind::AnyStatementCanFail;
use database::{Result, reading, writing};
use jiff::Timestamp;

use super::allowance::{self, QuotaDifference};
use crate::Store;
use crate::table::{grant, quota};

impl Store {
    /// Returns the use and the limits of a project or a person; `defaults` apply to resources for which an administrator set no limit.
    pub async fn account(
        &self,
        whose: &QuotaScope,
        defaults: &DefaultLimits,
    ) -> Result<QuotaUsage> {
        let (whose, defaults) = (whose.clone(), defaults.clone());
        reading!(self.database, |c| allowance::account(c, whose, &defaults).await)
    }

    /// Returns why limits refuse a new cluster now; `None` when they allow it. Writes nothing.
    pub async fn quota_refusal(
        &self,
        new: &Cluster,
        groups: &[NodeGroup],
        defaults: &DefaultLimits,
    ) -> Result<Option<QuotaRefused>> {
        let (new, defaults, asked) =
            (new.clone(), defaults.clone(), QuotaDifference::of_new(new, groups));
        reading!(self.database, |c| {
            allowance::refusal(c, (&new, new.user.as_str()), &asked, &defaults).await
        })
    }

    /// Returns why limits refuse that the user `by` makes a cluster use `more` now; `None` when they allow it. Writes nothing.
    pub async fn growth_refusal(
        &self,
        (of, by): (&Cluster, &str),
        (more, is_measured): (Amounts, bool),
        defaults: &DefaultLimits,
    ) -> Result<Option<QuotaRefused>> {
        let (of, by, defaults) = (of.clone(), by.to_owned(), defaults.clone());
        reading!(self.database, |c| {
            let asked = QuotaDifference::of_growth(more, is_measured);
            allowance::refusal(c, (&of, by.as_str()), &asked, &defaults).await
        })
    }

    /// Changes some limits of `whose`. All others stay, including those that another caller changes at the same time.
    pub async fn change_limits(
        &self,
        whose: &QuotaScope,
        changes: &LimitChanges,
        now: Timestamp,
    ) -> Result<()> {
        let (QuotaScope { project, person }, changes) = (whose.clone(), changes.clone());
        writing!(self.database, AnyStatementCanFail, |c| {
            c.lock_name(&project).await?;
            for (resource, limit) in &changes.0 {
                let new = (*resource, *limit);
                match &person {
                    None => quota::change(c, &project, new, now).await?,
                    Some(person) => grant::change(c, (&project, person), new, now).await?,
                }
            }
            Ok(())
        })
    }

    /// Replaces all limits of `whose`.
    pub async fn set_limits(
        &self,
        whose: &QuotaScope,
        limits: &Limits,
        now: Timestamp,
    ) -> Result<()> {
        let (QuotaScope { project, person }, limits) = (whose.clone(), limits.clone());
        writing!(self.database, AnyStatementCanFail, |c| {
            c.lock_name(&project).await?;
            match &person {
                None => quota::set(c, &project, &limits, now).await,
                Some(person) => grant::set(c, (&project, person), &limits, now).await,
            }
        })
    }
}
