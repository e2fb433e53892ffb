//! The query of a list: its page, its sort key, and the filters that the table of fields declares.

use baremetal_core::Page;
use openstack_api::{ApiError, Direction, ListRequest, Microversion, Paging, Query, flag};

use crate::field::{DetailLevel, Field, FieldSet, RequestPart, Resource};
use crate::filter::{By, Filter};
use crate::microversion as since;

fn filters<R: Resource>() -> impl Iterator<Item = &'static Filter<R::List>> {
    R::FIELDS.iter().filter_map(|field| field.filter.as_ref()).chain(R::FILTERS)
}

/// The parameters that Ironic's links repeat as booleans of Python.
const FLAGS: [&str; 4] = ["detail", "associated", "maintenance", "retired"];

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

/// Orders the query for the link to the next page as Ironic does: the order, the filters, and the fields that the list shows by default.
pub(crate) fn linked<R: Resource>(request: ListRequest, level: DetailLevel) -> ListRequest {
    let mut rest = request.query;
    let mut pairs = Vec::new();
    for (name, usual) in [("sort_key", "id"), ("sort_dir", "asc")] {
        let value = rest.take(name).unwrap_or_else(|| usual.to_owned());
        pairs.push((name.to_owned(), value));
    }
    let fields = rest.take("fields");
    let is_true = |value: &str| flag("", value) == Ok(true);
    let has_detail = rest.pairs.iter().any(|(name, value)| name == "detail" && is_true(value));
    for (name, value) in rest.pairs {
        let is_flag = FLAGS.contains(&name.as_str()) && is_true(&value);
        pairs.push((name, if is_flag { "True".to_owned() } else { value }));
    }
    // Earlier versions do not know the parameter.
    let is_brief = level == DetailLevel::Brief && !has_detail && request.asked.has(since::FIELDS);
    let usual = || is_brief.then(FieldSet::<R>::brief_names).flatten();
    pairs.extend(fields.or_else(usual).map(|fields| ("fields".to_owned(), fields)));
    ListRequest { query: Query { pairs }, ..request }
}

fn sort<R: Resource>(key: Option<&str>, asked: Microversion) -> Result<R::Sort, ApiError> {
    // Ironic sorts by its numeric ids by default, which follow the order of creation.
    let Some(key) = key.filter(|key| *key != "id") else { return Ok(R::Sort::default()) };
    let field = Field::<R>::find(key);
    if let Some(field) = field {
        field.need(RequestPart::SortKey, asked)?;
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

    use baremetal_core::{
        Allocation, Chassis, DeployTemplate, InspectionRule, Node, Port, PortGroup, Runbook,
        Stored, VolumeConnector, VolumeTarget,
    };

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
        check::<Stored<Chassis>>();
        check::<Stored<PortGroup>>();
        check::<Stored<VolumeConnector>>();
        check::<Stored<VolumeTarget>>();
        check::<Stored<DeployTemplate>>();
        check::<Stored<Runbook>>();
        check::<Stored<InspectionRule>>();
    }
}
