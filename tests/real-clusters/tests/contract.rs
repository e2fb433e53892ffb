//! Runs the contract tests of `drivers/kubernetes` with a real cluster.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use cluster_bootstrap::inline;
use cluster_pki::{Validity, admin_kubeconfig, make_pki, new_bootstrap_token};
use compat::wait::wait_for;
use jiff::Timestamp;
use real_clusters::{Kubectl, Network, control_plane, settings, worker};
use serde_json::Value;

/// Long, because the two processors are shared.
const PATIENCE: Duration = Duration::from_secs(600);

#[test]
fn a_real_cluster_meets_the_contract_of_the_driver() {
    let Some(mut network) = Network::begin("contract") else { return };
    let validity = Validity { now: Timestamp::now(), lifetime: Duration::from_secs(3600 * 24) };
    let pki = make_pki(&"contract".try_into().unwrap(), 0, validity).unwrap();
    let cluster = settings("contract", 1, pki, new_bootstrap_token());
    let kubeconfig =
        admin_kubeconfig(&cluster.name, &cluster.endpoint, &cluster.pki.cluster, validity).unwrap();
    network.balance(&cluster);
    let (first, second) = (control_plane(1), worker(1));
    let node = cluster_bootstrap::control_plane(&cluster, &first.name).unwrap();
    network.boot(&first, &inline(&node).unwrap());
    let node = cluster_bootstrap::worker(&cluster, &second).unwrap();
    network.boot(&second.machine, &inline(&node).unwrap());
    let kubectl = Kubectl::new(&network, &kubeconfig);
    wait_for("both nodes", PATIENCE, || {
        thread::sleep(Duration::from_secs(2));
        let marked = kubectl.get(&["nodes", "-l", "node-role.kubernetes.io/master"])?;
        let marked = marked["items"].as_array().is_some_and(|all| all.len() == 1);
        (marked && kubectl.ready_nodes().len() == 2).then_some(())
    });

    // The API server is only reachable in the network of the machines.
    let reported = Command::new("ip")
        .args(["netns", "exec", "bedplate-contract"])
        .arg(contract_program())
        .env("BEDPLATE_TEST_KUBECONFIG", network.state().join("admin.conf"))
        .env("BEDPLATE_TEST_POD_IMAGE", "bedplate.invalid/pause:3.2")
        .status()
        .expect("the program can be started");
    assert!(reported.success(), "the contract does not hold");
}

/// Returns the program of the contract tests. Cargo is asked with the whole workspace: with one crate, it would use other features, and
/// compile two hundred crates again.
fn contract_program() -> PathBuf {
    let mut cargo = Command::new("cargo");
    // cargo and nextest set these variables for the tests of a crate. The build script of ring depends on one of them, so cargo would compile
    // ring and everything above it again.
    for (name, _) in std::env::vars() {
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(name);
        }
    }
    let built = cargo
        .args(["test", "--offline", "--workspace", "--test", "contract", "--no-run"])
        .arg("--message-format=json")
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo can be started");
    let messages = built.stdout.split(|byte| *byte == b'\n');
    let messages = messages.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let manifest = |message: &Value| message["manifest_path"].as_str().map(str::to_owned);
    let ours = |message: &Value| {
        manifest(message).is_some_and(|it| it.ends_with("/kubernetes/Cargo.toml"))
    };
    let mut programs =
        messages.filter(ours).filter_map(|it| it["executable"].as_str().map(PathBuf::from));
    programs.next().expect("cargo names the program of the contract tests")
}
