//! A node has a name in a zone of Designate, for the addresses of its ports.

use std::time::Duration;

use lab::{Lab, Machine, RackedMachine, Settings};
use machine_emulator::Event;
use openstack::dns::recordsets;
use reqwest::Method;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::lab_in_cloud::LabInCloud;

const TIMEOUT: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A lab with this zone, and the zone's id.
pub(crate) async fn with_zone(
    start: impl AsyncFnOnce(Settings) -> Lab,
    settings: Settings,
) -> (LabInCloud, String) {
    let more = "[cloud.dns]\nzone = 'machines.test'\nevery = '1s'\n".to_owned();
    let lab = LabInCloud::start(start, Settings { more, ..settings }).await;
    let zone = json!({"name": "machines.test.", "email": "root@machines.test"}).to_string();
    let made = lab.admin.send(Method::POST, "/dns/v2/zones", "application/json", zone).await;
    let id = made["id"].as_str().expect("an id").to_owned();
    (lab, id)
}

/// The names in the zone with their addresses.
async fn names(lab: &LabInCloud, zone: &str) -> Vec<(String, Vec<String>)> {
    let listed = recordsets::list(&lab.admin.session, zone).await.expect("the zone has recordsets");
    listed.into_iter().filter(|it| it.kind == "A").map(|it| (it.name, it.records)).collect()
}

/// Waits until the zone has these names, each with one address.
pub(crate) async fn becomes(lab: &LabInCloud, zone: &str, wanted: &[(&str, &str)]) {
    let is_wanted =
        |(has, want): (&(String, Vec<String>), &(&str, &str))| has.0 == want.0 && has.1 == [want.1];
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let has = names(lab, zone).await;
        if has.len() == wanted.len() && has.iter().zip(wanted).all(is_wanted) {
            return;
        }
        assert!(Instant::now() < deadline, "{has:?} and not {wanted:?}");
        sleep(LOOK_EVERY).await;
    }
}

/// The address that the ramdisk of a machine had.
pub(crate) fn leased(machine: &RackedMachine) -> String {
    let mut leased = machine.events().into_iter().filter_map(|event| {
        if let Event::Leased(address, _) = event { Some(address.to_string()) } else { None }
    });
    leased.next().expect("the ramdisk had an address")
}

#[tokio::test]
async fn a_node_has_a_name_for_its_address_until_it_is_gone() {
    let (lab, zone) = with_zone(async |it| Lab::start_with(it).await, Settings::default()).await;
    let machine = lab.rack(Machine::redfish("r1u1")).await;
    let node = lab.available(&machine).await;
    lab.set(node, "/name", json!("R1U1")).await;
    let address = leased(&machine);
    becomes(&lab, &zone, &[("r1u1.machines.test.", &address)]).await;

    lab.set(node, "/name", json!("r1u2")).await;
    becomes(&lab, &zone, &[("r1u2.machines.test.", &address)]).await;
    lab.api().send(Method::DELETE, &node.path(), None).await.expect("the node goes");
    becomes(&lab, &zone, &[]).await;
}

#[tokio::test]
async fn a_name_of_somebody_else_stays() {
    let (lab, zone) = with_zone(async |it| Lab::start_with(it).await, Settings::default()).await;
    let other = json!({"name": "r1u1.machines.test.", "type": "A", "records": ["192.0.2.7"]});
    let path = format!("/dns/v2/zones/{zone}/recordsets");
    lab.admin.send(Method::POST, &path, "application/json", other.to_string()).await;
    let mut address = String::new();
    for name in ["r1u1", "r1u2"] {
        let machine = lab.rack(Machine::redfish(name)).await;
        let node = lab.available(&machine).await;
        lab.set(node, "/name", json!(name)).await;
        address = leased(&machine);
    }
    let both = [("r1u1.machines.test.", "192.0.2.7"), ("r1u2.machines.test.", &address)];
    becomes(&lab, &zone, &both).await;
}
