//! Objects of lists, and the entries of the ledger.

use cluster_core::{ClusterUuid, LedgerEntry, LedgerState, LedgerUuid};
use jiff::Timestamp;
use openstack::network::networks::Network;
use serde_json::json;

use super::*;

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
