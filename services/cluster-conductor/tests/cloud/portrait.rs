//! Describes a cluster in words that are equal for equal clusters: names replace ids and addresses.

use std::collections::BTreeMap;

use cluster_core::{ClusterSpec, machine_name};
use kubernetes::nodes::Readiness;
use openstack_emulator::{Kind, Object};
use serde_json::{Map, Value};

use crate::given::ClusterFixture;

/// The fields of each kind that are described.
const KINDS: [(Kind, &[&str]); 16] = [
    (Kind::ApplicationCredential, &["name", "description"]),
    (Kind::Network, &["name", "description"]),
    (Kind::Subnet, &["name", "network_id", "cidr", "dns_nameservers"]),
    (Kind::Router, &["name", "status"]),
    (Kind::SecurityGroup, &["name", "description"]),
    (
        Kind::SecurityGroupRule,
        &[
            "security_group_id",
            "direction",
            "ethertype",
            "protocol",
            "port_range_min",
            "port_range_max",
            "remote_group_id",
            "remote_ip_prefix",
        ],
    ),
    (Kind::ServerGroup, &["name", "policy"]),
    (
        Kind::Port,
        &[
            "name",
            "network_id",
            "security_groups",
            "allowed_address_pairs",
            "device_owner",
            "device_id",
        ],
    ),
    (Kind::LoadBalancer, &["name", "vip_port_id", "provider", "tags"]),
    (Kind::Listener, &["name", "protocol_port", "default_pool_id"]),
    (Kind::Pool, &["name", "lb_algorithm", "protocol"]),
    (Kind::Member, &["address", "protocol_port"]),
    (Kind::HealthMonitor, &["name", "type", "delay"]),
    (Kind::FloatingIp, &["description", "port_id"]),
    (Kind::Recordset, &["name", "type", "records"]),
    (Kind::Server, &["name", "status", "tags"]),
];

fn called(object: &Object) -> &str {
    match object.text("name") {
        "" => object.text("description"),
        name => name,
    }
}

fn is_id(text: &str) -> bool {
    text.len() >= 36 && text.matches('-').count() >= 4
}

impl ClusterFixture {
    /// Describes the cluster: its objects in the cloud, and its Kubernetes nodes.
    pub(crate) async fn portrait(&self) -> Vec<String> {
        let cluster = self.find().await.unwrap();
        let groups = self.store.groups_of(self.id).await.unwrap();
        let spec = ClusterSpec { cluster: &cluster, groups: &groups };
        let machine = groups[0].refs().next().unwrap();
        let first = machine_name(spec.cluster, &machine);
        let stem = first.strip_suffix(&format!("-{machine}")).unwrap();

        let mut words: BTreeMap<String, String> = BTreeMap::new();
        words.insert(self.id.to_string(), "CLUSTER".to_owned());
        for (kind, _) in KINDS {
            for object in self.of_kind(kind) {
                let name = format!("{kind:?} {}", called(&object));
                for ip in object.list("fixed_ips") {
                    let address = ip["ip_address"].as_str().unwrap_or_default().to_owned();
                    words.insert(address, format!("address of {name}"));
                }
                let floating = object.text("floating_ip_address").to_owned();
                words.insert(floating, format!("address of {name}"));
                words.insert(object.id.clone(), name);
            }
        }
        words.remove("");
        let word = |part: &str| match words.get(part) {
            Some(name) => name.clone(),
            // The cloud chooses a server's zone, and other owners name their ports freely.
            None if part.starts_with("compute:") => "compute".to_owned(),
            None if is_id(part) && !part.contains(stem) && !part.contains(&self.id.to_string()) => {
                "SOMETHING".to_owned()
            }
            None => part.to_owned(),
        };
        let plain = |text: String| {
            // Only whole words are replaced, because an address may be the start of another one.
            let text = text.split('"').map(word).collect::<Vec<_>>().join("\"");
            text.replace(&self.id.to_string(), "CLUSTER").replace(stem, "STEM")
        };

        let mut all = Vec::new();
        for (kind, fields) in KINDS {
            for object in self.of_kind(kind) {
                // The zone's own records change with every other record.
                if ["SOA", "NS"].contains(&object.text("type")) {
                    continue;
                }
                let of =
                    |field: &&str| Some(((*field).to_owned(), object.body.get(*field)?.clone()));
                let shown: Map<String, Value> = fields.iter().filter_map(of).collect();
                all.push(plain(format!("{kind:?} {}", Value::Object(shown))));
            }
        }
        for node in kubernetes::nodes::list(&self.kubernetes().await).await.unwrap() {
            let is_ready = matches!(node.readiness, Readiness::Ready { .. });
            let what = if is_ready { "ready" } else { "not ready" };
            all.push(plain(format!("node {} {what} {}", node.name, node.unschedulable)));
        }
        all.sort();
        all
    }
}
