//! Imitates the programs in pods. A few of them end, the others run for ever.

use serde_json::Value;

use super::members::Members;
use crate::object::ReadFields;

/// The result of starting a pod's container.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Run {
    /// The container keeps running.
    On,
    /// The container ends: whether successfully, and its output.
    Ends(bool, String),
}

/// Starts the first container of a pod on this node.
pub(super) fn run(members: &mut Members, node: &str, pod: &Value) -> Run {
    let container = &pod["spec"]["containers"][0];
    let words =
        |key: &str| -> Vec<&str> { container.list(key).iter().filter_map(Value::as_str).collect() };
    let command = [words("command"), words("args")].concat();
    let Some((program, arguments)) = command.split_first() else { return Run::On };
    match program.rsplit('/').next().unwrap_or_default() {
        "true" => Run::Ends(true, String::new()),
        "false" => Run::Ends(false, String::new()),
        "echo" => Run::Ends(true, format!("{}\n", arguments.join(" "))),
        "etcdctl" => {
            let (well, said) = etcdctl(members, node, pod, arguments);
            Run::Ends(well, said)
        }
        _ => Run::On,
    }
}

/// Runs `etcdctl` if the pod uses the network and the certificates of its node. Fails like the real program otherwise.
fn etcdctl(members: &mut Members, node: &str, pod: &Value, words: &[&str]) -> (bool, String) {
    let mut rest = Vec::new();
    let mut options = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.strip_prefix('-') {
            None => rest.push(*word),
            Some(option) => {
                let option = option.trim_start_matches('-');
                let both = option.split_once('=');
                options.push(both.unwrap_or_else(|| (option, words.next().unwrap_or(&""))));
            }
        }
    }
    let option = |names: &[&str]| {
        options.iter().find(|(name, _)| names.contains(name)).map_or("", |(_, value)| *value)
    };
    for name in ["cacert", "cert", "key"] {
        let path = option(&[name]);
        if !path.starts_with("/etc/kubernetes/pki/etcd/") || !is_mounted(pod, path) {
            return (false, format!("Error: open {path}: no such file or directory\n"));
        }
    }
    let near = pod["spec"]["hostNetwork"] == true
        && option(&["endpoints"]).starts_with("https://127.0.0.1:2379");
    if !near {
        return (false, "Error: context deadline exceeded\n".to_owned());
    }
    if option(&["w", "write-out"]) != "json" {
        return (false, "Error: only JSON is written by the emulated etcdctl\n".to_owned());
    }
    members.etcdctl(node, &rest)
}

/// Whether a path of the host is mounted at the same path in the container.
fn is_mounted(pod: &Value, path: &str) -> bool {
    let mounts = pod["spec"]["containers"][0]["volumeMounts"].as_array();
    mounts.into_iter().flatten().any(|mount| {
        let inside = mount["mountPath"].as_str().unwrap_or("?");
        let mut volumes = pod["spec"].list("volumes").iter();
        let volume = volumes.find(|volume| volume["name"] == mount["name"]);
        let outside = volume.and_then(|volume| volume["hostPath"]["path"].as_str());
        let rest = path.strip_prefix(inside);
        outside == Some(inside) && rest.is_some_and(|it| it.is_empty() || it.starts_with('/'))
    })
}
