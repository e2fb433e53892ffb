//! The work of a site: a rack that becomes hypervisors, a cluster, VMs, and drains of the hosts below the cluster.

use api_client::baremetald::{GoalProgress, Node, Rack, RackMachine};
use api_client::clusterd::{ClusterStatus, Host, Vm};
use lab::{Lab, Machine, RackedMachine};
use openstack::compute::services;
use reqwest::Method;
use serde_json::{Value, json};

use super::client::{REPEATED, done, send};
use super::three::Three;
use crate::hypervisors::write_profile;
use crate::own_vm::until;
use crate::services::bedplate;

const RACK: &str = "/bedplate/v1/racks/r1";
const VMS: &str = "/bedplate/v1/machines";
/// The VMs that are requested.
const REQUESTED: [&str; 4] = ["vm-0", "vm-1", "vm-2", "vm-3"];

/// Enrolls so many machines as the rack r1, and returns them.
pub(super) async fn enroll(lab: &Lab, number: usize) -> Vec<RackedMachine> {
    let blueprints = (1..=number).map(|it| Machine::redfish(&format!("r1u{it}")).without_tls());
    let machines = lab.rack_all(blueprints.collect()).await;
    let rows: Vec<Value> = (1..).zip(&machines).map(|(line, one)| one.row(line)).collect();
    let manifest = json!({"name": "r1", "machines": rows});
    done(lab.api(), Method::POST, "/bedplate/v1/racks", Some(&manifest), &[409]).await;
    machines
}

/// Requests that the machines of the rack are installed, a few at a time, or become hypervisors of the cloud.
pub(super) async fn bring_up(lab: &Lab, mut goal: Value) {
    goal["limit"] = json!(3);
    done(lab.api(), Method::PUT, "/bedplate/v1/racks/r1/up", Some(&goal), &[409]).await;
}

/// Creates the profile of the hypervisors.
pub(super) async fn create_profile(three: &Three) {
    let (site, lab) = (&three.site, &three.lab);
    let file = write_profile(site.folder.path(), &site.cloud, lab.image(), "cloud-init", "300s");
    let (url, file) = (lab.api().url().as_str(), file.to_str().expect("a path is text"));
    bedplate(&["--url", url, "profile", "create", file]).await.done();
}

/// Waits until all machines of the rack are where they are to be.
pub(super) async fn is_up(lab: &Lab, number: usize) {
    // Each machine has the whole patience.
    for wanted in 1..=number {
        let there = |rack: &Rack| {
            for machine in &rack.machines {
                assert_ne!(machine.way, Some(GoalProgress::Stuck), "{machine:?}");
            }
            let has_joined = |it: &RackMachine| {
                it.hypervisor.as_ref().is_none_or(|hypervisor| hypervisor.state == "joined")
            };
            let is_there = |it: &RackMachine| it.way == Some(GoalProgress::There) && has_joined(it);
            let there = rack.machines.iter().filter(|it| is_there(&it.read)).count();
            (there >= wanted).then_some(())
        };
        lab.api().until(RACK, &format!("{wanted} machines that are up"), there).await;
    }
}

/// Creates a cluster of three masters and one worker, and waits until it is complete.
pub(super) async fn create_cluster(three: &Three) {
    request_cluster(three).await;
    is_complete(three).await;
}

/// Waits until the cluster is complete.
pub(super) async fn is_complete(three: &Three) {
    is(three, "CREATE_COMPLETE").await;
}

/// Requests a cluster of three masters and one worker.
pub(super) async fn request_cluster(three: &Three) {
    let template = json!({
        "name": "small", "coe": "kubernetes", "image_id": "fedora-coreos", "external_network_id": "public",
        "flavor_id": "m1.small", "master_flavor_id": "m1.small", "master_lb_enabled": true,
        "labels": {"kube_tag": "v1.34.1"},
    });
    let cluster =
        json!({"name": "blue", "cluster_template_id": "small", "master_count": 3, "node_count": 1});
    for (path, body) in [("/v1/clustertemplates", template), ("/v1/clusters", cluster)] {
        // Magnum permits several templates and clusters of one name, so a request whose answer was lost must not be repeated blindly.
        create_named(three, path, &body).await;
    }
}

/// Creates a cluster or template, unless one of its name exists.
async fn create_named(three: &Three, path: &str, body: &Value) {
    let name = body["name"].as_str().expect("a name");
    loop {
        match three.clusters.try_send(Method::POST, path, Some(body)).await {
            Ok(answer) if answer.status < 300 => return,
            Ok(answer) if !REPEATED.contains(&answer.status) => {
                panic!("{path}: {} {}", answer.status, answer.body)
            }
            Ok(_) | Err(_) => {}
        }
        let (found, _) = send(&three.clusters, Method::GET, &format!("{path}/{name}"), None).await;
        match found.status {
            200 => return,
            404 => {}
            status => panic!("{path}/{name}: {status} {}", found.body),
        }
    }
}

async fn is(three: &Three, status: &str) {
    let is_there = |it: &ClusterStatus| {
        assert!(!it.status.ends_with("FAILED"), "{it:?}");
        (it.status == status).then_some(())
    };
    three.clusters.until("/bedplate/v1/clusters/blue", status, is_there).await;
}

/// Lets the cluster grow by one worker.
pub(super) async fn grow_cluster(three: &Three) {
    let grown = json!([{"op": "replace", "path": "/node_count", "value": 2}]);
    done(&three.clusters, Method::PATCH, "/v1/clusters/blue", Some(&grown), &[400, 409]).await;
    is(three, "UPDATE_COMPLETE").await;
}

/// Deletes the cluster, and waits until it is gone.
pub(super) async fn delete_cluster(three: &Three) {
    done(&three.clusters, Method::DELETE, "/v1/clusters/blue", None, &[400, 404, 409]).await;
    let all = |it: &Value| it["clusters"].as_array().is_some_and(Vec::is_empty).then_some(());
    three.clusters.until("/v1/clusters", "no cluster", all).await;
}

/// Creates VMs, and waits until they run.
pub(super) async fn create_vms(three: &Three) {
    for name in REQUESTED {
        let body = json!({"name": name, "image": "cirros", "flavor": "m1.nano"});
        done(&three.clusters, Method::POST, VMS, Some(&body), &[409]).await;
    }
    for name in REQUESTED {
        let runs = |it: &Vm| {
            assert_ne!(it.status, "ERROR", "{it:?}");
            (it.status == "ACTIVE").then_some(())
        };
        three.clusters.until(&format!("{VMS}/{name}"), "a VM that runs", runs).await;
    }
}

/// Deletes the VMs, and waits until they are gone.
pub(super) async fn delete_vms(three: &Three) {
    for name in REQUESTED {
        done(&three.clusters, Method::DELETE, &format!("{VMS}/{name}"), None, &[404, 409]).await;
    }
    let none = |it: &Value| it["machines"].as_array().is_some_and(Vec::is_empty).then_some(());
    three.clusters.until(VMS, "no VM", none).await;
}

/// Enrolls the hosts that carry a member of etcd as nodes, and returns pairs of node and host.
pub(super) async fn enroll_hosts(three: &Three) -> Vec<(String, String)> {
    let all = services::list_compute(&three.site.user.session).await;
    let hosts = all.expect("the compute services").into_iter().map(|service| service.host);
    let mut pairs = Vec::new();
    // The other hosts are machines of the rack.
    for host in hosts.filter(|host| host.starts_with("compute-")) {
        let path = format!("/bedplate/v1/hosts/{host}");
        let (answer, _) = send(&three.clusters, Method::GET, &path, None).await;
        let carried: Host = answer.read("a host");
        let mut members = carried.clusters.iter().flat_map(|cluster| &cluster.machines);
        if members.any(|member| member.is_etcd_member) {
            let node = format!("below-{host}");
            enroll_host(three, &node, &host).await;
            pairs.push((node, host));
        }
    }
    assert!(pairs.len() >= 2, "{pairs:?}");
    pairs
}

/// Enrolls an installed node that is this compute host, and switches it on.
async fn enroll_host(three: &Three, name: &str, host: &str) {
    let api = three.lab.api();
    let body = json!({
        "name": name, "driver": "fake-hardware",
        "instance_info": {"hypervisor_hostname": host, "image_source": "http://images.example/disk.raw", "image_checksum": "0"},
    });
    done(api, Method::POST, "/v1/nodes", Some(&body), &[409]).await;
    for (target, state) in [("manage", "manageable"), ("adopt", "active")] {
        let path = format!("/v1/nodes/{name}/states/provision");
        let body = json!({"target": target});
        // A repetition of an accepted request is refused, because the state has changed by then.
        done(api, Method::PUT, &path, Some(&body), &[400, 409]).await;
        let reached = |it: &Node| (it.state() == state).then_some(());
        api.until(&format!("/v1/nodes/{name}"), state, reached).await;
    }
    switch(three, name, "power on").await;
}

/// Requests a power state, and waits until the node has it.
async fn switch(three: &Three, node: &str, target: &str) {
    let (path, body) = (format!("/v1/nodes/{node}/states/power"), json!({"target": target}));
    done(three.lab.api(), Method::PUT, &path, Some(&body), &[409]).await;
    let is_there = |it: &Node| (it.power_state.as_deref() == Some(target)).then_some(());
    three.lab.api().until(&format!("/v1/nodes/{node}"), target, is_there).await;
}

/// Requests that two hosts of the cluster are switched off at the same time, and takes both back when these requests have ended.
pub(super) async fn take_out_two(three: &Three, one: &(String, String), other: &(String, String)) {
    let off = json!({"target": "power off"});
    let ask = async |(node, _): &(String, String)| {
        let path = format!("/v1/nodes/{node}/states/power");
        let (answer, _) = send(three.lab.api(), Method::PUT, &path, Some(&off)).await;
        // 409: the other host is drained, or an earlier try has asked for the same.
        assert!([202, 409].contains(&answer.status), "{path}: {} {}", answer.status, answer.body);
    };
    tokio::join!(ask(one), ask(other));
    let mut off = 0;
    for (node, _) in [one, other] {
        let path = format!("/v1/nodes/{node}");
        let ended = |it: &Node| it.target_power_state.is_none().then(|| it.power_state.clone());
        let power = three.lab.api().until(&path, "the end of the request", ended).await;
        off += usize::from(power.as_deref() == Some("power off"));
    }
    assert!(off > 0, "neither {one:?} nor {other:?} was switched off");
    for (node, host) in [one, other] {
        // The node first: a host that is no longer drained may get servers.
        switch(three, node, "power on").await;
        let path = format!("/bedplate/v1/drains/{host}");
        let (ended, _) = send(&three.clusters, Method::DELETE, &path, None).await;
        // A host whose drain was refused has none.
        assert!([202, 404].contains(&ended.status), "{path}: {} {}", ended.status, ended.body);
        is_undrained(three, &path).await;
    }
}

async fn is_undrained(three: &Three, path: &str) {
    until("a host that is not drained", async || {
        let (answer, _) = send(&three.clusters, Method::GET, path, None).await;
        (answer.status == 404).then_some(())
    })
    .await;
}
