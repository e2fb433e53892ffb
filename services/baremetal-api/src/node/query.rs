//! The query parameters of a list of nodes.

use baremetal_core::{NodeFilter, NodeIdent, NodeSort, Page, State};
use openstack_api::{ApiError, Direction, Microversion, Paging, Query, flag};
use uuid::Uuid;

use super::Field;
use crate::field::{FieldSet, Fields};
use crate::microversion as since;

/// The query parameters of a list of nodes.
#[rustfmt::skip]
pub(crate) const KNOWN: [&str; 26] = ["chassis_uuid", "limit", "marker", "sort_key", "sort_dir", "fields", "detail", "instance_uuid", "associated", "maintenance",
    "provision_state", "driver", "resource_class", "conductor_group", "owner", "lessee", "project", "shard", "sharded",
    "retired", "description_contains", "include_children", "instance_name", "parent_node", "conductor", "fault"];

/// A requested list of nodes.
pub(crate) struct List {
    pub(crate) filter: NodeFilter,
    /// Only children of this node.
    pub(crate) parent: Option<NodeIdent>,
    /// Only nodes of this conductor.
    pub(crate) conductor: Option<String>,
    /// Only nodes with a fault. No node here ever has a fault, so the list is empty.
    pub(crate) faulty: bool,
    pub(crate) page: Page<NodeSort>,
    /// The fields to show of each node.
    pub(crate) shown: FieldSet<Field>,
}

/// How many fields of a node a list shows by default.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DetailLevel {
    /// For `/v1/nodes`.
    Brief,
    /// For `/v1/nodes/detail`.
    Detail,
}

/// The faults that the Bare Metal API knows.
const FAULTS: [&str; 4] =
    ["power failure", "clean failure", "rescue abort failure", "service failure"];

/// Parses the query of a list of nodes.
pub(crate) fn list(
    mut query: Query,
    extent: DetailLevel,
    asked: Microversion,
) -> Result<List, ApiError> {
    let shown = shown(&mut query, extent, asked)?;
    let paging = Paging::take(&mut query)?;
    let sort = sort(paging.sort_key.as_deref(), asked)?;
    let mut filter = NodeFilter::default();
    let parent = match query.take("parent_node") {
        None => None,
        Some(raw) => {
            asked.need(since::PARENT_NODE, "parent_node")?;
            Some(raw.parse().map_err(|why| ApiError::bad_field("parent_node", why))?)
        }
    };
    let conductor = query.take("conductor");
    if conductor.is_some() {
        asked.need(since::CONDUCTORS, "conductor")?;
    }
    let fault = query.take("fault");
    if let Some(raw) = &fault {
        asked.need(since::FAULT, "fault")?;
        if !FAULTS.contains(&raw.as_str()) {
            let problem = format!("must be one of: {}", FAULTS.join(", "));
            return Err(ApiError::bad_field("fault", problem));
        }
    }
    let mut unknown = Vec::new();
    for (name, value) in query.pairs {
        if !narrow(&mut filter, &name, &value, asked)? {
            unknown.push((name, value));
        }
    }
    Query { pairs: unknown }.finish()?;
    let page = Page {
        limit: paging.limit,
        marker: paging.marker,
        sort,
        descending: paging.direction == Direction::Descending,
    };
    Ok(List { filter, parent, conductor, faulty: fault.is_some(), page, shown })
}

/// The fields to show, as requested by `fields` and `detail`.
pub(crate) fn shown(
    query: &mut Query,
    extent: DetailLevel,
    asked: Microversion,
) -> Result<FieldSet<Field>, ApiError> {
    let detail = match query.take("detail") {
        None => false,
        Some(raw) => {
            asked.need(since::DETAIL_QUERY, "detail")?;
            flag("detail", &raw)?
        }
    };
    match query.take("fields") {
        Some(_) if detail || extent == DetailLevel::Detail => {
            Err(ApiError::bad_field("fields", "cannot be used together with detail"))
        }
        Some(raw) => {
            asked.need(since::FIELDS, "fields")?;
            FieldSet::named(&raw, asked)
        }
        None if detail || extent == DetailLevel::Detail => Ok(FieldSet::all(asked)),
        None => Ok(FieldSet::brief(asked)),
    }
}

/// Adds a filter parameter to `filter`; false if the parameter is unknown.
fn narrow(
    filter: &mut NodeFilter,
    name: &str,
    value: &str,
    asked: Microversion,
) -> Result<bool, ApiError> {
    let text = || Some(value.to_owned());
    let id = || Uuid::parse_str(value).map_err(|_| ApiError::bad_field(name, "must be a UUID"));
    let need = |came| asked.need(came, name);
    match name {
        "instance_uuid" => filter.instance_uuid = Some(id()?),
        "chassis_uuid" => filter.chassis = Some(id()?),
        "associated" => filter.associated = Some(flag(name, value)?),
        "maintenance" => filter.maintenance = Some(flag(name, value)?),
        "provision_state" => {
            need(since::STATE_FILTER)?;
            let state: State = value.parse().map_err(|why| ApiError::bad_field(name, why))?;
            filter.provision_state = Some(state);
        }
        "driver" => {
            need(since::DRIVER_FILTER)?;
            filter.driver = Some(value.parse().map_err(|why| ApiError::bad_field(name, why))?);
        }
        "resource_class" => {
            need(since::RESOURCE_CLASS)?;
            filter.resource_class = text();
        }
        "conductor_group" => {
            need(since::CONDUCTOR_GROUP)?;
            filter.conductor_group = Some(value.to_lowercase());
        }
        "owner" => {
            need(since::OWNER)?;
            filter.owner = text();
        }
        "lessee" => {
            need(since::LESSEE)?;
            filter.lessee = text();
        }
        "project" => {
            need(since::LESSEE)?;
            filter.project = text();
        }
        "shard" => {
            need(since::SHARD)?;
            filter.shard = value.split(',').map(str::to_owned).collect();
        }
        "sharded" => {
            need(since::SHARD)?;
            filter.sharded = Some(flag(name, value)?);
        }
        "retired" => {
            need(since::RETIRED)?;
            filter.retired = Some(flag(name, value)?);
        }
        "description_contains" => {
            need(since::DESCRIPTION)?;
            filter.description_contains = text();
        }
        "include_children" => {
            need(since::PARENT_NODE)?;
            filter.include_children = flag(name, value)?;
        }
        "instance_name" => {
            need(since::INSTANCE_NAME)?;
            filter.instance_name = text();
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn sort(key: Option<&str>, asked: Microversion) -> Result<NodeSort, ApiError> {
    let Some(key) = key else { return Ok(NodeSort::CreatedAt) };
    if let Some((_, row)) = Field::find(key) {
        asked.need(row.since, row.name)?;
    }
    Ok(match key {
        "uuid" => NodeSort::Id,
        // Ironic's default: its numeric ids follow the order of creation.
        "id" | "created_at" => NodeSort::CreatedAt,
        "name" => NodeSort::Name,
        "provision_state" => NodeSort::ProvisionState,
        "power_state" => NodeSort::PowerState,
        "driver" => NodeSort::Driver,
        "resource_class" => NodeSort::ResourceClass,
        "updated_at" => NodeSort::UpdatedAt,
        "provision_updated_at" => NodeSort::ProvisionUpdatedAt,
        "instance_uuid" => NodeSort::InstanceUuid,
        "maintenance" => NodeSort::Maintenance,
        "owner" => NodeSort::Owner,
        "lessee" => NodeSort::Lessee,
        "conductor_group" => NodeSort::ConductorGroup,
        _ => {
            let key: String = key.chars().take(64).collect();
            return Err(ApiError::bad_field(
                "sort_key",
                format!("nodes cannot be sorted by {key:?}"),
            ));
        }
    })
}
