//! A BMC that gets its address by DHCP, as BMCs do by default.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::timeout;

use crate::dhcp::{self, ACK, DISCOVER, OFFER, REQUEST, Reply, option};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns the address that the DHCP server leases to the BMC with this MAC address, through a relay on this host; `None` if the server does
/// not answer.
pub async fn address_of_bmc(server: SocketAddr, mac: [u8; 6]) -> io::Result<Option<Ipv4Addr>> {
    let relay = Ipv4Addr::LOCALHOST;
    let socket = UdpSocket::bind((relay, 0)).await?;
    socket.connect(server).await?;
    let transaction: u32 = rand::random();
    let about = |kind| {
        vec![
            (option::MESSAGE_TYPE, vec![kind]),
            (option::PARAMETERS, vec![1, 3, 6, 12, 15, 42]),
            (option::MAXIMUM_SIZE, 1472_u16.to_be_bytes().to_vec()),
        ]
    };
    let ask = async |options: &[(u8, Vec<u8>)], wanted: u8| -> io::Result<Option<Reply>> {
        socket.send(&dhcp::encode(transaction, mac, relay, options)).await?;
        let mut packet = [0; 2048];
        let Ok(length) = timeout(PATIENCE, socket.recv(&mut packet)).await else { return Ok(None) };
        let reply = dhcp::decode(&packet[..length?]);
        Ok(reply.filter(|reply| reply.transaction == transaction && reply.kind == wanted))
    };
    let Some(offer) = ask(&about(DISCOVER)[..], OFFER).await? else { return Ok(None) };
    let mut request = about(REQUEST);
    request.push((option::REQUESTED_ADDRESS, offer.your_address.octets().to_vec()));
    request.push((option::SERVER, offer.server));
    Ok(ask(&request[..], ACK).await?.map(|ack| ack.your_address))
}
