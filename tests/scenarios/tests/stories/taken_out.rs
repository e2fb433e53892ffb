//! A machine is a compute host and runs a person's VM. `bedplate where` finds the VM, and the VM is moved away before the machine is
//! switched off.
//!
//! baremetald, clusterd and `bedplate` run as programs; the cloud is emulated.

use reqwest::Method;
use serde_json::{Value, json};

use crate::own_vm::until;
use crate::services::Services;

/// The host that `bedplate where` shows for a VM.
async fn host_of(services: &Services, thing: &str) -> String {
    let reported = services.bedplate(&["where", thing, "-o", "json"]).await.json();
    let host = &reported["racks"][0]["nodes"][0]["host"]["host"];
    host.as_str().unwrap_or_else(|| panic!("{reported}")).to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_is_drained_before_its_machine_is_switched_off() {
    let given = Services::start().await;
    given.clusters.vm("lab-1").await;
    let host = host_of(&given, "lab-1").await;
    given.node("r1u07", &host).await;

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
        let (status, said) = given.machine(Method::PUT, power, &asked).await;
        assert_eq!(status, 202, "{said}");
        until(state, async || {
            let (_, shown) = given.machine(Method::GET, "/v1/nodes/r1u07", &Value::Null).await;
            shown.contains(&format!("\"power_state\":\"{state}\"")).then_some(())
        })
        .await;
    }
    let moved = host_of(&given, "lab-1").await;
    assert_ne!(moved, host, "the person's machine moved first");
    let path = format!("/bedplate/v1/drains/{host}");
    let (_, drain) = given.cluster(Method::GET, &path, &Value::Null).await;
    assert!(drain.contains("\"drained\""), "{drain}");

    given.bedplate(&["undrain", &host, "--wait"]).await.done();
    given.bedplate(&["drain", "no-such-host"]).await.refused(&["no-such-host could not be found"]);

    // A refused request drains nothing.
    given.node("r1u08", &moved).await;
    let path = "/v1/nodes/r1u08/states/provision";
    let undeploy = json!({"target": "deleted"});
    given.protect("r1u08", true).await;
    let (status, said) = given.machine(Method::PUT, path, &undeploy).await;
    assert_eq!(status, 403, "{said}");
    let drains = given.cluster(Method::GET, "/bedplate/v1/drains", &Value::Null).await.1;
    assert!(drains.contains("\"drains\":[]"), "{drains}");
    assert_eq!(host_of(&given, "lab-1").await, moved);
    given.protect("r1u08", false).await;

    // Naming the host in `force` skips the drain.
    let forced = format!("{path}?force={moved}");
    let (status, said) = given.machine(Method::PUT, &forced, &undeploy).await;
    assert_eq!(status, 202, "{said}");
    let drains = given.cluster(Method::GET, "/bedplate/v1/drains", &Value::Null).await.1;
    assert!(drains.contains("\"drains\":[]"), "{drains}");
}
