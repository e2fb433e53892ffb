//! Allocations: every allocation gets one node, and no node is given to two allocations.

use std::collections::BTreeSet;

use baremetal_core::{
    Allocation, AllocationFilter, AllocationSort, AllocationState, AllocationUuid,
    BackfillMismatch, Maintenance, Node, NodeIdent, NodeLease, NodePool, NodeUuid, Page,
    Reservation, ReservationRequest, State, WorkUuid, release,
};
use baremetal_store::{
    BackfillOutcome, ClassCapacity, PagePart, ReserveOutcome, Store, StoreError,
};
use hardware::PowerState;
use lease::{Lease, Length};
use newtype_uuid::GenericUuid;
use serde_json::Map;

use crate::scratch::{at, bare_node, on_both, unfinished};

on_both! { Store:
    two_hundred_ask_for_ten_nodes
    unavailable_and_foreign_nodes_are_not_allocated
    the_capacity_counts_what_an_allocation_can_reserve
    a_node_with_the_allocations_name_is_preferred
    a_node_is_found_beyond_many_that_do_not_fit
    a_node_that_is_written_meanwhile_is_still_allocated
    an_allocation_is_written_and_deleted_with_its_node
    an_allocation_ends_with_its_node
    a_node_in_use_is_backfilled_once
    names_and_ids_are_unique
    allocations_are_listed_in_pages
    a_project_cannot_exceed_its_limit_of_reservations
    a_reserved_node_is_lent_and_being_installed
    only_the_newest_failed_allocations_are_kept
}

fn wish() -> Allocation {
    Allocation {
        id: AllocationUuid::new_v4(),
        version: 1,
        created_at: at(0),
        updated_at: None,
        name: None,
        state: AllocationState::Allocating,
        last_error: None,
        node: None,
        resource_class: Some("gpu".to_owned()),
        traits: BTreeSet::new(),
        candidate_nodes: Vec::new(),
        extra: Map::new(),
        owner: None,
        reservation: None,
    }
}

fn free() -> Node {
    Node {
        provision_state: State::Available,
        power_state: Some(PowerState::Off),
        resource_class: Some("gpu".to_owned()),
        ..bare_node()
    }
}

async fn node(store: &Store, id: NodeUuid) -> Node {
    store.find_node(&NodeIdent::Id(id)).await.unwrap().unwrap()
}

async fn allocate(store: &Store, wish: &Allocation) -> Allocation {
    let written = store.allocate(wish, &NodePool::of(wish.owner.as_deref()), at(5)).await.unwrap();
    assert_eq!(store.find_allocation(wish.id).await.unwrap().as_ref(), Some(&written));
    written
}

async fn two_hundred_ask_for_ten_nodes(store: Store) {
    for _ in 0..10 {
        store.insert_node(&free()).await.unwrap();
    }
    let asking = (0..200).map(|_| {
        let store = store.clone();
        tokio::spawn(async move { store.allocate(&wish(), &NodePool::All, at(5)).await.unwrap() })
    });
    let mut nodes = BTreeSet::new();
    let mut without = 0;
    for asked in asking.collect::<Vec<_>>() {
        let allocation = asked.await.unwrap();
        match allocation.node {
            Some(id) => {
                assert_eq!(allocation.state, AllocationState::Active);
                assert!(nodes.insert(id), "node {id} was given out twice");
                let node = node(&store, id).await;
                assert_eq!(node.allocation, Some(allocation.id));
                assert_eq!(node.instance_uuid, Some(allocation.id.into_untyped_uuid()));
            }
            None => {
                assert_eq!(allocation.state, AllocationState::Error);
                without += 1;
            }
        }
    }
    assert_eq!((nodes.len(), without), (10, 190));
    let active =
        AllocationFilter { state: Some(AllocationState::Active), ..AllocationFilter::default() };
    assert_eq!(store.list_allocations(&active, &page(1000, None)).await.unwrap().len(), 10);
}

async fn the_capacity_counts_what_an_allocation_can_reserve(store: Store) {
    for node in [
        free(),
        free(),
        Node { maintenance: Some(Maintenance::requested(None)), ..free() },
        Node { retired: Some(String::new()), ..free() },
        Node { power_state: None, ..free() },
        Node { provision_state: State::CleanWait, ..free() },
        Node { provision_state: State::Active, ..free() },
        bare_node(),
        Node { parent_node: Some(NodeUuid::new_v4()), ..bare_node() },
    ] {
        store.insert_node(&node).await.unwrap();
    }
    allocate(&store, &wish()).await;
    allocate(&store, &Allocation { resource_class: Some("tpu".to_owned()), ..wish() }).await;
    let counted = store.capacity(at(9)).await.unwrap();
    let class = |class: Option<&str>, free, used, withheld| ClassCapacity {
        class: class.map(str::to_owned),
        free,
        used,
        withheld,
    };
    assert_eq!(counted.classes, [class(None, 0, 0, 1), class(Some("gpu"), 1, 2, 4)]);
    assert_eq!(counted.allocations, [(AllocationState::Active, 1), (AllocationState::Error, 1)]);
    assert_eq!((counted.lent_nodes, counted.dhcp_leases), (0, 0));
}

async fn unavailable_and_foreign_nodes_are_not_allocated(store: Store) {
    let owned = Node { owner: Some("physics".into()), ..free() };
    for node in [
        Node { maintenance: Some(Maintenance::requested(None)), ..free() },
        Node { retired: Some(String::new()), ..free() },
        Node { power_state: None, ..free() },
        Node { instance_uuid: Some(uuid::Uuid::new_v4()), ..free() },
        Node { provision_state: State::Manageable, ..free() },
        Node { resource_class: Some("cpu".into()), ..free() },
        Node { owner: Some("biology".into()), ..free() },
        owned.clone(),
    ] {
        store.insert_node(&node).await.unwrap();
    }
    let mine = Allocation { owner: Some("physics".into()), ..wish() };
    assert_eq!(allocate(&store, &mine).await.node, Some(owned.id));
    let second = Allocation { id: AllocationUuid::new_v4(), ..mine };
    let failed = allocate(&store, &second).await;
    let why = format!(
        "Failed to process allocation {}: no available nodes match the resource class gpu.",
        second.id
    );
    assert_eq!((failed.node, failed.last_error), (None, Some(why)));

    let fast = Allocation { traits: BTreeSet::from(["CUSTOM_FAST".into()]), ..wish() };
    let why = allocate(&store, &fast).await.last_error.unwrap();
    assert!(why.ends_with("no suitable nodes have the requested traits CUSTOM_FAST."), "{why}");
    let among = Allocation { candidate_nodes: vec![owned.id], ..wish() };
    let why = allocate(&store, &among).await.last_error.unwrap();
    assert!(why.contains("none of the requested nodes are available"), "{why}");
}

async fn a_node_with_the_allocations_name_is_preferred(store: Store) {
    let named = Node { name: Some("worker-3".parse().unwrap()), ..free() };
    store.insert_node(&named).await.unwrap();
    for _ in 0..20 {
        store.insert_node(&free()).await.unwrap();
    }
    let asked = Allocation { name: Some("worker-3".parse().unwrap()), ..wish() };
    assert_eq!(allocate(&store, &asked).await.node, Some(named.id));
    let by_name = store.find_allocation_by_name(&"worker-3".parse().unwrap()).await.unwrap();
    assert_eq!(by_name.map(|it| it.id), Some(asked.id));
}

async fn a_node_is_found_beyond_many_that_do_not_fit(store: Store) {
    for _ in 0..150 {
        store.insert_node(&free()).await.unwrap();
    }
    let fast = Node { traits: BTreeSet::from(["CUSTOM_FAST".into()]), ..free() };
    store.insert_node(&fast).await.unwrap();
    let asked = Allocation { traits: BTreeSet::from(["CUSTOM_FAST".into()]), ..wish() };
    assert_eq!(allocate(&store, &asked).await.node, Some(fast.id));
}

async fn a_node_that_is_written_meanwhile_is_still_allocated(store: Store) {
    let only = free();
    store.insert_node(&only).await.unwrap();
    let writing = {
        let (store, id) = (store.clone(), only.id);
        tokio::spawn(async move {
            for round in 0..50 {
                let read = node(&store, id).await;
                let noted = Node { description: Some(round.to_string()), ..read };
                // A late write is refused: the allocation may have reserved the node between the two lines above.
                let _ = store.update_node(&noted, &[]).await;
            }
        })
    };
    assert_eq!(allocate(&store, &wish()).await.node, Some(only.id));
    writing.await.unwrap();
    assert!(node(&store, only.id).await.allocation.is_some());
}

async fn an_allocation_is_written_and_deleted_with_its_node(store: Store) {
    let only = free();
    store.insert_node(&only).await.unwrap();
    let active = allocate(&store, &wish()).await;
    let taken = node(&store, only.id).await;
    assert_eq!((taken.version, taken.updated_at), (2, Some(at(5))));

    let named = Allocation { name: Some("a".parse().unwrap()), ..active.clone() };
    let named = store.update_allocation(&named).await.unwrap();
    let late = store.delete_allocation(&active, Some(&taken), at(6)).await;
    assert!(matches!(late, Err(StoreError::Stale)), "{late:?}");
    assert_eq!(node(&store, only.id).await, taken, "nothing of a refused deletion is written");
    let late = store.delete_allocation(&named, Some(&only), at(6)).await;
    assert!(matches!(late, Err(StoreError::Stale)), "{late:?}");
    assert_eq!(store.find_allocation(named.id).await.unwrap(), Some(named.clone()));

    store.delete_allocation(&named, Some(&taken), at(6)).await.unwrap();
    assert_eq!(store.find_allocation(named.id).await.unwrap(), None);
    let free = node(&store, only.id).await;
    assert_eq!(free, Node { version: 3, updated_at: Some(at(6)), ..release(&taken) });
    assert_eq!(allocate(&store, &wish()).await.node, Some(only.id));
}

async fn an_allocation_ends_with_its_node(store: Store) {
    for _ in 0..2 {
        store.insert_node(&free()).await.unwrap();
    }
    let (given_back, forgotten) =
        (allocate(&store, &wish()).await, allocate(&store, &wish()).await);
    let used = node(&store, given_back.node.unwrap()).await;
    store.update_node_and_end(&release(&used), &[], given_back.id).await.unwrap();
    assert_eq!(store.find_allocation(given_back.id).await.unwrap(), None);
    let gone = node(&store, forgotten.node.unwrap()).await;
    store.delete_node(&gone).await.unwrap();
    assert_eq!(store.find_allocation(forgotten.id).await.unwrap(), None);
}

async fn a_node_in_use_is_backfilled_once(store: Store) {
    let used = Node { provision_state: State::Active, ..free() };
    store.insert_node(&used).await.unwrap();
    let asked = wish();
    let BackfillOutcome::Done(written) = store.backfill(&asked, used.id, at(5)).await.unwrap()
    else {
        panic!("the node is free")
    };
    assert_eq!((written.state, written.node), (AllocationState::Active, Some(used.id)));
    assert_eq!(node(&store, used.id).await.allocation, Some(asked.id));
    let again = store.backfill(&wish(), used.id, at(5)).await.unwrap();
    let is_in_use = matches!(again, BackfillOutcome::Mismatch(BackfillMismatch::InUse { .. }));
    assert!(is_in_use, "{again:?}");
    let nowhere = store.backfill(&wish(), NodeUuid::new_v4(), at(5)).await;
    assert!(matches!(nowhere, Err(StoreError::NoOwner { .. })), "{nowhere:?}");
}

async fn names_and_ids_are_unique(store: Store) {
    for _ in 0..3 {
        store.insert_node(&free()).await.unwrap();
    }
    let first = Allocation { name: Some("a".parse().unwrap()), ..wish() };
    allocate(&store, &first).await;
    let check = async |asked: Allocation, want: &str| match store
        .allocate(&asked, &NodePool::All, at(5))
        .await
    {
        Err(StoreError::Duplicate { field, .. }) => assert_eq!(field, want),
        other => panic!("{other:?}"),
    };
    check(Allocation { name: first.name.clone(), ..wish() }, "name").await;
    // The node's `instance_uuid` is the allocation's id, so the second node clashes first.
    check(Allocation { id: first.id, ..wish() }, "instance_uuid").await;
    let all = store.list_allocations(&AllocationFilter::default(), &page(10, None)).await.unwrap();
    assert_eq!(all.len(), 1);
    // The refused allocation has not kept a node.
    allocate(&store, &wish()).await.node.unwrap();
    allocate(&store, &wish()).await.node.unwrap();
}

fn page(limit: u32, marker: Option<uuid::Uuid>) -> Page<AllocationSort> {
    Page { limit, marker, sort: AllocationSort::Creation, descending: false }
}

async fn allocations_are_listed_in_pages(store: Store) {
    let mut want = Vec::new();
    for n in 0..5 {
        let owner = (n % 2 == 0).then(|| "physics".to_owned());
        let asked = Allocation { created_at: at(n), owner, ..wish() };
        want.push(allocate(&store, &asked).await);
    }
    let all = AllocationFilter::default();
    let first = store.list_allocations(&all, &page(3, None)).await.unwrap();
    assert_eq!(first, want[..3]);
    let marker = Some(first[2].id.into_untyped_uuid());
    assert_eq!(store.list_allocations(&all, &page(3, marker)).await.unwrap(), want[3..]);
    for sort in [
        AllocationSort::CreatedAt,
        AllocationSort::Id,
        AllocationSort::Name,
        AllocationSort::State,
        AllocationSort::ResourceClass,
        AllocationSort::Owner,
        AllocationSort::UpdatedAt,
    ] {
        let page = Page { sort, ..page(3, marker) };
        store.list_allocations(&all, &page).await.unwrap();
    }
    let physics = AllocationFilter { seen_by: Some("physics".into()), ..all };
    let seen = store.list_allocations(&physics, &page(9, None)).await.unwrap();
    assert_eq!(seen, [want[0].clone(), want[2].clone(), want[4].clone()]);
    let hidden = Some(want[1].id.into_untyped_uuid());
    let refused = store.list_allocations(&physics, &page(9, hidden)).await;
    assert!(matches!(refused, Err(StoreError::NoMarker(_))), "{refused:?}");
}

fn reservation(project: &str) -> Allocation {
    let reservation = Reservation { user: Some("ann".into()), image: "http://i/d.raw".into() };
    Allocation { owner: Some(project.into()), reservation: Some(reservation), ..wish() }
}

async fn reserve(store: &Store, new: &Allocation, most: u32) -> ReserveOutcome {
    let lease = Lease::new(at(5), Length::from_secs(3600).unwrap());
    let order = ReservationRequest {
        instance_info: Map::from_iter([("image_source".to_owned(), "http://i/d.raw".into())]),
        lending: NodeLease { lease, by: "ann".into(), notify: None, reserved: true, drain: None },
        work: WorkUuid::new_v4(),
    };
    let pool = NodePool::Lendable(new.owner.clone());
    store.reserve(new, &pool, &order, most, at(5)).await.unwrap()
}

async fn a_project_cannot_exceed_its_limit_of_reservations(store: Store) {
    for _ in 0..30 {
        store.insert_node(&free()).await.unwrap();
    }
    // Two hundred requests of one project at the same time, with a limit of ten.
    let asking = (0..200).map(|_| {
        let store = store.clone();
        tokio::spawn(async move { reserve(&store, &reservation("physics"), 10).await })
    });
    let mut nodes = BTreeSet::new();
    for asked in asking.collect::<Vec<_>>() {
        match asked.await.unwrap() {
            ReserveOutcome::Done(it) => assert!(nodes.insert(it.node.unwrap())),
            ReserveOutcome::Full { used } => assert_eq!(used, 10),
            ReserveOutcome::NoNode(why) => panic!("{why}"),
        }
    }
    assert_eq!(nodes.len(), 10);
    // Another project has its own limit, and refused requests have left nothing behind.
    let other = reserve(&store, &reservation("biology"), 1).await;
    assert!(matches!(other, ReserveOutcome::Done(_)), "{other:?}");
    let reserved = AllocationFilter { reserved: Some(true), ..AllocationFilter::default() };
    let listed = store
        .list_allocations_and_nodes_part(&reserved, &page(1000, None), PagePart::whole())
        .await
        .unwrap()
        .found;
    assert_eq!(listed.len(), 11);
    assert!(listed.iter().all(|(it, node)| node.as_ref().map(|node| node.id) == it.node));
}

async fn a_reserved_node_is_lent_and_being_installed(store: Store) {
    let pool = Node { owner: None, ..free() };
    let (lent, strange) = (
        Node { lessee: Some("biology".into()), ..free() },
        Node { owner: Some("biology".into()), ..free() },
    );
    for node in [&pool, &lent, &strange] {
        store.insert_node(node).await.unwrap();
    }
    let new = Allocation { name: Some("train-1".parse().unwrap()), ..reservation("physics") };
    let ReserveOutcome::Done(made) = reserve(&store, &new, 5).await else { panic!("no node") };
    assert_eq!(made.node, Some(pool.id));
    assert_eq!(store.find_allocation(new.id).await.unwrap(), Some(*made));
    let node = node(&store, pool.id).await;
    assert_eq!(node.provision_state, State::Deploying);
    assert_eq!(
        (node.lessee.as_deref(), node.instance_name.as_deref()),
        (Some("physics"), Some("train-1"))
    );
    assert_eq!(node.instance_info["image_source"], "http://i/d.raw");
    assert_eq!(unfinished(&store).await, [pool.id]);
    assert_eq!(store.history(pool.id, 10, None).await.unwrap().len(), 1);
    let none = reserve(&store, &reservation("physics"), 5).await;
    assert!(matches!(none, ReserveOutcome::NoNode(_)), "{none:?}");
}

async fn only_the_newest_failed_allocations_are_kept(store: Store) {
    let asked = |owner: Option<&str>, second: i64| Allocation {
        owner: owner.map(str::to_owned),
        created_at: at(second),
        ..wish()
    };
    // A successful allocation does not count, however old it is.
    store.insert_node(&Node { owner: Some("p".to_owned()), ..free() }).await.unwrap();
    let got = allocate(&store, &asked(Some("p"), 0)).await;
    assert_eq!(got.state, AllocationState::Active);
    let others = allocate(&store, &asked(None, 1)).await;
    let first = allocate(&store, &asked(Some("p"), 1)).await;
    for second in 2..=300 {
        allocate(&store, &asked(Some("p"), second)).await;
    }
    assert!(store.find_allocation(first.id).await.unwrap().is_some(), "300 are kept");
    let last = allocate(&store, &asked(Some("p"), 301)).await;
    assert_eq!(store.find_allocation(first.id).await.unwrap(), None);
    // A clock that went back must not delete the allocation that was just written.
    allocate(&store, &asked(Some("p"), 0)).await;
    for kept in [&got, &others, &last] {
        assert!(store.find_allocation(kept.id).await.unwrap().is_some(), "{kept:?}");
    }
    let failed = AllocationFilter {
        state: Some(AllocationState::Error),
        owner: Some("p".to_owned()),
        ..AllocationFilter::default()
    };
    assert_eq!(store.list_allocations(&failed, &page(1000, None)).await.unwrap().len(), 300);
}
