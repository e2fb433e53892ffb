//! A person reserves a node for a time, while baremetald is killed again and again.

use lab::{Lab, Machine, Settings};
use machine_emulator::{Content, Stage};
use reqwest::Method;
use serde_json::{Value, json};

const LEASES: &str = r#"
[leases.nodes]
shortest = "1s"
[leases.schedule]
warn_before = ["10s"]
notice = "2s"
undo_window = "6s"
[reservations]
nodes_per_project = 1
"#;

const PATH: &str = "/bedplate/v1/reservations/train-1";

#[tokio::test]
async fn a_reservation_survives_kills_from_request_to_erasure() {
    let settings = Settings { more: LEASES.to_owned(), ..Settings::default() };
    let lab = Lab::with_child(settings).await;
    let machine = lab.rack(Machine::redfish("r1u1")).await;
    let node = lab.available(&machine).await;
    let path = format!("/v1/nodes/{}", node.0);
    let class = json!([{"op": "add", "path": "/resource_class", "value": "gpu"}]);
    lab.api().send(Method::PATCH, &path, Some(&class)).await.expect("a resource class");

    let image = lab.image();
    let wish = json!({
        "name": "train-1", "resource_class": "gpu", "lease": "25s",
        "image": {"url": image.url, "checksum": format!("sha256:{}", image.checksum), "format": image.format},
        "user_data": format!("#cloud-config\n# {}\n", left::canary::USER_DATA),
        "ssh_keys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2 ann@desk"],
    });
    let made = lab.api().send(Method::POST, "/bedplate/v1/reservations", Some(&wish)).await;
    let made = made.expect("a reservation");
    assert_eq!((&made["state"], &made["node"]["uuid"]), (&json!("installing"), &json!(node.0)));
    // The quota is used up by the first request.
    let second = lab.api().send(Method::POST, "/bedplate/v1/reservations", Some(&wish)).await;
    assert_eq!(second.status, 403, "{:?}", second.body);

    lab.restart().await;
    let active = |it: &Value| (it["state"] == "active").then_some(());
    lab.api().until(PATH, "an installed machine", active).await;
    machine.stage().wait_for(|stage| *stage == Stage::Installed).await.expect("it boots its disk");
    let installed =
        || matches!(&machine.disks()[..], [Content::Image { name, .. }] if *name == image.url);
    assert!(installed(), "the disk holds {:?}", machine.disks());

    lab.restart().await;
    let off = |it: &Value| {
        (it["state"] == "ended" && it["node"]["power_state"] == "power off").then_some(())
    };
    lab.api().until(PATH, "a machine that is off, for its lease has ended", off).await;
    assert!(installed(), "what is on the disk can be had back until the undo window closes");

    lab.restart().await;
    let erasing = |it: &Value| (it["provision_state"] != "active").then_some(());
    lab.api().until(&path, "a node that is taken back", erasing).await;
    lab.restart().await;
    let free = |it: &Value| {
        let is_free = it["provision_state"] == "available" && it["lessee"].is_null();
        is_free.then(|| it.clone())
    };
    let node = lab.api().until(&path, "a free node", free).await;
    assert!(machine.disks_are_blank());
    assert!(node["instance_uuid"].is_null() && node["allocation_uuid"].is_null());
    assert_eq!(lab.api().get("/bedplate/v1/reservations").await, json!({"reservations": []}));
    assert_eq!(lab.api().get("/v1/allocations").await, json!({"allocations": []}));
}
