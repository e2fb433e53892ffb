//! The exchange with DHCP servers of both versions: a request, and all answers to it.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout_at};

/// How long servers may take. A server checks first whether the address is in use, which takes a second or two.
pub(super) const PATIENCE: Duration = Duration::from_secs(4);

/// An Ethernet address that no card has, because it is locally administered (IEEE 802, 8.4), so that a server reserves nothing for a real
/// card.
pub(super) const OURS: [u8; 6] = [0x02, 0xbe, 0xd0, 0x1a, 0x7e, 0x00];

/// Sends the request, and collects what `read` finds in the packets that arrive within this time.
pub(super) async fn answers<T: Ord>(
    socket: &UdpSocket,
    request: &[u8],
    servers: SocketAddr,
    patience: Duration,
    read: impl Fn(&[u8], SocketAddr) -> Option<T>,
) -> io::Result<BTreeSet<T>> {
    socket.send_to(request, servers).await?;
    let deadline = Instant::now() + patience;
    let (mut found, mut packet) = (BTreeSet::new(), vec![0; 2048]);
    while let Ok(received) = timeout_at(deadline, socket.recv_from(&mut packet)).await {
        let (length, from) = received?;
        found.extend(read(packet.get(..length).unwrap_or_default(), from));
    }
    Ok(found)
}

/// Describes an offer.
pub(super) fn description(offered: Option<IpAddr>, boot_file: Option<&str>) -> String {
    match (offered, boot_file) {
        (Some(offered), Some(file)) => format!("the address {offered} and the boot file {file:?}"),
        (Some(offered), None) => format!("the address {offered}"),
        (None, Some(file)) => format!("the boot file {file:?}"),
        (None, None) => "nothing".to_owned(),
    }
}
