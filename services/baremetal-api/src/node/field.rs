//! The fields of a node.

use baremetal_core::{
    AllocationUuid, Fault, Interface, Maintenance, Node, NodeSort, NodeUuid, State, attribute,
    reason_of, store_mark, store_reason,
};
use newtype_uuid::GenericUuid;
use openstack_api::ApiError;

use super::list::{FILTERS, NodeList, driver};
use super::{imported, view, write};
use crate::field::{Field, Kind, Read, Resource};
use crate::filter::Filter;
use crate::microversion as since;
use crate::rule::{ADMINISTER, INSTALL, OPERATE, SET_DRIVER, SET_OWNER, USE};
use crate::shown::Shown;
use crate::traits::parse_traits;
use crate::value::{boolean, object, time, uuid};
use crate::write::put;

impl Resource for Node {
    const NAME: &'static str = "a node";
    const COLLECTION: &'static str = "nodes";
    const FIELDS: &'static [Field<Node>] = FIELDS;
    const FILTERS: &'static [Filter<NodeList>] = FILTERS;
    type List = NodeList;
    type Sort = NodeSort;
}

use Kind::{Boolean, Links, MaybeBoolean, Object, Text, Texts};

const fn field(name: &'static str, minor: u16, kind: Kind, read: Read<Node>) -> Field<Node> {
    Field::new(name, minor, kind, read)
}

const fn shared(name: &'static str, minor: u16) -> Field<Node> {
    Field::shared(attribute(name), minor)
}

/// Declares the field by which operators choose the implementation of an interface.
macro_rules! interface {
    ($name:literal, $minor:literal, $interface:ident) => {
        field($name, $minor, Text, |it, _| it.interface(Interface::$interface).into())
            .change(SET_DRIVER, |it, name, new| {
                write::interface(it, Interface::$interface, name, new)
            })
    };
}

#[rustfmt::skip]
const FIELDS: &[Field<Node>] = &[
    field("uuid", 1, Text, |it, _| it.id.into())
        .create(|it, name, new| { it.id = uuid(name, new)?.map_or(it.id, NodeUuid::from_untyped_uuid); Ok(()) })
        .brief()
        .sort(NodeSort::Id),
    shared("name", 5).change_shared(OPERATE)
        .brief()
        .sort(NodeSort::Name),
    field("created_at", 1, Text, |it, _| it.created_at.into())
        .imported(|it, name, new| { it.created_at = time(name, new)?.unwrap_or(it.created_at); Ok(()) })
        .sort(NodeSort::CreatedAt),
    field("updated_at", 1, Text, |it, _| it.updated_at.into())
        .imported(|it, name, new| put(&mut it.updated_at, time(name, new)))
        .sort(NodeSort::UpdatedAt),
    shared("driver", 1)
        .change(SET_DRIVER, |it, _, new| put(&mut it.driver, write::driver(new)))
        .required()
        .filter_since(since::DRIVER_FILTER, |list, by| { driver(list, by); Ok(()) })
        .sort(NodeSort::Driver),
    shared("driver_info", 1).change_shared_secrets(OPERATE)
        .site_detail(),
    field("driver_internal_info", 3, Object, |_, _| Shown::EMPTY)
        .site_detail(),
    shared("properties", 1).change_shared(OPERATE),
    shared("extra", 1).change_shared(USE),
    shared("instance_info", 1).change_shared_secrets(INSTALL),
    field("instance_uuid", 1, Text, |it, _| it.instance_uuid.into())
        .change(OPERATE, |it, name, new| {
            it.instance_uuid = uuid(name, new)?;
            it.allocation = it.allocation.filter(|_| it.instance_uuid.is_some());
            Ok(())
        })
        .brief()
        .filter(|list, by| put(&mut list.filter.instance_uuid, by.id()))
        .sort(NodeSort::InstanceUuid),
    field("instance_name", 104, Text, |it, _| (&it.instance_name).into())
        .change(INSTALL, |it, name, new| put(&mut it.instance_name, write::instance_name(name, new)))
        .filter(|list, by| put(&mut list.filter.instance_name, Ok(by.text()))),
    field("chassis_uuid", 1, Text, |it, _| it.chassis.into())
        .change(ADMINISTER, |it, name, new| put(&mut it.chassis, uuid(name, new)))
        .removed_since(25)
        .filter(|list, by| put(&mut list.filter.chassis, by.id())),
    shared("power_state", 1)
        .imported(|it, name, new| put(&mut it.power_state, imported::power_state(name, new)))
        .brief()
        .sort(NodeSort::PowerState),
    field("target_power_state", 1, Text, |it, _| it.target_power_state().map(|power| power.as_str()).into()),
    field("provision_state", 1, Text, |it, look| view::state_word(it, look.asked).into())
        .imported(|it, name, new| put(&mut it.provision_state, imported::provision_state(name, new)))
        .brief()
        .filter_since(since::STATE_FILTER, |list, by| put(&mut list.filter.provision_state, by.parsed()))
        .sort(NodeSort::ProvisionState),
    field("target_provision_state", 1, Text, |it, _| it.leads_to().map(State::as_str).into()),
    field("provision_updated_at", 1, Text, |it, _| it.provision_updated_at.into())
        .imported(|it, name, new| put(&mut it.provision_updated_at, time(name, new)))
        .sort(NodeSort::ProvisionUpdatedAt),
    field("last_error", 1, Text, |it, _| view::last_error(it).into())
        .imported(|it, name, new| put(&mut it.failure, imported::failure(name, new)))
        .site_detail(),
    field("maintenance", 1, Boolean, |it, _| it.maintenance.is_some().into())
        .change(INSTALL, |it, name, new| {
            it.maintenance = match boolean(name, new)? {
                Some(true) => Some(it.maintenance.take().unwrap_or(Maintenance::requested(None))),
                Some(false) | None => None,
            };
            Ok(())
        })
        .brief()
        .filter(|list, by| put(&mut list.filter.maintenance, by.flag()))
        .sort(NodeSort::Maintenance),
    field("maintenance_reason", 1, Text, |it, _| it.maintenance.as_ref().and_then(|why| why.reason.as_deref()).into())
        .imported(imported::maintenance_reason),
    field("console_enabled", 1, Boolean, |it, _| it.console_enabled.into())
        .imported(|it, name, new| { it.console_enabled = boolean(name, new)?.unwrap_or(false); Ok(()) }),
    // Ironic's conductor still holds the node's lock when it answers a PATCH.
    field("reservation", 1, Text, |it, look| if look.is_changed || view::is_locked(it) { look.conductor_of(it) } else { Shown::Null })
        .site_detail(),
    field("inspection_started_at", 6, Text, |it, _| it.inspection_started_at.into())
        .imported(|it, name, new| put(&mut it.inspection_started_at, time(name, new))),
    field("inspection_finished_at", 6, Text, |it, _| it.inspection_finished_at.into())
        .imported(|it, name, new| put(&mut it.inspection_finished_at, time(name, new))),
    field("clean_step", 7, Object, |it, _| view::clean_step(it)),
    field("deploy_step", 44, Object, |it, _| view::deploy_step(it)),
    field("service_step", 87, Object, |it, _| view::service_step(it)),
    field("raid_config", 12, Object, |it, _| Shown::Object(&it.raid_config))
        .imported(|it, name, new| put(&mut it.raid_config, object(name, new))),
    field("target_raid_config", 12, Object, |it, _| Shown::Object(&it.target_raid_config))
        .imported(|it, name, new| put(&mut it.target_raid_config, object(name, new))),
    shared("resource_class", 21).change_shared(OPERATE)
        .filter(|list, by| put(&mut list.filter.resource_class, Ok(by.text())))
        .sort(NodeSort::ResourceClass),
    field("traits", 37, Texts, |it, _| Shown::Texts(&it.traits))
        .imported(|it, name, new| put(&mut it.traits, parse_traits(name, new))),
    field("fault", 42, Text, |it, _| it.fault().map(Fault::as_str).into())
        .imported(imported::fault)
        .filter(|list, by| put(&mut list.filter.fault, super::list::fault(by))),
    field("health", 109, Text, |it, _| it.health.map(|health| health.as_str()).into()),
    shared("conductor_group", 46).change_shared(SET_OWNER)
        .filter(|list, by| put(&mut list.filter.conductor_group, Ok(Some(by.value.to_lowercase()))))
        .sort(NodeSort::ConductorGroup),
    field("conductor", 49, Text, |it, look| look.conductor_of(it))
        .site_detail()
        .filter(|list, by| put(&mut list.conductor, Ok(by.text()))),
    shared("automated_clean", 47).change_shared(ADMINISTER),
    field("protected", 48, Boolean, |it, _| it.protected.is_some().into())
        .change(USE, |it, name, new| store_mark(&mut it.protected, new).map_err(|why| ApiError::bad_field(name, why)))
        .not_at_creation(),
    field("protected_reason", 48, Text, |it, _| reason_of(&it.protected).into())
        .change(USE, |it, name, new| store_reason(&mut it.protected, "protected", new).map_err(|why| ApiError::bad_field(name, why)))
        .not_at_creation(),
    shared("owner", 50).change_shared(SET_OWNER)
        .fixed_in_use()
        .filter(|list, by| put(&mut list.filter.owner, Ok(by.text())))
        .sort(NodeSort::Owner),
    shared("lessee", 65).change_shared(OPERATE)
        .filter(|list, by| put(&mut list.filter.lessee, Ok(by.text())))
        .sort(NodeSort::Lessee),
    shared("description", 51).change_shared(USE),
    field("allocation_uuid", 52, Text, |it, _| it.allocation.into())
        .imported(|it, name, new| put(&mut it.allocation, uuid(name, new).map(|id| id.map(AllocationUuid::from_untyped_uuid)))),
    shared("retired", 61).change_shared(OPERATE)
        // Ironic checks no version of the filter.
        .filter_since(since::MINIMUM, |list, by| put(&mut list.filter.retired, by.flag())),
    shared("retired_reason", 61).change_shared(OPERATE),
    field("network_data", 66, Object, |it, _| Shown::Object(&it.network_data))
        .change(OPERATE, |it, name, new| put(&mut it.network_data, write::network_data(name, new))),
    shared("boot_mode", 75)
        .imported(|it, name, new| put(&mut it.boot_mode, imported::boot_mode(name, new))),
    field("secure_boot", 75, MaybeBoolean, |it, _| it.secure_boot.into())
        .imported(|it, name, new| put(&mut it.secure_boot, boolean(name, new))),
    shared("shard", 82).change_shared(ADMINISTER)
        .filter(|list, by| put(&mut list.filter.shard, Ok(by.value.split(',').map(str::to_owned).collect()))),
    field("parent_node", 83, Text, |it, _| it.parent_node.into())
        .change(SET_OWNER, |it, name, new| put(&mut it.parent_node, uuid(name, new).map(|id| id.map(NodeUuid::from_untyped_uuid))))
        .filter(|list, by| put(&mut list.parent, by.parsed())),
    shared("disable_power_off", 95).change_shared(ADMINISTER),
    interface!("bios_interface", 40, Bios),
    interface!("boot_interface", 31, Boot),
    interface!("console_interface", 31, Console),
    interface!("deploy_interface", 31, Deploy),
    interface!("firmware_interface", 86, Firmware),
    interface!("inspect_interface", 31, Inspect),
    interface!("management_interface", 31, Management),
    interface!("network_interface", 20, Network),
    interface!("power_interface", 31, Power),
    interface!("raid_interface", 31, Raid),
    interface!("rescue_interface", 38, Rescue),
    interface!("storage_interface", 33, Storage),
    interface!("vendor_interface", 31, Vendor),
    field("links", 1, Links, |it, look| look.links("nodes", it.id, ""))
        .brief(),
    field("ports", 1, Links, |it, look| look.links("nodes", it.id, "/ports")),
    field("states", 14, Links, |it, look| look.links("nodes", it.id, "/states")),
    field("portgroups", 24, Links, |it, look| look.links("nodes", it.id, "/portgroups")),
    field("volume", 32, Links, |it, look| look.links("nodes", it.id, "/volume")),
];
