use hardware::PowerState;
use lease::Terms;
use uuid::Uuid;

use super::*;
use crate::{
    Driver, LendRequest, Maintenance, WorkUuid, finish_work, lend, returned, with_stage_taken,
};

fn wish() -> Allocation {
    Allocation {
        id: AllocationUuid::from_untyped_uuid(Uuid::from_u128(7)),
        version: 1,
        created_at: Timestamp::UNIX_EPOCH,
        updated_at: None,
        name: None,
        state: AllocationState::Allocating,
        last_error: None,
        node: None,
        resource_class: Some("gpu".to_owned()),
        traits: BTreeSet::from(["CUSTOM_FAST".to_owned()]),
        candidate_nodes: Vec::new(),
        extra: Map::new(),
        owner: None,
        reservation: None,
    }
}

fn node() -> Node {
    let mut node = Node::new(NodeUuid::nil(), Driver::FakeHardware, Timestamp::UNIX_EPOCH);
    node.provision_state = State::Available;
    node.power_state = Some(PowerState::Off);
    node.resource_class = Some("gpu".to_owned());
    node.traits = ["CUSTOM_FAST", "CUSTOM_LOUD"].map(str::to_owned).into();
    node
}

#[track_caller]
fn check(change: impl FnOnce(&mut Node), pool: &NodePool, want: bool) {
    let mut node = node();
    change(&mut node);
    assert_eq!(wish().fits(&node, pool), want);
}

#[test]
fn only_a_free_node_with_the_requested_properties_fits() {
    check(|_| {}, &NodePool::All, true);
    check(|node| node.maintenance = Some(Maintenance::requested(None)), &NodePool::All, false);
    check(|node| node.retired = Some(String::new()), &NodePool::All, false);
    check(|node| node.instance_uuid = Some(Uuid::max()), &NodePool::All, false);
    check(|node| node.power_state = None, &NodePool::All, false);
    check(|node| node.resource_class = None, &NodePool::All, false);
    check(|node| node.traits.clear(), &NodePool::All, false);
    for state in State::ALL.into_iter().filter(|state| *state != State::Available) {
        check(|node| node.provision_state = state, &NodePool::All, false);
    }
    let elsewhere = Allocation { candidate_nodes: vec![NodeUuid::max()], ..wish() };
    assert!(!elsewhere.fits(&node(), &NodePool::All));
    let here = Allocation { candidate_nodes: vec![NodeUuid::max(), NodeUuid::nil()], ..wish() };
    assert!(here.fits(&node(), &NodePool::All));
}

#[test]
fn a_node_in_use_gets_an_allocation_of_its_own_kind_and_instance() {
    let (now, id) = (Timestamp::UNIX_EPOCH, AllocationUuid::from_untyped_uuid(Uuid::from_u128(9)));
    let of = |instance_uuid| {
        let used = Node { provision_state: State::Active, instance_uuid, ..node() };
        let allocation = Allocation::of_node_in_use(&used, id, now);
        let (_, written) = backfill(&used, &allocation).unwrap();
        assert_eq!(written.resource_class.as_deref(), Some("gpu"));
        written.id.into_untyped_uuid()
    };
    assert_eq!(of(None), Uuid::from_u128(9));
    assert_eq!(of(Some(Uuid::from_u128(5))), Uuid::from_u128(5));
}

#[test]
fn a_project_gets_nodes_that_it_owns_or_leases() {
    let pool = NodePool::of(Some("physics"));
    check(|_| {}, &pool, false);
    check(|node| node.owner = Some("physics".to_owned()), &pool, true);
    check(|node| node.lessee = Some("physics".to_owned()), &pool, true);
    check(|node| node.owner = Some("biology".to_owned()), &pool, false);
    check(|node| node.owner = Some("biology".to_owned()), &NodePool::of(None), true);
}

#[test]
fn only_own_or_unowned_nodes_can_be_lent() {
    let pool = NodePool::Lendable(Some("physics".to_owned()));
    check(|_| {}, &pool, true);
    check(|node| node.owner = Some("physics".to_owned()), &pool, true);
    check(|node| node.owner = Some("biology".to_owned()), &pool, false);
    check(|node| node.lessee = Some("biology".to_owned()), &pool, false);
    check(|node| node.lessee = Some("physics".to_owned()), &pool, false);
    check(|node| node.owner = Some("physics".to_owned()), &NodePool::Lendable(None), false);
}

#[test]
fn node_and_allocation_name_each_other() {
    let (node, allocation) = assign(&node(), &wish());
    assert_eq!(allocation.updated_at, Some(wish().created_at));
    assert_eq!(node.instance_uuid, Some(Uuid::from_u128(7)));
    assert_eq!(node.allocation, Some(allocation.id));
    assert_eq!(node.instance_info["traits"], serde_json::json!(["CUSTOM_FAST"]));
    assert_eq!((allocation.state, allocation.node), (AllocationState::Active, Some(node.id)));
    assert!(!wish().fits(&node, &NodePool::All));

    let free = release(&node);
    assert_eq!(free, self::node());
    assert_eq!(ended_allocation(&node, &free), Some(allocation.id));
    assert_eq!(ended_allocation(&free, &node), None);
}

#[test]
fn undeploying_a_node_ends_its_allocation() {
    let (mut node, allocation) = assign(&node(), &wish());
    node.provision_state = State::Deleting;
    let (done, _) = finish_work(&node, WorkUuid::nil(), Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!((done.instance_uuid, ended_allocation(&node, &done)), (None, Some(allocation.id)));
}

#[test]
fn a_node_in_use_is_backfilled_only_if_all_properties_agree() {
    let mut used = node();
    assert!(matches!(backfill(&used, &wish()), Err(BackfillMismatch::State { .. })));
    used.provision_state = State::Active;
    let (written, allocation) = backfill(&used, &wish()).unwrap();
    assert_eq!((written.allocation, allocation.node), (Some(wish().id), Some(used.id)));
    assert!(matches!(backfill(&written, &wish()), Err(BackfillMismatch::InUse { .. })));

    let other = Allocation { resource_class: Some("cpu".to_owned()), ..wish() };
    assert!(matches!(backfill(&used, &other), Err(BackfillMismatch::ResourceClass { .. })));
    let other = Allocation { traits: BTreeSet::from(["CUSTOM_X".to_owned()]), ..wish() };
    assert!(matches!(backfill(&used, &other), Err(BackfillMismatch::Traits { .. })));
    let other = Allocation { candidate_nodes: vec![NodeUuid::max()], ..wish() };
    assert!(matches!(backfill(&used, &other), Err(BackfillMismatch::Candidates { .. })));
    used.instance_uuid = Some(Uuid::from_u128(7));
    assert!(backfill(&used, &wish()).is_ok());
    used.instance_uuid = Some(Uuid::max());
    assert!(matches!(backfill(&used, &wish()), Err(BackfillMismatch::InUse { .. })));
}

#[test]
fn a_state_is_named_as_ironic_names_it() {
    let names = AllocationState::ALL.map(AllocationState::as_str);
    assert_eq!(names, ["allocating", "active", "error"]);
    assert_eq!(names.map(|name| name.parse().ok()), AllocationState::ALL.map(Some));
    assert!("deploying".parse::<AllocationState>().is_err());
}

#[test]
fn an_allocation_that_fails_has_no_node_and_one_with_a_node_has_no_error() {
    let (_, active) = assign(&node(), &wish());
    let failed = active.failed(false);
    assert_eq!((failed.state, failed.node), (AllocationState::Error, None));
    assert_eq!(wish().failed(false).updated_at, Some(wish().created_at));
    let (_, again) = assign(&node(), &failed);
    assert_eq!((again.state, again.last_error), (AllocationState::Active, None));
}

#[test]
fn a_failed_allocation_says_why() {
    let why = |allocation: &Allocation, same_kind| allocation.failed(same_kind).last_error.unwrap();
    let failed = "Failed to process allocation 00000000-0000-0000-0000-000000000007:";
    assert_eq!(
        why(&wish(), false),
        format!("{failed} no available nodes match the resource class gpu.")
    );
    assert_eq!(
        why(&wish(), true),
        format!("{failed} no suitable nodes have the requested traits CUSTOM_FAST.")
    );
    let among = Allocation { candidate_nodes: vec![NodeUuid::max()], ..wish() };
    assert_eq!(
        why(&among, false),
        format!(
            "{failed} none of the requested nodes are available and match the resource class gpu."
        )
    );
}

#[test]
fn a_leased_node_fits_only_its_lessee_until_the_lease_ends() {
    let loan =
        LendRequest { lessee: "lab".to_owned(), length: "10d".parse().unwrap(), notify: None };
    let owned = Node { owner: Some("physics".to_owned()), ..node() };
    let (lent, _) = lend(&owned, loan, "root", Terms::default(), Timestamp::UNIX_EPOCH).unwrap();
    let fits = |node: &Node, owner: Option<&str>| {
        let wish = Allocation { owner: owner.map(str::to_owned), ..wish() };
        wish.fits(node, &NodePool::of(owner))
    };
    assert!(fits(&lent, Some("lab")));
    assert!(!fits(&lent, Some("physics")) && !fits(&lent, None));
    let step = lease::LeaseStage::SwitchOff { deleted_at: Timestamp::UNIX_EPOCH };
    let (ended, _) = with_stage_taken(&lent, step, Timestamp::UNIX_EPOCH);
    assert!(!fits(&ended, Some("lab")));

    // An allocation that the lessee never used does not survive the return of the node.
    let (reserved, allocation) = assign(&lent, &wish());
    let (free, _) = returned(&reserved, Timestamp::UNIX_EPOCH);
    assert_eq!(ended_allocation(&reserved, &free), Some(allocation.id));
    assert_eq!(free, owned);
}
