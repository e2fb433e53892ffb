//! A machine is a compute host and runs a person's VM. `bedplate where` finds the VM, and the VM is moved away before the machine is
//! switched off.
//!
//! baremetald, clusterd and `bedplate` run as programs; the cloud is emulated.

use api_client::baremetald::Node;
use api_client::clusterd::{Drain, Drains};
use reqwest::Method;
use serde_json::{Value, json};

use crate::services::Services;

/// The host that `bedplate where` shows for a VM.
async fn host_of(services: &Services, thing: &str) -> String {
    let reported: Value = services.bedplate(&["where", thing, "-o", "json"]).await.json();
    let host = reported.pointer("/racks/0/nodes/0/host/host").and_then(Value::as_str);
    host.unwrap_or_else(|| panic!("{reported}")).to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_is_drained_before_its_machine_is_switched_off() {
    let given = Services::start().await;
    given.clusters.vm("lab-1").await;
    let host = host_of(&given, "lab-1").await;
    given.enroll("r1u07", &host).await;

    // The chain is the same, whether `where` starts from the VM, the node or the host.
    for thing in ["lab-1", "r1u07", host.as_str()] {
        let reported = given.bedplate(&["where", thing]).await.done();
        for part in ["node r1u07 (active)", &format!("host {host}"), "VM lab-1"] {
            assert!(reported.contains(part), "where {thing}: {part:?} in {reported}");
        }
    }
    given.bedplate(&["where", "nobody-knows"]).await.refused(&["nobody-knows"]);

    // The power-off request waits until the conductor has had the host drained.
    let power = "/v1/nodes/r1u07/states/power";
    let off = json!({"target": "power off"});
    for (asked, state) in [(json!({"target": "power on"}), "power on"), (off, "power off")] {
        let sent = given.machines.send(Method::PUT, power, Some(&asked)).await;
        assert_eq!(sent.status, 202, "{}", sent.body);
        let is_there = |it: &Node| (it.power_state.as_deref() == Some(state)).then_some(());
        given.machines.until("/v1/nodes/r1u07", state, is_there).await;
    }
    let moved = host_of(&given, "lab-1").await;
    assert_ne!(moved, host, "the person's machine moved first");
    let drain: Drain = given.clusters.api.get(&format!("/bedplate/v1/drains/{host}")).await;
    assert_eq!(drain.state, "drained", "{drain:?}");

    given.bedplate(&["undrain", &host, "--wait"]).await.done();
    given.bedplate(&["drain", "no-such-host"]).await.refused(&["no-such-host could not be found"]);

    // A refused request drains nothing.
    given.enroll("r1u08", &moved).await;
    let path = "/v1/nodes/r1u08/states/provision";
    let undeploy = json!({"target": "deleted"});
    given.protect("r1u08", true).await;
    let refused = given.machines.send(Method::PUT, path, Some(&undeploy)).await;
    assert_eq!(refused.status, 403, "{}", refused.body);
    let drains = async || given.clusters.api.get::<Drains>("/bedplate/v1/drains").await.drains;
    assert_eq!(drains().await, []);
    assert_eq!(host_of(&given, "lab-1").await, moved);
    given.protect("r1u08", false).await;

    // Naming the host in `force` skips the drain.
    let forced = format!("{path}?force={moved}");
    let sent = given.machines.send(Method::PUT, &forced, Some(&undeploy)).await;
    assert_eq!(sent.status, 202, "{}", sent.body);
    assert_eq!(drains().await, []);
}
