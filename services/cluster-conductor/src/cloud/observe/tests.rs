//! Objects of lists, and the entries of the ledger.

use cluster_core::{
    ClusterUuid, IngressRule, LedgerEntry, LedgerState, LedgerUuid, Protocol, RuleSource,
};
use jiff::Timestamp;
use openstack::compute::server_groups::Policy;
use openstack::network::networks::Network;
use openstack::network::security_groups::{Remote, RuleSpec};
use serde_json::json;

use super::*;
use crate::cloud::emulated::emulated_cloud;

/// A ledger with the entries of these kinds and ids.
fn ledger(entries: &[(&str, Option<&str>)]) -> Ledger {
    let (of, at) = (ClusterUuid::new_v4(), Timestamp::UNIX_EPOCH);
    let line = |(kind, id): &(&str, Option<&str>)| LedgerEntry {
        id: LedgerUuid::new_v4(),
        of: of.into(),
        kind: (*kind).to_owned(),
        name: format!("name of {kind}"),
        cloud_id: id.map(str::to_owned),
        state: LedgerState::Present,
        created_at: at,
        updated_at: None,
    };
    Ledger::new(of, at, entries.iter().map(line).collect())
}

#[test]
fn of_several_objects_with_the_name_the_one_with_the_lowest_id_is_taken() {
    let listed = [("3", "a"), ("1", "b"), ("2", "a")];
    let network = |(id, name)| serde_json::from_value(json!({"id": id, "name": name})).unwrap();
    let mut listed: Vec<Network> = listed.map(network).into();
    let mut taken = |name| take(&mut listed, name).map(|it| it.id);
    assert_eq!(taken("a").as_deref(), Some("2"));
    assert_eq!(taken("a").as_deref(), Some("3"));
    assert_eq!(taken("a"), None);
    assert_eq!(taken("b").as_deref(), Some("1"));
}

#[test]
fn up_to_four_objects_with_known_ids_are_fetched_one_by_one() {
    let entries: Vec<(String, String)> =
        (0..5).map(|n| (format!("server-group/g{n}"), format!("id-{n}"))).collect();
    let known: Vec<(&str, Option<&str>)> =
        entries.iter().map(|(kind, id)| (kind.as_str(), Some(id.as_str()))).collect();
    let ids = |entries: &[(&str, Option<&str>)]| {
        let ledger = ledger(entries);
        let found = ids_of_few(&ledger, Kind::ServerGroup)?;
        Some(found.into_iter().map(|(_, id)| id.to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(ids(&known[..4]).unwrap(), ["id-0", "id-1", "id-2", "id-3"]);
    assert_eq!(ids(&known), None);
    assert_eq!(ids(&[]).unwrap(), Vec::<String>::new());
    assert_eq!(ids(&[known[0], (known[1].0, None)]), None, "an id is not known yet");
    // Objects of other kinds do not count.
    assert_eq!(ids(&[known[0], ("network", None)]).unwrap(), ["id-0"]);
}

#[test]
fn the_names_of_a_kind_are_those_of_its_entries() {
    let ledger = ledger(&[("network", None), ("server-group/a", None), ("server-group/b", None)]);
    let of = |kind| names(&ledger, kind);
    assert_eq!(of(Kind::ServerGroup), ["name of server-group/a", "name of server-group/b"]);
    assert_eq!(of(Kind::Subnet), Vec::<String>::new());
}

#[tokio::test]
async fn a_security_group_is_observed_with_its_rules() {
    let (_emulator, session) = emulated_cloud().await;
    let ledger = ledger(&[("security-group/node", None), ("security-group/control-plane", None)]);
    let names = names(&ledger, Kind::SecurityGroup);
    let mut made = Vec::new();
    for name in &names {
        made.push(security_groups::create(&session, name, "").await.unwrap().id);
    }
    let [control_plane, node] = &made[..] else { panic!("{made:?}") };
    let from_nodes = RuleSpec::everything(Remote::Group(node.clone()));
    security_groups::allow(&session, node, &from_nodes).await.unwrap();
    let from_range = RuleSpec::to_port("tcp", 22, Remote::Prefix("10.0.0.0/8".to_owned()));
    security_groups::allow(&session, node, &from_range).await.unwrap();

    let found = groups(&session, &ledger, &names).await.unwrap();
    let of = |key: &str| {
        let key: Key = key.parse().unwrap();
        let (_, object) = found.iter().find(|(it, _)| *it == key).unwrap();
        (object.id.clone(), object.facts.clone())
    };
    let rules = [
        IngressRule {
            protocol: Protocol::Any,
            ports: None,
            from: RuleSource::Group("security-group/node".parse().unwrap()),
        },
        IngressRule {
            protocol: Protocol::Tcp,
            ports: Some((22, 22)),
            from: RuleSource::Range("10.0.0.0/8".parse().unwrap()),
        },
    ];
    let none = CloudObjectDetails::Rules(BTreeSet::new());
    assert_eq!(of("security-group/control-plane"), (control_plane.clone(), none));
    assert_eq!(of("security-group/node"), (node.clone(), CloudObjectDetails::Rules(rules.into())));
}

#[tokio::test]
async fn known_server_groups_are_fetched_without_the_list_of_all() {
    let (emulator, session) = emulated_cloud().await;
    let policy = Policy::from("anti-affinity".to_owned());
    let mut ids = Vec::new();
    for name in ["a", "b", "of somebody else"] {
        ids.push(server_groups::create(&session, name, &policy).await.unwrap().id);
    }
    let [a, b] = ["server-group/a", "server-group/b"];
    let (first, second) = (ids[0].as_str(), ids[1].as_str());
    emulator.cloud.forget_calls();
    // The entries of the ledger, and the ids of the groups that were fetched.
    let rows = [
        (vec![(a, Some(first)), (b, Some(second))], Some(vec![first, second])),
        (vec![(a, Some(first)), (b, Some("absent"))], Some(vec![first])),
        (vec![(a, Some("absent"))], Some(Vec::new())),
        (vec![(a, Some(first)), (b, None)], None),
    ];
    for (entries, want) in rows {
        let ledger = ledger(&entries);
        let found = one_by_one::<ServerGroup>(&session, &ledger, Kind::ServerGroup).await.unwrap();
        let found = found
            .as_ref()
            .map(|all| all.iter().map(|(_, object)| object.id.as_str()).collect::<Vec<_>>());
        assert_eq!(found, want, "{entries:?}");
    }
    assert_eq!(emulator.cloud.count(|call| call.path.ends_with("/os-server-groups")), 0);
}
