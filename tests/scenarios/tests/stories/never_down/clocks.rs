//! The clock of each baremetald is set an hour forward and back while it installs machines. Debian's libfaketime gives each process a clock of
//! its own; the monotonic clock goes on, as that of a computer does whose clock is set.

use api_client::shared::AuditRow;
use jiff::{SignedDuration, Timestamp};
use lab::{Lab, Postgres, Replica, ReplicaClocks, Settings};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::client::done;
use super::three::{NAMES, share_the_work};
use super::{effects, work};
use crate::own_vm::until;

const MACHINES: usize = 6;
/// The jump of a clock, in seconds: longer than each timeout of the lab.
const HOUR: i32 = 3600;

#[derive(Deserialize)]
struct Trail {
    audit: Vec<AuditRow>,
}

/// The node that only requests to this baremetald change.
fn own_node(replica: &Replica) -> String {
    format!("changed-by-{}", replica.hostname())
}

/// Sets the clock of a baremetald so far from that of this computer, and waits until the process dates the requests for its own node by it.
async fn set(replica: &Replica, seconds: i32) {
    replica.set_clock(seconds);
    let (node, api) = (own_node(replica), replica.api());
    let path = format!("/v1/nodes/{node}");
    let patch = json!([{"op": "add", "path": "/extra/seconds", "value": seconds}]);
    let wanted = SignedDuration::from_secs(seconds.into());
    until("a request that is dated by the clock that was set", async || {
        done(api, Method::PATCH, &path, Some(&patch), &[]).await;
        let Trail { audit } = api.get("/bedplate/v1/audit?limit=100").await;
        let newest = audit.iter().find(|row| row.method == "PATCH" && row.target.contains(&node));
        let offset = newest?.at.duration_since(Timestamp::now());
        ((offset - wanted).abs() < SignedDuration::from_mins(1)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clocks_that_are_set_change_nothing() {
    if !lab::clocks_can_be_faked() {
        return peers::skip("never_down", "no libfaketime is installed");
    }
    let Some(server) = Postgres::start(&["baremetald"]).await else {
        return peers::skip("never_down", "no PostgreSQL is installed");
    };
    let settings = Settings {
        database: Some(server.url("baremetald")),
        clocks: ReplicaClocks::Faked,
        // Slow enough that all clocks are set before the machines are installed.
        speed: 3.0,
        bmc_timeout: "90s",
        power_timeout: "90s",
        ..Settings::default()
    };
    let Some((lab, replicas)) = Lab::behind_haproxy(settings).await else {
        return peers::skip("never_down", "no haproxy is installed");
    };
    share_the_work(lab.api(), &NAMES).await;
    for replica in &replicas {
        lab.enroll_as(&json!({"driver": "fake-hardware", "name": own_node(replica)})).await;
    }
    let machines = work::enroll(&lab, MACHINES).await;
    let goal = json!({"reach": "installed", "instance_info": lab.image().instance_info()});
    work::bring_up(&lab, goal).await;
    for seconds in [HOUR, -HOUR, 0] {
        for replica in &replicas {
            set(replica, seconds).await;
        }
    }
    work::is_up(&lab, MACHINES).await;
    effects::each_machine_came_up_once(&lab, &machines).await;
    for replica in &replicas {
        let lost = replica.says("the lease of this conductor has passed").await;
        assert!(!lost, "{} lost its lease", replica.hostname());
    }
}
