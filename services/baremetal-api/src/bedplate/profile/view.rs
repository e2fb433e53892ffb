//! A hypervisor profile in the form that clients see, with its secrets masked.

use baremetal_store::ProfileRow;
use openstack_api::{ApiError, Shape, Time};
use serde_json::{Map, Value};

use crate::secret::Masked;

/// The JSON shape of a profile in a request.
pub(super) fn asked() -> Shape {
    Shape::object([
        ("name", Shape::text()),
        ("kind", kind()),
        ("instance_info", Shape::open()),
        ("settings", settings()),
    ])
    .maybe([
        ("description", Shape::text().or_null()),
        ("joining", limits()),
        ("placement", placement()),
    ])
}

/// The JSON shape of a profile in an answer.
pub(super) fn shape() -> Shape {
    Shape::object([
        ("name", Shape::text()),
        ("description", Shape::text().or_null()),
        ("kind", kind()),
        ("instance_info", Shape::open()),
        ("settings", settings()),
        ("joining", limits()),
        ("placement", placement()),
        ("created_at", Shape::text()),
        ("updated_at", Shape::text().or_null()),
    ])
}

fn kind() -> Shape {
    Shape::word(["cloud-init", "ignition"])
}

fn settings() -> Shape {
    let maybe = || Shape::text().or_null();
    let keystone = Shape::object([
        ("auth_url", Shape::text()),
        ("username", Shape::text()),
        ("password", Shape::text()),
    ])
    .maybe([
        ("user_domain", Shape::text()),
        ("project", Shape::text()),
        ("project_domain", Shape::text()),
        ("region", maybe()),
    ]);
    let bridge = Shape::object([("bridge", Shape::text())]).maybe([("interface", maybe())]);
    let neutron = Shape::object([])
        .maybe([("bridge_mappings", Shape::map(bridge)), ("tunnels", Shape::flag())]);
    let modes = Shape::word(["host-model", "host-passthrough", "none"]);
    let compute = Shape::object([])
        .maybe([("virtualization", Shape::word(["kvm", "qemu"])), ("cpu_mode", modes.or_null())]);
    let storage =
        Shape::either(Shape::word(["qcow2", "raw"]), Shape::object([("lvm", Shape::text())]));
    let argument = Shape::object([("key", Shape::text())]).maybe([("value", maybe())]);
    let pages = Shape::object([("size", Shape::word(["2M", "1G"])), ("count", Shape::whole())]);
    let device = Shape::object([
        ("vendor_id", Shape::text()),
        ("product_id", Shape::text()),
        ("alias", Shape::text()),
    ]);
    let base = Shape::object([("url", Shape::text()), ("sha256", Shape::text())]);
    Shape::object([
        ("keystone", keystone),
        ("message_bus", Shape::object([("transport_url", Shape::text())])),
    ])
    .maybe([
        ("neutron", neutron),
        ("compute", compute),
        ("storage", storage),
        ("kernel_arguments", Shape::list(argument)),
        ("hugepages", Shape::list(pages)),
        ("iommu", Shape::word(["intel", "amd"]).or_null()),
        ("passthrough", Shape::list(device)),
        ("ssh_keys", Shape::list(Shape::text())),
        ("base_ignition", base.or_null()),
    ])
}

/// Durations in ISO 8601 such as `PT20M`; the short form `20m` is accepted too.
fn limits() -> Shape {
    Shape::object([]).maybe([
        ("compute_service", Shape::text()),
        ("hypervisor", Shape::text()),
        ("resource_provider", Shape::text()),
        ("placement", Shape::text()),
    ])
}

fn placement() -> Shape {
    let named = || {
        let place = Shape::word(["rack", "group", "rack_and_group"]);
        Shape::either(place, Shape::object([("fixed", Shape::text())])).or_null()
    };
    Shape::object([]).maybe([("availability_zone", named()), ("aggregate", named())])
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
