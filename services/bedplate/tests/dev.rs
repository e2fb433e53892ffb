//! Tests of `bedplate dev` as `make run` starts it: with the programs in the same folder, on the ports named in `deploy/dev`.

#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Addresses that are in use while the demo runs: the two APIs, the console, the ports that machines fetch files from, the cloud, and a
/// BMC.
const LISTENERS: [&str; 7] = [
    "127.0.0.1:6385",
    "127.0.0.1:6386",
    "127.0.0.1:9510",
    "127.0.0.1:9511",
    "127.0.0.1:9512",
    "127.0.0.1:9513",
    "127.0.0.1:18001",
];

/// Part of the last line that `bedplate dev` prints when the demo is complete.
const STAYS: &str = "stays up until Ctrl-C";

fn bedplate(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bedplate"));
    // The configurations name a state folder relative to the working directory.
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command
}

fn from() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/dev")
}

/// A running `bedplate dev`, and its output. `Drop` kills the process.
struct Dev {
    child: Child,
    out: BufReader<ChildStdout>,
    reported: String,
}

impl Dev {
    fn start(folder: &Path, more: &[&str]) -> Dev {
        let mut command = bedplate(folder, &["dev", "--from"]);
        let mut child = command.arg(from()).args(more).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Dev { child, out, reported: String::new() }
    }

    /// Reads the output until the output contains `words`.
    fn until(&mut self, words: &str) {
        while !self.reported.contains(words) {
            let read = self.out.read_line(&mut self.reported).unwrap();
            assert!(read > 0, "bedplate dev ended: {}", self.reported);
        }
    }

    /// Kills `bedplate dev` as `kill -9` does, and returns the output read so far.
    fn kill(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::mem::take(&mut self.reported)
    }

    /// Ends `bedplate dev` with SIGINT, as Ctrl-C does.
    fn interrupt(mut self) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::INT).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        // Fails only if the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends `GET http://ADDRESS/PATH`, and returns the JSON body.
fn get(address: &str, path: &str) -> Value {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(" 200 "), "{path}: {answer}");
    serde_json::from_str(body).unwrap()
}

/// Returns the names and ids of all resources by kind, sorted.
fn list_resources() -> BTreeMap<&'static str, Vec<String>> {
    let listed = |all: &Value, fields: [&str; 3]| {
        let reported = |one: &Value| fields.map(|field| one[field].to_string()).join(" ");
        let mut all: Vec<String> = all.as_array().unwrap().iter().map(reported).collect();
        all.sort();
        all
    };
    let (machines, clusters, cloud) = ("127.0.0.1:6385", "127.0.0.1:9511", "127.0.0.1:9513");
    let in_cloud =
        |kind: &str, fields| listed(&get(cloud, &format!("/_control/objects/{kind}")), fields);
    let nodes = get(machines, "/v1/nodes");
    let racks = get(machines, "/bedplate/v1/racks");
    let profiles = get(machines, "/bedplate/v1/hypervisor-profiles");
    let made = get(clusters, "/v1/clusters");
    let vms = get(clusters, "/bedplate/v1/machines");
    BTreeMap::from([
        ("racks", listed(&racks["racks"], ["name", "description", "name"])),
        ("nodes", listed(&nodes["nodes"], ["uuid", "name", "provision_state"])),
        ("profiles", listed(&profiles["hypervisor_profiles"], ["uuid", "name", "name"])),
        ("clusters", listed(&made["clusters"], ["uuid", "name", "status"])),
        ("machines", listed(&vms["machines"], ["uuid", "name", "status"])),
        ("hosts", in_cloud("compute_host", ["id", "name", "name"])),
        ("servers", in_cloud("server", ["id", "name", "status"])),
        ("load balancers", in_cloud("load_balancer", ["id", "name", "operating_status"])),
        ("floating addresses", in_cloud("floating_ip", ["id", "floating_ip_address", "status"])),
    ])
}

/// Checks that the demo is complete: four machines that are hosts, five members of a cluster, and one VM.
#[track_caller]
fn assert_demo_is_complete(all: &BTreeMap<&'static str, Vec<String>>) {
    let counts = all.iter().map(|(kind, all)| (*kind, all.len()));
    let expected = [
        ("clusters", 1),
        ("floating addresses", 1),
        ("hosts", 4),
        ("load balancers", 1),
        ("machines", 1),
        ("nodes", 4),
        ("profiles", 1),
        ("racks", 1),
        ("servers", 6),
    ];
    assert_eq!(counts.collect::<Vec<_>>(), expected, "{all:#?}");
    assert!(all["nodes"].iter().all(|node| node.contains("active")), "{all:#?}");
    assert!(all["servers"].iter().all(|server| server.contains("ACTIVE")), "{all:#?}");
    assert!(all["clusters"].iter().all(|it| it.contains("CREATE_COMPLETE")), "{all:#?}");
}

/// Waits until the cluster's API answers and this many Kubernetes nodes are ready.
fn wait_for_kubernetes(folder: &Path, count: usize) {
    let config = folder.join(".state/dev/tenant.kubeconfig");
    let end = Instant::now() + Duration::from_secs(180);
    loop {
        let mut kubectl = Command::new("kubectl");
        kubectl.arg("--kubeconfig").arg(&config).args(["get", "nodes", "--request-timeout=5s"]);
        let shown = kubectl.output().unwrap();
        let lines = String::from_utf8_lossy(&shown.stdout);
        let is_ready = |line: &&str| line.split_whitespace().nth(1) == Some("Ready");
        if lines.lines().filter(is_ready).count() == count {
            return;
        }
        assert!(Instant::now() < end, "not {count} nodes are ready: {}", said(&shown));
        sleep(Duration::from_millis(500));
    }
}

#[track_caller]
fn assert_ports_are_free() {
    let left: Vec<_> = LISTENERS.iter().filter(|it| TcpStream::connect(it).is_ok()).collect();
    assert!(left.is_empty(), "somebody still listens on {left:?}");
}

fn said(run: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr))
}

#[test]
fn a_restarted_demo_repeats_no_finished_step() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = Dev::start(folder.path(), &[]);
    first.until(STAYS);
    let reported = &first.reported;
    assert!(
        reported.contains("rack dev: 4 nodes ready, 0 need attention, 0 skipped"),
        "{reported}"
    );
    assert!(reported.contains("waiting for its compute service"), "{reported}");
    assert!(reported.contains("cluster tenant: CREATE_COMPLETE after"), "{reported}");
    let (_, nodes) = reported.split_once(" get nodes\n").unwrap();
    let is_ready = |line: &&str| line.split_whitespace().nth(1) == Some("Ready");
    let ready: Vec<&str> = nodes.lines().filter(is_ready).collect();
    let masters = ready.iter().filter(|line| line.contains("control-plane")).count();
    assert_eq!((ready.len(), masters), (5, 3), "{nodes}");
    assert!(nodes.contains("lab-1: ACTIVE"), "{nodes}");
    // The last lines name the addresses of the console and the passwords.
    assert!(
        reported.contains("http://127.0.0.1:9510/") && reported.contains("alice-secret"),
        "{reported}"
    );
    let before = list_resources();
    assert_demo_is_complete(&before);

    // A second `bedplate dev`, or a reset, is refused while the first one runs.
    let refused = bedplate(folder.path(), &["dev", "reset"]).output().unwrap();
    assert!(
        !refused.status.success() && said(&refused).contains("stop it with Ctrl-C"),
        "{refused:?}"
    );
    let twice = bedplate(folder.path(), &["dev", "--from"]).arg(from()).output().unwrap();
    assert!(!twice.status.success() && said(&twice).contains("stop it with Ctrl-C"), "{twice:?}");

    first.kill();
    let mut again = Dev::start(folder.path(), &[]);
    again.until(STAYS);
    let reported = &again.reported;
    assert!(reported.contains("Continuing the last run"), "{reported}");
    for done_again in ["rack enroll", "rack up", "profile create", "curl ", "vm request"] {
        assert!(
            !reported.split("In another terminal").next().unwrap().contains(done_again),
            "{reported}"
        );
    }
    assert_eq!(list_resources(), before);
    wait_for_kubernetes(folder.path(), 5);

    again.interrupt();
    assert_ports_are_free();
    let reset = bedplate(folder.path(), &["dev", "reset"]).output().unwrap();
    assert!(reset.status.success(), "{}", said(&reset));
    let left = std::fs::read_dir(folder.path().join(".state/dev")).unwrap();
    assert_eq!(left.count(), 0);
}

#[test]
fn a_demo_that_was_killed_in_any_step_completes_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    // The demo is killed while an image is written, while the hosts join, and while a cluster is created.
    for moment in [
        "writing the image",
        "waiting for its hypervisor to be listed",
        "cluster show tenant --wait\n",
    ] {
        let mut dev = Dev::start(folder.path(), &[]);
        dev.until(moment);
        dev.kill();
    }
    let mut dev = Dev::start(folder.path(), &[]);
    dev.until(STAYS);
    assert_demo_is_complete(&list_resources());
    dev.interrupt();
    assert_ports_are_free();
}

#[test]
fn a_missing_configuration_is_reported_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let run = bedplate(folder.path(), &["dev"]).output().unwrap();
    let reported = said(&run);
    assert!(!run.status.success());
    assert!(reported.contains("deploy/dev/baremetald.toml does not exist"), "{reported}");
    assert_eq!(reported.lines().count(), 1, "{reported}");
    assert!(!folder.path().join(".state").exists());
    // A reset without any state succeeds.
    assert!(bedplate(folder.path(), &["dev", "reset"]).status().unwrap().success());
    let slow = bedplate(folder.path(), &["dev", "--speed", "0"]).output().unwrap();
    assert!(said(&slow).contains("from 0.1 to 10"), "{}", said(&slow));
}
