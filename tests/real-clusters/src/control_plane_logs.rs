//! The last output of control planes on machines made of namespaces, to explain the failure of a test.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The static pods without which no API answers, as the folders of their logs begin.
const PODS: [&str; 2] = ["kube-system_etcd-", "kube-system_kube-apiserver-"];

/// Prints the last lines of etcd and of kube-apiserver on each machine of the cloud of `openstack.sh machines`.
pub fn print_control_plane_logs() {
    let Some(room) = env::var_os("BEDPLATE_TEST_MACHINES").map(PathBuf::from) else { return };
    for machine in entries(&room) {
        for pod in entries(&machine.join("pods")).iter().filter(|it| is_control_plane(it)) {
            // The kubelet names a log by the number of the container's restarts.
            let containers = entries(pod);
            let logs = containers.iter().flat_map(|container| entries(container));
            let newest = logs.max_by_key(|log| log.metadata().and_then(|it| it.modified()).ok());
            let Some(log) = newest else { continue };
            let text = fs::read(&log).unwrap_or_default();
            eprintln!("{}:\n{}", log.display(), last_lines(&String::from_utf8_lossy(&text), 15));
        }
    }
}

/// The last lines of a text, indented.
pub(crate) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(count);
    lines[from..].iter().map(|line| format!("  {line}\n")).collect()
}

/// The sorted paths in a folder. Empty if there is no such folder.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = read.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn is_control_plane(pod: &Path) -> bool {
    let name = pod.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    PODS.iter().any(|begin| name.starts_with(begin))
}
