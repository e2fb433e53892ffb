//! etcd, asked on a machine of its cluster.

use serde_json::Value;

use crate::Network;

/// The command `etcdctl` with its options for the member on the same machine.
pub fn etcdctl_words() -> [&'static str; 10] {
    [
        "etcdctl",
        "--endpoints=https://127.0.0.1:2379",
        "--cacert",
        "/etc/kubernetes/pki/etcd/ca.crt",
        "--cert",
        "/etc/kubernetes/pki/etcd/healthcheck-client.crt",
        "--key",
        "/etc/kubernetes/pki/etcd/healthcheck-client.key",
        "-w",
        "json",
    ]
}

/// The answer of `etcdctl`. `None` if the command fails.
pub fn etcdctl(network: &Network, machine: &str, words: &[&str]) -> Option<Value> {
    let words: Vec<&str> = etcdctl_words().into_iter().chain(words.iter().copied()).collect();
    serde_json::from_str(&network.try_on(machine, &words)?).ok()
}

/// The number of etcd members that report to be healthy.
pub fn etcd_health(network: &Network, machine: &str) -> Option<usize> {
    let answers = etcdctl(network, machine, &["endpoint", "health", "--cluster"])?;
    Some(answers.as_array()?.iter().filter(|it| it["health"] == true).count())
}

/// Removes a member from etcd. `None` if etcd still has the member: it chooses a leader meanwhile, and an answer may be lost.
pub fn etcd_forgets(network: &Network, machine: &str, member: &str) -> Option<()> {
    let list = etcdctl(network, machine, &["member", "list"])?;
    let Some(found) = list["members"].as_array()?.iter().find(|it| it["name"] == member) else {
        return Some(());
    };
    let number = format!("{:x}", found["ID"].as_u64()?);
    etcdctl(network, machine, &["member", "remove", &number])?;
    None
}
