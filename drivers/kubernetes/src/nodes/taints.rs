//! Taints, which keep pods off a node.

use serde_json::json;

use super::patch;
use super::read::{Node, Taint};
use crate::client::Client;
use crate::error::Result;

/// Adds taints to a node; other taints stay. Fails without effect if the node has changed since it was read: read it again.
pub async fn taint(client: &Client, node: &Node, taints: &[Taint]) -> Result<()> {
    write(client, node, with(&node.taints, taints)).await
}

/// Adds and removes taints in one request; other taints stay. `unwanted` are found by key and effect. Fails without effect if the node has
/// changed since it was read.
pub async fn change_taints(
    client: &Client,
    node: &Node,
    wanted: &[Taint],
    unwanted: &[Taint],
) -> Result<()> {
    let is_kept = |one: &&Taint| !unwanted.iter().any(|it| it.is_in_place_of(one));
    let kept: Vec<Taint> = node.taints.iter().filter(is_kept).cloned().collect();
    write(client, node, with(&kept, wanted)).await
}

/// Removes all taints with these keys from a node; other taints stay. Fails without effect if the node has changed since it was read.
pub async fn untaint(client: &Client, node: &Node, keys: &[&str]) -> Result<()> {
    let kept = node.taints.iter().filter(|it| !keys.contains(&it.key.as_str()));
    write(client, node, kept.cloned().collect()).await
}

async fn write(client: &Client, node: &Node, taints: Vec<Taint>) -> Result<()> {
    if taints == node.taints {
        return Ok(());
    }
    // A patch replaces the whole list, to which the cluster also writes, so the patch names the version that was read.
    let body =
        json!({"metadata": {"resourceVersion": node.resource_version}, "spec": {"taints": taints}});
    patch(client, &node.name, body).await
}

fn with(there: &[Taint], wanted: &[Taint]) -> Vec<Taint> {
    let same = |one: &Taint| {
        wanted.iter().find(|it| it.is_in_place_of(one)).filter(|it| it.value != one.value)
    };
    let mut all: Vec<Taint> = there.iter().map(|one| same(one).unwrap_or(one).clone()).collect();
    for one in wanted {
        if !all.iter().any(|it| it.is_in_place_of(one)) {
            all.push(one.clone());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taints_of_others_stay_as_they_are() {
        let theirs = Taint {
            time_added: Some("2026-01-01T00:00:00Z".to_owned()),
            ..Taint::new("node.kubernetes.io/not-ready", None, "NoExecute")
        };
        let there = [theirs.clone(), Taint::new("gpu", Some("a"), "NoSchedule")];
        let wanted = [
            Taint::new("gpu", Some("b"), "NoSchedule"),
            Taint::new("gpu", Some("b"), "NoExecute"),
            Taint::new("node.kubernetes.io/not-ready", None, "NoExecute"),
        ];
        let all = with(&there, &wanted);
        assert_eq!(all, [theirs, wanted[0].clone(), wanted[1].clone()]);
        assert_eq!(with(&all, &wanted), all, "a second time changes nothing");
    }
}
