//! A hypervisor profile in the form that clients see, with its secrets masked.

use baremetal_store::ProfileRow;
use openstack_api::{ApiError, JsonShape, Time};
use serde_json::{Map, Value};

use crate::secret::Masked;

/// The JSON shape of a profile in a request.
pub(super) fn asked() -> JsonShape {
    JsonShape::object([
        ("name", JsonShape::text()),
        ("kind", kind()),
        ("instance_info", JsonShape::any_object()),
        ("settings", settings()),
    ])
    .maybe([
        ("description", JsonShape::text().or_null()),
        ("joining", limits()),
        ("placement", placement()),
    ])
}

/// The JSON shape of a profile in an answer.
pub(super) fn shape() -> JsonShape {
    JsonShape::object([
        ("name", JsonShape::text()),
        ("description", JsonShape::text().or_null()),
        ("kind", kind()),
        ("instance_info", JsonShape::any_object()),
        ("settings", settings()),
        ("joining", limits()),
        ("placement", placement()),
        ("created_at", JsonShape::text()),
        ("updated_at", JsonShape::text().or_null()),
    ])
}

fn kind() -> JsonShape {
    JsonShape::enumeration(["cloud-init", "ignition"])
}

fn settings() -> JsonShape {
    let maybe = || JsonShape::text().or_null();
    let keystone = JsonShape::object([
        ("auth_url", JsonShape::text()),
        ("username", JsonShape::text()),
        ("password", JsonShape::text()),
    ])
    .maybe([
        ("user_domain", JsonShape::text()),
        ("project", JsonShape::text()),
        ("project_domain", JsonShape::text()),
        ("region", maybe()),
    ]);
    let bridge = JsonShape::object([("bridge", JsonShape::text())]).maybe([("interface", maybe())]);
    let neutron = JsonShape::object([])
        .maybe([("bridge_mappings", JsonShape::map(bridge)), ("tunnels", JsonShape::boolean())]);
    let modes = JsonShape::enumeration(["host-model", "host-passthrough", "none"]);
    let compute = JsonShape::object([]).maybe([
        ("virtualization", JsonShape::enumeration(["kvm", "qemu"])),
        ("cpu_mode", modes.or_null()),
    ]);
    let storage = JsonShape::either(
        JsonShape::enumeration(["qcow2", "raw"]),
        JsonShape::object([("lvm", JsonShape::text())]),
    );
    let argument = JsonShape::object([("key", JsonShape::text())]).maybe([("value", maybe())]);
    let pages = JsonShape::object([
        ("size", JsonShape::enumeration(["2M", "1G"])),
        ("count", JsonShape::integer()),
    ]);
    let device = JsonShape::object([
        ("vendor_id", JsonShape::text()),
        ("product_id", JsonShape::text()),
        ("alias", JsonShape::text()),
    ]);
    let base = JsonShape::object([("url", JsonShape::text()), ("sha256", JsonShape::text())]);
    JsonShape::object([
        ("keystone", keystone),
        ("message_bus", JsonShape::object([("transport_url", JsonShape::text())])),
    ])
    .maybe([
        ("neutron", neutron),
        ("compute", compute),
        ("storage", storage),
        ("kernel_arguments", JsonShape::list(argument)),
        ("hugepages", JsonShape::list(pages)),
        ("iommu", JsonShape::enumeration(["intel", "amd"]).or_null()),
        ("passthrough", JsonShape::list(device)),
        ("ssh_keys", JsonShape::list(JsonShape::text())),
        ("base_ignition", base.or_null()),
    ])
}

/// Durations in ISO 8601 such as `PT20M`; the short form `20m` is accepted too.
fn limits() -> JsonShape {
    JsonShape::object([]).maybe([
        ("compute_service", JsonShape::text()),
        ("hypervisor", JsonShape::text()),
        ("resource_provider", JsonShape::text()),
        ("placement", JsonShape::text()),
    ])
}

fn placement() -> JsonShape {
    let named = || {
        let place = JsonShape::enumeration(["rack", "group", "rack_and_group"]);
        JsonShape::either(place, JsonShape::object([("fixed", JsonShape::text())])).or_null()
    };
    JsonShape::object([]).maybe([("availability_zone", named()), ("aggregate", named())])
}

/// Returns the profile with its secrets masked.
pub(super) fn of(row: &ProfileRow) -> Result<Value, ApiError> {
    let document = serde_json::to_value(&row.profile).map_err(unreadable)?;
    let nothing = Map::new();
    let masked = Masked(document.as_object().unwrap_or(&nothing));
    let mut shown = serde_json::to_value(masked).map_err(unreadable)?;
    let time = |at| serde_json::to_value(at).map_err(unreadable);
    shown["created_at"] = time(Some(Time(row.created_at)))?;
    shown["updated_at"] = time(row.updated_at.map(Time))?;
    Ok(shown)
}

pub(super) fn unreadable(why: serde_json::Error) -> ApiError {
    ApiError::broken(format!("cannot serialize the profile: {why}"))
}
