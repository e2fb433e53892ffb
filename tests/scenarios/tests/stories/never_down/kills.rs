//! One of nine processes is killed every ten seconds and started again, while a rack becomes hypervisors, a cluster and VMs are made, and
//! hosts below the cluster are taken out.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lab::{Postgres, Settings};
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::client::Load;
use super::quorum_watch::QuorumWatch;
use super::three::{Process, Three};
use super::{effects, work};

/// The time between two kills.
const EVERY: Duration = Duration::from_secs(10);
/// The machines of the rack.
const MACHINES: usize = 9;
/// The servers of the cluster after it has grown, and the VMs.
const SERVERS: usize = 5 + 4;
/// How often two hosts are taken out at the same time.
const RACES: usize = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_goes_on_while_a_process_is_killed_every_ten_seconds() {
    let Some(server) = Postgres::start(&["baremetald", "clusterd", "consoled"]).await else {
        return peers::skip("never_down", "no PostgreSQL is installed");
    };
    // No systemd starts a process again that finds no answer of the database at its start.
    let settings = Settings {
        speed: 20.0,
        boot_timeout: "30s",
        database_timeout: "5s",
        ..Settings::default()
    };
    let Some(three) = Three::start(|name| server.url(name), settings).await else {
        return peers::skip("never_down", "no haproxy is installed");
    };
    let (cloud, before) = (&three.site.cloud, effects::objects(&three.site.cloud));
    work::create_profile(&three).await;
    let machines = work::enroll(&three.lab, MACHINES).await;
    let load = Load::start(three.lab.api(), Some(&three.clusters), Some(three.console.clone()));

    let (stop, kills) = (CancellationToken::new(), AtomicUsize::new(0));
    let work = async {
        tokio::join!(
            Box::pin(bring_up(&three)),
            Box::pin(use_clusters(&three)),
            Box::pin(work::create_vms(&three))
        );
        effects::each_machine_came_up_once(&three.lab, &machines).await;
        effects::each_machine_is_one_host(cloud, &machines);
        effects::each_server_was_made_once(cloud, SERVERS);
        tokio::join!(Box::pin(work::delete_cluster(&three)), Box::pin(work::delete_vms(&three)));
        // Until each process was killed once.
        while kills.load(Ordering::Relaxed) < Process::all().len() {
            Box::pin(work::create_vms(&three)).await;
            Box::pin(work::delete_vms(&three)).await;
        }
        stop.cancel();
    };
    let (took, ()) = tokio::join!(Box::pin(kill(&three, &stop, &kills)), Box::pin(work));
    let requests = load.end().await;
    effects::nothing_is_orphaned(cloud, &before);
    eprintln!("{} kills, taken over after {took:?}; {requests} requests", took.len());
}

/// Kills one process after the other and starts it again. Returns how long it took until the work of each went on elsewhere.
async fn kill(three: &Three, stop: &CancellationToken, kills: &AtomicUsize) -> Vec<Duration> {
    let mut taken_over = Vec::new();
    let mut pace = interval(EVERY);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for process in Process::all().into_iter().cycle() {
        tokio::select! {
            () = stop.cancelled() => break,
            _ = pace.tick() => {}
        }
        taken_over.extend(three.kill(process).await);
        three.start_again(process).await;
        kills.fetch_add(1, Ordering::Relaxed);
    }
    taken_over
}

/// Makes the machines of the rack hypervisors of the cloud.
async fn bring_up(three: &Three) {
    work::bring_up(&three.lab, json!({"profile": "kvm"})).await;
    work::is_up(&three.lab, MACHINES).await;
}

/// Creates a cluster that grows, and takes hosts below it out, two at a time, which must not cost the quorum of its etcd.
async fn use_clusters(three: &Three) {
    work::create_cluster(three).await;
    let (cloud, api) = (&three.site.cloud, three.lab.api());
    let watch = QuorumWatch::start(cloud, api, &three.clusters, "blue").await;
    work::grow_cluster(three).await;
    let hosts = work::enroll_hosts(three).await;
    for _ in 0..RACES {
        work::take_out_two(three, &hosts[0], &hosts[1]).await;
    }
    assert!(watch.end().await > RACES, "the members of etcd were looked at");
}
