//! On a real OpenStack with fake hypervisors, a cluster of 3 + 5 is created, checked with the cloud's own tools, resized and deleted.
//! Nothing
//! runs on its servers, so the cluster never becomes complete.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use real_clusters::{Cloud, Tenant, clusterd, for_nobody};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(600);
const ZONE: &str = "eight.example.";

#[test]
fn a_cluster_of_three_and_five_comes_and_goes_in_openstack() {
    let Some(mut cloud) = Cloud::without_machines("alice") else { return };
    cloud.done(&format!("zone create --email hostmaster@eight.example {ZONE}"));
    let service = clusterd(&cloud.clouds_yaml, "alice", &for_nobody());
    let mut tenant = Tenant::new(cloud, service);
    tenant.template("small", ZONE);
    tenant.done("cluster create eight --cluster-template small --master-count 3 --node-count 5");

    servers_are(&mut tenant, 8);
    let shown = tenant.json("cluster show eight");
    assert_eq!(shown["status"], "CREATE_IN_PROGRESS");
    assert_eq!(shown["master_addresses"].as_array().map(Vec::len), Some(3), "{shown:#}");
    assert_eq!(shown["node_addresses"].as_array().map(Vec::len), Some(5), "{shown:#}");
    balanced_and_named(&mut tenant, &shown);
    kubeconfig(&mut tenant, &shown);

    tenant.done("cluster resize eight 6");
    servers_are(&mut tenant, 9);

    tenant.done("cluster delete eight");
    tenant.forgets("eight", PATIENCE);
    tenant.nothing_is_left(ZONE);
    tenant.done("cluster template delete small");
    tenant.cloud.done(&format!("zone delete {ZONE}"));
}

/// Waits until Nova has this number of servers, all of them active.
fn servers_are(tenant: &mut Tenant, count: usize) {
    let begun = Instant::now();
    loop {
        let servers = tenant.cloud.json("server list");
        let servers = servers.as_array().expect("a list");
        if servers.len() == count && servers.iter().all(|it| it["Status"] == "ACTIVE") {
            eprintln!("{count} servers after {:.0?}", begun.elapsed());
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "not {count} servers: {servers:#?}");
        thread::sleep(Duration::from_secs(2));
    }
}

/// The load balancer in Octavia has the control plane as members, and the name of the API resolves to its floating IP.
fn balanced_and_named(tenant: &mut Tenant, shown: &Value) {
    let address = shown["api_address"].as_str().expect("it has an address");
    let address = address.trim_start_matches("https://").trim_end_matches(":6443").to_owned();
    let cloud = &mut tenant.cloud;
    let floating = cloud.json("floating ip list");
    assert_eq!(floating[0]["Floating IP Address"], address);
    assert_eq!(cloud.json("loadbalancer list")[0]["provisioning_status"], "ACTIVE");
    let pool = cloud.value("loadbalancer pool list", "id");
    let members = cloud.json(&format!("loadbalancer member list {pool}"));
    let mut members: Vec<&Value> =
        members.as_array().expect("a list").iter().map(|it| &it["address"]).collect();
    let mut masters: Vec<&Value> =
        shown["master_addresses"].as_array().expect("a list").iter().collect();
    members.sort_by_key(|it| it.to_string());
    masters.sort_by_key(|it| it.to_string());
    assert_eq!(members, masters);

    assert_eq!(cloud.dig(&format!("api.eight.{ZONE}")), [address]);
    for (group, addresses) in [
        ("default-master", &shown["master_addresses"]),
        ("default-worker", &shown["node_addresses"]),
    ] {
        let addresses = addresses.as_array().expect("a list");
        let name = |number| format!("{group}-{number}.eight.{ZONE}");
        let named: Vec<String> =
            (0..addresses.len()).flat_map(|number| cloud.dig(&name(number))).collect();
        let same = addresses.iter().all(|it| named.iter().any(|name| it == name));
        assert!(same && named.len() == addresses.len(), "{named:?} {addresses:?}");
    }
}

/// The client makes a key, has clusterd sign it, and writes a kubeconfig.
fn kubeconfig(tenant: &mut Tenant, shown: &Value) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("eight");
    fs::create_dir_all(&folder).expect("a folder can be made");
    tenant.done(&format!("cluster config eight --force --dir {}", folder.display()));
    let config = fs::read_to_string(folder.join("config")).expect("the client wrote it");
    assert!(config.contains(shown["api_address"].as_str().expect("it has an address")), "{config}");
}
