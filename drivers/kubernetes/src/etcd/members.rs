//! Parses the output of `etcdctl` about members.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

/// A member of etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub id: MemberId,
    /// The name of the member's node; empty until the member has started.
    pub name: String,
    /// The URLs at which other members reach it.
    pub peer_urls: Vec<String>,
    /// Whether the member has no vote yet.
    pub is_learner: bool,
}

/// The id of a member. `Display` prints it in hexadecimal, as `etcdctl` expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub u64);

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

#[derive(Deserialize)]
struct List {
    members: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "ID")]
    id: Value,
    #[serde(default)]
    name: String,
    #[serde(default, rename = "peerURLs")]
    peer_urls: Vec<String>,
    #[serde(default, rename = "isLearner")]
    is_learner: bool,
}

/// Reads the members in the output of `etcdctl member list -w json`, which may also contain warnings.
pub(super) fn read(output: &str) -> Option<Vec<Member>> {
    let list = output.lines().find_map(|line| serde_json::from_str::<List>(line).ok())?;
    let member = |entry: Entry| {
        // A 64-bit number, which some JSON writers print as a string.
        let id = entry.id.as_u64().or_else(|| entry.id.as_str()?.parse().ok())?;
        let Entry { name, peer_urls, is_learner, .. } = entry;
        Some(Member { id: MemberId(id), name, peer_urls, is_learner })
    };
    list.members.into_iter().map(member).collect()
}

/// Whether etcd reports that the member does not exist.
pub(super) fn is_unknown(output: &str) -> bool {
    output.contains("etcdserver: member not found")
}

#[cfg(test)]
mod tests {
    use super::*;

    // Output of etcd 3.5, with a member that was added and has not started.
    const OUTPUT: &str = r#"{"level":"warn","ts":"2026-01-01T00:00:00.000Z","msg":"retrying of unary invoker failed"}
{"header":{"cluster_id":11111111111111111111,"member_id":9372538179322589801,"raft_term":3},"members":[{"ID":9372538179322589801,"name":"cp-1","peerURLs":["https://10.0.0.11:2380"],"clientURLs":["https://10.0.0.11:2379"]},{"ID":"18249187646912138824","name":"","peerURLs":["https://10.0.0.12:2380"],"isLearner":true}]}
"#;

    #[test]
    fn members_are_found_among_warnings() {
        let members = read(OUTPUT).unwrap();
        let ids: Vec<String> = members.iter().map(|it| it.id.to_string()).collect();
        assert_eq!(ids, ["8211f1d0f64f3269", "fd422379fda50e48"]);
        assert_eq!((members[0].name.as_str(), members[1].name.as_str()), ("cp-1", ""));
        assert_eq!((members[0].is_learner, members[1].is_learner), (false, true));
        assert_eq!(members[1].peer_urls, ["https://10.0.0.12:2380"]);
    }

    #[test]
    fn output_without_a_list_is_no_empty_list() {
        for output in ["", "Error: context deadline exceeded", "{}", r#"{"members":[{"ID":-1}]}"#] {
            assert_eq!(read(output), None, "{output}");
        }
    }
}
