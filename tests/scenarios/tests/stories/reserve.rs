//! A person reserves a node for a time, while baremetald is killed again and again.

use api_client::baremetald::{Reservation, ReservedNode};
use lab::{Lab, Machine, Settings};
use machine_emulator::{Content, Stage};
use reqwest::Method;
use serde_json::json;

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
    lab.set(node, "/resource_class", json!("gpu")).await;

    let image = lab.image();
    let wish = json!({
        "name": "train-1", "resource_class": "gpu", "lease": "25s",
        "image": {"url": image.url, "checksum": format!("sha256:{}", image.checksum), "format": image.format},
        "user_data": format!("#cloud-config\n# {}\n", left::canary::USER_DATA),
        "ssh_keys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2 ann@desk"],
    });
    let made = lab.api().send(Method::POST, "/bedplate/v1/reservations", Some(&wish)).await;
    let made: Reservation = made.read("a reservation");
    let reserved = made.node.map(|it| it.uuid);
    assert_eq!((made.state.as_str(), reserved), ("installing", Some(node.0.to_string())));
    // The quota is used up by the first request.
    let second = lab.api().send(Method::POST, "/bedplate/v1/reservations", Some(&wish)).await;
    assert_eq!(second.status, 403, "{:?}", second.body);

    lab.restart().await;
    let active = |it: &Reservation| (it.state == "active").then_some(());
    lab.api().until(PATH, "an installed machine", active).await;
    machine.stage().wait_for(|stage| *stage == Stage::Installed).await.expect("it boots its disk");
    let installed =
        || matches!(&machine.disks()[..], [Content::Image { name, .. }] if *name == image.url);
    assert!(installed(), "the disk holds {:?}", machine.disks());

    lab.restart().await;
    let is_off = |it: &ReservedNode| it.power_state.as_deref() == Some("power off");
    let off = |it: &Reservation| {
        (it.state == "ended" && it.node.as_ref().is_some_and(is_off)).then_some(())
    };
    lab.api().until(PATH, "a machine that is off, for its lease has ended", off).await;
    assert!(installed(), "what is on the disk can be had back until the undo window closes");

    lab.restart().await;
    lab.until(node, "a node that is taken back", |it| it.state() != "active").await;
    lab.restart().await;
    let free =
        lab.until(node, "a free node", |it| it.state() == "available" && it.lessee.is_none());
    let free = free.await;
    assert!(machine.disks_are_blank());
    assert_eq!((free.instance_uuid, free.allocation_uuid), (None, None));
    crate::kill_points::is_listed_nowhere(&lab).await;
}
