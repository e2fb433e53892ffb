//! Drains of hosts in a cloud of four: servers migrate, and no cluster loses its quorum.

use std::collections::BTreeSet;
use std::time::Duration;

use cluster_conductor::{Conductor, DrainError, DrainRequest};
use cluster_core::{Drain, DrainPhase, DrainUuid, HostName, MemberName, ServerOutcome};
use openstack::compute::servers::Server;
use openstack::compute::{hosts, services};
use openstack_emulator::{Cloud, Kind, Stop};
use tokio_util::task::AbortOnDropHandle;

use crate::given::{ClusterFixture, PATIENCE, session_as, spawned};

/// A running conductor whose user is an administrator of the cloud.
struct Working {
    conductor: Conductor,
    _running: AbortOnDropHandle<()>,
}

fn working(given: &ClusterFixture) -> Working {
    let conductor = given.conductor_by(session_as(&given.cloud, "clusterd"));
    Working { _running: spawned(conductor.clone()), conductor }
}

fn asked() -> DrainRequest {
    let (id, by) = (DrainUuid::new_v4(), "ann".to_owned());
    DrainRequest { id, by, request: None, forced: BTreeSet::new() }
}

/// Returns the servers of the cluster, as an administrator sees them.
async fn servers(given: &ClusterFixture) -> Vec<Server> {
    let tag = cluster_core::tag(given.id);
    hosts::tagged(&session_as(&given.cloud, "admin"), &tag).await.unwrap()
}

async fn host_of(given: &ClusterFixture, machine: &str) -> HostName {
    let all = servers(given).await;
    let server = all.iter().find(|it| it.name.ends_with(machine)).unwrap();
    server.host.as_ref().unwrap().parse().unwrap()
}

/// Waits until the drain is as wanted. `wanted` gets `None` when there is no drain.
async fn until(
    given: &ClusterFixture,
    host: &HostName,
    wanted: impl Fn(Option<&Drain>) -> bool,
) -> Option<Drain> {
    let looking = async {
        loop {
            let drain = given.store.find_drain(host).await.unwrap();
            if wanted(drain.as_ref()) {
                return drain;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    match tokio::time::timeout(PATIENCE, looking).await {
        Ok(found) => found,
        Err(_) => panic!("it never came: {:?}", given.store.find_drain(host).await),
    }
}

async fn until_phase(given: &ClusterFixture, host: &HostName, phase: DrainPhase) -> Drain {
    until(given, host, |drain| drain.is_some_and(|it| it.phase == phase)).await.unwrap()
}

async fn service(given: &ClusterFixture, host: &HostName) -> services::ComputeService {
    let session = session_as(&given.cloud, "admin");
    services::find_compute(&session, host.as_str()).await.unwrap().unwrap()
}

/// Disables or enables the compute services of all other hosts.
async fn close_others(given: &ClusterFixture, but: &HostName, is_closed: bool) {
    let session = session_as(&given.cloud, "admin");
    let hosts = given.cloud.objects(Kind::ComputeHost);
    for host in hosts.iter().filter(|host| host.text("name") != but.as_str()) {
        let id = service(given, &host.text("name").parse().unwrap()).await.id;
        if is_closed {
            services::disable(&session, &id, "an operator's own").await.unwrap();
        } else {
            services::enable(&session, &id).await.unwrap();
        }
    }
}

#[tokio::test]
async fn servers_leave_a_drained_host_which_takes_none_until_the_drain_ends() {
    let given = ClusterFixture::cluster_of_operators(3, 2).await;
    let working = working(&given);
    given.until_complete().await;
    let host = host_of(&given, "default-master-0").await;
    let before = working.conductor.host(&host).await.unwrap();
    assert!(!before.members().is_empty());
    working.conductor.drain(&host, &asked()).await.unwrap();
    let drained = until_phase(&given, &host, DrainPhase::Drained).await;
    assert_eq!((drained.left, drained.takes), (vec![], BTreeSet::new()));
    assert!(servers(&given).await.iter().all(|it| it.host.as_deref() != Some(host.as_str())));
    let closed = service(&given, &host).await;
    assert_eq!(closed.disabled_reason.as_deref(), Some("bedplate: drained"));
    assert_eq!(given.store.drained_of(given.id).await.unwrap(), BTreeSet::new());

    working.conductor.end_drain(&host).await.unwrap().unwrap();
    until(&given, &host, |drain| drain.is_none()).await;
    assert_eq!(service(&given, &host).await.status, services::Status::Enabled);
    given.assert_once(3, 2);
}

#[tokio::test]
async fn one_of_two_hosts_with_two_of_three_members_is_drained() {
    let given = ClusterFixture::cluster_of_operators(3, 1).await;
    let working = working(&given);
    given.until_complete().await;
    let [one, other] = ["default-master-0", "default-master-1"];
    for (first, second) in [(one, other), (other, one)] {
        let (first, second) = (host_of(&given, first).await, host_of(&given, second).await);
        assert_ne!(first, second, "machines of the control plane stand apart");
        // No other host takes the servers of the first.
        close_others(&given, &first, true).await;
        working.conductor.drain(&first, &asked()).await.unwrap();
        let refused = working.conductor.drain(&second, &asked()).await.unwrap_err();
        let DrainError::Refused(refused) = refused else { panic!("{refused}") };
        assert_eq!((refused.lost[0].left, refused.lost[0].needed), (1, 2));
        assert!(refused.to_string().contains(&format!("the drain of {first} moves")));
        assert_eq!(given.store.find_drain(&second).await.unwrap(), None);
        assert_eq!(
            service(&given, &second).await.disabled_reason.as_deref(),
            Some("an operator's own")
        );
        let stuck = until_phase(&given, &first, DrainPhase::Stuck).await;
        let stays = |fate: ServerOutcome| stuck.left.iter().filter(|it| it.fate == fate).count();
        assert!(stays(ServerOutcome::Stays) > 0, "{stuck:?}");
        // A request that forces the cluster may break its quorum.
        let forced = DrainRequest { forced: [given.id].into(), ..asked() };
        working.conductor.drain(&second, &forced).await.unwrap();
        // If the drain of the first host ended first, the server of the second host could move there.
        for host in [&second, &first] {
            working.conductor.end_drain(host).await.unwrap().unwrap();
            until(&given, host, |drain| drain.is_none()).await;
        }
        close_others(&given, &first, false).await;
    }
}

#[tokio::test]
async fn a_worker_that_cannot_migrate_is_cordoned_and_uncordoned_at_the_end() {
    let given = ClusterFixture::cluster_of_operators(1, 2).await;
    let working = working(&given);
    given.until_complete().await;
    let (host, master) =
        (host_of(&given, "default-worker-0").await, host_of(&given, "default-master-0").await);
    assert_ne!(host, master);
    close_others(&given, &host, true).await;
    working.conductor.drain(&host, &asked()).await.unwrap();
    let drained = until_phase(&given, &host, DrainPhase::Drained).await;
    assert!(drained.left.iter().all(|it| it.fate == ServerOutcome::Emptied), "{drained:?}");
    let worker: MemberName = "default-worker-0".parse().unwrap();
    assert!(given.store.drained_of(given.id).await.unwrap().contains(&worker));
    assert!(is_cordoned(&given, "default-worker-0").await);
    working.conductor.end_drain(&host).await.unwrap().unwrap();
    until(&given, &host, |drain| drain.is_none()).await;
    assert!(!is_cordoned(&given, "default-worker-0").await);
}

#[tokio::test]
async fn a_single_member_that_came_after_the_grant_stays_unless_its_cluster_is_forced() {
    let given = ClusterFixture::cluster_of_operators(1, 1).await;
    let first = working(&given);
    given.until_complete().await;
    let host = host_of(&given, "default-master-0").await;
    drop(first);
    let (id, by) = ((DrainUuid::new_v4(), host.clone()), ("ann".to_owned(), None));
    let now = (given.settings.clock)();
    let early = Drain::new(id, by, BTreeSet::new(), BTreeSet::new(), now);
    given.store.grant_drain(&early).await.unwrap();

    let working = working(&given);
    let stuck = until_phase(&given, &host, DrainPhase::Stuck).await;
    assert_eq!((stuck.held.len(), stuck.left.len()), (1, 1), "{stuck:?}");
    assert!(stuck.left[0].why.contains("would have 0 of its 1 etcd members"), "{stuck:?}");
    assert_eq!(host_of(&given, "default-master-0").await, host);
    let forced = DrainRequest { forced: [given.id].into(), ..asked() };
    working.conductor.drain(&host, &forced).await.unwrap();
    until_phase(&given, &host, DrainPhase::Drained).await;
    assert_ne!(host_of(&given, "default-master-0").await, host);
}

#[tokio::test]
async fn a_drain_ends_when_its_empty_host_is_removed_from_the_cloud() {
    let mut given = ClusterFixture::cluster_of_operators(3, 1).await;
    given.settings.look_every = Duration::from_millis(50);
    let working = working(&given);
    given.until_complete().await;
    let host = host_of(&given, "default-master-0").await;
    working.conductor.drain(&host, &asked()).await.unwrap();
    until_phase(&given, &host, DrainPhase::Drained).await;
    let admin = session_as(&given.cloud, "admin");
    services::delete(&admin, &service(&given, &host).await.id).await.unwrap();
    until(&given, &host, |drain| drain.is_none()).await;
}

async fn is_cordoned(given: &ClusterFixture, machine: &str) -> bool {
    let nodes = kubernetes::nodes::list(&given.kubernetes().await).await.unwrap();
    nodes.iter().find(|node| node.name.ends_with(machine)).unwrap().unschedulable
}

/// Kills the conductor at each of its calls until the drain has this phase, or is over. Returns the calls.
async fn killed_until(
    given: &ClusterFixture,
    host: &HostName,
    phase: Option<DrainPhase>,
    stop: Stop,
) -> BTreeSet<String> {
    let mut points = BTreeSet::new();
    given.cloud.set_trap(stop);
    loop {
        let working = working(given);
        if phase.is_none() {
            working.conductor.end_drain(host).await.unwrap();
        }
        let caught = tokio::select! {
            biased;
            call = given.cloud.wait_until(Cloud::caught) => Some(call),
            _ = until(given, host, |drain| drain.map(|it| it.phase) == phase) => None,
        };
        drop(working);
        let Some(call) = caught else { break };
        points.insert(format!("{phase:?}: {call}"));
        given.cloud.open_trap();
    }
    given.cloud.remove_trap();
    points
}

/// Kills a conductor at each call of a drain and of its end, once per call. The result must be that of a conductor that is never killed.
async fn killed(stop: Stop, at_least: usize) {
    let mut given = ClusterFixture::cluster_of_operators(3, 1).await;
    given.settings.look_every = Duration::from_millis(50);
    let first = working(&given);
    given.until_complete().await;
    let host = host_of(&given, "default-master-0").await;
    first.conductor.drain(&host, &asked()).await.unwrap();
    drop(first);
    let mut points = BTreeSet::new();
    for part in [Some(DrainPhase::Drained), None] {
        points.extend(killed_until(&given, &host, part, stop).await);
        let is_open = service(&given, &host).await.status == services::Status::Enabled;
        assert_eq!(is_open, part.is_none());
        let here = hosts::servers(&session_as(&given.cloud, "admin"), host.as_str()).await.unwrap();
        assert!(here.is_empty(), "{here:?}");
    }
    given.assert_once(3, 1);
    let of_drains = points.iter().filter(|it| it.contains("os-services") || it.contains("action"));
    assert!(of_drains.count() >= at_least, "{points:?}");
}

#[tokio::test]
async fn killed_before_each_call_of_a_drain() {
    killed(Stop::Before, 4).await;
}

#[tokio::test]
async fn killed_after_each_call_of_a_drain() {
    killed(Stop::After, 4).await;
}

/// As [`killed`], for a worker that cannot migrate: its node is cordoned, its pods are evicted, and the node is uncordoned at the end.
async fn killed_evicting(stop: Stop, at_least: usize) {
    let mut given = ClusterFixture::cluster_of_operators(1, 2).await;
    given.settings.look_every = Duration::from_millis(50);
    let first = working(&given);
    given.until_complete().await;
    let host = host_of(&given, "default-worker-0").await;
    close_others(&given, &host, true).await;
    first.conductor.drain(&host, &asked()).await.unwrap();
    drop(first);
    let mut points = BTreeSet::new();
    for part in [Some(DrainPhase::Drained), None] {
        points.extend(killed_until(&given, &host, part, stop).await);
        assert_eq!(is_cordoned(&given, "default-worker-0").await, part.is_some());
        let worker: MemberName = "default-worker-0".parse().unwrap();
        let drained = given.store.drained_of(given.id).await.unwrap();
        assert_eq!(drained.contains(&worker), part.is_some());
    }
    let last = working(&given);
    given.until_complete_again().await;
    drop(last);
    given.assert_once(1, 2);
    let of_nodes = points.iter().filter(|it| it.contains("kubernetes:/api/v1/nodes/"));
    assert!(of_nodes.count() >= at_least, "{points:?}");
}

#[tokio::test]
async fn killed_before_each_call_of_a_drain_that_evicts_pods() {
    killed_evicting(Stop::Before, 2).await;
}

#[tokio::test]
async fn killed_after_each_call_of_a_drain_that_evicts_pods() {
    killed_evicting(Stop::After, 2).await;
}
