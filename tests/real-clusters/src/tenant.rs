//! A user of a cloud who also has clusters of a clusterd.

use std::thread;
use std::time::{Duration, Instant};

use compat::{CommandLine, Service};
use serde_json::Value;

use crate::Cloud;

/// Each command uses a processor that the cluster also needs.
const POLL_INTERVAL: Duration = Duration::from_secs(4);

/// A user of a cloud, with `openstack` commands for the cloud and `openstack coe` commands for clusterd.
pub struct Tenant {
    /// The cloud as the user sees it.
    pub cloud: Cloud,
    /// The clusterd of the user. Dropping the value stops it.
    pub clusterd: Service,
    coe: CommandLine,
}

impl Tenant {
    /// The user of this cloud and of this clusterd.
    pub fn new(cloud: Cloud, clusterd: Service) -> Self {
        let coe = CommandLine::coe(&clusterd.url);
        Tenant { cloud, clusterd, coe }
    }

    /// Runs `openstack coe …`, which has to succeed, and returns its output.
    #[track_caller]
    pub fn done(&mut self, command: &str) -> String {
        self.coe.done(&words(command))
    }

    /// The output of an `openstack coe` command that prints JSON.
    #[track_caller]
    pub fn json(&mut self, command: &str) -> Value {
        self.coe.json(&words(command))
    }

    /// Waits until a cluster has this status. Panics at once if the cluster has failed.
    #[track_caller]
    pub fn becomes(&mut self, cluster: &str, status: &str, patience: Duration) {
        let begun = Instant::now();
        loop {
            let shown = self.json(&format!("cluster show {cluster}"));
            if shown["status"] == status {
                eprintln!("{cluster} is {status} after {:.0?}", begun.elapsed());
                return;
            }
            let failed = shown["status"].as_str().is_some_and(|it| it.ends_with("_FAILED"));
            assert!(!failed && begun.elapsed() < patience, "{cluster} is not {status}: {shown:#}");
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits until clusterd does not know a cluster any more.
    #[track_caller]
    pub fn forgets(&mut self, cluster: &str, patience: Duration) {
        let begun = Instant::now();
        while self.coe.run(&["cluster", "show", cluster]).code == 0 {
            assert!(begun.elapsed() < patience, "{cluster} is still there");
            thread::sleep(POLL_INTERVAL);
        }
        eprintln!("{cluster} is gone after {:.0?}", begun.elapsed());
    }

    /// Creates a cluster template of small servers without add-ons, with this DNS zone.
    #[track_caller]
    pub fn template(&mut self, name: &str, zone: &str) {
        self.template_of(name, zone, crate::VERSION);
    }

    /// As [`Tenant::template`], of this version of Kubernetes.
    #[track_caller]
    pub fn template_of(&mut self, name: &str, zone: &str, version: &str) {
        self.done(&format!(
            "cluster template create {name} --coe kubernetes --image tiny --flavor m1.small --master-flavor m1.small \
             --external-network public --floating-ip-disabled --master-lb-enabled --labels \
             kube_tag={version},pod_network=routes,cloud_provider_enabled=false,cinder_csi_enabled=false,\
             master_lb_floating_ip_enabled=true,dns_zone={zone},dns_node_records_enabled=true"
        ));
    }

    /// Checks that the lists of the cloud show no object of the user, except the SOA and NS recordsets of the zone.
    #[track_caller]
    pub fn nothing_is_left(&mut self, zone: &str) {
        for list in [
            "server list",
            "port list",
            "router list",
            "subnet list",
            "floating ip list",
            "loadbalancer list",
            "server group list",
            "application credential list",
            "volume list",
        ] {
            assert_eq!(self.cloud.json(list), Value::Array(Vec::new()), "openstack {list}");
        }
        // Every project has a security group `default`, which cannot be deleted.
        let groups = self.cloud.json("security group list");
        let groups: Vec<&Value> =
            groups.as_array().into_iter().flatten().map(|it| &it["Name"]).collect();
        assert_eq!(groups, ["default"]);
        let networks = self.cloud.json("network list --internal");
        assert_eq!(networks, Value::Array(Vec::new()));
        let names = self.cloud.json(&format!("recordset list {zone}"));
        let types: Vec<&Value> =
            names.as_array().into_iter().flatten().map(|it| &it["type"]).collect();
        assert!(types.iter().all(|it| **it == "NS" || **it == "SOA"), "{names:#}");
    }
}

fn words(command: &str) -> Vec<&str> {
    command.split_whitespace().collect()
}
