//! The RMCP presence ping: asks whether a BMC with IPMI is at an address, without any credentials (ASF 2.0 §3.2.4).

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::timeout;

/// The ping: RMCP version 6, no acknowledgement, class ASF; then ASF's enterprise number, the type `presence ping`, and our tag.
const PING: [u8; 12] = [6, 0, 0xff, 6, 0, 0, 0x11, 0xbe, 0x80, TAG, 0, 0];
const TAG: u8 = 0x42;
/// The type of a presence pong.
const PONG: u8 = 0x40;
/// A pong is this long at least, up to its supported entities.
const PONG_LENGTH: usize = 21;
/// The bit of the supported entities that stands for IPMI.
const SUPPORTS_IPMI: u8 = 0x80;

/// How often the ping is sent: a datagram can be lost.
const TRIES: u32 = 2;

/// Returns whether a BMC with IPMI answers at `address` within `limit`.
///
/// # Errors
///
/// The socket cannot be used.
pub async fn answers_ping(address: SocketAddr, limit: Duration) -> io::Result<bool> {
    let any = match address {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(address).await?;
    let mut buffer = [0; 64];
    for _ in 0..TRIES {
        // The other end may refuse datagrams, and then no BMC is there.
        if socket.send(&PING).await.is_err() {
            return Ok(false);
        }
        match timeout(limit / TRIES, socket.recv(&mut buffer)).await {
            Ok(Ok(length)) => return Ok(is_pong(&buffer[..length])),
            Ok(Err(_)) => return Ok(false),
            Err(_) => {}
        }
    }
    Ok(false)
}

/// Whether a datagram is the pong of a BMC with IPMI.
fn is_pong(datagram: &[u8]) -> bool {
    let is_asf = datagram.first() == Some(&6)
        && datagram.get(3).is_some_and(|class| class & 0x1f == 6)
        && datagram.get(4..8) == Some(&PING[4..8]);
    let is_ours = datagram.get(8..10) == Some(&[PONG, TAG][..]);
    let entities = datagram.get(PONG_LENGTH - 1);
    is_asf && is_ours && entities.is_some_and(|bits| bits & SUPPORTS_IPMI != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_pong_of_a_bmc_counts() {
        let mut pong = vec![6, 0, 0xff, 6, 0, 0, 0x11, 0xbe, 0x40, TAG, 0, 16];
        pong.extend([0, 0, 0x11, 0xbe, 0, 0, 0, 0, 0x81, 0, 0, 0, 0, 0, 0, 0]);
        assert!(is_pong(&pong));
        for length in 0..PONG_LENGTH {
            assert!(!is_pong(&pong[..length]), "{length}");
        }
        for (place, value) in [(0, 7), (3, 7), (4, 1), (8, 0x80), (9, 1), (20, 1)] {
            let mut other = pong.clone();
            other[place] = value;
            assert!(!is_pong(&other), "{place}");
        }
    }
}
