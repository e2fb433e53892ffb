//! `bedplate dev`, as `make run` starts it: with the programs that lie beside it, on the ports that `deploy/dev` names.

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

/// What listens while the story is told: the two APIs, the console, what machines fetch from, and a BMC.
const LISTENERS: [&str; 6] = [
    "127.0.0.1:6385",
    "127.0.0.1:6386",
    "127.0.0.1:9510",
    "127.0.0.1:9511",
    "127.0.0.1:9512",
    "127.0.0.1:18001",
];

#[test]
fn a_rack_is_installed_and_a_cluster_is_ready_and_nothing_stays_behind() {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/dev");
    // The configurations name a state folder below where it is started.
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_bedplate"));
    command.args(["dev", "--once", "--from"]).arg(from).current_dir(folder.path());
    let run = command.output().unwrap();
    let told = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{told}\n{}", String::from_utf8_lossy(&run.stderr));

    assert!(told.contains("rack dev: 4 machines there, 0 stuck, 0 left alone"), "{told}");
    assert!(told.contains("waiting for its compute service"), "{told}");
    assert!(told.contains("cluster tenant: CREATE_COMPLETE after"), "{told}");
    let (_, nodes) = told.split_once(" get nodes\n").unwrap();
    let is_ready = |line: &&str| line.split_whitespace().nth(1) == Some("Ready");
    let ready: Vec<&str> = nodes.lines().filter(is_ready).collect();
    let masters = ready.iter().filter(|line| line.contains("control-plane")).count();
    assert_eq!((ready.len(), masters), (5, 3), "{nodes}");
    assert!(nodes.contains("lab-1: ACTIVE"), "{nodes}");
    assert!(folder.path().join(".state/dev/tenant.kubeconfig").is_file());

    let left: Vec<_> = LISTENERS.iter().filter(|it| TcpStream::connect(it).is_ok()).collect();
    assert!(left.is_empty(), "somebody still listens on {left:?}");
}
