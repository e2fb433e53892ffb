//! The query parameters of a list, as the table of fields declares them.

use std::fmt::Display;
use std::str::FromStr;

use baremetal_core::Page;
use newtype_uuid::GenericUuid;
use openstack_api::{ApiError, Direction, Microversion, Paging, Query, flag};
use uuid::Uuid;

use crate::field::{Field, Resource};

/// A query parameter that narrows a list.
pub(crate) struct Filter<R: Resource> {
    pub(crate) name: &'static str,
    /// The microversion that introduced the filter.
    pub(crate) since: Microversion,
    pub(crate) narrow: Narrow<R>,
}

/// Narrows the list to the resources with the value that the client gave.
pub(crate) type Narrow<R> = fn(&mut <R as Resource>::List, By<'_>) -> Result<(), ApiError>;

/// The value of a filter, as the client sent it.
#[derive(Clone, Copy)]
pub(crate) struct By<'a> {
    pub(crate) name: &'static str,
    pub(crate) value: &'a str,
}

impl By<'_> {
    pub(crate) fn text(self) -> Option<String> {
        Some(self.value.to_owned())
    }

    pub(crate) fn flag(self) -> Result<Option<bool>, ApiError> {
        flag(self.name, self.value).map(Some)
    }

    pub(crate) fn id<T: GenericUuid>(self) -> Result<Option<T>, ApiError> {
        let parsed = Uuid::parse_str(self.value).map_err(|_| self.refuse("must be a UUID"))?;
        Ok(Some(T::from_untyped_uuid(parsed)))
    }

    pub(crate) fn parsed<T: FromStr<Err: Display>>(self) -> Result<Option<T>, ApiError> {
        self.value.parse().map(Some).map_err(|why| self.refuse(why))
    }

    pub(crate) fn refuse(self, problem: impl Display) -> ApiError {
        ApiError::bad_field(self.name, problem)
    }
}

fn filters<R: Resource>() -> impl Iterator<Item = &'static Filter<R>> {
    R::FIELDS.iter().filter_map(|field| field.filter.as_ref()).chain(R::FILTERS)
}

/// The parameters that select a page, and the fields that it shows.
pub(crate) const PAGING: [&str; 5] = ["limit", "marker", "sort_key", "sort_dir", "fields"];

/// The query parameters that narrow a list of this resource.
pub(crate) fn names<R: Resource>() -> impl Iterator<Item = &'static str> {
    filters::<R>().map(|filter| filter.name)
}

/// Parses the query of a list from which the parameters that choose fields are removed.
pub(crate) fn parse<R: Resource>(
    mut query: Query,
    asked: Microversion,
) -> Result<(R::List, Page<R::Sort>), ApiError> {
    let paging = Paging::take(&mut query)?;
    let page = Page {
        limit: paging.limit,
        marker: paging.marker,
        sort: sort::<R>(paging.sort_key.as_deref(), asked)?,
        descending: paging.direction == Direction::Descending,
    };
    let mut list = R::List::default();
    for filter in filters::<R>() {
        if let Some(value) = query.take(filter.name) {
            asked.need(filter.since, filter.name)?;
            (filter.narrow)(&mut list, By { name: filter.name, value: &value })?;
        }
    }
    query.finish()?;
    Ok((list, page))
}

fn sort<R: Resource>(key: Option<&str>, asked: Microversion) -> Result<R::Sort, ApiError> {
    // Ironic sorts by its numeric ids by default, which follow the order of creation.
    let Some(key) = key.filter(|key| *key != "id") else { return Ok(R::Sort::default()) };
    let field = Field::<R>::find(key);
    if let Some(field) = field {
        asked.need(field.since, field.name)?;
    }
    field.and_then(|field| field.sort).ok_or_else(|| {
        let key: String = key.chars().take(64).collect();
        let problem = format!("{} cannot be sorted by {key:?}", R::COLLECTION);
        ApiError::bad_field("sort_key", problem)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use baremetal_core::{Allocation, Node, Port};

    use super::*;

    #[track_caller]
    fn check<R: Resource>() {
        let mut seen = BTreeSet::new();
        assert!(R::FIELDS.iter().all(|field| seen.insert(field.name)), "two fields of one name");
        let mut seen = BTreeSet::from_iter(PAGING);
        assert!(names::<R>().all(|name| seen.insert(name)), "two parameters of one name");
    }

    #[test]
    fn every_field_and_parameter_has_a_name_of_its_own() {
        check::<Node>();
        check::<Port>();
        check::<Allocation>();
    }
}
