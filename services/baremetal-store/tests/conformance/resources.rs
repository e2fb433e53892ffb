//! Resources that are stored as one document, and what refers to them.

use baremetal_core::{
    Chassis, InspectionRule, Node, NodeIdent, Page, Port, PortGroup, PortUuid, Runbook, Stored,
    StoredFilter, StoredSort,
};
use baremetal_store::{Store, StoreError};
use database::table::PagePart;
use hardware::MacAddress;
use uuid::Uuid;

use crate::machine::port;
use crate::scratch::{at, bare_node, named, on_both};

on_both! { Store:
    a_resource_is_written_found_changed_and_deleted
    names_and_keys_are_unique_within_their_kind
    a_resource_in_use_is_not_deleted
    what_refers_to_a_missing_resource_is_refused
    ports_move_to_the_network_of_their_group
    changes_of_the_vifs_of_a_node_exclude_each_other
    resources_are_listed_by_node_key_and_project
    a_project_sees_its_own_and_public_runbooks
    the_first_resources_of_a_kind_are_listed_and_all_are_deleted
    a_node_and_a_project_have_a_limited_number_of_each_kind
}

/// A port group of `node` with the name and the address `n`.
fn group(node: &Node, n: u8) -> Stored<PortGroup> {
    let address = Some(MacAddress::new([0x52, 0x54, 0, 1, 0, n]));
    let name = Some(format!("bond{n}"));
    let content = PortGroup { node: node.id, name, address, ..PortGroup::default() };
    Stored::new(Uuid::new_v4(), content, at(i64::from(n)))
}

async fn a_resource_is_written_found_changed_and_deleted(store: Store) {
    let node = bare_node();
    store.insert_node(&node).await.unwrap();
    let mut it = group(&node, 1);
    store.insert_resource(&it).await.unwrap();
    assert_eq!(store.find_resource(it.id).await.unwrap().as_ref(), Some(&it));
    assert_eq!(store.find_resource_by_name("bond1").await.unwrap().as_ref(), Some(&it));
    // An id is found by its own kind only.
    assert_eq!(store.find_resource::<Chassis>(it.id).await.unwrap(), None);
    it.content.mode = "802.3ad".to_owned();
    it.updated_at = Some(at(9));
    let written = store.update_resource(&it).await.unwrap();
    assert_eq!(written.version, 2);
    let stale = store.update_resource(&it).await;
    assert!(matches!(stale, Err(StoreError::Stale)), "{stale:?}");
    let stale = store.delete_resource(&it).await;
    assert!(matches!(stale, Err(StoreError::Stale)), "{stale:?}");
    assert!(store.delete_resource(&written).await.unwrap());
    assert_eq!(store.find_resource::<PortGroup>(it.id).await.unwrap(), None);
    store.insert_resource(&it).await.unwrap();
    store.delete_node(&node).await.unwrap();
    assert_eq!(store.find_resource::<PortGroup>(it.id).await.unwrap(), None);
}

async fn names_and_keys_are_unique_within_their_kind(store: Store) {
    let node = bare_node();
    store.insert_node(&node).await.unwrap();
    let (one, mut two) = (group(&node, 1), group(&node, 2));
    store.insert_resource(&one).await.unwrap();
    let refused = async |it: &Stored<PortGroup>, named: &str| {
        let refused = store.insert_resource(it).await;
        assert!(
            matches!(refused, Err(StoreError::Duplicate { field, .. }) if field == named),
            "{refused:?}"
        );
    };
    two.content.name = one.content.name.clone();
    refused(&two, "name").await;
    two.content.name = None;
    two.content.address = one.content.address;
    refused(&two, "address").await;
    two.content.address = None;
    two.id = one.id;
    refused(&two, "uuid").await;
    two.id = Uuid::new_v4();
    store.insert_resource(&two).await.unwrap();
}

async fn a_resource_in_use_is_not_deleted(store: Store) {
    let chassis = Stored::new(Uuid::new_v4(), Chassis::default(), at(0));
    store.insert_resource(&chassis).await.unwrap();
    let node = Node { chassis: Some(chassis.id), ..bare_node() };
    store.insert_node(&node).await.unwrap();
    let group = group(&node, 1);
    store.insert_resource(&group).await.unwrap();
    let port = Port { portgroup: Some(group.id), ..port(&node, 1) };
    store.insert_port(&port).await.unwrap();
    assert!(!store.delete_resource(&chassis).await.unwrap());
    assert!(!store.delete_resource(&group).await.unwrap());
    assert_eq!(store.find_resource(group.id).await.unwrap(), Some(group.clone()));
    store.delete_port(&port).await.unwrap();
    assert!(store.delete_resource(&group).await.unwrap());
    store.delete_node(&node).await.unwrap();
    assert!(store.delete_resource(&chassis).await.unwrap());
}

async fn what_refers_to_a_missing_resource_is_refused(store: Store) {
    let (node, other) = (bare_node(), named("other"));
    store.insert_node(&other).await.unwrap();
    let missing = Uuid::new_v4();
    let no_owner = |result: Result<(), StoreError>, what: &str| {
        let fits = matches!(&result, Err(StoreError::NoOwner { owner, .. }) if *owner == what);
        assert!(fits, "{result:?}");
    };
    let placed = Node { chassis: Some(missing), ..node.clone() };
    no_owner(store.insert_node(&placed).await, "chassis");
    let of_nobody = store.insert_resource(&group(&node, 1)).await;
    no_owner(of_nobody, "node");
    store.insert_node(&node).await.unwrap();
    no_owner(store.update_node(&placed, &[]).await.map(drop), "chassis");
    let port = port(&node, 1);
    let grouped = Port { portgroup: Some(missing), ..port.clone() };
    no_owner(store.insert_port(&grouped).await, "port group");
    let of_other = group(&other, 2);
    store.insert_resource(&of_other).await.unwrap();
    let grouped = Port { portgroup: Some(of_other.id), ..port.clone() };
    no_owner(store.insert_port(&grouped).await, "port group");
    store.insert_port(&port).await.unwrap();
    no_owner(store.update_port(&grouped).await.map(drop), "port group");
    assert!(store.find_node(&NodeIdent::Id(node.id)).await.unwrap().unwrap().chassis.is_none());
}

async fn ports_move_to_the_network_of_their_group(store: Store) {
    let node = bare_node();
    store.insert_node(&node).await.unwrap();
    let mut group = group(&node, 1);
    store.insert_resource(&group).await.unwrap();
    let member = Port { portgroup: Some(group.id), ..port(&node, 1) };
    let other = port(&node, 2);
    for port in [&member, &other] {
        store.insert_port(port).await.unwrap();
    }
    group.content.physical_network = Some("physnet1".to_owned());
    let group = store.update_port_group(&group).await.unwrap();
    let member = store.find_port(member.id).await.unwrap().unwrap();
    assert_eq!((member.physical_network.as_deref(), member.version), (Some("physnet1"), 2));
    assert_eq!(store.find_port(other.id).await.unwrap(), Some(other));
    let members = store.ports_of_group(group.id).await.unwrap();
    assert_eq!(members, std::slice::from_ref(&member));
    store.update_port_group(&group).await.unwrap();
    assert_eq!(store.find_port(member.id).await.unwrap(), Some(member));
}

async fn changes_of_the_vifs_of_a_node_exclude_each_other(store: Store) {
    let node = bare_node();
    store.insert_node(&node).await.unwrap();
    let (group, one) = (group(&node, 1), port(&node, 1));
    store.insert_resource(&group).await.unwrap();
    store.insert_port(&one).await.unwrap();
    let vif = Some("v".to_owned());
    let mut attached = group.clone();
    attached.content.vif.clone_from(&vif);
    let written = store.update_vifs(&node, &[], &[attached]).await.unwrap();
    assert_eq!(store.find_node(&NodeIdent::Id(node.id)).await.unwrap(), Some(written.clone()));
    assert_eq!(
        (written.version, store.port_groups_of(node.id).await.unwrap()[0].content.vif.clone()),
        (2, vif.clone())
    );
    // Another request has read the node before, so it does not attach the VIF at a second place.
    let other = Port { vif, ..one.clone() };
    let stale = store.update_vifs(&node, std::slice::from_ref(&other), &[]).await;
    assert!(matches!(stale, Err(StoreError::Stale)), "{stale:?}");
    assert_eq!(store.find_port(one.id).await.unwrap(), Some(one));
    let stale = store.update_vifs(&written, &[other], &[group]).await;
    assert!(matches!(stale, Err(StoreError::Stale)), "the group was written: {stale:?}");
    let nobody = store.port_groups_of(named("nobody").id).await.unwrap();
    assert!(nobody.is_empty(), "{nobody:?}");
}

async fn resources_are_listed_by_node_key_and_project(store: Store) {
    let mine = Node { owner: Some("mine".to_owned()), ..named("a") };
    let theirs = Node { owner: Some("theirs".to_owned()), ..named("b") };
    let chassis = Stored::new(Uuid::new_v4(), Chassis::default(), at(0));
    store.insert_resource(&chassis).await.unwrap();
    let mut all = Vec::new();
    for (node, numbers) in [(&mine, [1, 3]), (&theirs, [2, 4])] {
        store.insert_node(node).await.unwrap();
        for number in numbers {
            let group = group(node, number);
            store.insert_resource(&group).await.unwrap();
            all.push(group);
        }
    }
    let (first, foreign) = (all[0].id, all[2].id);
    let list = async |filter: &StoredFilter, marker: Option<Uuid>, sort: StoredSort| {
        let page = Page { limit: 3, marker, sort, descending: false };
        let part = PagePart::whole();
        let listed = store.list_resources_part::<PortGroup>(filter, &page, part).await?;
        let names = listed.found.into_iter().filter_map(|it| it.content.name);
        Ok::<_, StoreError>(names.collect::<Vec<_>>())
    };
    let any = StoredFilter::default();
    for sort in [StoredSort::CreatedAt, StoredSort::Name, StoredSort::Key] {
        assert_eq!(list(&any, None, sort).await.unwrap(), ["bond1", "bond2", "bond3"]);
        assert_eq!(list(&any, Some(first), sort).await.unwrap(), ["bond2", "bond3", "bond4"]);
    }
    for sort in [StoredSort::Creation, StoredSort::Public] {
        assert_eq!(list(&any, None, sort).await.unwrap(), ["bond1", "bond3", "bond2"]);
        assert_eq!(list(&any, Some(first), sort).await.unwrap(), ["bond3", "bond2", "bond4"]);
    }
    let of_node = StoredFilter { node: Some(theirs.id), ..any.clone() };
    assert_eq!(list(&of_node, None, StoredSort::Name).await.unwrap(), ["bond2", "bond4"]);
    let by_key = StoredFilter { key: Some("52:54:00:01:00:03".to_owned()), ..any.clone() };
    assert_eq!(list(&by_key, None, StoredSort::Name).await.unwrap(), ["bond3"]);
    let seen = StoredFilter { seen_by: Some("mine".to_owned()), ..any.clone() };
    assert_eq!(list(&seen, None, StoredSort::Name).await.unwrap(), ["bond1", "bond3"]);
    // A marker of another kind, or of a node that the caller does not see, counts as unknown.
    for (filter, marker) in [(&any, chassis.id), (&seen, foreign)] {
        let refused = list(filter, Some(marker), StoredSort::Name).await;
        assert!(matches!(refused, Err(StoreError::NoMarker(id)) if id == marker), "{refused:?}");
    }
}

async fn a_project_sees_its_own_and_public_runbooks(store: Store) {
    let mut ids = Vec::new();
    for (name, owner, is_public) in [
        ("nobodys", None, false),
        ("open", None, true),
        ("a", Some("a"), false),
        ("b", Some("b"), false),
    ] {
        let content = Runbook {
            name: name.to_owned(),
            owner: owner.map(str::to_owned),
            is_public,
            ..Runbook::default()
        };
        let it = Stored::new(Uuid::new_v4(), content, at(0));
        store.insert_resource(&it).await.unwrap();
        ids.push(it.id);
    }
    let list = async |project: Option<&str>, marker: Option<Uuid>, sort: StoredSort| {
        let filter = StoredFilter { seen_by: project.map(str::to_owned), ..Default::default() };
        let page = Page { limit: 9, marker, sort, descending: false };
        let part = PagePart::whole();
        let listed = store.list_resources_part::<Runbook>(&filter, &page, part).await?;
        let names = listed.found.into_iter().map(|it| it.content.name);
        Ok::<_, StoreError>(names.collect::<Vec<_>>())
    };
    use StoredSort::{Name, Owner, Public};
    assert_eq!(list(None, None, Name).await.unwrap(), ["a", "b", "nobodys", "open"]);
    assert_eq!(list(Some("a"), None, Name).await.unwrap(), ["a", "open"]);
    assert_eq!(list(Some("c"), None, Name).await.unwrap(), ["open"]);
    assert_eq!(list(Some("a"), Some(ids[2]), Name).await.unwrap(), ["open"]);
    assert_eq!(list(Some("a"), None, Owner).await.unwrap(), ["open", "a"]);
    assert_eq!(list(Some("a"), None, Public).await.unwrap(), ["a", "open"]);
    assert_eq!(list(None, Some(ids[2]), Owner).await.unwrap(), ["b"]);
    // The runbook of another project is no marker.
    let refused = list(Some("a"), Some(ids[3]), Name).await;
    assert!(matches!(refused, Err(StoreError::NoMarker(id)) if id == ids[3]), "{refused:?}");
    // A runbook that changes its owner is listed for the new one.
    let mut it = store.find_resource::<Runbook>(ids[3]).await.unwrap().unwrap();
    it.content.owner = Some("a".to_owned());
    store.update_resource(&it).await.unwrap();
    assert_eq!(list(Some("a"), None, Name).await.unwrap(), ["a", "b", "open"]);
    assert_eq!(list(Some("b"), None, Name).await.unwrap(), ["open"]);
}

async fn the_first_resources_of_a_kind_are_listed_and_all_are_deleted(store: Store) {
    let chassis = Stored::new(Uuid::new_v4(), Chassis::default(), at(0));
    store.insert_resource(&chassis).await.unwrap();
    let mut ids = Vec::new();
    for second in [3, 1, 2] {
        let it = Stored::new(Uuid::new_v4(), InspectionRule::default(), at(second));
        store.insert_resource(&it).await.unwrap();
        ids.push(it.id);
    }
    let first = async |limit: u32| {
        let found = store.first_resources::<InspectionRule>(limit).await.unwrap();
        found.into_iter().map(|it| it.id).collect::<Vec<_>>()
    };
    assert_eq!(first(2).await, ids[..2]);
    assert_eq!(first(9).await, ids);
    store.delete_resources::<InspectionRule>().await.unwrap();
    assert!(first(9).await.is_empty());
    assert_eq!(store.find_resource(chassis.id).await.unwrap().as_ref(), Some(&chassis));
}

fn runbook_of(owner: Option<&str>) -> Stored<Runbook> {
    let (id, owner) = (Uuid::new_v4(), owner.map(str::to_owned));
    let content = Runbook { name: format!("CUSTOM_{id}"), owner, ..Runbook::default() };
    Stored::new(id, content, at(0))
}

async fn a_node_and_a_project_have_a_limited_number_of_each_kind(store: Store) {
    const MOST: u32 = 256;
    let (node, other) = (bare_node(), named("other"));
    for node in [&node, &other] {
        store.insert_node(node).await.unwrap();
    }
    let port_of = |node: &Node, n: u32| {
        let [_, _, high, low] = n.to_be_bytes();
        let address = MacAddress::new([0x52, 0x54, 0, 2, high, low]);
        Port::new(PortUuid::new_v4(), node.id, address, at(0))
    };
    let group_of = |node: &Node| {
        let content = PortGroup { node: node.id, ..PortGroup::default() };
        Stored::new(Uuid::new_v4(), content, at(0))
    };
    for n in 0..MOST {
        store.insert_port(&port_of(&node, n)).await.unwrap();
        store.insert_resource(&group_of(&node)).await.unwrap();
        store.insert_resource(&runbook_of(Some("a"))).await.unwrap();
    }
    let refused = |result: Result<(), StoreError>, want: &str| {
        assert_eq!(result.unwrap_err().to_string(), want);
    };
    let last = port_of(&node, MOST);
    refused(store.insert_port(&last).await, "ports: the node uses 256 of its limit of 256");
    let want = "portgroup: the node uses 256 of its limit of 256";
    refused(store.insert_resource(&group_of(&node)).await, want);
    let want = "runbook: the project uses 256 of its limit of 256";
    refused(store.insert_resource(&runbook_of(Some("a"))).await, want);
    refused(store.check_resource(&runbook_of(Some("a"))).await, want);
    let counts = store.count_ports(&[node.id, other.id]).await.unwrap();
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), [(node.id, 256)]);
    assert_eq!(store.find_port(last.id).await.unwrap(), None, "nothing was written");

    // Other nodes and projects have limits of their own, and operators have none.
    store.insert_port(&Port { node: other.id, ..last.clone() }).await.unwrap();
    store.insert_resource(&group_of(&other)).await.unwrap();
    for owner in [Some("b"), None] {
        store.insert_resource(&runbook_of(owner)).await.unwrap();
    }
    let first = store.ports_of(node.id).await.unwrap().remove(0);
    store.delete_port(&first).await.unwrap();
    store.insert_port(&port_of(&node, MOST + 1)).await.unwrap();
}
