//! Somebody who has a cloud, and clusterd's clusters in it.

use std::thread;
use std::time::{Duration, Instant};

use compat::{CommandLine, Service};
use serde_json::Value;

use crate::Cloud;

/// A cloud's user, who has clusters of a clusterd too.
pub struct Tenant {
    /// The cloud, as the user sees it.
    pub cloud: Cloud,
    /// Ends with the value.
    pub clusterd: Service,
    coe: CommandLine,
}

impl Tenant {
    /// The user of this cloud and that clusterd.
    pub fn new(cloud: Cloud, clusterd: Service) -> Self {
        let coe = CommandLine::coe(&clusterd.url);
        Tenant { cloud, clusterd, coe }
    }

    /// `openstack coe …`, which has to succeed; its output, as text.
    #[track_caller]
    pub fn done(&mut self, command: &str) -> String {
        self.coe.done(&words(command))
    }

    /// The same for one that tells something as JSON.
    #[track_caller]
    pub fn json(&mut self, command: &str) -> Value {
        self.coe.json(&words(command))
    }

    /// Waits until a cluster has this status. One that failed is not waited for.
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
            thread::sleep(Duration::from_secs(2));
        }
    }

    /// Waits until a cluster is forgotten.
    #[track_caller]
    pub fn forgets(&mut self, cluster: &str, patience: Duration) {
        let begun = Instant::now();
        while self.coe.run(&["cluster", "show", cluster]).code == 0 {
            assert!(begun.elapsed() < patience, "{cluster} is still there");
            thread::sleep(Duration::from_secs(2));
        }
        eprintln!("{cluster} is gone after {:.0?}", begun.elapsed());
    }

    /// What a template of small machines without add-ons is made with.
    #[track_caller]
    pub fn template(&mut self, name: &str, zone: &str) {
        let version = crate::VERSION;
        self.done(&format!(
            "cluster template create {name} --coe kubernetes --image tiny --flavor m1.small --master-flavor m1.small \
             --external-network public --floating-ip-disabled --master-lb-enabled --labels \
             kube_tag={version},pod_network=routes,cloud_provider_enabled=false,cinder_csi_enabled=false,\
             master_lb_floating_ip_enabled=true,dns_zone={zone},dns_node_records_enabled=true"
        ));
    }

    /// The cloud has nothing of the user's, by its own lists, but the names that a zone always has.
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
        // Every project has one that it cannot be without.
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
