//! The fields that each service accepts in a request body. A service refuses unknown fields before it looks up any object: nova,
//! api/openstack/compute/schemas; cinder, api/schemas; designate, objects/adapters; octavia, api/v2/types; placement, schemas.
//!
//! Neutron's fields are in its table of resources. Keystone and Glance accept and store unknown fields.

use std::borrow::Cow;

use serde_json::Value;

use crate::glob;
use crate::problem::ApiError;
use crate::request::ApiRequest;
use crate::service::Service;

/// A request with a body, and the fields that the body may have, such as `server.networks[].port`. Objects below a field in the table are
/// not
/// checked. `@52` means since this microversion, `@1-56` means in this range of microversions.
struct Row {
    service: Service,
    method: &'static str,
    /// The path after the version of the service.
    path: &'static str,
    fields: &'static [&'static str],
}

const fn row(
    service: Service,
    method: &'static str,
    path: &'static str,
    fields: &'static [&'static str],
) -> Row {
    Row { service, method, path, fields }
}

use Service::{Compute, Dns, LoadBalancer, Placement, Volume};

#[rustfmt::skip]
const ROWS: &[Row] = &[
    row(Compute, "POST", "servers", &[
        "server.name", "server.imageRef", "server.flavorRef", "server.adminPass", "server.metadata", "server.OS-DCF:diskConfig",
        "server.accessIPv4", "server.accessIPv6", "server.personality@1-56", "server.availability_zone", "server.config_drive",
        "server.key_name", "server.min_count", "server.max_count", "server.return_reservation_id", "server.user_data",
        "server.security_groups[].name",
        "server.networks[].fixed_ip", "server.networks[].port", "server.networks[].uuid", "server.networks[].tag@32-36",
        "server.networks[].tag@42",
        "server.block_device_mapping[].virtual_name", "server.block_device_mapping[].volume_id",
        "server.block_device_mapping[].snapshot_id", "server.block_device_mapping[].volume_size",
        "server.block_device_mapping[].device_name", "server.block_device_mapping[].delete_on_termination",
        "server.block_device_mapping[].no_device", "server.block_device_mapping[].connection_info",
        "server.block_device_mapping_v2[].virtual_name", "server.block_device_mapping_v2[].volume_id",
        "server.block_device_mapping_v2[].snapshot_id", "server.block_device_mapping_v2[].volume_size",
        "server.block_device_mapping_v2[].device_name", "server.block_device_mapping_v2[].delete_on_termination",
        "server.block_device_mapping_v2[].no_device", "server.block_device_mapping_v2[].connection_info",
        "server.block_device_mapping_v2[].source_type", "server.block_device_mapping_v2[].uuid",
        "server.block_device_mapping_v2[].image_id", "server.block_device_mapping_v2[].destination_type",
        "server.block_device_mapping_v2[].guest_format", "server.block_device_mapping_v2[].device_type",
        "server.block_device_mapping_v2[].disk_bus", "server.block_device_mapping_v2[].boot_index",
        "server.block_device_mapping_v2[].tag@32-32", "server.block_device_mapping_v2[].tag@42",
        "server.block_device_mapping_v2[].volume_type@67",
        "server.description@19", "server.tags@52", "server.trusted_image_certificates@63", "server.host@74",
        "server.hypervisor_hostname@74", "server.hostname@90",
        "os:scheduler_hints", "OS-SCH-HNT:scheduler_hints",
    ]),
    row(Compute, "PUT", "servers/*", &[
        "server.name", "server.OS-DCF:diskConfig", "server.accessIPv4", "server.accessIPv6", "server.description@19", "server.hostname@90",
    ]),
    row(Compute, "POST", "servers/*/action", &[
        "os-start", "os-stop", "pause", "unpause", "suspend", "resume", "shelve", "shelveOffload", "unlock", "confirmResize",
        "revertResize", "forceDelete", "restore", "unrescue", "resetNetwork", "injectNetworkInfo",
        "lock.locked_reason@73", "unshelve.availability_zone@77", "unshelve.host@91", "reboot.type",
        "resize.flavorRef", "resize.OS-DCF:diskConfig", "createImage.name", "createImage.metadata",
        "createBackup.name", "createBackup.backup_type", "createBackup.rotation", "createBackup.metadata",
        "rebuild.name", "rebuild.imageRef", "rebuild.adminPass", "rebuild.metadata", "rebuild.preserve_ephemeral",
        "rebuild.OS-DCF:diskConfig", "rebuild.accessIPv4", "rebuild.accessIPv6", "rebuild.personality@1-56", "rebuild.description@19",
        "rebuild.key_name@54", "rebuild.user_data@57", "rebuild.trusted_image_certificates@63", "rebuild.hostname@90",
        "rescue.adminPass", "rescue.rescue_image_ref", "changePassword.adminPass", "os-resetState.state", "os-getConsoleOutput.length",
        "os-getVNCConsole.type@1-5", "os-getSerialConsole.type@1-5", "os-getSPICEConsole.type@1-5", "addSecurityGroup.name",
        "removeSecurityGroup.name", "migrate.host@56", "os-migrateLive.host", "os-migrateLive.block_migration",
        "os-migrateLive.disk_over_commit@1-24", "os-migrateLive.force@30-67", "evacuate.host", "evacuate.adminPass",
        "evacuate.onSharedStorage@1-13", "evacuate.force@29-67", "evacuate.targetState@95",
    ]),
    row(Compute, "PUT", "servers/*/metadata", &["metadata"]),
    row(Compute, "POST", "servers/*/metadata", &["metadata"]),
    row(Compute, "PUT", "servers/*/metadata/*", &["meta"]),
    row(Compute, "PUT", "servers/*/tags", &["tags"]),
    row(Compute, "POST", "servers/*/remote-consoles", &["remote_console.protocol", "remote_console.type"]),
    row(Compute, "POST", "servers/*/os-interface", &[
        "interfaceAttachment.net_id", "interfaceAttachment.port_id", "interfaceAttachment.fixed_ips[].ip_address",
        "interfaceAttachment.tag@49",
    ]),
    row(Compute, "POST", "servers/*/os-volume_attachments", &[
        "volumeAttachment.volumeId", "volumeAttachment.device", "volumeAttachment.tag@49", "volumeAttachment.delete_on_termination@79",
    ]),
    row(Compute, "POST", "os-server-groups", &[
        "server_group.name", "server_group.policies@1-63", "server_group.policy@64", "server_group.rules.max_server_per_host@64",
    ]),
    row(Compute, "POST", "os-keypairs", &["keypair.name", "keypair.public_key", "keypair.type@2", "keypair.user_id@10"]),
    row(Compute, "PUT", "os-services/*", &["status", "disabled_reason", "forced_down"]),
    row(Compute, "POST", "os-aggregates", &["aggregate.name", "aggregate.availability_zone"]),
    row(Compute, "PUT", "os-aggregates/*", &["aggregate.name", "aggregate.availability_zone"]),
    row(Compute, "POST", "os-aggregates/*/action", &["add_host.host", "remove_host.host", "set_metadata.metadata"]),
    row(Compute, "POST", "flavors", &[
        "flavor.name", "flavor.ram", "flavor.vcpus", "flavor.disk", "flavor.id", "flavor.swap", "flavor.rxtx_factor",
        "flavor.os-flavor-access:is_public", "flavor.OS-FLV-EXT-DATA:ephemeral", "flavor.description@55",
    ]),
    row(Compute, "POST", "flavors/*/os-extra_specs", &["extra_specs"]),
    row(Compute, "POST", "flavors/*/action", &["addTenantAccess.tenant", "removeTenantAccess.tenant"]),
    row(Dns, "POST", "zones", ZONE),
    row(Dns, "PATCH", "zones/*", ZONE),
    row(Dns, "POST", "zones/*/recordsets", RECORDSET),
    row(Dns, "PUT", "zones/*/recordsets/*", RECORDSET),
    row(Dns, "PATCH", "reverse/floatingips/*", &["ptrdname", "description", "ttl", "id", "address", "status", "action"]),
    row(LoadBalancer, "PUT", "lbaas/quotas/*", &[
        "quota.loadbalancer", "quota.load_balancer", "quota.listener", "quota.member", "quota.pool", "quota.healthmonitor",
        "quota.health_monitor", "quota.l7policy", "quota.l7rule",
    ]),
    row(LoadBalancer, "POST", "lbaas/flavors", &["flavor.name", "flavor.description", "flavor.enabled", "flavor.flavor_profile_id"]),
    row(LoadBalancer, "POST", "lbaas/flavorprofiles", &[
        "flavorprofile.name", "flavorprofile.provider_name", "flavorprofile.flavor_data",
    ]),
    row(LoadBalancer, "PUT", "lbaas/pools/*/members", &[
        "members[].name", "members[].address", "members[].protocol_port", "members[].weight", "members[].subnet_id",
        "members[].admin_state_up", "members[].monitor_address", "members[].monitor_port", "members[].backup", "members[].tags",
        "members[].vnic_type", "members[].project_id", "members[].tenant_id",
    ]),
    row(Volume, "POST", "*/volumes", &[
        "volume.name", "volume.description", "volume.display_name", "volume.display_description", "volume.volume_type",
        "volume.metadata", "volume.snapshot_id", "volume.source_volid", "volume.consistencygroup_id", "volume.size",
        "volume.availability_zone", "volume.multiattach", "volume.image_id", "volume.imageRef", "volume.group_id@13", "volume.backup_id@47",
        // Up to 3.52, Cinder accepts any field of a volume.
        "volume.*@0-52",
        "OS-SCH-HNT:scheduler_hints",
    ]),
    row(Volume, "PUT", "*/volumes/*", &[
        "volume.name", "volume.description", "volume.display_name", "volume.display_description", "volume.metadata",
    ]),
    row(Volume, "POST", "*/volumes/*/action", &["os-extend.new_size"]),
    row(Volume, "POST", "*/snapshots", &[
        "snapshot.name", "snapshot.display_name", "snapshot.description", "snapshot.volume_id", "snapshot.force", "snapshot.metadata",
    ]),
    row(Volume, "PUT", "*/snapshots/*", &[
        "snapshot.name", "snapshot.description", "snapshot.display_name", "snapshot.display_description",
    ]),
    row(Placement, "POST", "resource_providers", &["name", "uuid", "parent_provider_uuid@14"]),
    row(Placement, "PUT", "resource_providers/*/inventories", &[
        "resource_provider_generation", "inventories.*.allocation_ratio", "inventories.*.max_unit", "inventories.*.min_unit",
        "inventories.*.reserved", "inventories.*.step_size", "inventories.*.total",
    ]),
];

const ZONE: &[&str] = &[
    "id",
    "pool_id",
    "project_id",
    "name",
    "email",
    "ttl",
    "serial",
    "status",
    "action",
    "version",
    "attributes",
    "type",
    "masters",
    "created_at",
    "updated_at",
    "transferred_at",
    "description",
    "shared",
];

const RECORDSET: &[&str] = &[
    "id",
    "project_id",
    "name",
    "ttl",
    "type",
    "zone_id",
    "zone_name",
    "records",
    "status",
    "action",
    "version",
    "created_at",
    "updated_at",
    "description",
];

/// Refuses a body with an unknown field. If no field at all is known, the route answers which fields are missing.
pub(crate) fn check(asked: &ApiRequest) -> Result<(), ApiError> {
    let path = asked.segments.join("/");
    let row = ROWS.iter().find(|row| {
        row.service == asked.service && asked.method == row.method && glob::matches(row.path, &path)
    });
    let Some(row) = row else { return Ok(()) };
    let Ok(body) = serde_json::from_slice::<Value>(&asked.body) else { return Ok(()) };
    let known = KnownFields { asked, fields: row.fields };
    let Some(members) = body.as_object() else { return Ok(()) };
    if !members.keys().any(|key| known.place(key) != Place::Unknown) {
        return Ok(());
    }
    known.check("", &body)
}

struct KnownFields<'a> {
    asked: &'a ApiRequest,
    fields: &'static [&'static str],
}

/// The entry of the table for the path of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// A field, whose contents are not checked.
    Field,
    /// An object with fields of its own.
    Object,
    Unknown,
}

impl KnownFields<'_> {
    fn place(&self, path: &str) -> Place {
        let mut found = Place::Unknown;
        for field in self.fields {
            let (field, versions) = field.split_once('@').unwrap_or((field, "0"));
            if !includes(versions, self.asked.version) {
                continue;
            }
            let any = field.strip_suffix('*').is_some_and(|under| path.starts_with(under));
            let field = named(field, path);
            if field == path || any {
                return Place::Field;
            }
            if field.strip_prefix(path).is_some_and(|rest| rest.starts_with(['.', '['])) {
                found = Place::Object;
            }
        }
        found
    }

    fn check(&self, path: &str, value: &Value) -> Result<(), ApiError> {
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    let at = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    match self.place(&at) {
                        Place::Field => {}
                        Place::Object => self.check(&at, value)?,
                        Place::Unknown => return Err(self.refuse(path, key)),
                    }
                }
                Ok(())
            }
            Value::Array(all) => {
                all.iter().try_for_each(|value| self.check(&format!("{path}[]"), value))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    /// The error in the words of the service.
    fn refuse(&self, path: &str, key: &str) -> ApiError {
        let inner = path.rsplit(['.', '[']).find(|it| *it != "]").unwrap_or_default();
        match self.asked.service {
            Service::Dns => {
                let sort = if self.fields == ZONE { "Zone" } else { "RecordSet" };
                let message = format!(
                    "Provided object does not match schema.  Keys ['{key}'] are not valid for {sort}"
                );
                ApiError::new(400, "invalid_object", message)
            }
            Service::LoadBalancer => ApiError::bad(format!(
                "Invalid input for field/attribute {inner}. Value: '{{{key:?}: ...}}'. Unknown attribute: {key}"
            )),
            Service::Identity
            | Service::Image
            | Service::Compute
            | Service::Placement
            | Service::Network
            | Service::Volume => {
                let of = if inner.is_empty() { key } else { inner };
                ApiError::bad(format!(
                    "Invalid input for field/attribute {of}. Additional properties are not allowed ('{key}' was unexpected)"
                ))
            }
        }
    }
}

/// Replaces the `*` of a field by the name that `path` has there, such as the resource class in `inventories.*.total`.
fn named<'a>(field: &'a str, path: &str) -> Cow<'a, str> {
    let Some((before, after)) = field.split_once(".*.") else { return field.into() };
    let rest = path.strip_prefix(before).and_then(|rest| rest.strip_prefix('.'));
    match rest.and_then(|rest| rest.split('.').next()) {
        Some(name) => format!("{before}.{name}.{after}").into(),
        None => field.into(),
    }
}

/// Whether `versions` (`52` or `1-56`) includes this version.
fn includes(versions: &str, version: u32) -> bool {
    let (first, last) = versions.split_once('-').unwrap_or((versions, ""));
    let read = |text: &str, other| text.parse::<u32>().unwrap_or(other);
    (read(first, 0)..=read(last, u32::MAX)).contains(&version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microversions_are_from_one_on_or_between_two() {
        assert!(includes("52", 52) && includes("52", 90) && !includes("52", 51));
        assert!(includes("1-56", 56) && !includes("1-56", 57));
        let read = |text: &str| text.parse::<u32>().is_ok();
        for field in ROWS.iter().flat_map(|row| row.fields) {
            let Some((_, versions)) = field.split_once('@') else { continue };
            assert!(versions.split('-').all(read), "{field}");
        }
    }
}
