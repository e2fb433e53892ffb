//! Three control-plane machines and two workers, booted at once, become a cluster. The cluster survives a reboot, the renewal of all of its
//! certificates and a CA rotation, lost machines are replaced, and the whole control plane is restored from a backup of etcd.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cluster_bootstrap::{
    Claim, ClusterSettings, Member, NodeConfig, Reports, inline, reporting, starting_from_backup,
    stub,
};
use cluster_pki::{Validity, admin_kubeconfig, make_pki, new_bootstrap_token};
use compat::wait::wait_for;
use jiff::Timestamp;
use real_clusters::{
    Claims, HOST, Kubectl, Network, VERSION, control_plane, etcd_forgets, etcd_health, etcdctl,
    etcdctl_words, objections, renew, rotate, settings, worker,
};
use serde_json::{Value, json};

/// Long, because the two processors are shared.
const PATIENCE: Duration = Duration::from_secs(600);

/// How soon the API of a lost control plane has to answer again, with 1 GiB in etcd.
const RESTORED_WITHIN: Duration = Duration::from_secs(180);

#[test]
fn five_machines_booted_at_once_become_a_cluster() {
    let Some(mut network) = Network::begin("three-and-two") else { return };
    let validity = Validity { now: Timestamp::now(), lifetime: Duration::from_secs(3600 * 24) };
    let name = "three-and-two".try_into().unwrap();
    let pki = make_pki(&name, 0, validity).unwrap();
    let mut cluster = settings("three-and-two", 3, pki, new_bootstrap_token());
    let kubeconfig =
        admin_kubeconfig(&cluster.name, &cluster.endpoint, &cluster.pki.cluster, validity).unwrap();

    let machines = (1..=3)
        .map(control_plane)
        .map(|it| (cluster_bootstrap::control_plane(&cluster, &it.name), it));
    let workers =
        (1..=2).map(worker).map(|it| (cluster_bootstrap::worker(&cluster, &it), it.machine));
    let nodes: Vec<(NodeConfig, _)> =
        machines.chain(workers).map(|(node, it)| (node.unwrap(), it)).collect();
    for (node, _) in &nodes {
        user_data_is_valid(node, &network);
    }

    network.balance(&cluster);
    let begun = Instant::now();
    // Every second machine has its config in its user data. The others have a claim to it.
    let claims = Claims::serve(&network);
    for (index, (node, machine)) in nodes.iter().enumerate() {
        let node = reporting(node, &claims.reports(&machine.name));
        let user_data = if index % 2 == 0 { inline(&node).unwrap() } else { claims.claim(&node) };
        network.boot(machine, &user_data);
    }
    let kubectl = Kubectl::new(&network, &kubeconfig);
    patiently("the API", || kubectl.ask(&["get", "--raw=/readyz"]));
    eprintln!("the API answers after {:?}", begun.elapsed());
    all_are_ready(&kubectl, &["cp-1", "cp-2", "cp-3", "worker-1", "worker-2"], begun);

    assert_eq!(claims.redeemed(), ["cp-2", "worker-1"]);
    etcd_has(&network, &["cp-1", "cp-2", "cp-3"]);
    control_plane_and_workers_are_told_apart(&kubectl);
    a_deployment_answers_through_a_service(&network, &kubectl);
    the_api_has_each_api_server(&kubectl);
    kubeadm_knows_the_cluster(&network);

    network.reboot("cp-1");
    let begun = Instant::now();
    patiently("cp-1's way back", || etcd_health(&network, "cp-1").filter(|healthy| *healthy == 3));
    all_are_ready(&kubectl, &["cp-1", "cp-2", "cp-3", "worker-1", "worker-2"], begun);
    let log = network.log("cp-1", "runner");
    for unit in ["bedplate-unpack", "bedplate-control-plane", "bedplate-once", "bedplate-mark"] {
        assert!(log.contains(&format!("{unit}.service: skipped")), "{unit} was done twice:\n{log}");
    }

    let members: Vec<Member> = nodes.iter().map(|(_, machine)| machine.clone()).collect();
    every_member_renews_its_certificates(&network, &claims, &kubectl, &members);
    let begun = Instant::now();
    all_are_ready(&kubectl, &["cp-1", "cp-2", "cp-3", "worker-1", "worker-2"], begun);

    let begun = Instant::now();
    let kubectl = rotate(&network, &claims, &mut cluster, &["worker-1", "worker-2"], validity);
    all_are_ready(&kubectl, &["cp-1", "cp-2", "cp-3", "worker-1", "worker-2"], begun);
    etcd_has(&network, &["cp-1", "cp-2", "cp-3"]);
    echo_answers(&network, &kubectl, 2, &["cp-1", "cp-3", "worker-1", "worker-2"]);

    a_lost_member_is_replaced(&mut network, &kubectl, &mut cluster);
    patiently("the deployment to be scaled", || {
        kubectl.ask(&["scale", "deployment/echo", "--replicas=3"])
    });
    echo_answers(&network, &kubectl, 3, &["cp-2", "cp-4", "worker-3"]);

    let is_soak = std::env::var_os("BEDPLATE_SOAK").is_some();
    if is_soak {
        etcd_grows(&network, 1024);
    }
    // The rotation had four revisions.
    let took = a_lost_control_plane_is_restored(&mut network, &claims, &kubectl, (&cluster, 4));
    assert!(!is_soak || took <= RESTORED_WITHIN, "the API answers only after {took:?}");
    // New pods and their addresses reach the kubelets and kube-proxies of the workers, which ran all the time.
    patiently("the deployment to be stopped", || {
        kubectl.ask(&["scale", "deployment/echo", "--replicas=0"])
    });
    patiently("the end of its pods", || {
        let pods = kubectl.get(&["pods", "-l", "app=echo"])?;
        pods["items"].as_array()?.is_empty().then_some(())
    });
    patiently("the deployment to be scaled", || {
        kubectl.ask(&["scale", "deployment/echo", "--replicas=3"])
    });
    echo_answers(&network, &kubectl, 3, &["cp-1", "cp-4", "worker-1", "worker-3"]);
}

/// Waits with a pause between checks, because checks take CPU time from the machines. On busy processors etcd chooses a leader now and then
/// and one request fails, so each request of this test is made this way.
fn patiently<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    wait_for(what, PATIENCE, || {
        thread::sleep(Duration::from_secs(1));
        look()
    })
}

fn user_data_is_valid(node: &NodeConfig, network: &Network) {
    let check = |what: &str, text: &str| {
        let said = objections(&format!("{}-{what}", node.machine), text, &network.state());
        assert_eq!(said, "", "{} {what}", node.machine);
    };
    let inline = inline(node).expect("it is there");
    let claim = Claim {
        url: format!("https://{HOST}/ignition/{}", node.machine).parse().expect("it is there"),
        token: "not-a-secret".to_owned().into(),
        authority: "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n".to_owned(),
    };
    let stub = stub(&claim).expect("it is there");
    let whole = ignition::json(&node.config);
    eprintln!(
        "{}: {} bytes, inline {}, stub {}",
        node.machine,
        whole.len(),
        inline.base64().len(),
        stub.base64().len()
    );
    check("whole", &whole);
    check("inline", inline.text());
    check("stub", stub.text());
}

fn all_are_ready(kubectl: &Kubectl, want: &[&str], begun: Instant) {
    patiently("all nodes to be ready", || {
        let mut ready = kubectl.ready_nodes();
        ready.sort();
        (ready == want).then_some(())
    });
    eprintln!("all are ready after {:?}", begun.elapsed());
}

fn etcd_members(network: &Network) -> Vec<Value> {
    patiently("the members of etcd", || {
        etcdctl(network, "cp-2", &["member", "list"])?["members"].as_array().cloned()
    })
}

fn etcd_has(network: &Network, want: &[&str]) {
    let members = etcd_members(network);
    let mut names: Vec<&str> = members.iter().filter_map(|it| it["name"].as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, want);
    assert!(members.iter().all(|it| it["isLearner"] != true), "{members:?}");
    patiently("healthy members of etcd", || {
        etcd_health(network, "cp-2").filter(|healthy| *healthy == want.len())
    });
}

/// One member after the other renews its certificates, as clusterd permits it. Meanwhile the deployment answers every request.
fn every_member_renews_its_certificates(
    network: &Network,
    claims: &Claims,
    kubectl: &Kubectl,
    members: &[Member],
) {
    let service = patiently("the service", || kubectl.get(&["service", "echo"]));
    let url = format!("http://{}/", service["spec"]["clusterIP"].as_str().expect("an address"));
    let is_over = AtomicBool::new(false);
    let asks = || {
        let (mut asked, mut failed) = (0, 0);
        while !is_over.load(Ordering::Relaxed) {
            let begun = Instant::now();
            let answer = network.try_on("worker-1", &["curl", "-sf", "-m", "10", &url]);
            if answer.is_none() {
                eprintln!("request {asked} failed after {:?}", begun.elapsed());
            }
            (asked, failed) = (asked + 1, failed + u32::from(answer.is_none()));
            thread::sleep(Duration::from_millis(200));
        }
        (asked, failed)
    };
    let (asked, failed) = thread::scope(|scope| {
        let asking = scope.spawn(asks);
        // The requests end also if a renewal fails.
        let _end = SetWhenDropped(&is_over);
        for machine in members {
            renew(network, claims, machine);
            etcd_has(network, &["cp-1", "cp-2", "cp-3"]);
        }
        is_over.store(true, Ordering::Relaxed);
        asking.join().expect("the requests end")
    });
    eprintln!("{failed} of {asked} requests failed while certificates were renewed");
    assert_eq!(failed, 0);
}

struct SetWhenDropped<'a>(&'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does what clusterd does for a lost member: removes it from etcd, from Kubernetes and from the load balancer, then boots a replacement.
fn a_lost_member_is_replaced(
    network: &mut Network,
    kubectl: &Kubectl,
    cluster: &mut ClusterSettings,
) {
    network.destroy("cp-3");
    patiently("etcd to forget cp-3", || etcd_forgets(network, "cp-2", "cp-3"));
    let forgets = ["delete", "node", "cp-3", "--ignore-not-found"];
    patiently("the cluster to forget cp-3", || kubectl.ask(&forgets));

    let another = control_plane(4);
    cluster.control_plane[2] = another.clone();
    network.balance(cluster);
    let begun = Instant::now();
    let node = cluster_bootstrap::joining_control_plane(cluster, &another);
    let node = node.expect("the settings go together");
    network.boot(&another, &inline(&node).expect("it fits"));
    let third = worker(3);
    let node = cluster_bootstrap::worker(cluster, &third).expect("the settings go together");
    network.boot(&third.machine, &inline(&node).expect("it fits"));
    all_are_ready(kubectl, &["cp-1", "cp-2", "cp-4", "worker-1", "worker-2", "worker-3"], begun);
    patiently("cp-4 in etcd", || etcd_health(network, "cp-4").filter(|healthy| *healthy == 3));
    etcd_has(network, &["cp-1", "cp-2", "cp-4"]);
}

/// Adds so many MiB to the data of etcd, beside those of Kubernetes.
fn etcd_grows(network: &Network, size: u32) {
    let put = etcdctl_words().join(" ");
    // etcd chooses a leader now and then, and loses the call.
    let script = format!(
        "value=$(head -c 1048576 /dev/zero | tr '\\0' x); for key in $(seq {size}); do \
         until printf %s \"$value\" | {put} put \"/filler/$key\" >/dev/null; do sleep 1; done; done"
    );
    let begun = Instant::now();
    network.try_on("cp-1", &["bash", "-c", &script]).expect("a shell runs");
    eprintln!("etcd grew by {size} MiB in {:?}", begun.elapsed());
}

/// Saves and tests a backup, loses all control-plane machines, and boots new ones of the same names that start from the backup.
fn a_lost_control_plane_is_restored(
    network: &mut Network,
    claims: &Claims,
    kubectl: &Kubectl,
    (cluster, holds): (&ClusterSettings, u32),
) -> Duration {
    let begun = Instant::now();
    let note = |name: &str| {
        let is_there = || kubectl.ask(&["get", "configmap", name]);
        patiently(name, || kubectl.ask(&["create", "configmap", name]).or_else(is_there));
    };
    let uid = |name: &str| -> Option<String> {
        Some(kubectl.get(&["node", name])?["metadata"]["uid"].as_str()?.to_owned())
    };
    note("before");
    let backup = "b-1";
    assert_eq!(claims.work("cp-1", "save", backup), None);
    assert_eq!(claims.work("cp-2", "test", backup).as_deref(), Some("result=success&message="));
    let size = claims.snapshot_size(backup).expect("cp-1 sent it");
    eprintln!("a backup of {size} bytes was saved and tested after {:?}", begun.elapsed());
    note("after");
    let names = cluster.control_plane.iter().map(|it| it.name.as_str());
    let nodes: BTreeMap<&str, String> =
        names.map(|name| (name, patiently("the node", || uid(name)))).collect();

    for machine in &cluster.control_plane {
        network.destroy(machine.name.as_str());
    }
    let begun = Instant::now();
    for machine in &cluster.control_plane {
        let node = cluster_bootstrap::control_plane(cluster, &machine.name).expect("it is one");
        let reports = Reports { holds, ..claims.reports(&machine.name) };
        let node = starting_from_backup(&reporting(&node, &reports), backup);
        network.boot(machine, &claims.claim(&node));
    }
    patiently("the restored API", || kubectl.ask(&["get", "--raw=/readyz"]));
    let took = begun.elapsed();
    eprintln!("the restored API answers after {took:?}");
    let all = ["cp-1", "cp-2", "cp-4", "worker-1", "worker-2", "worker-3"];
    for name in &all[..3] {
        patiently("the nodes of the lost machines to be replaced", || {
            uid(name).filter(|it| *it != nodes[*name]).map(drop)
        });
    }
    all_are_ready(kubectl, &all, begun);
    etcd_has(network, &["cp-1", "cp-2", "cp-4"]);
    let found = patiently("the notes", || kubectl.get(&["configmaps"]));
    let found = found["items"].as_array().expect("it is a list");
    let names: Vec<&str> = found.iter().filter_map(|it| it["metadata"]["name"].as_str()).collect();
    assert!(names.contains(&"before") && !names.contains(&"after"), "{names:?}");
    took
}

fn control_plane_and_workers_are_told_apart(kubectl: &Kubectl) {
    let nodes = patiently("the control plane's marks", || {
        let nodes = kubectl.get(&["nodes", "-l", "node-role.kubernetes.io/master"])?;
        (nodes["items"].as_array()?.len() == 3).then_some(nodes)
    });
    for node in nodes["items"].as_array().expect("it is there") {
        assert_eq!(
            node["spec"]["taints"][0]["effect"], "NoSchedule",
            "{}",
            node["metadata"]["name"]
        );
    }
    let racks =
        patiently("the nodes of a rack", || kubectl.get(&["nodes", "-l", "example.org/rack=r2"]));
    assert_eq!(racks["items"][0]["metadata"]["name"], "worker-2");
}

fn a_deployment_answers_through_a_service(network: &Network, kubectl: &Kubectl) {
    let answer = "exec socat TCP-LISTEN:8080,fork,reuseaddr SYSTEM:'read request; echo HTTP/1.0 200 OK; echo; hostname'";
    let labels = json!({"app": "echo"});
    let manifest = json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "echo"},
            "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
                        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": labels}}],
                    "containers": [{"name": "echo", "image": "bedplate.invalid/tools:1", "command": ["sh", "-c", answer]}],
                },
            }},
        },
        {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "echo"},
            "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]},
        },
    ]});
    patiently("the manifest to be applied", || kubectl.apply(&manifest));
    echo_answers(network, kubectl, 2, &["cp-1", "cp-3", "worker-1", "worker-2"]);
}

/// Every pod answers through the service, both to machines and to a pod. The second needs routing of pod packets between machines.
fn echo_answers(network: &Network, kubectl: &Kubectl, count: usize, machines: &[&str]) {
    patiently("the rollout of the deployment", || {
        kubectl
            .ask(&["rollout", "status", "deployment/echo", "--watch=false"])
            .filter(|reported| reported.contains("successfully rolled out"))
    });
    let service = patiently("the service", || kubectl.get(&["service", "echo"]));
    let address = service["spec"]["clusterIP"].as_str().expect("it has an address");
    let url = format!("http://{address}/");
    let pods = patiently("the pods", || kubectl.get(&["pods", "-l", "app=echo"]));
    let pods = pods["items"].as_array().cloned().expect("it is a list");
    let pods: Vec<&str> = pods.iter().filter_map(|it| it["metadata"]["name"].as_str()).collect();
    assert_eq!(pods.len(), count);
    let curl = ["curl", "-s", "-m", "5", &url];
    for machine in machines {
        every_pod_answers(&pods, || network.try_on(machine, &curl));
    }
    let within = ["exec", pods[0], "--"].into_iter().chain(curl).collect::<Vec<_>>();
    every_pod_answers(&pods, || kubectl.ask(&within));
}

fn every_pod_answers(pods: &[&str], mut ask: impl FnMut() -> Option<String>) {
    let mut missing: Vec<&str> = pods.to_vec();
    wait_for("an answer of every pod", PATIENCE, || {
        let answer = ask()?;
        missing.retain(|pod| !answer.trim().ends_with(pod));
        missing.is_empty().then_some(())
    });
}

/// kubeadm finds the API server of each machine by its pod. A kubelet that starts before its Kubernetes node exists reports its static pods
/// a
/// minute later.
fn the_api_has_each_api_server(kubectl: &Kubectl) {
    patiently("a pod of each API server", || {
        let pods = kubectl.get(&["pods", "-n", "kube-system", "-l", "component=kube-apiserver"])?;
        (pods["items"].as_array()?.len() == 3).then_some(())
    });
}

/// Checks the first step of `kubeadm upgrade`.
fn kubeadm_knows_the_cluster(network: &Network) {
    let upgrade = ["kubeadm", "upgrade", "node", "--dry-run", "--ignore-preflight-errors=all"];
    let plan = patiently("the plan of an upgrade", || network.try_on("cp-2", &upgrade));
    let begins =
        format!("Upgrading your Static Pod-hosted control plane instance to version \"{VERSION}\"");
    assert!(plan.contains(&begins), "{plan}");
    let list = ["kubeadm", "token", "list"];
    let tokens = patiently("the bootstrap tokens", || network.try_on("cp-3", &list));
    assert_eq!(tokens.lines().count(), 2, "{tokens}");
}
