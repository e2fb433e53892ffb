//! The fields that each service accepts in a request body. A service refuses unknown fields before it looks up any object: nova,
//! api/openstack/compute/schemas; cinder, api/schemas; designate, objects/adapters; octavia, api/v2/types; placement, schemas.
//!
//! Neutron's fields are in its table of resources. Keystone and Glance accept and store unknown fields.

use std::borrow::Cow;

use serde_json::Value;

use crate::glob;
use crate::request::{ApiError, ApiRequest};
use crate::service::Service;

/// A request with a body, and the fields that the body may have. Objects below a field in the table are not checked. `@52` means since
/// this microversion, `@1-56` means in this range of microversions.
struct Row {
    service: Service,
    method: &'static str,
    /// The path after the version of the service.
    path: &'static str,
    /// Each line begins with the object that has the fields: a dot is the whole body, `server.` the object below `server`.
    fields: &'static str,
}

const fn row(
    service: Service,
    method: &'static str,
    path: &'static str,
    fields: &'static str,
) -> Row {
    Row { service, method, path, fields }
}

use Service::{Compute, Dns, LoadBalancer, Placement, Volume};

#[rustfmt::skip]
const ROWS: &[Row] = &[
    row(Compute, "POST", "servers", "
        server. name imageRef flavorRef adminPass metadata OS-DCF:diskConfig accessIPv4 accessIPv6 personality@1-56 availability_zone
        server. config_drive key_name min_count max_count return_reservation_id user_data description@19 tags@52
        server. trusted_image_certificates@63 host@74 hypervisor_hostname@74 hostname@90
        server.security_groups[]. name
        server.networks[]. fixed_ip port uuid tag@32-36 tag@42
        server.block_device_mapping[]. virtual_name volume_id snapshot_id volume_size device_name delete_on_termination no_device
        server.block_device_mapping[]. connection_info
        server.block_device_mapping_v2[]. virtual_name volume_id snapshot_id volume_size device_name delete_on_termination no_device
        server.block_device_mapping_v2[]. connection_info source_type uuid image_id destination_type guest_format device_type disk_bus
        server.block_device_mapping_v2[]. boot_index tag@32-32 tag@42 volume_type@67
        . os:scheduler_hints OS-SCH-HNT:scheduler_hints
    "),
    row(Compute, "PUT", "servers/*", "server. name OS-DCF:diskConfig accessIPv4 accessIPv6 description@19 hostname@90"),
    row(Compute, "POST", "servers/*/action", "
        . os-start os-stop pause unpause suspend resume shelve shelveOffload unlock confirmResize revertResize forceDelete restore
        . unrescue resetNetwork injectNetworkInfo
        lock. locked_reason@73
        unshelve. availability_zone@77 host@91
        reboot. type
        resize. flavorRef OS-DCF:diskConfig
        createImage. name metadata
        createBackup. name backup_type rotation metadata
        rebuild. name imageRef adminPass metadata preserve_ephemeral OS-DCF:diskConfig accessIPv4 accessIPv6 personality@1-56
        rebuild. description@19 key_name@54 user_data@57 trusted_image_certificates@63 hostname@90
        rescue. adminPass rescue_image_ref
        changePassword. adminPass
        os-resetState. state
        os-getConsoleOutput. length
        os-getVNCConsole. type@1-5
        os-getSerialConsole. type@1-5
        os-getSPICEConsole. type@1-5
        addSecurityGroup. name
        removeSecurityGroup. name
        migrate. host@56
        os-migrateLive. host block_migration disk_over_commit@1-24 force@30-67
        evacuate. host adminPass onSharedStorage@1-13 force@29-67 targetState@95
    "),
    row(Compute, "PUT", "servers/*/metadata", ". metadata"),
    row(Compute, "POST", "servers/*/metadata", ". metadata"),
    row(Compute, "PUT", "servers/*/metadata/*", ". meta"),
    row(Compute, "PUT", "servers/*/tags", ". tags"),
    row(Compute, "POST", "servers/*/remote-consoles", "remote_console. protocol type"),
    row(Compute, "POST", "servers/*/os-interface", "
        interfaceAttachment. net_id port_id tag@49
        interfaceAttachment.fixed_ips[]. ip_address
    "),
    row(Compute, "POST", "servers/*/os-volume_attachments", "volumeAttachment. volumeId device tag@49 delete_on_termination@79"),
    row(Compute, "POST", "os-server-groups", "
        server_group. name policies@1-63 policy@64
        server_group.rules. max_server_per_host@64
    "),
    row(Compute, "POST", "os-keypairs", "keypair. name public_key type@2 user_id@10"),
    row(Compute, "PUT", "os-services/*", ". status disabled_reason forced_down"),
    row(Compute, "POST", "os-aggregates", "aggregate. name availability_zone"),
    row(Compute, "PUT", "os-aggregates/*", "aggregate. name availability_zone"),
    row(Compute, "POST", "os-aggregates/*/action", "
        add_host. host
        remove_host. host
        set_metadata. metadata
    "),
    row(Compute, "POST", "flavors", "
        flavor. name ram vcpus disk id swap rxtx_factor os-flavor-access:is_public OS-FLV-EXT-DATA:ephemeral description@55
    "),
    row(Compute, "POST", "flavors/*/os-extra_specs", ". extra_specs"),
    row(Compute, "POST", "flavors/*/action", "
        addTenantAccess. tenant
        removeTenantAccess. tenant
    "),
    row(Dns, "POST", "zones", ZONE),
    row(Dns, "PATCH", "zones/*", ZONE),
    row(Dns, "POST", "zones/*/recordsets", RECORDSET),
    row(Dns, "PUT", "zones/*/recordsets/*", RECORDSET),
    row(Dns, "PATCH", "reverse/floatingips/*", ". ptrdname description ttl id address status action"),
    row(LoadBalancer, "PUT", "lbaas/quotas/*", "
        quota. loadbalancer load_balancer listener member pool healthmonitor health_monitor l7policy l7rule
    "),
    row(LoadBalancer, "POST", "lbaas/flavors", "flavor. name description enabled flavor_profile_id"),
    row(LoadBalancer, "POST", "lbaas/flavorprofiles", "flavorprofile. name provider_name flavor_data"),
    row(LoadBalancer, "PUT", "lbaas/pools/*/members", "
        members[]. name address protocol_port weight subnet_id admin_state_up monitor_address monitor_port backup tags vnic_type
        members[]. project_id tenant_id
    "),
    // Up to 3.52, Cinder accepts any field of a volume.
    row(Volume, "POST", "*/volumes", "
        volume. name description display_name display_description volume_type metadata snapshot_id source_volid consistencygroup_id size
        volume. availability_zone multiattach image_id imageRef group_id@13 backup_id@47 *@0-52
        . OS-SCH-HNT:scheduler_hints
    "),
    row(Volume, "PUT", "*/volumes/*", "volume. name description display_name display_description metadata"),
    row(Volume, "POST", "*/volumes/*/action", "os-extend. new_size"),
    row(Volume, "POST", "*/snapshots", "snapshot. name display_name description volume_id force metadata"),
    row(Volume, "PUT", "*/snapshots/*", "snapshot. name description display_name display_description"),
    row(Placement, "POST", "resource_providers", ". name uuid parent_provider_uuid@14"),
    row(Placement, "PUT", "resource_providers/*/inventories", "
        . resource_provider_generation
        inventories.*. allocation_ratio max_unit min_unit reserved step_size total
    "),
];

#[rustfmt::skip]
const ZONE: &str = "
    . id pool_id project_id name email ttl serial status action version attributes type masters created_at updated_at transferred_at
    . description shared
";

#[rustfmt::skip]
const RECORDSET: &str = "
    . id project_id name ttl type zone_id zone_name records status action version created_at updated_at description
";

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
    fields: &'static str,
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
        for field in named_fields(self.fields) {
            let (field, versions) = field.split_once('@').unwrap_or((&field, "0"));
            if !self.asked.within(versions) {
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
            | Service::Volume
            | Service::ObjectStore => {
                let of = if inner.is_empty() { key } else { inner };
                ApiError::bad(format!(
                    "Invalid input for field/attribute {of}. Additional properties are not allowed ('{key}' was unexpected)"
                ))
            }
        }
    }
}

/// The whole names of fields in a row, such as `server.networks[].port`.
fn named_fields(fields: &'static str) -> impl Iterator<Item = String> {
    fields.lines().flat_map(|line| {
        let mut words = line.split_whitespace();
        let object = words.next().unwrap_or_default().trim_start_matches('.');
        words.map(move |word| format!("{object}{word}"))
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::includes;

    #[test]
    fn microversions_are_from_one_on_or_between_two() {
        assert!(includes("52", 52) && includes("52", 90) && !includes("52", 51));
        assert!(includes("1-56", 56) && !includes("1-56", 57));
        let read = |text: &str| text.parse::<u32>().is_ok();
        for field in ROWS.iter().flat_map(|row| named_fields(row.fields)) {
            let Some((_, versions)) = field.split_once('@') else { continue };
            assert!(versions.split('-').all(read), "{field}");
        }
    }
}
