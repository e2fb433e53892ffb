//! The notifications about a change of a cluster, with the types and the CADF payload of Magnum's.

use cloud_event::{EventLevel, Notification};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{Cluster, GroupRole, NodeGroup, Status, health, status, status_reason};

const CLUSTER: &str = "service/magnum/cluster";
const EVENT: &str = "http://schemas.dmtf.org/cloud/audit/1.0/event";
const USER: &str = "service/security/account/user";

/// The action on a cluster and its outcome, in the words of CADF.
type Outcome = (&'static str, &'static str);

/// Returns the notification about a cluster that was created (`before` is `None`), changed or deleted (`after` is `None`); none if its status
/// stays and nobody asked for anything. `groups` are the node groups after the change.
pub fn cluster_notification(
    before: Option<&Cluster>,
    after: Option<&Cluster>,
    groups: &[NodeGroup],
    now: Timestamp,
) -> Option<Notification> {
    let (cluster, outcome) = match (before, after) {
        (None, Some(new)) => (new, ("create", "pending")),
        (Some(gone), None) => (gone, ("delete", "success")),
        (Some(before), Some(after)) => (after, outcome(before, after, now)?),
        (None, None) => return None,
    };
    Some(notification(cluster, groups, outcome, now))
}

fn outcome(before: &Cluster, after: &Cluster, now: Timestamp) -> Option<Outcome> {
    let (was, is) = (status(before, now), status(after, now));
    if was == is && before.asked_at == after.asked_at {
        return None;
    }
    Some(match is {
        Status::CreateInProgress => ("create", "pending"),
        Status::CreateComplete => ("create", "success"),
        Status::CreateFailed => ("create", "failure"),
        Status::UpdateInProgress => ("update", "pending"),
        Status::UpdateComplete => ("update", "success"),
        Status::UpdateFailed => ("update", "failure"),
        Status::DeleteInProgress => ("delete", "pending"),
        Status::DeleteFailed => ("delete", "failure"),
    })
}

fn notification(
    cluster: &Cluster,
    groups: &[NodeGroup],
    (action, outcome): Outcome,
    now: Timestamp,
) -> Notification {
    let id = cluster.id.to_string();
    let content = content(cluster, groups, now);
    let attachment = json!({"typeURI": CLUSTER, "name": "cluster_data", "content": content});
    let data = json!({
        "typeURI": EVENT,
        "eventType": "activity",
        "id": format!("{id}-{}", cluster.version),
        "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S%.6f+0000").to_string(),
        "action": action,
        "outcome": outcome,
        "initiator": {
            "typeURI": USER,
            "id": cluster.user,
            "user_id": cluster.user,
            "project_id": cluster.project,
        },
        "target": {
            "typeURI": CLUSTER,
            "id": id,
            "name": cluster.name.as_str(),
            "attachments": [attachment],
        },
        "observer": {"typeURI": CLUSTER, "id": "clusterd"},
    });
    let level = if outcome == "failure" { EventLevel::Error } else { EventLevel::Info };
    Notification { kind: format!("magnum.cluster.{action}"), level, object: id, data }
}

/// The facts about the cluster in Magnum's attachment. Magnum's key of the volume's size ends with a colon, which is a mistake that no client
/// can rely on, so the key here has none.
fn content(cluster: &Cluster, groups: &[NodeGroup], now: Timestamp) -> Map<String, Value> {
    let (masters, workers): (Vec<&NodeGroup>, Vec<&NodeGroup>) =
        groups.iter().partition(|group| group.role == GroupRole::Master);
    let count = |groups: &[&NodeGroup]| groups.iter().map(|it| it.node_count()).sum::<u32>();
    let addresses = |groups: &[&NodeGroup]| {
        let members = groups.iter().flat_map(|group| group.refs());
        let address = |member| cluster.machine_addresses.get(&member).map(ToString::to_string);
        members.filter_map(address).collect::<Vec<_>>()
    };
    let parameters = &cluster.blueprint;
    let content = json!({
        "status": status(cluster, now).as_str(),
        "status_reason": status_reason(cluster),
        "health_status": health(cluster).as_str(),
        "project_id": cluster.project,
        "created_at": cluster.created_at.to_string(),
        "updated_at": cluster.updated_at.map(|at| at.to_string()),
        "cluster_template_id": cluster.template.to_string(),
        "keypair": parameters.keypair,
        "docker_volume_size": parameters.docker_volume_size,
        "labels": parameters.labels.raw(),
        "master_flavor_id": parameters.master_flavor,
        "flavor_id": parameters.flavor,
        "stack_id": null,
        "create_timeout": cluster.create_timeout.unwrap_or(0),
        "api_address": cluster.api_address,
        "discovery_url": null,
        "node_addresses": addresses(&workers),
        "master_addresses": addresses(&masters),
        "node_count": count(&workers),
        "master_count": count(&masters),
    });
    if let Value::Object(content) = content { content } else { Map::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DesiredState;
    use crate::sample::{Sample, at};

    /// Asserts the type, the outcome and the level of the notification about a change of a cluster.
    #[track_caller]
    fn check(before: Option<&Cluster>, after: Option<&Cluster>, want: Option<(&str, &str, &str)>) {
        let sample = Sample::highly_available();
        let told = cluster_notification(before, after, &sample.groups, at(10));
        let told = told.as_ref().map(|it| {
            let outcome = it.data["outcome"].as_str().unwrap();
            (it.kind.as_str(), outcome, it.level.as_str())
        });
        assert_eq!(told, want);
    }

    #[test]
    fn a_cluster_is_created_changed_and_deleted() {
        let new = Sample::highly_available().cluster;
        check(None, Some(&new), Some(("magnum.cluster.create", "pending", "info")));
        let done = Cluster { completed_at: Some(new.asked_at), ..new.clone() };
        check(Some(&new), Some(&done), Some(("magnum.cluster.create", "success", "info")));
        check(Some(&done), Some(&Cluster { version: 9, ..done.clone() }), None);
        let changed = Cluster { asked_at: at(5), ..done.clone() };
        check(Some(&done), Some(&changed), Some(("magnum.cluster.update", "pending", "info")));
        let again = Cluster { asked_at: at(6), ..changed.clone() };
        check(Some(&changed), Some(&again), Some(("magnum.cluster.update", "pending", "info")));
        let leaving = Cluster { desire: DesiredState::Gone, ..changed.clone() };
        check(Some(&changed), Some(&leaving), Some(("magnum.cluster.delete", "pending", "info")));
        check(Some(&leaving), None, Some(("magnum.cluster.delete", "success", "info")));
    }

    #[test]
    fn the_payload_is_the_event_of_magnum() {
        let Sample { cluster, groups, .. } = Sample::highly_available();
        let told = cluster_notification(None, Some(&cluster), &groups, at(10)).unwrap();
        assert_eq!(told.object, cluster.id.to_string());
        let keys: Vec<&String> = told.data.as_object().unwrap().keys().collect();
        assert_eq!(
            keys,
            [
                "action",
                "eventTime",
                "eventType",
                "id",
                "initiator",
                "observer",
                "outcome",
                "target",
                "typeURI"
            ]
        );
        let content = &told.data["target"]["attachments"][0]["content"];
        assert_eq!(content["status"], "CREATE_IN_PROGRESS");
        assert_eq!(content["master_count"], 3);
    }
}
