//! One `openstack coe cluster create` on a real OpenStack makes a real Kubernetes cluster, which is resized and deleted without leftovers.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use api_client::clusterd::Events;
use real_clusters::{
    Cloud, Kubectl, Mirror, NEWER, Tenant, clusterd, for_machines, print_control_plane_logs,
};

/// Long, because other tests use the same processors.
const PATIENCE: Duration = Duration::from_secs(900);
const ZONE: &str = "whole.example.";

#[test]
fn a_requested_cluster_becomes_a_kubernetes_behind_its_name() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("whole");
    fs::create_dir_all(&folder).unwrap();
    // Dropped last, so that the output comes after the failure of the test.
    let _witness = PrintOnFailure(Kubectl::outside(folder.join("config")));
    let Some(mut cloud) = Cloud::with_machines("alice") else { return };
    cloud.done(&format!("zone create --email hostmaster@whole.example {ZONE}"));
    let _mirror = Mirror::serve();
    let service = clusterd(&cloud.clouds_yaml, "alice", &for_machines());
    let mut tenant = Tenant::new(cloud, service);
    tenant.template("small", ZONE);

    tenant.done("cluster create whole --cluster-template small --master-count 3 --node-count 2");
    tenant.becomes("whole", "CREATE_COMPLETE", PATIENCE);
    let shown = tenant.json("cluster show whole");
    let api = shown["api_address"].as_str().expect("it has an address");
    let address = api.trim_start_matches("https://").trim_end_matches(":6443");
    assert_eq!(tenant.cloud.dig(&format!("api.whole.{ZONE}")), [address]);

    tenant.done(&format!("cluster config whole --force --dir {}", folder.display()));
    let config = folder.join("config");
    assert!(fs::read_to_string(&config).unwrap().contains(api));
    let kubectl = Kubectl::outside(config);
    nodes_are_the_servers(&mut tenant, &kubectl, 5);

    tenant.done("cluster resize whole 3");
    tenant.becomes("whole", "UPDATE_COMPLETE", PATIENCE);
    nodes_are_the_servers(&mut tenant, &kubectl, 6);
    tenant.done("cluster resize whole 1");
    tenant.becomes("whole", "UPDATE_COMPLETE", PATIENCE);
    nodes_are_the_servers(&mut tenant, &kubectl, 4);

    the_control_plane_renews_its_certificates(&tenant, &kubectl);
    nodes_are_the_servers(&mut tenant, &kubectl, 4);

    // A user deletes the server of a control-plane member, and clusterd replaces the member.
    let before = servers(&mut tenant);
    let lost = before.iter().find(|name| name.contains("master")).expect("it has a control plane");
    tenant.cloud.done(&format!("server delete --wait {lost}"));
    let after = nodes_are_the_servers(&mut tenant, &kubectl, 4);
    assert!(!after.contains(lost), "{lost} is back: {after:?}");

    // An upgrade of four members takes eight minutes more.
    let is_soak = std::env::var_os("BEDPLATE_SOAK").is_some();
    if is_soak {
        tenant.template_of("newer", ZONE, NEWER);
        tenant.done("cluster upgrade whole newer");
        tenant.becomes("whole", "UPDATE_COMPLETE", 3 * PATIENCE);
        let upgraded = nodes_are_the_servers(&mut tenant, &kubectl, 4);
        assert!(upgraded.iter().all(|name| !after.contains(name)), "{upgraded:?}");
        let versions = kubectl.versions().unwrap();
        assert!(versions.values().all(|version| version == NEWER), "{versions:?}");
    }

    tenant.done("cluster delete whole");
    tenant.forgets("whole", PATIENCE);
    tenant.nothing_is_left(ZONE);
    assert_eq!(tenant.cloud.machines(), Vec::<String>::new());
    tenant.done("cluster template delete small");
    if is_soak {
        tenant.done("cluster template delete newer");
    }
    tenant.cloud.done(&format!("zone delete {ZONE}"));
}

/// The members that renewed their certificates, by the events of the cluster, without the first so many.
fn renewed(tenant: &Tenant, skipped: usize) -> BTreeSet<String> {
    let answer = tenant.clusterd.ask("GET", "/bedplate/v1/clusters/whole/events");
    let Events { events } = answer.read();
    let renewed = events.iter().filter(|it| it.read.reason == "CertificatesRenewed").skip(skipped);
    renewed.filter_map(|it| Some(it.read.message.split(' ').nth(1)?.to_owned())).collect()
}

/// The certificates of the control plane live for 30 minutes. Their files become an hour old, so a renewal is due, and each member renews
/// with the permission of clusterd.
fn the_control_plane_renews_its_certificates(tenant: &Tenant, kubectl: &Kubectl) {
    const AGE: &str =
        "find /etc/kubernetes -name '*.crt' -o -name '*.conf' | xargs touch -d '1 hour ago'";
    // systemd starts the unit again, which then reports at once. The pattern does not match this command.
    const REPORT: &str = "pkill -f '/etc/bedplate/authorit[i]es'";
    let (begun, before) = (Instant::now(), renewed(tenant, 0).len());
    for server in tenant.cloud.machines() {
        let command = format!("{AGE} && {REPORT}");
        assert!(tenant.cloud.try_on(&server, &["sh", "-c", &command]), "{server}");
    }
    let (mut longest, mut silent_since) = (Duration::ZERO, None);
    while renewed(tenant, before).len() < 3 {
        if kubectl.ask(&["get", "--raw=/readyz"]).is_some() {
            silent_since = None;
        } else {
            let since: Instant = *silent_since.get_or_insert_with(Instant::now);
            longest = longest.max(since.elapsed());
        }
        assert!(begun.elapsed() < PATIENCE, "only {:?} renewed", renewed(tenant, before));
        thread::sleep(Duration::from_secs(1));
    }
    let members = renewed(tenant, before);
    assert!(members.iter().all(|it| it.starts_with("default-master-")), "{members:?}");
    eprintln!(
        "three members renewed their certificates after {:.0?}; the API did not answer for {longest:.0?} at most",
        begun.elapsed()
    );
}

/// Prints the state of Kubernetes and the last output of its control plane if the test fails.
struct PrintOnFailure(Kubectl);

impl Drop for PrintOnFailure {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.tell();
            print_control_plane_logs();
        }
    }
}

/// Waits until Nova has this number of servers and Kubernetes has one Ready node for each of them and no other. Returns the names.
fn nodes_are_the_servers(tenant: &mut Tenant, kubectl: &Kubectl, count: usize) -> Vec<String> {
    let begun = Instant::now();
    loop {
        let nodes = kubectl.nodes();
        let are_ready = nodes.len() == count && nodes.values().all(|ready| *ready);
        // Nova needs long for a list of servers, so it is asked only when the nodes are ready.
        let servers = if are_ready { servers(tenant) } else { Vec::new() };
        if are_ready && nodes.keys().eq(&servers) {
            eprintln!("{count} nodes are ready after {:.0?}", begun.elapsed());
            return servers;
        }
        assert!(begun.elapsed() < PATIENCE, "nodes {nodes:?}, servers {servers:?}");
        thread::sleep(Duration::from_secs(2));
    }
}

/// The sorted names of the servers in Nova.
fn servers(tenant: &mut Tenant) -> Vec<String> {
    let servers = tenant.cloud.json("server list");
    let servers = servers.as_array().into_iter().flatten();
    let mut names: Vec<String> =
        servers.filter_map(|it| it["Name"].as_str()).map(ToOwned::to_owned).collect();
    names.sort();
    names
}
