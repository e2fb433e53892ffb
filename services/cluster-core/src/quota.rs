//! Limits of projects and of persons in them, and the check of a request against them.

use std::collections::BTreeMap;
use std::fmt;

use lease::{Lease, Length};
use serde::{Deserialize, Serialize};

use crate::{Amounts, Resource};

/// The limit of one resource. In JSON a number, with -1 for unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub enum Limit {
    AtMost(u64),
    Unlimited,
}

/// The number is neither -1 nor a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a limit: write a number from 0, or -1 for unlimited")]
pub struct InvalidLimit(i64);

impl TryFrom<i64> for Limit {
    type Error = InvalidLimit;

    fn try_from(raw: i64) -> Result<Self, InvalidLimit> {
        match raw {
            -1 => Ok(Limit::Unlimited),
            _ => u64::try_from(raw).map(Limit::AtMost).map_err(|_| InvalidLimit(raw)),
        }
    }
}

impl From<Limit> for i64 {
    fn from(limit: Limit) -> i64 {
        match limit {
            Limit::AtMost(most) => i64::try_from(most).unwrap_or(i64::MAX),
            Limit::Unlimited => -1,
        }
    }
}

/// The limits that an administrator set. A resource that is missing has no limit here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, Limit>")]
pub struct Limits(pub BTreeMap<Resource, Limit>);

/// No resource has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a resource with a limit: use one of {all}", all = Resource::ALL.map(Resource::as_str).join(", "))]
pub struct UnknownResource(String);

impl TryFrom<BTreeMap<String, Limit>> for Limits {
    type Error = UnknownResource;

    fn try_from(raw: BTreeMap<String, Limit>) -> Result<Self, UnknownResource> {
        let known = |(name, limit): (String, Limit)| match Resource::find(&name) {
            Some(resource) => Ok((resource, limit)),
            None => Err(UnknownResource(name.chars().take(64).collect())),
        };
        raw.into_iter().map(known).collect::<Result<_, _>>().map(Limits)
    }
}

/// A change of limits: `None` removes a limit, so that the configured default applies again. A resource that is missing keeps its limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "BTreeMap<String, Option<Limit>>")]
pub struct LimitChanges(pub BTreeMap<Resource, Option<Limit>>);

impl TryFrom<BTreeMap<String, Option<Limit>>> for LimitChanges {
    type Error = UnknownResource;

    fn try_from(raw: BTreeMap<String, Option<Limit>>) -> Result<Self, UnknownResource> {
        let known = |(name, limit): (String, Option<Limit>)| match Resource::find(&name) {
            Some(resource) => Ok((resource, limit)),
            None => Err(UnknownResource(name.chars().take(64).collect())),
        };
        raw.into_iter().map(known).collect::<Result<_, _>>().map(LimitChanges)
    }
}

impl Limits {
    /// Returns these limits, with `others` for the resources that have none here.
    pub fn or(&self, others: &Limits) -> Limits {
        let mut all = others.0.clone();
        all.extend(&self.0);
        Limits(all)
    }

    /// Returns the limit of `resource`; unlimited when none was set.
    pub fn of(&self, resource: Resource) -> Limit {
        self.0.get(&resource).copied().unwrap_or(Limit::Unlimited)
    }

    /// Returns the longest allowed lease, if there is a limit. A limit of 0 counts as one second, the shortest lease.
    pub fn longest_lease(&self) -> Option<Length> {
        match self.of(Resource::LeaseSeconds) {
            Limit::AtMost(seconds) => Length::from_secs(seconds.max(1)).ok(),
            Limit::Unlimited => None,
        }
    }
}

/// The configured limits of projects and persons for which an administrator set none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefaultLimits {
    pub project: Limits,
    /// Of a person in a project.
    pub person: Limits,
}

impl DefaultLimits {
    /// Returns the defaults that apply to `whose`.
    pub fn of(&self, whose: &QuotaScope) -> &Limits {
        match whose.person {
            None => &self.project,
            Some(_) => &self.person,
        }
    }
}

/// The project, or the person in a project, that limits apply to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaScope {
    pub project: String,
    /// A user of the project; `None`: the whole project.
    pub person: Option<String>,
}

impl fmt::Display for QuotaScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.person {
            None => write!(f, "project {}", self.project),
            Some(person) => write!(f, "user {person} in project {}", self.project),
        }
    }
}

/// The use and the limits of a project or a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaUsage {
    pub whose: QuotaScope,
    /// The amount of each resource in use.
    pub used: Amounts,
    pub limits: Limits,
}

/// A limit that a request would exceed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitExceeded {
    pub whose: QuotaScope,
    pub resource: Resource,
    pub used: u64,
    /// How much more the request needs.
    pub asked: u64,
    pub limit: u64,
}

impl fmt::Display for LimitExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LimitExceeded { whose, resource, used, asked, limit } = self;
        write!(f, "{resource}: {whose} uses {used} of {limit}, and the request needs {asked} more")
    }
}

/// Why limits forbid a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuotaRefused {
    /// The request would exceed these limits.
    #[error("quota exceeded: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Exceeded(Vec<LimitExceeded>),
    /// A resource is limited, and the cloud did not say how much of it the flavor has.
    #[error(
        "{whose} has a limit of {resource}, and the cloud did not say how much of {resource} the request needs; try again"
    )]
    Unmeasured { whose: QuotaScope, resource: Resource },
    /// The lease is longer than the longest allowed one.
    #[error("{whose} may have leases of at most {longest}, and the request needs {}", .asked.map_or_else(|| "a lease without end".to_owned(), |it| it.to_string()))]
    Lease {
        whose: QuotaScope,
        longest: Length,
        /// `None`: a lease without end.
        asked: Option<Length>,
    },
}

/// Checks whether all of `accounts` have room for `asked`. `is_measured` says whether the sizes of the flavors are known.
///
/// # Errors
///
/// When a limit would be exceeded of a resource that the request needs. An account over a limit, because the limit was lowered, can still
/// use other resources.
pub fn check_quota(
    accounts: &[QuotaUsage],
    asked: &Amounts,
    is_measured: bool,
) -> Result<(), QuotaRefused> {
    let mut over = Vec::new();
    for QuotaUsage { whose, used, limits } in accounts {
        for (resource, asked) in asked.each() {
            let Limit::AtMost(limit) = limits.of(resource) else { continue };
            let used = used[resource];
            if asked > 0 && used.saturating_add(asked) > limit {
                over.push(LimitExceeded { whose: whose.clone(), resource, used, asked, limit });
            }
        }
    }
    if !over.is_empty() {
        return Err(QuotaRefused::Exceeded(over));
    }
    for QuotaUsage { whose, limits, .. } in accounts.iter().filter(|_| !is_measured) {
        let limited = |resource: &Resource| limits.of(*resource) != Limit::Unlimited;
        if let Some(resource) = Resource::summed().filter(|it| it.depends_on_flavor()).find(limited)
        {
            return Err(QuotaRefused::Unmeasured { whose: whose.clone(), resource });
        }
    }
    Ok(())
}

/// Checks whether the limits of all `accounts` allow this lease, from its request to its end.
///
/// # Errors
///
/// When the lease is longer than the longest allowed lease of an account.
pub fn check_lease_limit(
    accounts: &[QuotaUsage],
    lease: Option<&Lease>,
) -> Result<(), QuotaRefused> {
    for QuotaUsage { whose, limits, .. } in accounts {
        let Some(longest) = limits.longest_lease() else { continue };
        let lasts = lease.map(|it| it.until.duration_since(it.since));
        if lasts.is_some_and(|lasts| lasts <= longest.as_duration()) {
            continue;
        }
        let seconds = lasts.and_then(|it| u64::try_from(it.as_secs()).ok());
        let asked = seconds.and_then(|it| Length::from_secs(it).ok());
        return Err(QuotaRefused::Lease { whose: whose.clone(), longest, asked });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
