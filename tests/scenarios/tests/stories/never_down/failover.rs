//! PostgreSQL is restarted, and fails over to its synchronous standby, while clients write and machines are installed: nothing that was
//! answered is lost.

use lab::{Lab, ReplicatedPostgres, Settings};
use reqwest::Method;
use serde_json::{Value, json};

use super::client::{Load, done};
use super::{effects, work};
use crate::own_vm::until;

const MACHINES: usize = 6;
/// So many writes are answered between two events.
const WRITES: usize = 10;

/// Three baremetald on a server with a standby; `None` if a program is missing.
async fn start() -> Option<(ReplicatedPostgres, Lab, [lab::Replica; 3])> {
    let Some(server) = ReplicatedPostgres::start(&["baremetald"]).await else {
        peers::skip("never_down", "no PostgreSQL or no haproxy is installed");
        return None;
    };
    let settings = Settings {
        database: Some(server.url("baremetald")),
        speed: 5.0,
        bmc_timeout: "90s",
        power_timeout: "90s",
        ..Settings::default()
    };
    let (lab, replicas) = Lab::behind_haproxy(settings).await?;
    super::three::share_the_work(lab.api(), &super::three::NAMES).await;
    Some((server, lab, replicas))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_was_answered_is_lost_with_a_server() {
    let Some((server, lab, replicas)) = start().await else { return };
    let machines = work::enroll(&lab, MACHINES).await;
    let goal = json!({"reach": "installed", "instance_info": lab.image().instance_info()});
    work::bring_up(&lab, goal).await;
    let mut load = Load::start(lab.api(), None, None);
    let writes = async |load: &mut Load| {
        let wanted = load.written() + WRITES;
        until("answered writes", async || (load.written() >= wanted).then_some(())).await;
        load.check();
    };

    writes(&mut load).await;
    server.writes().stop().await;
    server.writes().start_again().await;
    writes(&mut load).await;
    server.fail_over().await;
    writes(&mut load).await;
    super::three::share_the_work(lab.api(), &super::three::NAMES).await;
    work::is_up(&lab, MACHINES).await;
    load.end().await;
    effects::each_machine_came_up_once(&lab, &machines).await;
    drop(replicas);
}

/// The server does not answer a commit before the standby has it, so a request that the standby would not know is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_waits_until_the_standby_has_it() {
    let Some((server, lab, replicas)) = start().await else { return };
    let node = |name: &str| json!({"name": name, "driver": "fake-hardware"});
    done(lab.api(), Method::POST, "/v1/nodes", Some(&node("before")), &[409]).await;
    server.standby().freeze().await;
    let refusal = lab.api().refused(Method::POST, "/v1/nodes", Some(&node("meanwhile"))).await;
    assert_eq!(refusal.status, 503, "{refusal:?}");
    server.standby().thaw().await;
    server.fail_over().await;
    done(lab.api(), Method::POST, "/v1/nodes", Some(&node("after")), &[409]).await;
    for name in ["before", "after"] {
        lab.api().get::<Value>(&format!("/v1/nodes/{name}")).await;
    }
    drop(replicas);
}
