//! What projects, and people in them, may have of what clusterd makes.

use std::collections::BTreeMap;
use std::fmt;

use lease::{Lease, Length};
use serde::{Deserialize, Serialize};

use crate::{Amounts, Resource};

/// How much there may be of one resource. Written as a number, -1 where there is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub enum Limit {
    /// So much, and no more.
    AtMost(u64),
    /// As much as anybody likes.
    Unlimited,
}

/// The number is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a limit is a number from 0, or -1 where there is none; not {0}")]
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

/// The limits that somebody set. Of what is not among them nobody said anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, Limit>")]
pub struct Limits(pub BTreeMap<Resource, Limit>);

/// There is nothing of that name of which there may be a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is nothing that is limited; that are {all}", all = Resource::ALL.map(Resource::as_str).join(", "))]
pub struct UnknownResource(String);

impl TryFrom<BTreeMap<String, Limit>> for Limits {
    type Error = UnknownResource;

    fn try_from(raw: BTreeMap<String, Limit>) -> Result<Self, UnknownResource> {
        let known = |(name, limit): (String, Limit)| match Resource::read(&name) {
            Some(resource) => Ok((resource, limit)),
            None => Err(UnknownResource(name.chars().take(64).collect())),
        };
        raw.into_iter().map(known).collect::<Result<_, _>>().map(Limits)
    }
}

/// Limits that are to change: `None` is the configured limit again. A resource that is not among them keeps its limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "BTreeMap<String, Option<Limit>>")]
pub struct LimitChanges(pub BTreeMap<Resource, Option<Limit>>);

impl TryFrom<BTreeMap<String, Option<Limit>>> for LimitChanges {
    type Error = UnknownResource;

    fn try_from(raw: BTreeMap<String, Option<Limit>>) -> Result<Self, UnknownResource> {
        let known = |(name, limit): (String, Option<Limit>)| match Resource::read(&name) {
            Some(resource) => Ok((resource, limit)),
            None => Err(UnknownResource(name.chars().take(64).collect())),
        };
        raw.into_iter().map(known).collect::<Result<_, _>>().map(LimitChanges)
    }
}

impl Limits {
    /// These, and `others` where these say nothing.
    pub fn or(&self, others: &Limits) -> Limits {
        let mut all = others.0.clone();
        all.extend(&self.0);
        Limits(all)
    }

    /// The limit of `resource`: there is none where nobody said so.
    pub fn of(&self, resource: Resource) -> Limit {
        self.0.get(&resource).copied().unwrap_or(Limit::Unlimited)
    }

    /// The longest that something may be lent, where that is limited: a limit of none is one of a second.
    pub fn longest_lease(&self) -> Option<Length> {
        match self.of(Resource::LeaseSeconds) {
            Limit::AtMost(seconds) => Length::from_secs(seconds.max(1)).ok(),
            Limit::Unlimited => None,
        }
    }
}

/// The limits of those for whom nobody set any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Defaults {
    /// Of a project.
    pub project: Limits,
    /// Of a person in a project.
    pub person: Limits,
}

impl Defaults {
    /// Those for such as `whose`.
    pub fn of(&self, whose: &Whose) -> &Limits {
        match whose.person {
            None => &self.project,
            Some(_) => &self.person,
        }
    }
}

/// Whose limits they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whose {
    /// The project.
    pub project: String,
    /// One person in it; all of them, where there is none.
    pub person: Option<String>,
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.person {
            None => write!(f, "project {}", self.project),
            Some(person) => write!(f, "user {person} in project {}", self.project),
        }
    }
}

/// What somebody has, and may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Who.
    pub whose: Whose,
    /// How much of each resource is theirs.
    pub used: Amounts,
    /// How much may be.
    pub limits: Limits,
}

/// Too much of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excess {
    /// Whose limit it is.
    pub whose: Whose,
    /// Of what.
    pub resource: Resource,
    /// How much they have.
    pub used: u64,
    /// How much more was asked for.
    pub asked: u64,
    /// How much they may have.
    pub limit: u64,
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Excess { whose, resource, used, asked, limit } = self;
        write!(f, "{resource}: {whose} uses {used} of {limit}, and {asked} more is asked for")
    }
}

/// Why something may not be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// It is too much.
    #[error("quota exceeded: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Exceeded(Vec<Excess>),
    /// Nobody knows how much of something it is that is limited.
    #[error("{whose} has a limit of {resource}, and nobody knows how much of that is asked for")]
    Unmeasured {
        /// Whose limit it is.
        whose: Whose,
        /// Of what.
        resource: Resource,
    },
    /// Nothing is lent to them for that long.
    #[error("{whose} may have nothing for longer than {longest}, and {} is asked for", .asked.map_or_else(|| "a lease without end".to_owned(), |it| it.to_string()))]
    Lease {
        /// Whose limit it is.
        whose: Whose,
        /// The longest lease.
        longest: Length,
        /// What is asked for; without end, where there is none.
        asked: Option<Length>,
    },
}

/// Whether `asked` may be had besides what is used, by all of `accounts`; `is_measured`, where it is known what flavors say of it.
///
/// # Errors
///
/// When a limit would be exceeded of which more is asked for. Who has more than they may have by now still may have less.
pub fn admit(accounts: &[Account], asked: &Amounts, is_measured: bool) -> Result<(), Denial> {
    let mut over = Vec::new();
    for Account { whose, used, limits } in accounts {
        for (resource, asked) in asked.each() {
            let Limit::AtMost(limit) = limits.of(resource) else { continue };
            let used = used[resource];
            if asked > 0 && used.saturating_add(asked) > limit {
                over.push(Excess { whose: whose.clone(), resource, used, asked, limit });
            }
        }
    }
    if !over.is_empty() {
        return Err(Denial::Exceeded(over));
    }
    for Account { whose, limits, .. } in accounts.iter().filter(|_| !is_measured) {
        let limited = |resource: &Resource| limits.of(*resource) != Limit::Unlimited;
        if let Some(resource) = Resource::summed().filter(|it| it.is_of_flavors()).find(limited) {
            return Err(Denial::Unmeasured { whose: whose.clone(), resource });
        }
    }
    Ok(())
}

/// Whether something may be lent so by all of `accounts`: until its end from when it was asked for.
///
/// # Errors
///
/// When that is longer than the longest lease of any of them.
pub fn admit_lease(accounts: &[Account], lease: Option<&Lease>) -> Result<(), Denial> {
    for Account { whose, limits, .. } in accounts {
        let Some(longest) = limits.longest_lease() else { continue };
        let lasts = lease.map(|it| it.until.duration_since(it.since));
        if lasts.is_some_and(|lasts| lasts <= longest.as_duration()) {
            continue;
        }
        let seconds = lasts.and_then(|it| u64::try_from(it.as_secs()).ok());
        let asked = seconds.and_then(|it| Length::from_secs(it).ok());
        return Err(Denial::Lease { whose: whose.clone(), longest, asked });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
