//! BMCs are looked for in an address range and at leased addresses, and those that belong to no node are proposed.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

use bmc_emulator::BmcKind;
use lab::{Lab, Machine, RackedMachine, Settings};
use reqwest::Method;
use serde_json::{Value, json};

const ONE: Ipv4Addr = Ipv4Addr::new(127, 0, 77, 1);
const TWO: Ipv4Addr = Ipv4Addr::new(127, 0, 77, 2);
const THREE: Ipv4Addr = Ipv4Addr::new(127, 0, 77, 3);

/// A port that is free for TCP and UDP at all these addresses.
fn free_port(addresses: &[Ipv4Addr]) -> u16 {
    loop {
        let listener = TcpListener::bind((addresses[0], 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let is_free = |at: &Ipv4Addr| UdpSocket::bind((*at, port)).is_ok();
        let others = addresses[1..].iter().all(|at| TcpListener::bind((*at, port)).is_ok());
        if others && addresses.iter().all(is_free) {
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
    let port = free_port(&[ONE, TWO, THREE]);
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

/// A BMC that got its address from the service is asked there, without any configured range. The port of a node gets no address of BMCs.
#[tokio::test]
async fn a_bmc_with_a_leased_address_is_proposed_and_accepted() {
    let first = Ipv4Addr::new(127, 0, 78, 1);
    let port = free_port(&[first]);
    let more = format!(
        "[bmc.dhcp]\nlisten = '127.0.0.1:0'\nserver = '127.0.0.1'\nprefix = 8\nrange = '{first}-127.0.78.6'\n\
         [bmc.crawl]\nevery = '1s'\nredfish_ports = [{port}]\nipmi_port = {port}\n"
    );
    let lab = Lab::start_with(Settings { more, ..Settings::default() }).await;
    let mac = [0x52, 0x54, 0, 0xbc, 0, 1];
    assert_eq!(lab.address_of_bmc(mac).await, Some(first));
    let machine = lab.rack(at(Machine::redfish("leased"), first, port)).await;

    let found = discoveries(&lab, 1).await;
    assert_eq!(found[0]["id"], format!("{first}:{port}"));
    let path = format!("/bedplate/v1/discoveries/{first}:{port}/accept");
    let accepted = lab.api().send(Method::POST, &path, Some(&credentials(&machine))).await;
    let id = accepted.body["uuid"].as_str().and_then(|id| id.parse().ok()).expect("an id");
    lab.provision(lab::Node(id), "manage").await.reaches("manageable").await;
    assert_eq!(lab.address_of_bmc(mac).await, Some(first), "the BMC keeps its address");
    discoveries(&lab, 0).await;

    let port = json!({"node_uuid": lab::Node(id).0.to_string(), "address": "52:54:00:bc:00:02"});
    lab.api().send(Method::POST, "/v1/ports", Some(&port)).await.expect("a port");
    assert_eq!(lab.address_of_bmc([0x52, 0x54, 0, 0xbc, 0, 2]).await, None);
    let other = lab.address_of_bmc([0x52, 0x54, 0, 0xbc, 0, 3]).await;
    assert_eq!(other, Some(Ipv4Addr::new(127, 0, 78, 2)));
}
