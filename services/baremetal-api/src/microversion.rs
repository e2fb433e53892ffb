//! The microversions that introduced features, from Ironic's "REST API Version History".

use http::HeaderName;
use openstack_api::{Microversion, VersionHeaders};

macro_rules! versions {
    ($($name:ident $minor:literal $what:literal)*) => {
        $(#[doc = $what] pub(crate) const $name: Microversion = Microversion::new($minor);)*
    };
}

versions! {
    MINIMUM 1 "The lowest supported version."
    AVAILABLE 2 "The state `available`, shown as null before."
    MANAGE 4 "The verbs `manage` and `provide`."
    NODE_NAME 5 "Names of nodes."
    INSPECT 6 "The verb `inspect`."
    FIELDS 8 "The query parameter `fields`."
    STATE_FILTER 9 "Filtering nodes by provision state."
    ANY_NODE_NAME 10 "Names of nodes that are no host names."
    ENROLL 11 "New nodes are in `enroll`; before, they were `available` at once."
    ABORT 13 "The verb `abort`."
    RAID 12 "RAID."
    DRIVER_PROPERTIES 14 "The link to the properties of a driver."
    CLEAN 15 "The verb `clean`."
    DRIVER_FILTER 16 "Filtering nodes by driver."
    ADOPT 17 "The verb `adopt`."
    AGENTS 22 "Lookups and heartbeats of agents."
    PORTGROUPS 23 "Port groups."
    PORTGROUP_FIELDS 24 "The port groups of ports and nodes."
    SOFT_POWER 27 "Soft changes of power, and their timeout."
    VIFS 28 "VIFs."
    INJECT_NMI 29 "Injecting an NMI."
    DYNAMIC_DRIVERS 30 "Driver types and their interfaces."
    VOLUME 32 "Volumes."
    STORAGE 33 "Storage interfaces."
    REBUILD_CONFIG_DRIVE 35 "A config drive for `rebuild`."
    TRAITS 37 "Traits."
    RESCUE 38 "The verbs `rescue` and `unrescue`."
    INSPECT_WAIT 39 "The state `inspect wait`, shown as `inspecting` before."
    BIOS 40 "BIOS settings."
    ABORT_INSPECTION 41 "Aborting an inspection."
    DETAIL_QUERY 43 "`?detail=True`."
    RESET_INTERFACES 45 "`?reset_interfaces=True`."
    CONDUCTORS 49 "Conductors."
    ALLOCATIONS 52 "Allocations."
    EVENTS 54 "Events of the network service."
    DEPLOY_TEMPLATES 55 "Deploy templates."
    BUILD_CONFIG_DRIVE 56 "A config drive as an object."
    ALLOCATION_UPDATE 57 "Changing allocations."
    ALLOCATION_BACKFILL 58 "Recording an allocation for a node in use."
    VENDOR_DATA 59 "A config drive with `vendor_data`."
    LINK_NETWORK_TYPE 64 "The network type of a port's local link connection."
    LESSEE 65 "Lessees."
    VIF_PLACE 67 "The port or port group of a VIF."
    DEPLOY_STEPS 69 "Deploy steps of a request."
    CLEAN_DISABLES_RAMDISK 70 "`disable_ramdisk` for `clean`."
    DEPLOY_VERBS 73 "The verbs `deploy` and `undeploy`."
    BIOS_REGISTRY 74 "The registry of BIOS settings."
    BOOT_MODE 75 "Boot mode and secure boot."
    SET_BOOT_MODE 76 "Changing the boot mode and secure boot."
    DRIVER_FIELDS 77 "The query parameter `fields` of drivers."
    HISTORY 78 "A node's history."
    INVENTORY 81 "A node's inventory."
    SHARD 82 "Shards."
    PARENT_NODE 83 "Parent nodes."
    CONTINUE_INSPECTION 84 "Inventories of agents."
    UNHOLD 85 "The verb `unhold`."
    FIRMWARE 86 "Firmware."
    SERVICE 87 "The verb `service`."
    VIRTUAL_MEDIA 89 "Inserting and ejecting virtual media."
    LINK_TO_VTEP 90 "A local link connection to a VTEP of OVN, until `NO_LINK_TO_VTEP`."
    NO_JSON_SUFFIX 91 "Paths without `.json`, which were served like paths without this suffix before."
    RUNBOOKS 92 "Runbooks."
    SHOW_VIRTUAL_MEDIA 93 "Showing virtual media."
    PORT_NODE_NAME 94 "Creating a port on a node by its name."
    INSPECTION_RULES 96 "Inspection rules."
    NO_LINK_TO_VTEP 105 "The end of `LINK_TO_VTEP`."
    PORTGROUP_SHARD 106 "Filtering port groups by shard."
    SERVICE_DISABLES_RAMDISK 108 "`disable_ramdisk` for `service`."
    ABORT_DEPLOYMENT 110 "Aborting a deployment."
    RUNBOOK_TRAITS 112 "Traits and descriptions of runbooks, and names of runbooks that are no traits."
    HISTORY_PROJECT 113 "The project of history entries."
    FIRMWARE_IDENTITY 114 "Vendor, model and serial number of firmware components."
    HISTORY_STATES 115 "The states and durations of history entries."
    MAXIMUM 115 "The highest supported version."
}

/// The version headers and the supported range of the Bare Metal API.
pub(crate) fn dialect() -> VersionHeaders {
    VersionHeaders {
        header: HeaderName::from_static("x-openstack-ironic-api-version"),
        prefix: "",
        minimum_header: HeaderName::from_static("x-openstack-ironic-api-minimum-version"),
        maximum_header: HeaderName::from_static("x-openstack-ironic-api-maximum-version"),
        minimum: MINIMUM,
        maximum: MAXIMUM,
    }
}
