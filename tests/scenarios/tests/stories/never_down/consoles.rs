//! Viewers at different baremetald share the one session that a BMC has for the serial port of its machine.

use lab::{Lab, Machine, Postgres, Settings};
use reqwest::Method;
use serde_json::json;

use super::three::{NAMES, share_the_work};
use crate::serial::Console;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn viewers_at_all_replicas_share_a_console() {
    let Some(server) = Postgres::start(&["baremetald"]).await else {
        return peers::skip("never_down", "no PostgreSQL is installed");
    };
    let settings = Settings { database: Some(server.url("baremetald")), ..Settings::default() };
    let Some((lab, replicas)) = Lab::behind_haproxy(settings).await else {
        return peers::skip("never_down", "no haproxy is installed");
    };
    share_the_work(lab.api(), &NAMES).await;
    let machine = lab.rack(Machine::ipmi("r1u7")).await;
    let node = lab.available(&machine).await;
    lab.set(node, "/console_interface", json!("ipmitool-socat")).await;
    let switch = format!("{}/states/console", node.path());
    let enabled = json!({"enabled": true});
    lab.api().send(Method::PUT, &switch, Some(&enabled)).await.expect("it is enabled");

    let mut viewers = Vec::new();
    for replica in &replicas {
        viewers.push(Console::open(replica.api(), node).await);
    }
    // One more comes by haproxy.
    viewers.push(Console::open(lab.api(), node).await);
    let asked = lab.provision(node, "active").await;
    for viewer in &mut viewers {
        viewer.reads("the console is open").await;
        viewer.reads("Linux version").await;
        viewer.reads("Booting from local disk").await;
    }
    asked.reaches("active").await;
}
