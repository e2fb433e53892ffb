//! An index of objects by the texts in their fields, so that a list of a few objects visits only a few.
//!
//! The index covers the fields by which the APIs filter lists and by which objects refer to each other, if their values are selective.
//! Status fields and flags are not selective.

use std::collections::HashMap;

use serde_json::Value;

use crate::object::{Kind, Object};

/// The project of an object, used like a field.
pub(crate) const PROJECT: &str = "project";

/// Fields that are flags. Only set flags are indexed.
pub(crate) const FLAGS: [&str; 2] = ["shared", "router:external"];

/// The indexed fields of a kind besides the project, public or hidden.
#[rustfmt::skip]
fn fields(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Network => &["name", "tags", "subnets", "shared", "router:external"],
        Kind::Subnet => &["name", "tags", "network_id", "cidr", "gateway_ip"],
        Kind::Router | Kind::SecurityGroup | Kind::Image => &["name", "tags"],
        Kind::Port => &["name", "tags", "network_id", "mac_address", "device_id", "device_owner", "fixed_ips", "security_groups"],
        Kind::SecurityGroupRule => &["security_group_id", "remote_group_id"],
        Kind::FloatingIp => &["tags", "floating_network_id", "floating_ip_address", "fixed_ip_address", "port_id", "router_id"],
        Kind::LoadBalancer => &["name", "tags", "vip_address", "vip_port_id", "vip_subnet_id", "vip_network_id"],
        Kind::Listener => &["name", "tags", "balancer", "default_pool_id", "pools"],
        Kind::Pool => &["name", "tags", "balancer", "listeners"],
        Kind::Member => &["name", "tags", "balancer", "pool", "address", "subnet_id"],
        Kind::HealthMonitor => &["name", "tags", "balancer", "pool", "pools"],
        Kind::Server => &["name", "tags", "image", "flavor", "key_name", "user_id", "host", "provider"],
        Kind::Recordset => &["name", "zone_id"],
        Kind::Keypair | Kind::ApplicationCredential => &["name", "user"],
        Kind::Trust => &["trustor_user_id", "trustee_user_id"],
        Kind::Snapshot => &["name", "volume_id"],
        Kind::Endpoint => &["service_id", "region_id"],
        Kind::Domain | Kind::Project | Kind::User | Kind::Role | Kind::Region | Kind::Service | Kind::Flavor | Kind::ServerGroup
        | Kind::ComputeHost | Kind::Aggregate | Kind::Provider | Kind::LoadBalancerFlavor | Kind::LoadBalancerFlavorProfile
        | Kind::Zone | Kind::VolumeType | Kind::Volume => &["name"],
    }
}

/// Whether a field of a kind is indexed.
pub(crate) fn has(kind: Kind, field: &str) -> bool {
    field == PROJECT || fields(kind).contains(&field)
}

/// Whether a field of an object is this text, or contains it.
pub(crate) fn says(object: &Object, field: &str, text: &str) -> bool {
    texts(object, field).contains(&text)
}

/// All texts in a field. A flag that is set counts as the text `true`.
fn texts<'o>(object: &'o Object, field: &str) -> Vec<&'o str> {
    let mut all = Vec::new();
    if field == PROJECT {
        all.push(object.project.as_str());
        return all;
    }
    for fields in [&object.body, &object.hidden] {
        gather(fields.get(field), &mut all);
    }
    all
}

fn gather<'o>(value: Option<&'o Value>, all: &mut Vec<&'o str>) {
    match value {
        Some(Value::String(text)) => all.push(text),
        Some(Value::Bool(true)) => all.push("true"),
        Some(Value::Array(values)) => values.iter().for_each(|value| gather(Some(value), all)),
        Some(Value::Object(values)) => values.values().for_each(|value| gather(Some(value), all)),
        Some(Value::Null | Value::Bool(false) | Value::Number(_)) | None => {}
    }
}

/// The row numbers of a kind, by field and by text in the field.
#[derive(Debug, Default)]
pub(crate) struct Index {
    rows: HashMap<&'static str, HashMap<String, Vec<u64>>>,
}

impl Index {
    /// The rows whose field contains the text, the oldest first.
    pub(crate) fn rows(&self, field: &str, text: &str) -> &[u64] {
        self.rows.get(field).and_then(|said| said.get(text)).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn add(&mut self, kind: Kind, row: u64, object: &Object) {
        for field in [PROJECT].iter().chain(fields(kind)) {
            let said = self.rows.entry(field).or_default();
            for text in texts(object, field) {
                let Some(rows) = said.get_mut(text) else {
                    said.insert(text.to_owned(), vec![row]);
                    continue;
                };
                // A text that occurs twice in a field is indexed once.
                if let Err(at) = rows.binary_search(&row) {
                    rows.insert(at, row);
                }
            }
        }
    }

    /// Removes an object from the index. The object must not have changed since it was added.
    pub(crate) fn remove(&mut self, kind: Kind, row: u64, object: &Object) {
        for field in [PROJECT].iter().chain(fields(kind)) {
            let Some(said) = self.rows.get_mut(field) else { continue };
            for text in texts(object, field) {
                let Some(rows) = said.get_mut(text) else { continue };
                if let Ok(at) = rows.binary_search(&row) {
                    rows.remove(at);
                }
                if rows.is_empty() {
                    said.remove(text);
                }
            }
        }
    }
}
