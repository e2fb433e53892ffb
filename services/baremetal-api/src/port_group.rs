//! `/v1/portgroups`: ports of a node that operate as one.

use baremetal_core::{NodeUuid, PortGroup, Stored, StoredSort, check_members};
use newtype_uuid::GenericUuid;
use openstack_api::{ApiError, Microversion, Routes, Rule};

use crate::app::App;
use crate::error::Result;
use crate::field::{Field, Kind, Read, RequestPart};
use crate::filter::Filter;
use crate::microversion as since;
use crate::rule::{READ, SET_DRIVER, SET_PORTS};
use crate::shown::Shown;
use crate::stored::{
    self, Paths, Served, StoredList, created_field, links_field, updated_field, uuid_field,
};
use crate::value::{attached_vif, boolean, mac_address, name, text, uuid};
use crate::write::put;

impl Served for PortGroup {
    const NAME: &'static str = "a port group";
    const COLLECTION: &'static str = "portgroups";
    const FIELDS: &'static [Field<Stored<PortGroup>>] = FIELDS;
    const FILTERS: &'static [Filter<StoredList>] = FILTERS;
    const PATHS: Paths = Paths {
        all: "/v1/portgroups",
        detail: Some("/v1/portgroups/detail"),
        one: "/v1/portgroups/{portgroup}",
        of_node: Some(("/v1/nodes/{node}/portgroups", since::PORTGROUP_FIELDS)),
        detail_of_node: Some(("/v1/nodes/{node}/portgroups/detail", since::PORTGROUP_FIELDS)),
    };
    const SINCE: Microversion = since::PORTGROUPS;
    const RULES: [Rule; 4] = [READ, SET_PORTS, SET_DRIVER, SET_PORTS];
    const SUMMARIES: [&'static str; 5] = stored::summaries!("a port group", "port groups");
    const DETAIL_SHOWS_LATER_FIELDS: bool = true;
    const IS_NAMED: bool = true;
    const USERS: &'static str = "ports";

    async fn update(app: &App, after: &Stored<PortGroup>) -> Result<Stored<PortGroup>> {
        check_members(after, &app.store.ports_of_group(after.id).await?)?;
        Ok(app.store.update_port_group(after).await?)
    }
}

type Group = Stored<PortGroup>;

use Kind::{Boolean, Links, Object, Text};

const fn field(name: &'static str, minor: u16, kind: Kind, read: Read<Group>) -> Field<Group> {
    Field::new(name, minor, kind, read)
}

/// The parts of requests in which Ironic checks no version of the latest fields.
const UNCHECKED: &[RequestPart] = &[RequestPart::Creation, RequestPart::Patch, RequestPart::Fields];

#[rustfmt::skip]
const FIELDS: &[Field<Group>] = &[
    uuid_field(23),
    field("address", 23, Text, |it, _| it.content.address.map(Shown::Address).into())
        .change(SET_DRIVER, |it, name, new| put(&mut it.content.address, mac_address(name, new)))
        .brief()
        .filter(|list, by| put(&mut list.filter.key, mac_address(by.name, by.value.into()).map(|it| it.map(|it| it.to_string()))))
        .sort(StoredSort::Key),
    field("name", 23, Text, |it, _| (&it.content.name).into())
        .change(SET_DRIVER, |it, field, new| put(&mut it.content.name, name(field, new)))
        .brief()
        .sort(StoredSort::Name),
    field("node_uuid", 23, Text, |it, _| it.content.node.into())
        .create(|it, name, new| { it.content.node = uuid(name, new)?.map_or(it.content.node, NodeUuid::from_untyped_uuid); Ok(()) })
        .required(),
    field("mode", 26, Text, |it, _| (&it.content.mode).into())
        .change(SET_DRIVER, |it, name, new| put(&mut it.content.mode, mode(text(name, new, 255)?))),
    field("properties", 26, Object, |it, _| (&it.content.properties).into())
        .change_object(SET_DRIVER, |it| &mut it.content.properties),
    field("standalone_ports_supported", 23, Boolean, |it, _| it.content.standalone_ports.into())
        .change(SET_DRIVER, |it, name, new| { it.content.standalone_ports = boolean(name, new)?.unwrap_or(true); Ok(()) }),
    field("internal_info", 23, Object, |it, _| Shown::internal(&it.content.vif))
        .imported(|it, name, new| put(&mut it.content.vif, attached_vif(name, new))),
    field("extra", 23, Object, |it, _| (&it.content.extra).into())
        .change_object(SET_DRIVER, |it| &mut it.content.extra),
    field("physical_network", 102, Text, |it, _| (&it.content.physical_network).into())
        .change(SET_DRIVER, |it, name, new| put(&mut it.content.physical_network, text(name, new, 64)))
        .unchecked_in(UNCHECKED),
    field("category", 103, Text, |it, _| (&it.content.category).into())
        .change(SET_DRIVER, |it, name, new| put(&mut it.content.category, text(name, new, 80)))
        .unchecked_in(UNCHECKED),
    field("dynamic_portgroup", 111, Boolean, |_, _| false.into()),
    created_field(23),
    updated_field(23),
    field("ports", 23, Links, |it, look| look.links("portgroups", it.id, "/ports")),
    links_field(23),
];

#[rustfmt::skip]
const FILTERS: &[Filter<StoredList>] = &[
    Filter { name: "node",  since: since::PORTGROUPS,      narrow: |list, by| put(&mut list.node, Ok(by.text())) },
    Filter { name: "shard", since: since::PORTGROUP_SHARD, narrow: |list, by| put(&mut list.filter.shards, Ok(by.list())) },
    Filter { name: "conductor_groups", since: since::MINIMUM, narrow: |list, by| put(&mut list.filter.conductor_groups, Ok(by.list())) },
];

/// The bonding mode, which a group always has.
fn mode(given: Option<String>) -> Result<String, ApiError> {
    given.ok_or_else(|| ApiError::bad_field("mode", "is required"))
}

pub(crate) fn routes() -> Routes<App> {
    stored::routes::<PortGroup>()
}
