//! The answers to BMCs, on their own network.

use std::net::Ipv4Addr;

use baremetal_core::Verb;

use crate::machine::{Machine, Speaker, mac};
use crate::site::{LOOPBACK, TestService, awaited};

const NETWORK: &str = "[bmc.dhcp]\nlisten = '127.0.0.1:0'\nserver = '127.0.0.1'\nprefix = 8\nrange = '127.9.1.1-127.9.1.4'\n";

#[tokio::test]
async fn a_bmc_gets_an_address_and_nothing_to_boot() {
    let nodes = [awaited("r1u1", mac(1), Verb::Inspect)];
    let site = TestService::start_with(LOOPBACK, "discover", &nodes, NETWORK).await;
    let bmcs = site.bmc_dhcp.unwrap();
    let bmc = Machine::new(bmcs, Ipv4Addr::LOCALHOST, mac(2)).await;
    let got = bmc.boots(Speaker::System).await.unwrap();
    assert_eq!((got.address, &*got.boot_file), (Ipv4Addr::new(127, 9, 1, 1), ""));
    assert_eq!(bmc.is_offered(Speaker::Ipxe).await, None, "no machine boots there");

    // The port of a node keeps its address of the provisioning network, also if it is connected to that of the BMCs.
    let port = Machine::new(site.dhcp, Ipv4Addr::LOCALHOST, mac(1)).await;
    let address = port.is_offered(Speaker::Firmware).await;
    assert_eq!(address, Some(Ipv4Addr::new(127, 9, 0, 1)));
    let misplaced = Machine::new(bmcs, Ipv4Addr::LOCALHOST, mac(1)).await;
    assert_eq!(misplaced.is_offered(Speaker::System).await, None);
    assert_eq!(port.is_offered(Speaker::Firmware).await, address);
}
