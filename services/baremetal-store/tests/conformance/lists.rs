//! Lists: every filter and every sort order, compared with the same operation in Rust.

use std::collections::BTreeMap;

use baremetal_core::{
    Chassis, Driver, Failure, Fault, Maintenance, Node, NodeFilter, NodeIdent, NodeSort, NodeUuid,
    Page, Port, PortFilter, PortGroup, PortSort, PowerRequest, RackLocation, Reason, State, Stored,
};
use baremetal_store::{NodeCount, Store, StoreError};
use hardware::{MacAddress, PowerChange, PowerState};
use uuid::Uuid;

use crate::machine::port;
use crate::scratch::{at, bare_node, named, on_both};

on_both! { Store:
    every_filter_lists_exactly_the_matching_nodes
    every_sort_order_continues_over_pages
    nodes_are_listed_in_the_order_of_their_creation_while_others_come_and_go
    an_unknown_marker_is_refused
    text_in_a_filter_is_not_interpreted
    ports_are_listed_by_node_and_address
    a_project_pages_through_its_own_nodes_only
    counts_by_state_agree_with_the_list
}

const PROJECT: &str = "p1";

/// Nodes that differ in every field that a filter or a sort order uses, with many ties.
fn varied() -> Vec<Node> {
    let one_of = |n: usize, words: &[&str]| words.get(n % (words.len() + 1)).map(|w| w.to_string());
    (0..48)
        .map(|n| Node {
            name: (n % 3 != 0).then(|| format!("n{}", 97 * n % 48).parse().unwrap()),
            created_at: at(n as i64 / 4),
            updated_at: (n % 5 != 0).then(|| at(n as i64 % 7)),
            description: one_of(n, &["left of the DOOR", "100%_sure\\"]),
            driver: Driver::ALL[n % 3],
            instance_uuid: (n % 4 == 0).then(|| Uuid::from_u128(n as u128 * 7919)),
            instance_name: one_of(n, &["web", "db", "mail"]),
            resource_class: one_of(n, &["large", "small"]),
            conductor_group: one_of(n, &["east"]).unwrap_or_default(),
            owner: one_of(n, &[PROJECT, "p2", ""]),
            lessee: one_of(n + 1, &[PROJECT, "p3"]),
            shard: one_of(n, &["s1", "s2", "s3"]),
            parent_node: (n % 11 == 0).then(parent),
            chassis: (n % 6 == 0).then(chassis),
            retired: one_of(n, &["old"]),
            maintenance: (n % 7 == 0).then_some(Maintenance {
                reason: None,
                fault: (n % 14 == 0).then_some(Fault::PowerFailure),
            }),
            place: (n % 2 == 0).then(|| place(n)),
            provision_state: State::ALL[n % 5],
            provision_updated_at: (n % 9 != 0).then(|| at(-(n as i64))),
            power_state: [None, Some(PowerState::On), Some(PowerState::Off)][n % 3],
            failure: (n % 8 == 0).then(|| Failure::new(Reason::StepFailed, "the disk is full")),
            power_request: (n % 10 == 0).then(|| PowerRequest::new(PowerChange::On, at(9))),
            ..bare_node()
        })
        .collect()
}

fn parent() -> NodeUuid {
    Uuid::from_u128(1).to_string().parse().unwrap()
}

fn chassis() -> Uuid {
    Uuid::from_u128(2)
}

async fn insert_chassis(store: &Store) {
    let it = Stored::new(chassis(), Chassis::default(), at(0));
    store.insert_resource(&it).await.unwrap();
}

fn place(n: usize) -> RackLocation {
    RackLocation { rack: format!("r{}", n % 3), position: n as u32 / 6, group: None, role: None }
}

async fn every_filter_lists_exactly_the_matching_nodes(store: Store) {
    let nodes = varied();
    insert_chassis(&store).await;
    for node in &nodes {
        store.insert_node(node).await.unwrap();
    }
    let check = async |filter: NodeFilter, fits: fn(&Node) -> bool| {
        let page = Page { limit: 1000, marker: None, sort: NodeSort::Id, descending: false };
        let listed = store.list_nodes(&filter, &page).await.unwrap();
        let mut want: Vec<Node> = nodes.iter().filter(|node| fits(node)).cloned().collect();
        want.sort_by_key(|node| node.id);
        assert!(!want.is_empty() && want.len() < nodes.len(), "{filter:?} tells nothing apart");
        assert_eq!(listed, want, "{filter:?}");
    };
    let all = || NodeFilter { include_children: true, ..NodeFilter::default() };

    check(NodeFilter::default(), |n| n.parent_node.is_none()).await;
    check(NodeFilter { parent_node: Some(parent()), ..all() }, |n| n.parent_node.is_some()).await;
    check(NodeFilter { instance_uuid: nodes[4].instance_uuid, ..all() }, |n| {
        n.instance_uuid == Some(Uuid::from_u128(4 * 7919))
    })
    .await;
    check(NodeFilter { associated: Some(true), ..all() }, |n| n.instance_uuid.is_some()).await;
    check(NodeFilter { associated: Some(false), ..all() }, |n| n.instance_uuid.is_none()).await;
    check(NodeFilter { maintenance: Some(true), ..all() }, |n| n.maintenance.is_some()).await;
    check(NodeFilter { maintenance: Some(false), ..all() }, |n| n.maintenance.is_none()).await;
    let fault = Some(Fault::PowerFailure);
    check(NodeFilter { fault, ..all() }, |n| n.fault() == Some(Fault::PowerFailure)).await;
    check(NodeFilter { provision_state: Some(State::Manageable), ..all() }, |n| {
        n.provision_state == State::Manageable
    })
    .await;
    check(NodeFilter { driver: Some(Driver::Ipmi), ..all() }, |n| n.driver == Driver::Ipmi).await;
    check(NodeFilter { resource_class: Some("large".into()), ..all() }, |n| {
        n.resource_class.as_deref() == Some("large")
    })
    .await;
    check(NodeFilter { conductor_group: Some(String::new()), ..all() }, |n| {
        n.conductor_group.is_empty()
    })
    .await;
    check(NodeFilter { owner: Some("p2".into()), ..all() }, |n| n.owner.as_deref() == Some("p2"))
        .await;
    check(NodeFilter { lessee: Some("p3".into()), ..all() }, |n| n.lessee.as_deref() == Some("p3"))
        .await;
    check(NodeFilter { project: Some(PROJECT.into()), ..all() }, |n| {
        n.owner.as_deref() == Some(PROJECT) || n.lessee.as_deref() == Some(PROJECT)
    })
    .await;
    check(
        NodeFilter { seen_by: Some(PROJECT.into()), owner: Some(PROJECT.into()), ..all() },
        |n| n.owner.as_deref() == Some(PROJECT),
    )
    .await;
    // The project with the empty name owns the nodes that say so, but not the nodes without an owner.
    check(NodeFilter { project: Some(String::new()), ..all() }, |n| n.owner.as_deref() == Some(""))
        .await;
    check(NodeFilter { shard: vec!["s1".into(), "s3".into()], ..all() }, |n| {
        matches!(n.shard.as_deref(), Some("s1" | "s3"))
    })
    .await;
    check(NodeFilter { sharded: Some(true), ..all() }, |n| n.shard.is_some()).await;
    check(NodeFilter { retired: Some(true), ..all() }, |n| n.retired.is_some()).await;
    check(NodeFilter { description_contains: Some("door".into()), ..all() }, |n| {
        n.description.as_deref() == Some("left of the DOOR")
    })
    .await;
    check(NodeFilter { instance_name: Some("db".into()), ..all() }, |n| {
        n.instance_name.as_deref() == Some("db")
    })
    .await;
    check(NodeFilter { chassis: Some(chassis()), ..all() }, |n| n.chassis.is_some()).await;
    check(NodeFilter { rack: Some("r1".into()), ..all() }, |n| {
        n.place.as_ref().is_some_and(|place| place.rack == "r1")
    })
    .await;
    check(NodeFilter { busy: Some(true), ..all() }, |n| n.power_request.is_some()).await;
    check(NodeFilter { busy: Some(false), ..all() }, |n| n.power_request.is_none()).await;
    check(NodeFilter { failed: Some(true), ..all() }, |n| n.failure.is_some()).await;
    check(NodeFilter { failed: Some(false), ..all() }, |n| n.failure.is_none()).await;
    let two = NodeFilter { rack: Some("r1".into()), associated: Some(true), ..all() };
    check(two, |n| {
        n.instance_uuid.is_some() && n.place.as_ref().is_some_and(|place| place.rack == "r1")
    })
    .await;
}

async fn counts_by_state_agree_with_the_list(store: Store) {
    let nodes = varied();
    insert_chassis(&store).await;
    for node in &nodes {
        store.insert_node(node).await.unwrap();
    }
    for seen_by in [None, Some(PROJECT), Some("nobody")] {
        let sees = |n: &Node| {
            let holders = [n.owner.as_deref(), n.lessee.as_deref()];
            n.parent_node.is_none() && (seen_by.is_none() || holders.contains(&seen_by))
        };
        let mut want: BTreeMap<(&str, bool, bool), u64> = BTreeMap::new();
        for node in nodes.iter().filter(|node| sees(node)) {
            let kind = (
                node.provision_state.as_str(),
                node.power_request.is_some(),
                node.failure.is_some(),
            );
            *want.entry(kind).or_default() += 1;
        }
        let counted = store.tally_nodes(seen_by).await.unwrap();
        let reported = |it: &NodeCount| ((it.state.as_str(), it.is_busy, it.is_failed), it.count);
        assert_eq!(
            counted.iter().map(reported).collect::<Vec<_>>(),
            want.into_iter().collect::<Vec<_>>()
        );
        assert_eq!(counted.is_empty(), seen_by == Some("nobody"));
    }
    // A changed node is counted in its new state.
    let failed_once = store.find_node(&NodeIdent::Id(nodes[8].id)).await.unwrap().unwrap();
    store.update_node(&Node { failure: None, ..failed_once }, &[]).await.unwrap();
    let failed =
        |all: Vec<NodeCount>| all.iter().filter(|it| it.is_failed).map(|it| it.count).sum::<u64>();
    let (states, faults) = store.tally_conditions().await.unwrap();
    assert_eq!(states, store.tally_nodes(None).await.unwrap());
    for known in Fault::ALL {
        let want = nodes.iter().filter(|node| node.fault() == Some(known)).count() as u64;
        let counted = faults.iter().find(|(it, _)| *it == known).map_or(0, |(_, count)| *count);
        assert_eq!(counted, want, "{known:?}");
    }
    let before = nodes.iter().filter(|n| n.failure.is_some() && n.parent_node.is_none()).count();
    assert_eq!(failed(store.tally_nodes(None).await.unwrap()), before as u64 - 1);
}

/// Returns the value that `sort` uses, in a form that compares like the database: missing values first.
fn sorted_by(node: &Node, sort: NodeSort) -> (Option<i64>, Option<String>) {
    let text = |text: Option<String>| (None, Some(text.unwrap_or_default()));
    let time = |time: Option<jiff::Timestamp>| (time.map(|time| time.as_microsecond()), None);
    match sort {
        NodeSort::Creation => (None, None),
        NodeSort::CreatedAt => time(Some(node.created_at)),
        NodeSort::Id => text(Some(node.id.to_string())),
        NodeSort::Name => text(node.name.as_ref().map(ToString::to_string)),
        NodeSort::ProvisionState => text(Some(node.provision_state.to_string())),
        NodeSort::PowerState => text(node.power_state.map(|state| state.to_string())),
        NodeSort::Driver => text(Some(node.driver.to_string())),
        NodeSort::ResourceClass => text(node.resource_class.clone()),
        NodeSort::UpdatedAt => time(node.updated_at),
        NodeSort::ProvisionUpdatedAt => time(node.provision_updated_at),
        NodeSort::InstanceUuid => text(node.instance_uuid.map(|id| id.to_string())),
        NodeSort::Maintenance => (Some(i64::from(node.maintenance.is_some())), None),
        NodeSort::Owner => text(node.owner.clone()),
        NodeSort::Lessee => text(node.lessee.clone()),
        NodeSort::ConductorGroup => text(Some(node.conductor_group.clone())),
        NodeSort::Position => (node.place.as_ref().map(|place| place.position.into()), None),
    }
}

async fn every_sort_order_continues_over_pages(store: Store) {
    let nodes = varied();
    insert_chassis(&store).await;
    for node in &nodes {
        store.insert_node(node).await.unwrap();
    }
    let filter = NodeFilter { include_children: true, ..NodeFilter::default() };
    for sort in [
        NodeSort::Creation,
        NodeSort::CreatedAt,
        NodeSort::Id,
        NodeSort::Name,
        NodeSort::ProvisionState,
        NodeSort::PowerState,
        NodeSort::Driver,
        NodeSort::ResourceClass,
        NodeSort::UpdatedAt,
        NodeSort::ProvisionUpdatedAt,
        NodeSort::InstanceUuid,
        NodeSort::Maintenance,
        NodeSort::Owner,
        NodeSort::Lessee,
        NodeSort::ConductorGroup,
        NodeSort::Position,
    ] {
        for descending in [false, true] {
            let mut want = nodes.clone();
            // The sort is stable, so nodes with equal keys stay in the order of their creation.
            want.sort_by_key(|node| sorted_by(node, sort));
            if descending {
                want.reverse();
            }
            let mut page = Page { limit: 7, marker: None, sort, descending };
            let mut listed = Vec::new();
            loop {
                let nodes = store.list_nodes(&filter, &page).await.unwrap();
                let Some(last) = nodes.last() else { break };
                page.marker = Some(last.id.to_string().parse().unwrap());
                listed.extend(nodes);
            }
            let ids = |nodes: &[Node]| nodes.iter().map(|node| node.id).collect::<Vec<_>>();
            assert_eq!(ids(&listed), ids(&want), "by {sort:?}, descending: {descending}");
        }
    }
}

async fn nodes_are_listed_in_the_order_of_their_creation_while_others_come_and_go(store: Store) {
    // The clock was set back, and the ids are in the opposite order.
    let node = |n: u128| Node {
        id: Uuid::from_u128(100 - n).to_string().parse().unwrap(),
        created_at: at(-(n as i64)),
        ..named(&format!("n{n}"))
    };
    for n in 0..4 {
        store.insert_node(&node(n)).await.unwrap();
    }
    let filter = NodeFilter::default();
    let mut page = Page { limit: 2, marker: None, sort: NodeSort::default(), descending: false };
    let mut names = Vec::new();
    for n in 4.. {
        let nodes = store.list_nodes(&filter, &page).await.unwrap();
        let Some(last) = nodes.last() else { break };
        page.marker = Some(last.id.to_string().parse().unwrap());
        names.extend(nodes.iter().map(|node| node.name.clone().unwrap().to_string()));
        // A listed node is deleted while the list is read, and a new one is created.
        if n < 6 {
            store.delete_node(&nodes[0]).await.unwrap();
            store.insert_node(&node(n)).await.unwrap();
        }
    }
    assert_eq!(names, ["n0", "n1", "n2", "n3", "n4", "n5"]);
}

async fn an_unknown_marker_is_refused(store: Store) {
    let gone = Uuid::new_v4();
    let page = Page { limit: 10, marker: Some(gone), sort: NodeSort::default(), descending: false };
    let listed = store.list_nodes(&NodeFilter::default(), &page).await;
    assert!(matches!(listed, Err(StoreError::NoMarker(marker)) if marker == gone));
}

async fn text_in_a_filter_is_not_interpreted(store: Store) {
    let node = Node { description: Some("100%_sure\\'; DROP".into()), ..named("n1") };
    store.insert_node(&node).await.unwrap();
    store
        .insert_node(&Node { description: Some("100 percent sure".into()), ..bare_node() })
        .await
        .unwrap();
    let page = Page { limit: 10, marker: None, sort: NodeSort::default(), descending: false };
    let having = async |part: &str| {
        let filter =
            NodeFilter { description_contains: Some(part.into()), ..NodeFilter::default() };
        store.list_nodes(&filter, &page).await.unwrap().len()
    };
    assert_eq!(having("%_").await, 1);
    assert_eq!(having("e\\'; drop").await, 1);
    assert_eq!(having("_sure").await, 1);
    assert_eq!(having("SURE").await, 2);
    assert_eq!(having("\0").await, 0);
    let injected = NodeFilter { owner: Some("' OR 1=1 --".into()), ..NodeFilter::default() };
    assert_eq!(store.list_nodes(&injected, &page).await.unwrap(), []);
    assert!(store.find_node(&NodeIdent::Id(node.id)).await.unwrap().is_some());
}

async fn ports_are_listed_by_node_and_address(store: Store) {
    let (one, two) = (named("one"), named("two"));
    store.insert_node(&one).await.unwrap();
    store.insert_node(&two).await.unwrap();
    let group = PortGroup { node: one.id, ..PortGroup::default() };
    let group = Stored::new(Uuid::from_u128(3), group, at(0));
    store.insert_resource(&group).await.unwrap();
    let ports: Vec<Port> = (0..10)
        .map(|n| Port {
            created_at: at(i64::from(n) / 3),
            updated_at: (n % 2 == 0).then(|| at(0)),
            portgroup: (n == 0 || n == 4).then_some(group.id),
            description: (n == 2).then(|| "the LEFT one".to_owned()),
            ..port(if n < 6 { &one } else { &two }, 100 - n)
        })
        .collect();
    for port in &ports {
        store.insert_port(port).await.unwrap();
    }
    let list = async |filter: PortFilter, sort: PortSort, descending: bool| {
        let mut page = Page { limit: 3, marker: None, sort, descending };
        let mut listed = Vec::new();
        loop {
            let ports = store.list_ports(&filter, &page).await.unwrap();
            let Some(last) = ports.last() else { return listed };
            page.marker = Some(last.id.to_string().parse().unwrap());
            listed.extend(ports.iter().map(|port| port.address));
        }
    };
    let addresses = |ports: &[Port]| ports.iter().map(|port| port.address).collect::<Vec<_>>();
    let everything = PortFilter::default();

    let mut want = ports.clone();
    want.sort_by_key(|port| port.address);
    assert_eq!(list(everything.clone(), PortSort::Address, false).await, addresses(&want));
    want.clone_from(&ports);
    assert_eq!(list(everything.clone(), PortSort::Creation, false).await, addresses(&want));
    want.sort_by_key(|port| port.created_at);
    assert_eq!(list(everything.clone(), PortSort::CreatedAt, false).await, addresses(&want));
    want.clone_from(&ports);
    want.sort_by_key(|port| port.updated_at);
    want.reverse();
    assert_eq!(list(everything.clone(), PortSort::UpdatedAt, true).await, addresses(&want));

    let of_two = PortFilter { node: Some(two.id), ..everything.clone() };
    assert_eq!(list(of_two, PortSort::Address, true).await, addresses(&ports[6..]));
    let some = vec![ports[1].address, ports[8].address, MacAddress::new([9; 6])];
    let some = PortFilter { addresses: some, ..everything.clone() };
    assert_eq!(list(some, PortSort::Address, true).await, [ports[1].address, ports[8].address]);
    let contains = Some("left".to_owned());
    let described = PortFilter { description_contains: contains, ..everything.clone() };
    assert_eq!(list(described, PortSort::Address, true).await, [ports[2].address]);
    let grouped = PortFilter { portgroup: Some(group.id), ..everything };
    assert_eq!(list(grouped, PortSort::Address, false).await.len(), 2);
}

async fn a_project_pages_through_its_own_nodes_only(store: Store) {
    let uuid = |id: &dyn ToString| id.to_string().parse::<Uuid>().unwrap();
    let whose = |n: u8| match n % 3 {
        0 => (Some("mine".to_owned()), None),
        1 => (Some("theirs".to_owned()), Some("mine".to_owned())),
        _ => (Some("theirs".to_owned()), None),
    };
    let mut mine = Vec::new();
    let mut others = Vec::new();
    for n in 0..30 {
        let (owner, lessee) = whose(n);
        let node = Node { owner, lessee, ..named(&format!("n{n}")) };
        store.insert_node(&node).await.unwrap();
        let port = port(&node, n);
        store.insert_port(&port).await.unwrap();
        let seen = if n % 3 == 2 { &mut others } else { &mut mine };
        seen.push((uuid(&node.id), uuid(&port.id)));
    }
    let nodes = NodeFilter { seen_by: Some("mine".to_owned()), ..NodeFilter::default() };
    let ports = PortFilter { seen_by: Some("mine".to_owned()), ..PortFilter::default() };
    let (mut node, mut port) = (None, None);
    let mut seen = Vec::new();
    // The project sees twenty nodes: five full pages of four.
    for _ in 0..5 {
        let page = Page { limit: 4, marker: node, sort: NodeSort::Name, descending: true };
        let found = store.list_nodes(&nodes, &page).await.unwrap();
        assert_eq!(found.len(), 4);
        seen.extend(found.iter().map(|node| uuid(&node.id)));
        node = found.last().map(|node| uuid(&node.id));
        let page = Page { limit: 4, marker: port, sort: PortSort::Address, descending: false };
        let found = store.list_ports(&ports, &page).await.unwrap();
        assert_eq!(found.len(), 4);
        seen.extend(found.iter().map(|port| uuid(&port.id)));
        port = found.last().map(|port| uuid(&port.id));
    }
    seen.sort();
    let mut want: Vec<Uuid> = mine.iter().flat_map(|(node, port)| [*node, *port]).collect();
    want.sort();
    assert_eq!(seen, want);

    let (node, port) = others[0];
    let page = Page { limit: 4, marker: Some(node), sort: NodeSort::Id, descending: false };
    let refused = store.list_nodes(&nodes, &page).await;
    assert!(matches!(refused, Err(StoreError::NoMarker(id)) if id == node), "{refused:?}");
    let page = Page { limit: 4, marker: Some(port), sort: PortSort::Id, descending: false };
    let refused = store.list_ports(&ports, &page).await;
    assert!(matches!(refused, Err(StoreError::NoMarker(id)) if id == port), "{refused:?}");
}
