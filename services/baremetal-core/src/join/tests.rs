use std::time::Duration;

use expect_test::{Expect, expect};

use super::*;
use crate::hypervisor::tests::host;
use crate::{
    Driver, Maintenance, NodeUuid, Problem, Verb, WorkUuid, check_delete, explain, finish_work,
    request_verb,
};

const T0: Timestamp = Timestamp::UNIX_EPOCH;

fn after(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn service(up: bool, enabled: bool, reported_at: Option<i64>) -> CloudSeen {
    let reported_at = reported_at.map(after);
    CloudSeen::Service(Some(ServiceSeen { id: "s1".to_owned(), up, enabled, reported_at }))
}

fn aggregate(name: &str, zone: Option<&str>, has_host: bool) -> AggregateSeen {
    let (name, zone) = (name.to_owned(), zone.map(str::to_owned));
    AggregateSeen { id: "7".to_owned(), name, zone, has_host }
}

/// The node of `host`, whose machine is in use.
fn node(host: &Hypervisor) -> Node {
    let node = Node::new(NodeUuid::nil(), Driver::FakeHardware, T0);
    Node { provision_state: State::Active, hypervisor: Some(host.clone()), ..node }
}

fn rules() -> JoinRules {
    JoinRules { watching_since: T0, poll_every: Duration::from_secs(20) }
}

/// Writes a decision in one line.
fn text<A: std::fmt::Debug>(decision: Decision<NodeUpdate, A>) -> String {
    match (decision.change, decision.actions.as_slice()) {
        (Some(NodeUpdate { node: Node { hypervisor: None, .. }, .. }), []) => "gone".to_owned(),
        (Some(NodeUpdate { node: Node { failure: Some(why), .. }, .. }), []) => {
            format!("give up: {}", why.cause)
        }
        (Some(NodeUpdate { node: Node { hypervisor: Some(to), .. }, .. }), []) => {
            format!("{} {:?} {:?}", to.state.as_str(), to.before, to.id)
        }
        (None, []) => format!("{:?}", decision.next_turn),
        (None, actions) => format!("{actions:?}"),
        (Some(change), actions) => panic!("{change:?} {actions:?}"),
    }
}

#[track_caller]
fn check(host: &Hypervisor, seen: &CloudSeen, now: i64, want: Expect) {
    want.assert_eq(&text(plan_join(&node(host), seen, &rules(), after(now))));
}

#[test]
fn only_a_report_newer_than_the_first_look_counts() {
    let mut new = Hypervisor { before: EarlierReport::Unknown, ..host(JoinState::AwaitingService) };
    check(&new, &CloudSeen::Service(None), 1, expect!["awaiting_service None None"]);
    check(
        &new,
        &service(true, true, Some(5)),
        1,
        expect!["awaiting_service At(1970-01-01T00:00:05Z) None"],
    );
    // The cloud still shows a machine that was just switched off as up.
    new.before = EarlierReport::At(after(5));
    check(&new, &service(true, true, Some(5)), 1, expect!["After(9s)"]);
    check(&new, &service(false, true, Some(6)), 1, expect!["After(9s)"]);
    check(
        &new,
        &service(true, true, Some(6)),
        1,
        expect!["awaiting_hypervisor At(1970-01-01T00:00:05Z) None"],
    );
}

#[test]
fn each_sign_of_joining_is_awaited_in_order() {
    let at = host;
    let listed = |up| CloudSeen::Hypervisor(Some(HypervisorSeen { id: "u1".to_owned(), up }));
    check(
        &at(JoinState::AwaitingService),
        &service(true, false, Some(1)),
        1,
        expect!["awaiting_hypervisor None None"],
    );
    check(
        &at(JoinState::AwaitingHypervisor),
        &listed(true),
        1,
        expect![[r#"awaiting_provider None Some("u1")"#]],
    );
    check(&at(JoinState::AwaitingHypervisor), &listed(false), 1, expect!["After(9s)"]);
    check(
        &at(JoinState::AwaitingProvider),
        &CloudSeen::Provider(true),
        1,
        expect!["zoning None None"],
    );
    check(
        &at(JoinState::Enabling),
        &service(true, false, Some(1)),
        1,
        expect![[r#"[Enable { service: "s1" }]"#]],
    );
    check(&at(JoinState::Enabling), &service(true, true, Some(1)), 1, expect!["joined None None"]);
    check(&at(JoinState::Joined), &CloudSeen::Service(None), 99, expect!["OnChange"]);
    check(&at(JoinState::Failed), &CloudSeen::Service(None), 99, expect!["OnChange"]);
}

#[test]
fn a_missing_sign_fails_with_its_reason() {
    check(
        &host(JoinState::AwaitingService),
        &CloudSeen::Service(None),
        10,
        expect!["give up: no compute service of the host h1 came up in the cloud"],
    );
    check(
        &host(JoinState::AwaitingService),
        &service(false, true, Some(1)),
        10,
        expect!["give up: the compute service of the host h1 is down"],
    );
    let before = EarlierReport::At(after(5));
    check(
        &Hypervisor { before, ..host(JoinState::AwaitingService) },
        &service(true, true, Some(5)),
        10,
        expect![
            "give up: the compute service of the host h1 did not report since it was installed"
        ],
    );
    check(
        &host(JoinState::AwaitingHypervisor),
        &CloudSeen::Hypervisor(None),
        10,
        expect![
            "give up: the compute service of the host h1 is up, but no hypervisor of it is listed"
        ],
    );
    check(
        &host(JoinState::AwaitingProvider),
        &CloudSeen::Provider(false),
        10,
        expect!["give up: the hypervisor of host h1 has no resource provider with an inventory"],
    );
    // If the conductor began to watch late, the time limit counts from then.
    let late = JoinRules { watching_since: after(9), ..rules() };
    let waiting = node(&host(JoinState::AwaitingProvider));
    let decision = plan_join(&waiting, &CloudSeen::Provider(false), &late, after(10));
    assert_eq!(text(decision), "After(9s)");
}

#[test]
fn a_transient_error_of_the_cloud_is_retried_and_a_refusal_is_not() {
    let problem = |transient| Problem {
        reason: Reason::CloudUnreachable,
        cause: "no answer".to_owned(),
        transient,
    };
    let waiting = host(JoinState::AwaitingService);
    check(&waiting, &CloudSeen::Failed(problem(true)), 1, expect!["After(9s)"]);
    check(&waiting, &CloudSeen::Failed(problem(true)), 10, expect!["give up: no answer"]);
    check(&waiting, &CloudSeen::Failed(problem(false)), 1, expect!["give up: no answer"]);
    let answered = |problem: Option<Problem>, now| {
        text(after_cloud_call(&node(&waiting), problem.as_ref(), &rules(), after(now)))
    };
    assert_eq!(answered(None, 1), "After(20s)");
    assert_eq!(answered(Some(problem(true)), 1), "After(9s)");
    assert_eq!(answered(Some(problem(true)), 10), "give up: no answer");
    assert_eq!(answered(Some(problem(false)), 1), "give up: no answer");
}

#[test]
fn missing_zones_and_aggregates_are_created_for_the_host() {
    let all = |all: &[AggregateSeen]| CloudSeen::Aggregates(all.to_vec());
    let (zoning, grouping) = (host(JoinState::Zoning), host(JoinState::Grouping));
    check(&zoning, &all(&[]), 1, expect![[r#"[MakeAggregate { name: "r1", zone: Some("r1") }]"#]]);
    let zone = |has_host| aggregate("r1", Some("r1"), has_host);
    check(&zoning, &all(&[zone(false)]), 1, expect![[r#"[AddHost { aggregate: "7" }]"#]]);
    check(&zoning, &all(&[zone(true)]), 1, expect!["grouping None None"]);
    check(
        &zoning,
        &all(&[aggregate("r1", None, true)]),
        1,
        expect![[
            r#"give up: the host aggregate "r1" exists but is not the availability zone of that name"#
        ]],
    );
    check(&grouping, &all(&[]), 1, expect![[r#"[MakeAggregate { name: "gpu", zone: None }]"#]]);
    check(&grouping, &all(&[aggregate("gpu", None, true)]), 1, expect!["enabling None None"]);
    let nowhere = Hypervisor { availability_zone: None, aggregate: None, ..zoning };
    check(&nowhere, &all(&[]), 1, expect!["grouping None None"]);
    let both = Hypervisor { aggregate: Some("r1".to_owned()), ..grouping };
    check(&both, &all(&[]), 1, expect!["enabling None None"]);
}

#[test]
fn a_node_becomes_a_hypervisor_by_being_installed() {
    let mut node = Node::new(NodeUuid::nil(), Driver::FakeHardware, T0);
    node.provision_state = State::Available;
    node.hypervisor = Some(host(JoinState::Installing));
    let (deploying, _) = request_verb(&node, Verb::Deploy, WorkUuid::nil(), after(1)).unwrap();
    assert!(!deploying.is_joining());
    let (active, _) = finish_work(&deploying, WorkUuid::nil(), after(2)).unwrap();
    let begun = active.hypervisor.clone().unwrap();
    assert_eq!((begun.state, begun.before), (JoinState::AwaitingService, EarlierReport::Unknown));
    assert!(active.is_joining());
    let reported = explain(&active);
    expect![[r#"the node is "active": the machine is in use; in progress: waiting for its compute service. wait for the host to join the cloud"#]]
        .assert_eq(&format!("{}. {}", reported.summary, reported.next));
    assert_eq!(reported.task.map(|task| (task.number, task.of)), Some((1, 6)));

    let joined = Hypervisor { state: JoinState::Joined, ..begun };
    let (joined, entry) = active.joining(joined, after(3));
    assert_eq!(entry.unwrap().event, "host h1 has joined the cloud");
    assert!(explain(&joined).summary.contains("compute host h1 of the cloud"));
    let (again, _) = request_verb(&joined, Verb::Rebuild, WorkUuid::nil(), after(4)).unwrap();
    assert_eq!(again.hypervisor.unwrap().state, JoinState::Installing);
}

#[test]
fn an_undeployed_host_leaves_the_cloud_once_its_machine_is_off() {
    let mut node = Node::new(NodeUuid::nil(), Driver::FakeHardware, T0);
    node.provision_state = State::Active;
    node.hypervisor = Some(host(JoinState::Joined));
    let (deleting, _) = request_verb(&node, Verb::Undeploy, WorkUuid::nil(), after(1)).unwrap();
    assert_eq!(deleting.hypervisor, node.hypervisor, "it may still run");
    let (cleaning, _) = finish_work(&deleting, WorkUuid::nil(), after(2)).unwrap();
    assert_eq!(cleaning.hypervisor.clone().map(|host| host.state), Some(JoinState::Leaving));
    assert!(!cleaning.looks_at_cloud(), "its cleaning comes first");
    let (free, _) = finish_work(&cleaning, WorkUuid::nil(), after(3)).unwrap();
    assert!(free.is_leaving() && !free.is_joining());
    let forgotten = check_delete(&free).unwrap_err();
    assert!(forgotten.to_string().contains("still lists it as compute host h1"), "{forgotten}");

    let leaving = free.hypervisor.clone().unwrap();
    let forget = r#"[Forget { service: "s1" }]"#;
    // The removal is retried without end, because the cloud refuses while it knows servers on the host.
    for now in [4, 4000] {
        let seen = service(false, true, Some(1));
        assert_eq!(text(plan_join(&free, &seen, &rules(), after(now))), forget);
    }
    let refused = Problem {
        reason: Reason::CloudRefuses,
        cause: "it hosts servers".to_owned(),
        transient: false,
    };
    let answered = after_cloud_call(&free, Some(&refused), &rules(), after(4));
    assert_eq!(answered.next_turn, Requeue::After(Duration::from_secs(60)));
    let looked = plan_join(&free, &CloudSeen::Failed(refused), &rules(), after(4));
    assert_eq!(looked.next_turn, Requeue::After(Duration::from_secs(60)));
    let looked = plan_join(&free, &CloudSeen::Service(None), &rules(), after(5));
    assert_eq!(text(looked), "gone");
    let (gone, entry) = free.left_the_cloud(after(5));
    assert_eq!(check_delete(&gone), Ok(()));
    assert_eq!((gone.hypervisor, entry.event.as_str()), (None, "host h1 has left the cloud"));

    // A new installation of the machine does not become a hypervisor while the old host is leaving.
    let (deploying, _) = request_verb(&free, Verb::Deploy, WorkUuid::nil(), after(4)).unwrap();
    assert_eq!(deploying.hypervisor, Some(leaving));
    let (active, _) = finish_work(&deploying, WorkUuid::nil(), after(5)).unwrap();
    assert!(active.is_leaving() && join_again(&active, after(6)).is_err());
}

#[test]
fn a_failed_join_says_why_and_can_be_repeated() {
    let mut node = Node::new(NodeUuid::nil(), Driver::FakeHardware, T0);
    node.provision_state = State::Active;
    assert!(join_again(&node, T0).unwrap_err().to_string().starts_with("hypervisor: "));
    node.hypervisor = Some(host(JoinState::AwaitingProvider));
    let (failed, entry) =
        node.not_joined(no_provider(&host(JoinState::AwaitingProvider)), after(9));
    assert_eq!(entry.severity, crate::Severity::Error);
    let reported = explain(&failed);
    assert!(reported.summary.ends_with("has no resource provider with an inventory"));
    assert!(reported.next.contains("Placement"), "{}", reported.next);
    assert!(!failed.is_joining());
    let (again, entry) = join_again(&failed, after(10)).unwrap();
    assert_eq!((again.failure.clone(), again.is_joining()), (None, true));
    assert_eq!(entry.unwrap().event, "host h1: joining again");
    let working = Node { provision_state: State::Deploying, ..failed };
    assert!(matches!(join_again(&working, T0), Err(RequestRefused::State { .. })));
}

#[test]
fn only_an_idle_machine_that_joins_or_leaves_is_looked_up_in_the_cloud() {
    let looks = |state, maintenance: Option<Maintenance>, host_state| {
        let host = host(host_state);
        let node = Node { provision_state: state, maintenance, ..node(&host) };
        (node.is_joining(), node.is_leaving(), node.looks_at_cloud())
    };
    let maintained = || Some(Maintenance::requested(None));
    let joins = JoinState::AwaitingProvider;
    assert_eq!(looks(State::Active, None, joins), (true, false, true));
    assert_eq!(looks(State::Active, None, JoinState::Leaving), (false, true, true));
    assert_eq!(looks(State::Available, None, JoinState::Leaving), (false, true, true));
    let no = (false, false, false);
    assert_eq!(looks(State::Available, None, joins), no);
    assert_eq!(looks(State::Active, maintained(), joins), no);
    assert_eq!(looks(State::Active, maintained(), JoinState::Leaving), no);
    assert_eq!(looks(State::Deploying, None, JoinState::Leaving), no);
    for rests in [JoinState::Installing, JoinState::Joined, JoinState::Failed] {
        assert_eq!(looks(State::Active, None, rests), no, "{rests:?}");
    }
}
