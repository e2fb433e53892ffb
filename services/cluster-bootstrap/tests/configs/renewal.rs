//! The functions of the script that report and renew the certificates of a member, run by the real bash in a folder.

use std::fs;
use std::path::Path;
use std::process::Command;

use cluster_bootstrap::{reporting, worker};
use tempfile::TempDir;

use crate::example::{cluster, reports, some_worker};
use crate::file;

const BLOCK: &str = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
const KEY: &str = "-----BEGIN EC PRIVATE KEY-----\nMHcC\n-----END EC PRIVATE KEY-----\n";
/// The base64 of `BLOCK`.
const DATA: &str =
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=";

/// A member's files, below a folder of their own.
struct Disk(TempDir);

impl Disk {
    fn new() -> Disk {
        let disk = Disk(tempfile::tempdir().expect("a folder can be made"));
        for folder in ["state", "kubernetes/pki/etcd", "kubelet"] {
            fs::create_dir_all(disk.path().join(folder)).expect("a folder can be made");
        }
        disk
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.path().join(path), text).expect("a file can be written");
    }

    fn exists(&self, path: &str) -> bool {
        self.path().join(path).exists()
    }

    /// Runs `commands` after the functions of the script. Returns the output, and whether the commands succeeded.
    fn run(&self, commands: &str) -> (String, bool) {
        let node = worker(&cluster("v1.31.0"), &some_worker()).expect("the example is valid");
        let script = file(&reporting(&node, &reports()), "/etc/bedplate/authorities");
        let script = script.expect("it has a script");
        let (functions, _) = script.split_once("\nwhile :; do\n").expect("it ends with a loop");
        let root = self.path().display();
        let functions = functions
            .replace("state=/var/lib/bedplate/authorities", &format!("state={root}/state"))
            .replace("kubernetes=/etc/kubernetes", &format!("kubernetes={root}/kubernetes"))
            .replace("kubelet=/var/lib/kubelet/pki", &format!("kubelet={root}/kubelet"));
        let run = Command::new("bash").arg("-c").arg(format!("{functions}\n{commands}")).output();
        let run = run.expect("bash is installed");
        let said = String::from_utf8_lossy(&run.stdout).into_owned();
        (said + &String::from_utf8_lossy(&run.stderr), run.status.success())
    }
}

#[test]
fn a_report_has_every_certificate_with_its_time_and_no_key() {
    let disk = Disk::new();
    disk.write("kubernetes/pki/ca.crt", BLOCK);
    disk.write("kubernetes/pki/apiserver.crt", BLOCK);
    disk.write("kubernetes/pki/etcd/peer.crt", BLOCK);
    disk.write(
        "kubernetes/scheduler.conf",
        &format!(
            "users:\n- user:\n    client-certificate-data: {DATA}\n    client-key-data: {DATA}\n"
        ),
    );
    disk.write("kubernetes/admin.conf", "users: []\n");
    disk.write("kubelet/kubelet-client-current.pem", &format!("{BLOCK}{KEY}"));
    disk.write("kubelet/kubelet.crt", BLOCK);
    let (said, is_well) = disk.run(
        "find \"$kubernetes\" \"${kubelet%/*}\" -exec touch -d @1700000000 {} +; certificates",
    );
    let names = ["apiserver", "etcd/peer", "scheduler.conf", "kubelet-client", "kubelet-server"];
    let each = names.map(|name| format!("certificate {name} 1700000000\n{BLOCK}"));
    assert_eq!(said, format!("stage idle\n{}", each.concat()));
    assert!(is_well);
}

/// Replaces the programs of a member by functions that print their names.
const EMULATED: &str = "kubeadm() { echo \"kubeadm $*\"; }
restart_control_plane() { echo restarts; }
renew_kubelet() { echo kubelet; }
kubelet_answers() { echo answers; }
";

#[test]
fn a_control_plane_member_renews_all_of_its_certificates() {
    let disk = Disk::new();
    disk.write("kubernetes/pki/ca.key", KEY);
    disk.write("kubelet/kubelet.crt", BLOCK);
    disk.write("kubelet/kubelet.key", KEY);
    let (said, is_well) = disk.run(&format!("{EMULATED}renew"));
    assert_eq!(
        said,
        "kubeadm certs renew all\nrestarts\nkubelet\nanswers\nrenewed the certificates\n"
    );
    assert!(is_well && !disk.exists("state/renewing"));
    assert!(!disk.exists("kubelet/kubelet.crt") && !disk.exists("kubelet/kubelet.key"));
}

#[test]
fn a_worker_renews_the_certificates_of_its_kubelet() {
    let (said, is_well) = Disk::new().run(&format!("{EMULATED}renew"));
    assert_eq!(said, "kubelet\nanswers\nrenewed the certificates\n");
    assert!(is_well);
}

#[test]
fn an_interrupted_renewal_continues_where_it_stopped() {
    let disk = Disk::new();
    disk.write("kubernetes/pki/ca.key", KEY);
    let (said, is_well) =
        disk.run(&format!("{EMULATED}restart_control_plane() {{ false; }}\nrenew"));
    assert_eq!((said.as_str(), is_well), ("kubeadm certs renew all\n", false));
    assert_eq!(disk.run("certificates").0, "stage control-plane\n");
    let (said, is_well) = disk.run(&format!("{EMULATED}renew_kubelet() {{ false; }}\nrenew"));
    assert_eq!((said.as_str(), is_well), ("kubeadm certs renew all\nrestarts\n", false));
    assert_eq!(disk.run("certificates").0, "stage kubelet\n");
    let (said, _) = disk.run(&format!("{EMULATED}renew"));
    assert_eq!(said, "kubelet\nanswers\nrenewed the certificates\n");
    assert_eq!(disk.run("certificates").0, "stage idle\n");
}

#[test]
fn a_member_reports_when_it_is_due_and_renews_when_it_is_permitted() {
    let disk = Disk::new();
    // curl prints the status, and writes the answer to the file after `--output`.
    let asked = |status: &str, answer: &str| {
        let curl = format!("curl() {{ echo '{answer}' >\"$state/answer\"; printf {status}; }}\n");
        let stopped = "unset SECONDS\nSECONDS=0\n";
        let commands = "renew() { echo renews; }\nreport_certificates\nreport_certificates\necho $report_after";
        disk.run(&format!("{stopped}{curl}{commands}")).0
    };
    assert_eq!(asked("202", "10800"), "10800\n");
    assert_eq!(asked("202", "nothing"), "60\n");
    assert_eq!(asked("404", "not found"), "60\n");
    assert_eq!(asked("200", ""), "renews\nrenews\n0\n");
}
