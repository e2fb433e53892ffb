//! The clock of each baremetald is set an hour forward and back while it installs machines. Debian's libfaketime gives each process a clock of
//! its own; the monotonic clock goes on, as that of a computer does whose clock is set.

use jiff::SignedDuration;
use jiff::fmt::rfc2822;
use lab::{Lab, Postgres, Replica, ReplicaClocks, Settings};
use reqwest::header::DATE;
use serde_json::json;

use super::{effects, work};
use crate::own_vm::until;

const MACHINES: usize = 6;
/// The jump of a clock, in seconds: longer than each timeout of the lab.
const HOUR: i32 = 3600;

/// Sets the clock of a baremetald so far from that of this computer, and waits until the process answers by it.
async fn set(client: &reqwest::Client, replica: &Replica, seconds: i32) {
    replica.set_clock(seconds);
    until("an answer by the clock that was set", async || {
        let answer = client.get(replica.api().url().clone()).send().await.ok()?;
        let said = answer.headers().get(DATE)?.to_str().ok()?.to_owned();
        let said = rfc2822::parse(&said).ok()?.timestamp();
        let offset = said.duration_since(jiff::Timestamp::now());
        let wanted = SignedDuration::from_secs(i64::from(seconds));
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
    super::three::share_the_work(lab.api(), &super::three::NAMES).await;
    let machines = work::enroll(&lab, MACHINES).await;
    let goal = json!({"reach": "installed", "instance_info": lab.image().instance_info()});
    work::bring_up(&lab, goal).await;
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    for seconds in [HOUR, -HOUR, 0] {
        for replica in &replicas {
            set(&client, replica, seconds).await;
        }
    }
    work::is_up(&lab, MACHINES).await;
    effects::each_machine_came_up_once(&lab, &machines).await;
    for replica in &replicas {
        let lost = replica.says("the lease of this conductor has passed").await;
        assert!(!lost, "{} lost its lease", replica.hostname());
    }
}
