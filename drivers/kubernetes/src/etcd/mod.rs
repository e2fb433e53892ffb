//! The members of a cluster's etcd, queried by a pod that runs `etcdctl` next to one of them.
//!
//! etcd accepts clients with a certificate of etcd's own authority, and these certificates are on the control-plane members. So a
//! short-lived pod on such a member mounts a client key read-only and runs the command. A call starts this pod, or finds the pod of an
//! earlier call, and returns at once. Once the pod has ended, the next call returns the outcome and deletes the pod.

mod members;
mod pod;
mod progress;

use crate::client::Client;
use crate::error::Result;

pub use members::{Member, MemberId};
pub use progress::Progress;

/// Lists etcd's members, as reported by the member on `node`, which must be a ready control-plane node.
///
/// A result is at most five minutes old: an older one, which no caller fetched, is discarded and the query restarted.
pub async fn members(client: &Client, node: &str) -> Result<Progress<Vec<Member>>> {
    let name = format!("bedplate-etcd-list-{node}");
    match pod::run(client, node, &name, &["member", "list"]).await? {
        Progress::Pending => Ok(Progress::Pending),
        Progress::Done(ended) => {
            let read = members::read(&ended.output).filter(|_| ended.well);
            read.map(Progress::Done).ok_or_else(|| ended.failure(node))
        }
    }
}

/// Removes a member, by a command to the member on `node`. `node` must be ready, of the control plane, and not the removed member's. A
/// member that is gone already is no error.
///
/// etcd itself refuses a removal that would cost it its majority. The removed member stops, so its server must be gone or about to be
/// deleted.
pub async fn remove(client: &Client, node: &str, member: MemberId) -> Result<Progress<()>> {
    let name = format!("bedplate-etcd-remove-{member}");
    match pod::run(client, node, &name, &["member", "remove", &member.to_string()]).await? {
        Progress::Pending => Ok(Progress::Pending),
        Progress::Done(ended) if ended.well || members::is_unknown(&ended.output) => {
            Ok(Progress::Done(()))
        }
        Progress::Done(ended) => Err(ended.failure(node)),
    }
}
