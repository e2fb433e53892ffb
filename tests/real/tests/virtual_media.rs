//! A machine that boots from virtual media: no DHCP, no TFTP, no network boot.

use real::stations::{ASKS_BY_DHCP, ManagementAccess, deploy, enroll, give_back, inspect, provide};
use real::{Firmware, Story, image};
use serde_json::json;

#[test]
fn a_machine_is_deployed_by_virtual_media_and_undeployed() {
    let Some(mut story) = Story::begin("media", &[Firmware::Uefi]) else { return };
    let machine = story.machine(0);
    let reach = ManagementAccess::redfish(&machine, "redfish-virtual-media");
    enroll(&mut story, &machine, &reach);
    inspect(&mut story, &machine);

    // The next boots of the ramdisk use this network. The service gives no address below 10.78.0.100.
    let network = json!({
        "links": [{"id": "port", "type": "phy", "ethernet_mac_address": machine.mac, "mtu": 1400}],
        "networks": [{
            "id": "rack", "network_id": "rack", "link": "port", "type": "ipv4",
            "ip_address": "10.78.0.20", "netmask": "255.255.255.0",
            "routes": [{"network": "192.0.2.0", "netmask": "255.255.255.0", "gateway": "10.78.0.1"}],
        }],
        "services": [{"type": "dns", "address": "10.78.0.1"}],
    });
    let words = ["node", "set", &machine.name, "--network-data", &network.to_string()];
    story.client.done(&words);
    provide(&mut story, &machine);
    deploy(&mut story, &machine, &image("tiny.raw.gz"));
    give_back(&mut story, &machine, 1);

    let printed = machine.printed();
    assert!(!printed.contains(ASKS_BY_DHCP), "the ramdisk asked for an address");
    for attempt in ["Start PXE", "Start HTTP Boot"] {
        assert!(!printed.contains(attempt), "the machine booted from the network");
    }
    // The address of the inspection is on the medium; two cleanings and a deployment have the node's.
    let counted = |part: &str| printed.matches(part).count();
    assert_eq!((counted("MTU 1500: 10.78.0.1"), counted("MTU 1400: 10.78.0.20/24")), (1, 3));
    assert_eq!(counted("192.0.2.0/24 via 10.78.0.1 "), 3);
    assert_eq!(counted("nameserver 10.78.0.1"), 3);
}
