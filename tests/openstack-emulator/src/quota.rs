//! Quotas of projects: the table of a service's limits, and the functions that all services use on such a table.

use serde_json::{Value, json};

use crate::object::{Fields, Kind};
use crate::world::World;

/// A limit: the service's name, the kind of the counted objects if the limit counts objects of a project, and the default. -1 means unlimited.
pub(crate) type Limit = (&'static str, Option<Kind>, i64);

pub(crate) struct Quotas(pub(crate) &'static [Limit]);

/// A limit that a request would exceed.
pub(crate) struct Exceeded {
    pub(crate) name: &'static str,
    pub(crate) limit: i64,
    pub(crate) used: i64,
}

impl Quotas {
    fn find(&self, name: &str) -> Option<&Limit> {
        self.0.iter().find(|(known, ..)| *known == name)
    }

    /// The limit of a project. An empty project has the defaults.
    pub(crate) fn limit(&self, world: &World, project: &str, name: &str) -> i64 {
        world.quota(project, name, self.find(name).map_or(-1, |(.., default)| *default))
    }

    /// How many objects of a project a limit counts.
    pub(crate) fn count(&self, world: &World, project: &str, name: &str) -> i64 {
        let kind = self.find(name).and_then(|(_, kind, _)| *kind);
        let count = kind.map_or(0, |kind| world.store.count(kind, project));
        i64::try_from(count).unwrap_or(i64::MAX)
    }

    /// The limit for a kind, if `more` objects of the kind exceed it.
    pub(crate) fn exceeded(
        &self,
        world: &World,
        project: &str,
        kind: Kind,
        more: usize,
    ) -> Option<Exceeded> {
        let (name, ..) = *self.0.iter().find(|(_, counted, _)| *counted == Some(kind))?;
        let used = self.count(world, project, name);
        self.exceeded_by(world, project, name, used, i64::try_from(more).unwrap_or(i64::MAX))
    }

    /// The limit, if `more` in addition to `used` exceeds it.
    pub(crate) fn exceeded_by(
        &self,
        world: &World,
        project: &str,
        name: &'static str,
        used: i64,
        more: i64,
    ) -> Option<Exceeded> {
        let limit = self.limit(world, project, name);
        (limit >= 0 && used.saturating_add(more) > limit).then_some(Exceeded { name, limit, used })
    }

    /// A JSON object with one entry for each limit.
    pub(crate) fn each(&self, entry: impl Fn(&'static str) -> Value) -> Value {
        let entries = self.0.iter().map(|(name, ..)| ((*name).to_owned(), entry(name)));
        Value::Object(entries.collect())
    }

    pub(crate) fn limits(&self, world: &World, project: &str) -> Value {
        self.each(|name| json!(self.limit(world, project, name)))
    }

    /// The given limits as numbers. An error names the first one that is unknown or no number.
    pub(crate) fn parse(
        &self,
        given: Fields,
        ignored: &[&str],
    ) -> Result<Vec<(String, i64)>, String> {
        let given = given.into_iter().filter(|(name, _)| !ignored.contains(&name.as_str()));
        let read = |(name, value): (String, Value)| {
            let value = value.as_i64().or_else(|| value.as_str()?.parse().ok());
            match value.filter(|_| self.find(&name).is_some()) {
                Some(value) => Ok((name, value)),
                None => Err(name),
            }
        };
        given.map(read).collect()
    }

    /// Sets limits of a project.
    pub(crate) fn set(
        &self,
        world: &mut World,
        project: &str,
        limits: impl IntoIterator<Item = (String, i64)>,
    ) {
        let known = limits.into_iter().filter(|(name, _)| self.find(name).is_some());
        world.quotas.extend(known.map(|(name, limit)| ((project.to_owned(), name), limit)));
    }

    /// Gives a project the defaults again.
    pub(crate) fn reset(&self, world: &mut World, project: &str) {
        world.quotas.retain(|(of, name), _| of != project || self.find(name).is_none());
    }
}
