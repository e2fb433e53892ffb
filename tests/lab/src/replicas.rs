//! A lab with several baremetald behind haproxy: machines boot from any of them, and agents and clients reach one that lives.

use std::net::{Ipv4Addr, SocketAddr};

use baremetal::Listeners;
use url::Url;

use crate::daemon::Daemon;
use crate::haproxy::{Haproxy, Proxy, ProxyKind};
use crate::lab::{Addresses, FIRST, Lab, Settings, network, prepare};
use crate::ports::{free_ports, free_udp_ports};
use crate::replica::{KEYS, Replica, copy_key, state_of};

impl Lab {
    /// Starts three baremetald with the host names `lab`, `two` and `three` on the PostgreSQL of the settings, behind haproxy. Returns `None`
    /// if haproxy is not installed on this computer.
    pub async fn behind_haproxy(mut settings: Settings) -> Option<(Lab, [Replica; 3])> {
        let [api, provisioning, first, second, third, one, two, three] = free_ports();
        let all = [listeners(1, first, one), listeners(2, second, two), listeners(3, third, three)];
        let apis = all.iter().map(|it| it.api).collect();
        let own = all.iter().filter_map(|it| it.provisioning).collect();
        let haproxy = Haproxy::start(&[
            Proxy { kind: ProxyKind::Baremetal, at: api, servers: apis },
            Proxy { kind: ProxyKind::Provisioning, at: provisioning, servers: own },
        ])?;
        let url = Url::parse(&format!("http://{provisioning}/"));
        settings.provisioning_url = Some(url.expect("an address makes a URL"));
        let (folder, _) = prepare(&settings);
        let first = Replica::start(&settings, &folder, FIRST, Some(&all[0])).await;
        let further = async |name: &str, at: &Listeners| {
            for key in KEYS {
                copy_key(&folder, name, key);
            }
            Replica::start(&settings, &folder, (name, &state_of(name)), Some(at)).await
        };
        let replicas = [first, further("two", &all[1]).await, further("three", &all[2]).await];
        let networks = all.iter().map(network).collect();
        let haproxy = Some(haproxy);
        let addresses = Addresses { api, provisioning, bmc_dhcp: None, networks, haproxy };
        let lab = Lab::around(Daemon::Elsewhere, addresses, folder, settings).await;
        Some((lab, replicas))
    }
}

impl Lab {
    /// The load balancer before the replicas.
    pub fn haproxy(&self) -> &Haproxy {
        self.haproxy.as_ref().expect("the lab is behind haproxy")
    }
}

/// The addresses of a replica. Machines tell the DHCP servers apart by their addresses.
fn listeners(number: u8, api: SocketAddr, provisioning: SocketAddr) -> Listeners {
    let [dhcp, tftp] = free_udp_ports(Ipv4Addr::new(127, 0, 0, number));
    Listeners {
        api,
        provisioning: Some(provisioning),
        https: None,
        dhcp: Some(dhcp),
        tftp: Some(tftp),
        bmc_dhcp: None,
        metrics: None,
    }
}
