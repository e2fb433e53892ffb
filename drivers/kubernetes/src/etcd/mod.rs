//! The members of a cluster's etcd, asked for by a pod that runs `etcdctl` beside one of them.
//!
//! etcd lets in who has a certificate of its own authority, and those lie on the machines of the control plane. So a short-lived pod on
//! one of them, which mounts a client's key read-only, does what is asked. A call begins such a pod, or finds the one it began earlier, and
//! returns at once; once the pod has ended, the next call tells the outcome and removes it.

mod members;
mod pod;

use crate::client::Client;
use crate::error::KubernetesError;

pub use members::{Member, MemberId};

/// How far something is that takes its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress<T> {
    /// Begun: call again, in a second or some.
    Pending,
    /// Done.
    Done(T),
}

/// The members, by the word of the one on `node`, a ready node of the control plane.
///
/// Not older than five minutes: what an earlier call began and nobody came back for is asked anew.
pub async fn members(
    client: &Client,
    node: &str,
) -> Result<Progress<Vec<Member>>, KubernetesError> {
    let name = format!("bedplate-etcd-list-{node}");
    match pod::run(client, node, &name, &["member", "list"]).await? {
        Progress::Pending => Ok(Progress::Pending),
        Progress::Done(ended) => {
            let read = members::read(&ended.output).filter(|_| ended.well);
            read.map(Progress::Done).ok_or_else(|| ended.failure(node))
        }
    }
}

/// Removes a member, told to the one on `node`: another one than that, ready, of the control plane. That it is gone already is fine.
///
/// etcd itself refuses what would cost it its majority. The machine has to be gone, or go: a member that was removed stops.
pub async fn remove(
    client: &Client,
    node: &str,
    member: MemberId,
) -> Result<Progress<()>, KubernetesError> {
    let name = format!("bedplate-etcd-remove-{member}");
    match pod::run(client, node, &name, &["member", "remove", &member.to_string()]).await? {
        Progress::Pending => Ok(Progress::Pending),
        Progress::Done(ended) if ended.well || members::is_unknown(&ended.output) => {
            Ok(Progress::Done(()))
        }
        Progress::Done(ended) => Err(ended.failure(node)),
    }
}
