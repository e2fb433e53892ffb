//! The members of etcd: all control-plane members that ever ran, until somebody removes them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// All etcd members, and which of them run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Members {
    all: BTreeMap<u64, (String, String)>,
    running: BTreeSet<String>,
}

impl Members {
    /// Marks the etcd of a server as running, and adds it as a member if necessary.
    pub(super) fn up(&mut self, name: &str, address: &str) {
        self.all.insert(id(name), (name.to_owned(), address.to_owned()));
        self.running.insert(name.to_owned());
    }

    pub(super) fn down(&mut self, name: &str) {
        self.running.remove(name);
    }

    /// The name of each member, and whether it runs.
    pub(super) fn running(&self) -> BTreeMap<String, bool> {
        let names = self.all.values().map(|(name, _)| name);
        names.map(|name| (name.clone(), self.running.contains(name))).collect()
    }

    fn healthy(&self, without: Option<u64>) -> bool {
        let all = self.all.iter().filter(|(id, _)| Some(**id) != without);
        let (mut count, mut running) = (0, 0);
        for (_, (name, _)) in all {
            count += 1;
            running += usize::from(self.running.contains(name));
        }
        running > count / 2
    }

    /// Runs an `etcdctl` command on a member. Returns whether it succeeded, and its output.
    pub(super) fn etcdctl(&mut self, on: &str, words: &[&str]) -> (bool, String) {
        if !self.running.contains(on) || !self.healthy(None) {
            return failed("context deadline exceeded");
        }
        match words {
            ["member", "list"] => (true, format!("{}\n", self.list(on))),
            ["member", "remove", given] => {
                let Ok(given) = u64::from_str_radix(given, 16) else {
                    return failed(&format!("bad member ID arg ({given}), expecting ID in Hex"));
                };
                if !self.all.contains_key(&given) {
                    return failed("etcdserver: member not found");
                }
                if !self.healthy(Some(given)) {
                    return failed(
                        "etcdserver: re-configuration failed due to not enough started members",
                    );
                }
                self.all.remove(&given);
                (true, format!("{}\n", self.list(on)))
            }
            _ => failed("unknown command"),
        }
    }

    fn list(&self, on: &str) -> Value {
        let member = |(id, (name, address)): (&u64, &(String, String))| json!({"ID": id, "name": name, "peerURLs": [format!("https://{address}:2380")], "clientURLs": [format!("https://{address}:2379")]});
        let members: Vec<Value> = self.all.iter().map(member).collect();
        json!({"header": {"cluster_id": 1, "member_id": id(on), "raft_term": 2}, "members": members})
    }
}

fn failed(why: &str) -> (bool, String) {
    (false, format!("Error: {why}\n"))
}

fn id(name: &str) -> u64 {
    let digest = Sha256::digest(name);
    digest.iter().take(8).fold(0, |id, byte| id << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::Members;

    #[test]
    fn a_member_goes_only_while_the_others_are_a_majority() {
        let mut members = Members::default();
        for name in ["a", "b", "c"] {
            members.up(name, "10.0.0.1");
        }
        members.down("c");
        let removed = |members: &mut Members, name: &str| {
            let id = format!("{:x}", super::id(name));
            members.etcdctl("a", &["member", "remove", &id])
        };
        let (well, said) = removed(&mut members, "b");
        assert!(!well && said.contains("not enough started members"), "{said}");
        assert!(removed(&mut members, "c").0);
        assert!(removed(&mut members, "c").1.contains("member not found"));
        members.down("b");
        assert_eq!(
            members.etcdctl("a", &["member", "list"]).1,
            "Error: context deadline exceeded\n"
        );
    }
}
