//! The fields of a port, and the query parameters of a list of ports.

use baremetal_core::{NodeUuid, Port, PortFilter, PortSort, PortUuid, attribute};
use hardware::MacAddress;
use newtype_uuid::GenericUuid;
use openstack_api::{ApiError, Microversion};
use serde_json::Value;

use crate::field::{Field, Kind, Read, RequestPart, Resource};
use crate::filter::Filter;
use crate::microversion as since;
use crate::rule::SET_DRIVER;
use crate::shown::Shown;
use crate::value::{attached_vif, mac_address, name, strict_boolean, time, uuid};
use crate::write::put;

impl Resource for Port {
    const NAME: &'static str = "a port";
    const COLLECTION: &'static str = "ports";
    const FIELDS: &'static [Field<Port>] = FIELDS;
    const FILTERS: &'static [Filter<PortList>] = FILTERS;
    type List = PortList;
    type Sort = PortSort;
}

#[derive(Default)]
pub(crate) struct PortList {
    pub(crate) filter: PortFilter,
    /// Only ports of the node with this UUID or name.
    pub(crate) node: Option<String>,
    /// Only ports of the port group with this UUID or name.
    pub(crate) portgroup: Option<String>,
}

use Kind::{Boolean, Links, Object, Text};

const fn field(name: &'static str, minor: u16, kind: Kind, read: Read<Port>) -> Field<Port> {
    Field::new(name, minor, kind, read)
}

const fn shared(name: &'static str, minor: u16) -> Field<Port> {
    Field::shared(attribute(name), minor)
}

#[rustfmt::skip]
const FIELDS: &[Field<Port>] = &[
    field("uuid", 1, Text, |it, _| it.id.into())
        .create(|it, name, new| { it.id = uuid(name, new)?.map_or(it.id, PortUuid::from_untyped_uuid); Ok(()) })
        .brief()
        .sort(PortSort::Id),
    field("created_at", 1, Text, |it, _| it.created_at.into())
        .imported(|it, name, new| { it.created_at = time(name, new)?.unwrap_or(it.created_at); Ok(()) })
        .sort(PortSort::CreatedAt),
    field("updated_at", 1, Text, |it, _| it.updated_at.into())
        .imported(|it, name, new| put(&mut it.updated_at, time(name, new)))
        .sort(PortSort::UpdatedAt),
    field("address", 1, Text, |it, _| Shown::Address(it.address))
        .change(SET_DRIVER, |it, _, new| put(&mut it.address, address(new)))
        .required()
        .brief()
        .filter(|list, by| put(&mut list.filter.addresses, by.value.split(',').map(|raw| address(raw.trim().into())).collect()))
        .sort(PortSort::Address),
    field("node_uuid", 1, Text, |it, _| it.node.into())
        .create(|it, name, new| { it.node = uuid(name, new)?.map_or(it.node, NodeUuid::from_untyped_uuid); Ok(()) })
        .required()
        .filter(|list, by| put(&mut list.filter.node, by.id())),
    shared("extra", 1).change_shared(SET_DRIVER),
    field("internal_info", 18, Object, |it, _| Shown::internal(&it.vif))
        .imported(|it, name, new| put(&mut it.vif, attached_vif(name, new)))
        .unchecked_in(&[RequestPart::Fields]),
    field("local_link_connection", 19, Object, |it, look| if it.is_linked_to_vtep() && !knows_vtep(look.asked) { Shown::EMPTY } else { (&it.local_link_connection).into() })
        .change_object(SET_DRIVER, |it| &mut it.local_link_connection),
    shared("pxe_enabled", 19).change_shared(SET_DRIVER),
    field("portgroup_uuid", 24, Text, |it, _| it.portgroup.into())
        .change(SET_DRIVER, |it, name, new| put(&mut it.portgroup, uuid(name, new)))
        .removed_since(24),
    shared("physical_network", 34).change_shared(SET_DRIVER)
        .removed_since(34),
    shared("is_smartnic", 53).change_shared(SET_DRIVER),
    field("name", 88, Text, |it, _| (&it.name).into())
        .change(SET_DRIVER, |it, field, new| put(&mut it.name, name(field, new)))
        .unchecked_in(&[RequestPart::Patch]),
    shared("description", 97).change_shared(SET_DRIVER)
        .unchecked_in(&[RequestPart::Patch]),
    shared("vendor", 100).change_shared(SET_DRIVER)
        .unchecked_in(&[RequestPart::Patch]),
    shared("category", 101).change_shared(SET_DRIVER)
        .unchecked_in(&[RequestPart::Patch]),
    field("available_for_dynamic_portgroup", 111, Boolean, |it, _| it.available_for_dynamic_portgroup.into())
        .change(SET_DRIVER, |it, name, new| { it.available_for_dynamic_portgroup = strict_boolean(name, &new)?.unwrap_or(true); Ok(()) })
        .unchecked_in(&[RequestPart::Patch]),
    field("links", 1, Links, |it, look| look.links("ports", it.id, ""))
        .brief(),
];

#[rustfmt::skip]
const FILTERS: &[Filter<PortList>] = &[
    Filter { name: "node",      since: since::MINIMUM,          narrow: |list, by| put(&mut list.node, Ok(by.text())) },
    Filter { name: "shard",     since: since::SHARD,            narrow: |list, by| put(&mut list.filter.shards, Ok(by.list())) },
    Filter { name: "conductor_groups", since: since::MINIMUM, narrow: |list, by| put(&mut list.filter.conductor_groups, Ok(by.list())) },
    Filter { name: "description_contains", since: since::MINIMUM, narrow: |list, by| put(&mut list.filter.description_contains, Ok(by.text())) },
    Filter { name: "portgroup", since: since::PORTGROUP_FIELDS, narrow: |list, by| put(&mut list.portgroup, Ok(by.text())) },
];

/// Whether clients of this version know connections to a VTEP.
pub(super) fn knows_vtep(asked: Microversion) -> bool {
    asked.has(since::LINK_TO_VTEP) && !asked.has(since::NO_LINK_TO_VTEP)
}

/// Parses the MAC address of a port.
fn address(value: Value) -> Result<MacAddress, ApiError> {
    let required = || ApiError::bad_field("address", "is required");
    mac_address("address", value)?.ok_or_else(required)
}
