//! BMCs are looked for in an address range, and those that belong to no node are proposed.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

use bmc_emulator::BmcKind;
use lab::{Lab, Machine, RackedMachine, Settings};
use reqwest::Method;
use serde_json::{Value, json};

const ONE: Ipv4Addr = Ipv4Addr::new(127, 0, 77, 1);
const TWO: Ipv4Addr = Ipv4Addr::new(127, 0, 77, 2);
const THREE: Ipv4Addr = Ipv4Addr::new(127, 0, 77, 3);

/// A port that is free for TCP and UDP at all three addresses.
fn free_port() -> u16 {
    loop {
        let listener = TcpListener::bind((ONE, 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let is_free = |at: Ipv4Addr| UdpSocket::bind((at, port)).is_ok();
        let others = [TWO, THREE].into_iter().all(|at| TcpListener::bind((at, port)).is_ok());
        if others && [ONE, TWO, THREE].into_iter().all(is_free) {
            return port;
        }
    }
}

/// A machine whose BMC listens at this address.
fn at(mut machine: Machine, address: Ipv4Addr, port: u16) -> Machine {
    machine.spec.bmc.address = SocketAddr::new(IpAddr::V4(address), port);
    machine
}

async fn discoveries(lab: &Lab, number: usize) -> Vec<Value> {
    let found = |list: &Value| {
        let found = list["discoveries"].as_array()?;
        (found.len() == number).then(|| found.clone())
    };
    lab.api().until("/bedplate/v1/discoveries", "the discoveries", found).await
}

/// The credentials alone: the address was found.
fn credentials(machine: &RackedMachine) -> Value {
    let mut info = machine.driver_info();
    let info = info.as_object_mut().expect("an object");
    info.retain(|key, _| !key.ends_with("address") && !key.ends_with("port"));
    json!({ "driver_info": info })
}

#[tokio::test]
async fn bmcs_without_a_node_are_proposed_and_accepted() {
    let port = free_port();
    let more = format!(
        "[bmc.crawl]\nranges = ['127.0.77.0/29']\nevery = '1s'\nper_second = 1000\nredfish_ports = [{port}]\nipmi_port = {port}\n"
    );
    let lab = Lab::start_with(Settings { more, ..Settings::default() }).await;
    let known = lab.rack(at(Machine::redfish("known"), ONE, port)).await;
    let node = lab.manageable(&known).await;
    let redfish = lab.rack(at(Machine::redfish("redfish"), TWO, port)).await;
    let ipmi = lab.rack(at(Machine::ipmi("ipmi"), THREE, port)).await;
    assert_eq!(ipmi.spec().bmc.kind, BmcKind::Ipmi);

    let found = discoveries(&lab, 2).await;
    let of = |address: Ipv4Addr| {
        let id = format!("{address}:{port}");
        found.iter().find(|it| it["id"] == *id).unwrap_or_else(|| panic!("{id}: {found:#?}"))
    };
    assert_eq!((&of(TWO)["kind"], &of(TWO)["mac"]), (&json!("bmc"), &Value::Null));
    assert!(of(TWO)["data"]["bmc"]["redfish"]["version"].is_string(), "{found:#?}");
    assert_eq!(of(THREE)["data"]["bmc"]["redfish"], Value::Null);
    assert_eq!(redfish.chassis().log(), [], "it was asked without credentials");

    for (address, machine) in [(TWO, &redfish), (THREE, &ipmi)] {
        let path = format!("/bedplate/v1/discoveries/{address}:{port}/accept");
        let accepted = lab.api().send(Method::POST, &path, Some(&credentials(machine))).await;
        assert_eq!(accepted.status, 200, "{}", accepted.body);
        let id = accepted.body["uuid"].as_str().and_then(|id| id.parse().ok()).expect("an id");
        assert_eq!(lab.node(lab::Node(id)).await.driver.as_deref(), Some(machine.driver()));
        lab.provision(lab::Node(id), "manage").await.reaches("manageable").await;
    }
    discoveries(&lab, 0).await;
    let path = format!("/v1/nodes/{}", node.0);
    lab.api().send(Method::DELETE, &path, None).await.expect("the node goes");
    let again = discoveries(&lab, 1).await;
    assert_eq!(again[0]["id"], format!("{ONE}:{port}"), "a BMC without a node is found again");
}
