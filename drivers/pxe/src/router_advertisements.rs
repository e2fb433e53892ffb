//! Answers IPv6 router solicitations (RFC 4861 §6.2.6) with advertisements that offer no router.
//!
//! iPXE configures IPv6 beside IPv4 and waits up to 14 s for a router before it loads anything. An advertisement with lifetime 0, no prefix
//! and no flags ends this wait (`ipv6conf_rx_router_advertisement` in `src/net/ndp.c` of iPXE), and no machine uses us as a router because
//! of it (RFC 4861 §6.3.4).

use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::socket::{Purpose, StartError, interface_index, to_tokio};

const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);

const SOLICITATION: u8 = 133;

/// RFC 4861 §4.2: type 134, code 0, checksum (the kernel fills it in), then hop limit, flags, router lifetime, reachable time and
/// retransmission timer, all "unspecified", and no option.
const ADVERTISEMENT: [u8; 16] = [134, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// The advertising service with its socket open.
pub(crate) struct Advertiser {
    socket: UdpSocket,
    interface: u32,
}

impl Advertiser {
    pub(crate) fn open(interface: &str) -> Result<Self, StartError> {
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
        Ok(Advertiser { socket, interface: index })
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
        if let Err(error) = self.socket.send_to(&ADVERTISEMENT, to).await {
            debug!(%to, %error, "cannot answer a router solicitation");
        }
    }
}
