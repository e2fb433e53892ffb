//! Which objects say what, so that a list of a few looks at a few.
//!
//! What is kept is what the APIs' lists can be filtered by and what leads from one object to others, as far as it tells some of many:
//! a status or a flag does not.

use std::collections::HashMap;

use serde_json::Value;

use crate::store::{Kind, Object};

/// The project an object belongs to, as a field.
pub(crate) const PROJECT: &str = "project";

/// Fields that are flags: only that one is set is kept.
pub(crate) const FLAGS: [&str; 2] = ["shared", "router:external"];

/// The fields of a kind that are kept besides the project, shown or not.
fn fields(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Network => &["name", "tags", "subnets", "shared", "router:external"],
        Kind::Subnet => &["name", "tags", "network_id", "cidr", "gateway_ip"],
        Kind::Router | Kind::SecurityGroup | Kind::Image => &["name", "tags"],
        Kind::Port => &[
            "name",
            "tags",
            "network_id",
            "mac_address",
            "device_id",
            "device_owner",
            "fixed_ips",
            "security_groups",
        ],
        Kind::SecurityGroupRule => &["security_group_id", "remote_group_id"],
        Kind::FloatingIp => &[
            "tags",
            "floating_network_id",
            "floating_ip_address",
            "fixed_ip_address",
            "port_id",
            "router_id",
        ],
        Kind::LoadBalancer => {
            &["name", "tags", "vip_address", "vip_port_id", "vip_subnet_id", "vip_network_id"]
        }
        Kind::Listener => &["name", "tags", "balancer", "default_pool_id", "pools"],
        Kind::Pool => &["name", "tags", "balancer", "listeners"],
        Kind::Member => &["name", "tags", "balancer", "pool", "address", "subnet_id"],
        Kind::HealthMonitor => &["name", "tags", "balancer", "pool", "pools"],
        Kind::Server => {
            &["name", "tags", "image", "flavor", "key_name", "user_id", "host", "provider"]
        }
        Kind::Recordset => &["name", "zone_id"],
        Kind::Keypair | Kind::ApplicationCredential => &["name", "user"],
        Kind::Trust => &["trustor_user_id", "trustee_user_id"],
        Kind::Snapshot => &["name", "volume_id"],
        Kind::Endpoint => &["service_id", "region_id"],
        Kind::Domain
        | Kind::Project
        | Kind::User
        | Kind::Role
        | Kind::Region
        | Kind::Service
        | Kind::Flavor
        | Kind::ServerGroup
        | Kind::ComputeHost
        | Kind::Aggregate
        | Kind::Provider
        | Kind::LoadBalancerFlavor
        | Kind::LoadBalancerFlavorProfile
        | Kind::Zone
        | Kind::VolumeType
        | Kind::Volume => &["name"],
    }
}

/// Whether an index is kept of that field of a kind.
pub(crate) fn has(kind: Kind, field: &str) -> bool {
    field == PROJECT || fields(kind).contains(&field)
}

/// Whether an object says that in a field: as its text, or as one of those in it.
pub(crate) fn says(object: &Object, field: &str, text: &str) -> bool {
    texts(object, field).contains(&text)
}

/// Every text in a field; `true` for one that is.
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

/// The rows of a kind, by field and by what they say in it.
#[derive(Debug, Default)]
pub(crate) struct Index {
    rows: HashMap<&'static str, HashMap<String, Vec<u64>>>,
}

impl Index {
    /// Those that say that in a field, the oldest first.
    pub(crate) fn rows(&self, field: &str, text: &str) -> &[u64] {
        self.rows.get(field).and_then(|said| said.get(text)).map_or(&[], Vec::as_slice)
    }

    /// Adds what an object says.
    pub(crate) fn add(&mut self, kind: Kind, row: u64, object: &Object) {
        for field in [PROJECT].iter().chain(fields(kind)) {
            let said = self.rows.entry(field).or_default();
            for text in texts(object, field) {
                let Some(rows) = said.get_mut(text) else {
                    said.insert(text.to_owned(), vec![row]);
                    continue;
                };
                // Said twice, it is there once.
                if let Err(at) = rows.binary_search(&row) {
                    rows.insert(at, row);
                }
            }
        }
    }

    /// Takes out what an object says, which was added as it is.
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
