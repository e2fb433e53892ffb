//! Answers IPv6 router solicitations (RFC 4861 §6.2.6) with advertisements that offer no router.
//!
//! No machine uses us as a router because of an advertisement with lifetime 0 (RFC 4861 §6.3.4). In a network with DHCPv6 it tells machines
//! to ask by DHCPv6, and which addresses are on their link, because DHCPv6 does not tell it. In a network without DHCPv6 it has no flags and
//! no prefix: iPXE configures IPv6 beside IPv4 and waits up to 14 s for a router before it loads anything, and any advertisement ends this
//! wait (`ipv6conf_rx_router_advertisement` in `src/net/ndp.c` of iPXE).

use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};
use std::time::Duration;

use ipnet::Ipv6Net;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::RouterAdvertisementConfig;
use crate::socket::{Purpose, StartError, interface_index, to_tokio};

const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);

const SOLICITATION: u8 = 133;

/// RFC 4861 §4.2: addresses and other settings come by DHCPv6.
const MANAGED_AND_OTHER: u8 = 0xc0;
/// RFC 4861 §4.6.2: the prefix is on the link. Without the flag for autonomous configuration machines make no address of it.
const ON_LINK: u8 = 0x80;
/// RFC 4861 §4.6.2: the time of a prefix that never ends.
const ENDLESS: [u8; 4] = [0xff; 4];

/// The advertising service with its socket open.
pub(crate) struct Advertiser {
    socket: UdpSocket,
    interface: u32,
    advertisement: Vec<u8>,
}

impl Advertiser {
    pub(crate) fn open(config: &RouterAdvertisementConfig) -> Result<Self, StartError> {
        let interface = &*config.interface;
        let index = interface_index(interface)?;
        let purpose = Purpose {
            service: "router advertisements",
            place: interface.to_owned(),
            capability: "CAP_NET_RAW",
        };
        let open = || {
            let socket = Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::ICMPV6))?;
            socket.bind_device(Some(interface.as_bytes()))?;
            // RFC 4861 §4.2: receivers drop an advertisement with a smaller hop limit, because a router may have forwarded it.
            socket.set_unicast_hops_v6(255)?;
            socket.set_multicast_hops_v6(255)?;
            socket.join_multicast_v6(&ALL_ROUTERS, index)?;
            to_tokio(socket)
        };
        let socket = open().map_err(|source| purpose.failed(source))?;
        let advertisement = advertisement(config.managed);
        Ok(Advertiser { socket, interface: index, advertisement })
    }

    pub(crate) async fn run(self, cancel: CancellationToken) {
        cancel.run_until_cancelled(self.serve()).await;
    }

    async fn serve(self) {
        let mut packet = [0; 256];
        loop {
            match self.socket.recv_from(&mut packet).await {
                Ok((length, SocketAddr::V6(from))) => {
                    if packet[..length].starts_with(&[SOLICITATION, 0]) {
                        self.advertise(*from.ip()).await;
                    }
                }
                Ok((_, SocketAddr::V4(_))) => {}
                Err(error) => {
                    warn!(%error, "receiving router solicitations failed");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    /// Sends an advertisement to the asker, or to all nodes on the link if the asker has no address yet.
    async fn advertise(&self, asker: Ipv6Addr) {
        let to = if asker.is_unicast_link_local() { asker } else { ALL_NODES };
        let to = SocketAddrV6::new(to, 0, 0, self.interface);
        if let Err(error) = self.socket.send_to(&self.advertisement, to).await {
            debug!(%to, %error, "cannot answer a router solicitation");
        }
    }
}

/// RFC 4861 §4.2: type 134, code 0, checksum (the kernel fills it in), then hop limit, flags, router lifetime, reachable time and
/// retransmission timer, all "unspecified" except for the flags. The option is the prefix (§4.6.2).
fn advertisement(managed: Option<Ipv6Net>) -> Vec<u8> {
    let mut message = vec![134, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    if let Some(network) = managed {
        message[5] = MANAGED_AND_OTHER;
        message.extend([3, 4, network.prefix_len(), ON_LINK]);
        message.extend([ENDLESS, ENDLESS, [0; 4]].concat());
        message.extend(network.network().octets());
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_with_dhcp_v6_is_advertised_and_any_other_is_not() {
        assert_eq!(advertisement(None).len(), 16);
        assert_eq!(advertisement(None)[5], 0);
        let managed = advertisement(Some("fd78::1/64".parse().unwrap()));
        assert_eq!(managed.len(), 48);
        assert_eq!((managed[5], &managed[6..8]), (0xc0, &[0, 0][..]), "it is a router");
        assert_eq!(managed[16..20], [3, 4, 64, 0x80]);
        assert_eq!(managed[32..36], [0xfd, 0x78, 0, 0]);
        assert_eq!(managed[36..], [0; 12]);
    }
}
