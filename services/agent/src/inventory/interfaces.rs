//! Network interfaces, from `/sys/class/net` and `/proc/net`.

use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};

use agent_protocol::Interface;
use ipnet::Ipv4Net;

use super::pci;
use crate::root::Root;

/// Returns every interface of a hardware device, by name.
pub fn interfaces(root: &Root) -> Vec<Interface> {
    root.names("/sys/class/net").into_iter().filter_map(|name| interface(root, name)).collect()
}

fn interface(root: &Root, name: String) -> Option<Interface> {
    let at = |file: &str| format!("/sys/class/net/{name}/{file}");
    if !root.path(at("device")).exists() {
        return None;
    }
    let device = fs::canonicalize(root.path(at("device")))
        .map(|path| path.display().to_string())
        .unwrap_or_default();
    Some(Interface {
        mac_address: Some(root.text(at("address"))?),
        ipv4_address: v4(root, &name).map(|address| address.to_string()),
        ipv6_address: v6(root, &name).map(|address| address.to_string()),
        has_carrier: root.number::<u8>(at("carrier")) == Some(1),
        lldp: None,
        vendor: root.text(at("device/vendor")),
        product: root.text(at("device/device")),
        client_id: None,
        biosdevname: None,
        // The file holds -1 if the link is down.
        speed_mbps: root.number(at("speed")),
        pci_address: pci::address_in(&device).map(str::to_owned),
        driver: root.link_name(at("device/driver")),
        name,
    })
}

/// Finds an interface's address: the kernel lists addresses without interfaces, and routes with interfaces.
fn v4(root: &Root, name: &str) -> Option<Ipv4Addr> {
    let routes = root.text("/proc/net/route")?;
    let trie = root.text("/proc/net/fib_trie")?;
    let hexadecimal =
        |text: &str| Some(Ipv4Addr::from_bits(u32::from_str_radix(text, 16).ok()?.swap_bytes()));
    let subnets: Vec<Ipv4Net> = routes
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|fields| fields.first() == Some(&name))
        .filter_map(|fields| {
            Ipv4Net::with_netmask(hexadecimal(fields.get(1)?)?, hexadecimal(fields.get(7)?)?).ok()
        })
        .filter(|subnet| subnet.prefix_len() != 0)
        .collect();
    let lines: Vec<&str> = trie.lines().map(str::trim).collect();
    let local = lines.windows(2).filter(|pair| pair[1] == "/32 host LOCAL");
    let addresses = local.filter_map(|pair| pair[0].strip_prefix("|-- ")?.parse::<Ipv4Addr>().ok());
    let mut addresses = addresses.filter(|address| !address.is_loopback());
    addresses.find(|address| subnets.iter().any(|subnet| subnet.contains(address)))
}

fn v6(root: &Root, name: &str) -> Option<Ipv6Addr> {
    let table = root.text("/proc/net/if_inet6")?;
    let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut own: Vec<(u8, Ipv6Addr)> = rows
        .filter(|fields| fields.last() == Some(&name))
        .filter_map(|fields| {
            let address = u128::from_str_radix(fields.first()?, 16).ok()?;
            let scope = u8::from_str_radix(fields.get(3)?, 16).ok()?;
            Some((scope, Ipv6Addr::from_bits(address)))
        })
        .collect();
    // Scope 0 is global, 0x20 is the link.
    own.sort_unstable();
    own.first().map(|(_, address)| *address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_read_with_its_addresses() {
        let folder = crate::scratch::Folder::new();
        let put = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("sys/class/net/eth0/address", "52:54:00:78:00:01\n");
        put("sys/class/net/eth0/carrier", "1\n");
        put("sys/class/net/eth0/speed", "25000\n");
        put("sys/class/net/eth0/device/vendor", "0x8086\n");
        put("sys/class/net/eth1/address", "52:54:00:78:00:02\n");
        put("sys/class/net/eth1/speed", "-1\n");
        put("sys/class/net/eth1/device/vendor", "0x8086\n");
        put("sys/class/net/lo/address", "00:00:00:00:00:00\n");
        put(
            "proc/net/route",
            "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n\
             eth0\t00000000\t0202000A\t0003\t0\t0\t0\t00000000\n\
             eth0\t0002000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\n",
        );
        put(
            "proc/net/fib_trie",
            "Local:\n  |-- 10.0.2.0\n     /24 link UNICAST\n  |-- 10.0.2.15\n     /32 host LOCAL\n  |-- 127.0.0.1\n     /32 host LOCAL\n",
        );
        put(
            "proc/net/if_inet6",
            "fe800000000000000000000000000001 02 40 20 80     eth0\n\
             fd000000000000000000000000000002 02 40 00 80     eth0\n",
        );
        let found = interfaces(&Root::new(folder.path()));
        let shown: Vec<_> = found
            .iter()
            .map(|i| {
                (
                    i.name.as_str(),
                    i.has_carrier,
                    i.speed_mbps,
                    i.ipv4_address.as_deref(),
                    i.ipv6_address.as_deref(),
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("eth0", true, Some(25000), Some("10.0.2.15"), Some("fd00::2")),
                ("eth1", false, None, None, None),
            ]
        );
    }
}
