//! Network interfaces (DSP0268 `EthernetInterface`, `NetworkAdapter`, `Port`).

use bmc::Result;
use hardware::{MacAddress, Nic};
use serde_json::Value;

use crate::document::Document;
use crate::service::Service;

impl Service {
    /// Returns the system's interfaces or, if the system lists none, the ports of the adapters in its chassis.
    pub(super) async fn nics(&self, system: &Value) -> Result<Vec<Nic>> {
        let interfaces = self.parts(system, "EthernetInterfaces").await?;
        let mut nics: Vec<Nic> = interfaces.iter().filter_map(interface).collect();
        if nics.is_empty() {
            nics = self.adapter_ports(system).await?;
        }
        Ok(without_repeats(nics))
    }

    async fn adapter_ports(&self, system: &Value) -> Result<Vec<Nic>> {
        let mut nics = Vec::new();
        for adapter in self.adapters(system).await? {
            // Ports replaced NetworkPorts in Redfish 2020.3.
            let mut ports = self.parts(&adapter, "Ports").await?;
            if ports.is_empty() {
                ports = self.parts(&adapter, "NetworkPorts").await?;
            }
            let name = adapter.text("Id").unwrap_or_default();
            nics.extend(ports.iter().filter_map(|found| port(&name, found)));
        }
        Ok(nics)
    }
}

fn interface(interface: &Value) -> Option<Nic> {
    // The permanent address is preferred: the software on the machine may change the other one.
    let mac = mac(interface.word("PermanentMACAddress"));
    let mac = mac.or_else(|| self::mac(interface.word("MACAddress")))?;
    Some(Nic {
        name: interface.text("Id").or_else(|| interface.text("Name")).unwrap_or_default(),
        mac,
        speed_mbps: speed(interface.count("SpeedMbps")),
        link_up: link_up(interface.word("LinkStatus")),
    })
}

fn port(adapter: &str, port: &Value) -> Option<Nic> {
    let ethernet = port.at("Ethernet").words("AssociatedMACAddresses");
    let addresses = ethernet.or_else(|| port.words("AssociatedNetworkAddresses"))?;
    let mbps = || port.count("CurrentLinkSpeedMbps");
    let gbps = port.number("CurrentSpeedGbps").filter(|gbps| *gbps > 0.0);
    Some(Nic {
        name: [adapter, &port.text("Id").unwrap_or_default()].join("/"),
        mac: addresses.into_iter().find_map(mac)?,
        speed_mbps: speed(gbps.map(|gbps| (gbps * 1000.0) as u64).or_else(mbps)),
        link_up: link_up(port.word("LinkStatus")),
    })
}

/// Parses an address that a machine can have. Empty and zero addresses stand for unplugged cards (sushy, `skip-empty-mac-address`).
fn mac(raw: &str) -> Option<MacAddress> {
    let mac: MacAddress = raw.parse().ok()?;
    (!mac.is_multicast() && mac.octets() != [0; 6]).then_some(mac)
}

fn speed(mbps: Option<u64>) -> Option<u32> {
    mbps.and_then(|mbps| u32::try_from(mbps).ok()).filter(|mbps| *mbps > 0)
}

fn link_up(status: &str) -> Option<bool> {
    match status {
        "LinkUp" | "Up" => Some(true),
        "LinkDown" | "NoLink" | "Down" => Some(false),
        _ => None,
    }
}

/// Drops interfaces that repeat an address: VLANs and partitions have the address of their card.
fn without_repeats(nics: Vec<Nic>) -> Vec<Nic> {
    let mut kept: Vec<Nic> = Vec::with_capacity(nics.len());
    for nic in nics {
        if kept.iter().all(|other| other.mac != nic.mac) {
            kept.push(nic);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(nic: Option<Nic>, want: Expect) {
        want.assert_eq(&nic.map_or_else(String::new, |nic| {
            format!("{} {} {:?} {:?}", nic.name, nic.mac, nic.speed_mbps, nic.link_up)
        }));
    }

    #[test]
    fn the_permanent_address_is_preferred() {
        check(
            interface(&json!({"Id": "NIC.1", "PermanentMACAddress": "52-54-00-00-00-01",
                "MACAddress": "02:00:00:00:00:09", "SpeedMbps": 25000, "LinkStatus": "LinkUp"})),
            expect!["NIC.1 52:54:00:00:00:01 Some(25000) Some(true)"],
        );
        check(
            interface(&json!({"Id": "1", "PermanentMACAddress": "", "MACAddress": "525400000002",
                "SpeedMbps": 0, "LinkStatus": "NoLink"})),
            expect!["1 52:54:00:00:00:02 None Some(false)"],
        );
    }

    #[test]
    fn interfaces_without_an_address_are_left_out() {
        check(interface(&json!({"Id": "1", "MACAddress": "00:00:00:00:00:00"})), expect![""]);
        check(interface(&json!({"Id": "1", "MACAddress": "ff:ff:ff:ff:ff:ff"})), expect![""]);
        check(interface(&json!({"Id": "1", "MACAddress": null})), expect![""]);
    }

    #[test]
    fn both_generations_of_ports_are_read() {
        check(
            port(
                "Slot4",
                &json!({"Id": "1", "Ethernet": {"AssociatedMACAddresses":
                ["52:54:00:00:00:03"]}, "CurrentSpeedGbps": 25, "LinkStatus": "LinkUp"}),
            ),
            expect!["Slot4/1 52:54:00:00:00:03 Some(25000) Some(true)"],
        );
        check(
            port(
                "Slot4",
                &json!({"Id": "2", "AssociatedNetworkAddresses": ["", "52:54:00:00:00:04"],
                "CurrentLinkSpeedMbps": 10000, "LinkStatus": "Down"}),
            ),
            expect!["Slot4/2 52:54:00:00:00:04 Some(10000) Some(false)"],
        );
    }
}
