//! A machine of ours is a compute host, and on it is a person's machine: found by `bedplate where`, moved away by `bedplate drain`, and not
//! switched off before.
//!
//! baremetald, clusterd and `bedplate` are the programs themselves, the cloud is emulated.

use reqwest::Method;
use serde_json::json;

use crate::services::Services;

/// The host that `bedplate where` finds a thing on.
async fn host_of(services: &Services, thing: &str) -> String {
    let told = services.bedplate(&["where", thing, "-o", "json"]).await.json();
    let host = &told["racks"][0]["nodes"][0]["host"]["host"];
    host.as_str().unwrap_or_else(|| panic!("{told}")).to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_is_emptied_before_its_machine_is_switched_off() {
    let given = Services::start().await;
    let request = ["vm", "request", "lab-1", "--image", "cirros", "--flavor", "m1.nano", "--wait"];
    given.bedplate(&request).await.done();
    let host = host_of(&given, "lab-1").await;
    given.node("r1u07", &host).await;

    // Up from the machine and down from the node it is the same chain.
    for thing in ["lab-1", "r1u07", host.as_str()] {
        let told = given.bedplate(&["where", thing]).await.done();
        for part in ["node r1u07 (active)", &format!("host {host}"), "machine lab-1 of a person"] {
            assert!(told.contains(part), "where {thing}: {part:?} in {told}");
        }
    }
    given.bedplate(&["where", "nobody-knows"]).await.refused(&["nobody-knows"]);

    // What would switch it off has it emptied first, and is refused meanwhile; who names the host may do so anyway.
    let power = "/v1/nodes/r1u07/states/power";
    let off = json!({"target": "power off"});
    let (status, said) = given.machine(Method::PUT, power, &off).await;
    assert!(status == 409 && said.contains("is being emptied"), "{status} {said}");
    let told = given.bedplate(&["drain", &host, "--wait"]).await.done();
    assert!(told.contains("is drained"), "{told}");
    let moved = host_of(&given, "lab-1").await;
    assert_ne!(moved, host);
    let (status, said) = given.machine(Method::PUT, power, &off).await;
    assert_eq!(status, 202, "{said}");

    given.bedplate(&["undrain", &host, "--wait"]).await.done();
    given.bedplate(&["drain", "no-such-host"]).await.refused(&["no-such-host could not be found"]);

    // Where the machine is now, only who names the host gets by without asking.
    given.node("r1u08", &moved).await;
    let path = "/v1/nodes/r1u08/states/provision";
    let undeploy = json!({"target": "deleted"});
    let (status, said) = given.machine(Method::PUT, path, &undeploy).await;
    assert!(status == 409 && said.contains("is being emptied"), "{status} {said}");
    let forced = format!("{path}?force={moved}");
    let (status, said) = given.machine(Method::PUT, &forced, &undeploy).await;
    assert_eq!(status, 202, "{said}");
}
