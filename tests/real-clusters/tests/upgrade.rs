//! A cluster in use is upgraded: machines with the new version of Kubernetes join, and the old ones leave. The order is clusterd's.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use cluster_bootstrap::{ClusterSettings, inline};
use cluster_pki::{Validity, admin_kubeconfig, make_pki, new_bootstrap_token};
use compat::wait::wait_for;
use jiff::Timestamp;
use real_clusters::{
    Kubectl, NEWER, Network, VERSION, control_plane, etcd_forgets, etcd_health, set_version,
    settings, worker,
};
use serde_json::{Value, json};

/// Long, because the two processors are shared.
const PATIENCE: Duration = Duration::from_secs(600);
/// How long users may wait for an answer: etcd chooses a leader when its leader leaves, and the load balancer is started again.
const LONGEST_SILENCE: Duration = Duration::from_secs(60);

#[test]
fn a_cluster_in_use_is_upgraded_by_replacing_its_members() {
    let Some(mut network) = Network::begin("upgrade") else { return };
    let validity = Validity { now: Timestamp::now(), lifetime: Duration::from_secs(3600 * 24) };
    let pki = make_pki(&"upgrade".try_into().unwrap(), 0, validity).unwrap();
    let mut cluster = settings("upgrade", 3, pki, new_bootstrap_token());
    let kubeconfig =
        admin_kubeconfig(&cluster.name, &cluster.endpoint, &cluster.pki.cluster, validity).unwrap();
    network.balance(&cluster);
    for machine in &cluster.control_plane {
        let node = cluster_bootstrap::control_plane(&cluster, &machine.name).unwrap();
        network.boot(machine, &inline(&node).unwrap());
    }
    boot_worker(&mut network, &cluster, 1);
    let kubectl = Kubectl::new(&network, &kubeconfig);
    let old = ["cp-1", "cp-2", "cp-3", "worker-1"];
    nodes_are(&kubectl, &old.map(|name| (name, VERSION)));
    patiently("etcd of three", || etcd_health(&network, "cp-1").filter(|healthy| *healthy == 3));
    patiently("a workload", || kubectl.apply(&workload()));
    patiently("its pods", || {
        let found = kubectl.get(&["deployment", "echo"])?;
        (found["status"]["readyReplicas"] == 2).then_some(())
    });
    let user = User::begin(Kubectl::named(&network, "user.conf", kubeconfig.expose()));

    let begun = Instant::now();
    set_version(&mut cluster, NEWER);
    for number in 1..=3 {
        replace_control_plane(&mut network, &kubectl, &mut cluster, number);
        eprintln!("{number} control-plane members are replaced after {:.0?}", begun.elapsed());
    }
    let uploaded = patiently("the uploaded configuration", || {
        kubectl.get(&["configmap", "kubeadm-config", "--namespace=kube-system"])
    });
    let uploaded = uploaded["data"]["ClusterConfiguration"].as_str().unwrap();
    assert!(uploaded.contains(&format!("kubernetesVersion: {NEWER}")), "{uploaded}");
    kube_proxy_follows(&kubectl);

    boot_worker(&mut network, &cluster, 2);
    nodes_are(
        &kubectl,
        &[
            ("cp-4", NEWER),
            ("cp-5", NEWER),
            ("cp-6", NEWER),
            ("worker-1", VERSION),
            ("worker-2", NEWER),
        ],
    );
    patiently("worker-1 to be drained", || {
        kubectl.ask(&[
            "drain",
            "worker-1",
            "--ignore-daemonsets",
            "--timeout=60s",
            "--request-timeout=0",
        ])
    });
    leaves(&mut network, &kubectl, "worker-1");
    let new = ["cp-4", "cp-5", "cp-6", "worker-2"];
    nodes_are(&kubectl, &new.map(|name| (name, NEWER)));
    the_service_answers(&network, &kubectl, &new);
    let silence = user.end();
    eprintln!("upgraded after {:.0?}; the longest silence was {silence:.0?}", begun.elapsed());
    assert!(silence < LONGEST_SILENCE, "nothing answered for {silence:?}");
}

/// Waits with a pause between checks, because checks take CPU time from the machines. etcd chooses a leader now and then, and one request
/// fails, so each request of this test is made this way.
fn patiently<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    wait_for(what, PATIENCE, || {
        thread::sleep(Duration::from_secs(1));
        look()
    })
}

fn boot_worker(network: &mut Network, cluster: &ClusterSettings, number: u8) {
    let worker = worker(number);
    let node = cluster_bootstrap::worker(cluster, &worker).expect("the settings go together");
    network.boot(&worker.machine, &inline(&node).expect("it fits"));
}

/// A member with the new version joins, and one with the old version leaves, so etcd never has fewer than three members.
fn replace_control_plane(
    network: &mut Network,
    kubectl: &Kubectl,
    cluster: &mut ClusterSettings,
    number: u8,
) {
    let (old, new) = (control_plane(number), control_plane(number + 3));
    let (old, name) = (old.name.as_str(), new.name.as_str());
    cluster.control_plane.push(new.clone());
    network.balance(cluster);
    let node = cluster_bootstrap::upgrading_control_plane(cluster, &new);
    let node = node.expect("the settings go together");
    network.boot(&new, &inline(&node).expect("it fits"));
    patiently("a fourth member of etcd", || {
        etcd_health(network, name).filter(|healthy| *healthy == 4)
    });
    patiently("its API server", || {
        let pod = format!("kube-apiserver-{name}");
        let pod = kubectl.get(&["pod", "--namespace=kube-system", &pod])?;
        let is_new = pod["spec"]["containers"][0]["image"].as_str()?.ends_with(NEWER);
        let is_ready = pod["status"]["containerStatuses"][0]["ready"] == true;
        (is_new && is_ready).then_some(())
    });
    patiently("its node", || kubectl.nodes().get(name).copied().filter(|ready| *ready));

    patiently("etcd to forget the old member", || etcd_forgets(network, name, old));
    cluster.control_plane.retain(|it| it.name.as_str() != old);
    network.balance(cluster);
    leaves(network, kubectl, old);
    patiently("etcd of three", || etcd_health(network, name).filter(|healthy| *healthy == 3));
}

fn leaves(network: &mut Network, kubectl: &Kubectl, machine: &str) {
    network.destroy(machine);
    patiently("the node to be deleted", || {
        kubectl.ask(&["delete", "node", machine, "--ignore-not-found"])
    });
}

/// Waits until exactly these nodes exist with these versions, and are Ready.
fn nodes_are(kubectl: &Kubectl, want: &[(&str, &str)]) {
    patiently("the nodes with their versions", || {
        let found = kubectl.versions()?;
        let found = found.iter().map(|(name, version)| (name.as_str(), version.as_str()));
        let are_ready = kubectl.nodes().values().all(|ready| *ready);
        (found.eq(want.iter().copied()) && are_ready).then_some(())
    });
}

/// The new members upgrade kube-proxy once the last old API server is gone, and every machine runs it.
fn kube_proxy_follows(kubectl: &Kubectl) {
    patiently("the new kube-proxy", || {
        let found = kubectl.get(&["daemonset", "kube-proxy", "--namespace=kube-system"])?;
        let image = found["spec"]["template"]["spec"]["containers"][0]["image"].as_str()?;
        let status = &found["status"];
        let has_all = ["updatedNumberScheduled", "numberAvailable"]
            .iter()
            .all(|count| status[*count] == status["desiredNumberScheduled"]);
        let is_seen = status["observedGeneration"] == found["metadata"]["generation"];
        (image.ends_with(NEWER) && has_all && is_seen).then_some(())
    });
}

/// Two pods behind a Service, of which one has to run at any time.
fn workload() -> Value {
    let answer =
        "exec socat TCP-LISTEN:8080,fork,reuseaddr SYSTEM:'echo HTTP/1.0 200 OK; echo; hostname'";
    let labels = json!({"app": "echo"});
    json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "echo"},
            "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [
                    {"name": "echo", "image": "bedplate.invalid/tools:1", "command": ["sh", "-c", answer]},
                ]},
            }},
        },
        {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "echo"},
            "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]},
        },
        {
            "apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": {"name": "echo"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
        },
    ]})
}

/// The Service answers on each machine, where kube-proxy of the new version directs its packets.
fn the_service_answers(network: &Network, kubectl: &Kubectl, machines: &[&str]) {
    let service = patiently("the service", || kubectl.get(&["service", "echo"]));
    let address = service["spec"]["clusterIP"].as_str().expect("it has an address");
    let url = format!("http://{address}/");
    for machine in machines {
        patiently("an answer of the service", || {
            let answer = network.try_on(machine, &["curl", "-s", "-m", "5", &url])?;
            answer.contains("echo-").then_some(())
        });
    }
}

/// A user who asks the workload again and again, by way of the API.
struct User {
    stop: Arc<AtomicBool>,
    asks: JoinHandle<Duration>,
}

impl User {
    fn begin(kubectl: Kubectl) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stops = Arc::clone(&stop);
        let asks = thread::spawn(move || {
            let path = "--raw=/api/v1/namespaces/default/services/echo:80/proxy/";
            let (mut answered, mut silence) = (Instant::now(), Duration::ZERO);
            while !stops.load(Ordering::Relaxed) {
                if kubectl.ask(&["get", path]).is_some_and(|answer| answer.contains("echo-")) {
                    silence = silence.max(answered.elapsed());
                    answered = Instant::now();
                }
                thread::sleep(Duration::from_secs(1));
            }
            silence.max(answered.elapsed())
        });
        User { stop, asks }
    }

    /// Stops asking. Returns the longest time between two answers.
    fn end(self) -> Duration {
        self.stop.store(true, Ordering::Relaxed);
        self.asks.join().expect("asking does not fail")
    }
}
