//! Three machines are compute hosts, and each runs an etcd member of one cluster. If two of the members cannot move, only one of their
//! hosts may be taken out.
//!
//! baremetald, clusterd and `bedplate` run as programs; the cloud is emulated.

use api_client::baremetald::{History, HistoryEvent};
use api_client::clusterd::{Drain, Host};
use openstack::compute::services;
use reqwest::Method;
use serde_json::{Value, json};

use crate::own_vm::until;
use crate::services::Services;

/// How often both hosts are requested at the same time.
const RACES: usize = 5;

/// A node, and its name as a compute host.
struct Machine {
    node: &'static str,
    host: String,
}

impl Machine {
    fn power(&self) -> String {
        format!("/v1/nodes/{}/states/power", self.node)
    }
}

/// Creates a cluster of three members on three machines. No other host can take the members.
async fn three_machines(given: &Services) -> Vec<Machine> {
    let template = json!({
        "name": "small", "coe": "kubernetes", "image_id": "fedora-coreos", "external_network_id": "public",
        "flavor_id": "m1.small", "master_flavor_id": "m1.small", "master_lb_enabled": true,
        "labels": {"kube_tag": "v1.34.1"},
    });
    let cluster =
        json!({"name": "blue", "cluster_template_id": "small", "master_count": 3, "node_count": 1});
    for (path, body) in [("/v1/clustertemplates", template), ("/v1/clusters", cluster)] {
        given.clusters.api.create(path, &body).await;
    }
    given.bedplate(&["cluster", "show", "blue", "--wait"]).await.done();

    given.clusters.disable_other_hosts("none").await;
    let all = services::list_compute(&given.clusters.site.user.session).await;
    let mut machines = Vec::new();
    let mut names = ["r1u01", "r1u02", "r1u03"].into_iter();
    for service in all.expect("the compute services") {
        let host = service.host;
        let carried: Host = given.clusters.api.get(&format!("/bedplate/v1/hosts/{host}")).await;
        let members = carried.clusters.iter().flat_map(|cluster| &cluster.machines);
        match members.filter(|member| member.is_etcd_member).count() {
            0 => {}
            1 => {
                let node = names.next().expect("three hosts have members");
                given.enroll(node, &host).await;
                machines.push(Machine { node, host });
            }
            more => panic!("{more} members on one host: {carried:?}"),
        }
    }
    assert_eq!(machines.len(), 3);
    machines
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_one_of_two_hosts_with_etcd_members_can_be_taken_out() {
    let given = Services::start().await;
    let machines = three_machines(&given).await;
    let off = json!({"target": "power off"});
    let is_lost = "cluster blue";
    let undrained = async |machine: &Machine| {
        given.bedplate(&["undrain", &machine.host, "--wait"]).await.done();
    };
    let node = async |machine: &Machine| given.node(machine.node).await;
    let is_draining = async |machine: &Machine| {
        let path = format!("/bedplate/v1/drains/{}", machine.host);
        given.clusters.api.find::<Drain>(&path).await.is_some()
    };
    let ask = async |method: Method, path: &str, body: &Value| {
        let answer = given.machines.send(method, path, Some(body)).await;
        (answer.status, answer.body.to_string())
    };
    let is_refused = async |machine: &Machine| {
        let error = node(machine).await.last_error.unwrap_or_default();
        // The node has a lessee by now, who must not learn whose servers run on the node.
        let words = [is_lost, "servers of other projects"];
        error.contains("was not carried out") && words.iter().any(|word| error.contains(word))
    };
    let takes_back = async |machine: &Machine| {
        undrained(machine).await;
        until("the request to end with its drain", async || {
            node(machine).await.target_power_state.is_none().then_some(())
        })
        .await;
    };

    for (first, second) in [(0, 1), (1, 0)] {
        let (first, second) = (&machines[first], &machines[second]);
        let (status, said) = ask(Method::PUT, &first.power(), &off).await;
        assert_eq!(status, 202, "{said}");
        until("its drain", async || is_draining(first).await.then_some(())).await;
        let target = node(first).await.target_power_state;
        assert_eq!(target.as_deref(), Some("power off"), "nothing of it moves");

        // Every request that would take the second host out is refused, with the reason.
        let provision = format!("/v1/nodes/{}/states/provision", second.node);
        let maintenance = format!("/v1/nodes/{}/maintenance", second.node);
        let patch = json!([{"op": "replace", "path": "/maintenance", "value": true}]);
        for (method, path, body) in [
            (Method::PUT, second.power(), off.clone()),
            (Method::PUT, second.power(), json!({"target": "rebooting"})),
            (Method::PUT, provision.clone(), json!({"target": "rebuild"})),
            (Method::PUT, provision, json!({"target": "deleted"})),
            (Method::PUT, maintenance, json!({"reason": "a fan"})),
            (Method::PATCH, format!("/v1/nodes/{}", second.node), patch),
        ] {
            let (status, said) = ask(method, &path, &body).await;
            assert_eq!(status, 409, "{path} {body}: {said}");
            for part in [is_lost, "would have 1 of its 3 etcd members and needs 2", &first.host] {
                assert!(said.contains(part), "{path} {body}: {part:?} in {said}");
            }
        }
        given.bedplate(&["drain", &second.host]).await.refused(&[is_lost, "etcd members"]);
        let maintain = ["node", "maintain", second.node];
        given.bedplate(&maintain).await.refused(&[is_lost, "etcd members"]);
        let shown = node(second).await;
        assert!(!shown.maintenance, "{shown:?}");
        assert!(shown.target_power_state.is_none() && !is_draining(second).await, "{shown:?}");

        // The end of a lease does not take the host out either.
        let on = json!({"target": "power on"});
        let (status, said) = ask(Method::PUT, &second.power(), &on).await;
        assert_eq!(status, 202, "{said}");
        given
            .bedplate(&["node", "lend", second.node, "--to", "somebody", "--for", "1s"])
            .await
            .done();
        until("the end of its lease to wait", async || {
            let path = format!("/v1/nodes/{}/history?detail=true", second.node);
            let History { history } = given.machines.get(&path).await;
            // The lessee reads the history, and is not told whose cluster it is.
            let words =
                "but the node cannot be taken out yet: the host carries servers of other projects";
            let waits = |it: &HistoryEvent| {
                it.event.contains("the lease ended at ") && it.event.contains(words)
            };
            history.iter().any(waits).then_some(())
        })
        .await;
        given.bedplate(&["node", "undo", second.node]).await.done();

        // Ending the drain also cancels the request.
        takes_back(first).await;
        // Maintenance of the first host is allowed, and drains the host.
        given.bedplate(&["node", "maintain", first.node, "--reason", "a fan"]).await.done();
        until("its drain", async || is_draining(first).await.then_some(())).await;
        // When maintenance ends, the host is undrained.
        given.bedplate(&["node", "maintain", first.node, "--end"]).await.done();
        until("the end of its drain", async || (!is_draining(first).await).then_some(())).await;
    }

    let [one, other, _] = &machines[..] else { panic!("three") };
    for _ in 0..RACES {
        let (path, second) = (one.power(), other.power());
        let (first, second) =
            tokio::join!(ask(Method::PUT, &path, &off), ask(Method::PUT, &second, &off),);
        // Exactly one request is refused: in its answer, or on its node if both were recorded before either drain was granted.
        let refused = [(one, first), (other, second)].map(|(machine, (status, said))| {
            assert!(status == 202 || (status == 409 && said.contains(is_lost)), "{status} {said}");
            (machine, status == 409)
        });
        let winner = until("one of the two to be refused", async || {
            let lost =
                [refused[0].1 || is_refused(one).await, refused[1].1 || is_refused(other).await];
            assert_ne!(lost, [true, true], "one of the two is drained");
            match lost {
                [false, true] if is_draining(one).await => Some(one),
                [true, false] if is_draining(other).await => Some(other),
                _ => None,
            }
        })
        .await;
        takes_back(winner).await;
    }

    // Naming the cluster in `force` permits its disruption; naming the host skips the check.
    let (status, said) = ask(Method::PUT, &one.power(), &off).await;
    assert_eq!(status, 202, "{said}");
    until("its drain", async || is_draining(one).await.then_some(())).await;
    let reported =
        given.bedplate(&["node", "maintain", other.node, "--force", "blue"]).await.done();
    assert!(reported.contains(&other.host), "{reported}");
    let forced = format!("{}?force={}", other.power(), other.host);
    let (status, said) = ask(Method::PUT, &forced, &off).await;
    assert_eq!(status, 202, "{said}");
}
