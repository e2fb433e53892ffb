//! Finds other DHCPv6 servers: sends a Solicit, and reports every server that answers and is not ours.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::time::Duration;

use dhcp::v6::{Message, MessageType, Options, code, server_identifier};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;

use super::exchange::{OURS, PATIENCE, answers, description};
use crate::doctor::finding::{Check, Findings};

/// RFC 8415 §7.1, §7.2: the group and the port of all servers on the link.
const SERVERS: SocketAddr =
    SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2), 547, 0, 0));

/// The number of the vendor that firmware sends with its class; it is Intel's, which specified PXE.
const INTEL: [u8; 4] = 343_u32.to_be_bytes();

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Advertisement {
    /// The address from which the server answers.
    address: IpAddr,
    /// The DUID of the server.
    identifier: Vec<u8>,
    offered: Option<Ipv6Addr>,
    boot_file: Option<String>,
}

/// Searches the link of this interface. `own` is the address of our own server.
pub(super) async fn search(
    interface: &str,
    own: Option<Ipv6Addr>,
    findings: &mut Findings,
) -> io::Result<()> {
    let socket = client_socket(interface)?;
    let servers = advertisements(&socket, SERVERS, PATIENCE).await?;
    judge(interface, own, &servers, findings);
    Ok(())
}

/// RFC 8415 §7.2: a client socket, on port 546 of one interface.
fn client_socket(interface: &str) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV6, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_address(true)?;
    socket.bind_device(Some(interface.as_bytes()))?;
    socket.set_only_v6(true)?;
    socket.bind(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, 546)).into())?;
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket.into())
}

/// Collects the advertisements within this time.
async fn advertisements(
    socket: &UdpSocket,
    servers: SocketAddr,
    patience: Duration,
) -> io::Result<BTreeSet<Advertisement>> {
    let transaction = *b"bed";
    let request = solicit(transaction).encode();
    let read = |octets: &[u8], from: SocketAddr| advertisement(octets, transaction, from);
    answers(socket, &request, servers, patience, read).await
}

/// A request like the one of UEFI firmware that boots by PXE, so that servers that answer only such clients answer too.
fn solicit(transaction: [u8; 3]) -> Message {
    let mut options = Options::new();
    // RFC 8415 §11.4: a DUID of an Ethernet address.
    options.add(code::CLIENT_IDENTIFIER, [&[0_u8, 3, 0, 1][..], &OURS].concat());
    // RFC 8415 §21.4: a number that the client chooses, and two times that the server sets.
    options.add(code::IA_NA, [&OURS[2..], &[0; 8]].concat());
    options.add(code::ELAPSED_TIME, [0_u8; 2]);
    options.add(code::OPTION_REQUEST, code::BOOT_FILE_URL.to_be_bytes());
    let class = b"PXEClient:Arch:00007:UNDI:003016";
    options.add(code::VENDOR_CLASS, [&INTEL[..], &[0, class.len() as u8], class].concat());
    options.add(code::ARCHITECTURE, 7_u16.to_be_bytes());
    Message { kind: MessageType::Solicit, transaction, options }
}

/// The advertisement in a packet; `None` if the packet is no answer to this request.
fn advertisement(octets: &[u8], transaction: [u8; 3], from: SocketAddr) -> Option<Advertisement> {
    let message = Message::decode(octets).ok()?;
    if message.kind != MessageType::Advertise || message.transaction != transaction {
        return None;
    }
    let boot_file = message.options.get(code::BOOT_FILE_URL);
    Some(Advertisement {
        address: from.ip(),
        identifier: message.options.get(code::SERVER_IDENTIFIER)?.to_vec(),
        offered: message.options.get(code::IA_NA).and_then(first_address),
        boot_file: boot_file.map(|url| String::from_utf8_lossy(url).into_owned()),
    })
}

/// Returns the first address of an identity association (RFC 8415 §21.4): its content follows a number and two times.
fn first_address(association: &[u8]) -> Option<Ipv6Addr> {
    let content = Options::decode(association.get(12..)?).ok()?;
    let address = content.get(code::IA_ADDRESS)?.first_chunk::<16>()?;
    Some(Ipv6Addr::from(*address))
}

fn judge(
    interface: &str,
    own: Option<Ipv6Addr>,
    servers: &BTreeSet<Advertisement>,
    findings: &mut Findings,
) {
    let ours = own.map(server_identifier);
    let is_foreign = |it: &&Advertisement| ours.as_ref() != Some(&it.identifier);
    let foreign: Vec<&Advertisement> = servers.iter().filter(is_foreign).collect();
    if foreign.is_empty() {
        return findings.ok(Check::Dhcp, format!("no other DHCPv6 server answers on {interface}"));
    }
    for Advertisement { address, offered, boot_file, .. } in foreign {
        let offers = description(offered.map(IpAddr::V6), boot_file.as_deref());
        let what =
            format!("another DHCPv6 server answers on {interface}: {address} offers {offers}");
        match boot_file {
            // Only machines that boot over IPv6 take an address of a DHCPv6 server before their system runs.
            None if own.is_none() => findings.warn(
                Check::Dhcp,
                what,
                "disable that server on this network if machines boot over IPv6: baremetald has no ProxyDHCP for IPv6",
            ),
            None => findings.fail(
                Check::Dhcp,
                what,
                "disable that server on this network: machines use one of the answers, and baremetald has no ProxyDHCP for IPv6",
            ),
            Some(_) => findings.fail(
                Check::Dhcp,
                what,
                "disable that server on this network: machines use one of the answers",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::tests::lines;

    const OWN: &str = "fd00:10::1";

    /// A DHCPv6 server that advertises an address once. `answer` modifies the message.
    async fn server(answer: impl Fn(&mut Message) + Send + 'static) -> SocketAddr {
        let socket = UdpSocket::bind("[::1]:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let mut packet = [0; 2048];
            let (length, from) = socket.recv_from(&mut packet).await.unwrap();
            let request = Message::decode(&packet[..length]).unwrap();
            assert_eq!(request.kind, MessageType::Solicit);
            let association = request.options.get(code::IA_NA).unwrap();
            let mut content = Options::new();
            let offered: Ipv6Addr = "fd00:10::77".parse().unwrap();
            content.add(code::IA_ADDRESS, [&offered.octets()[..], &[0; 8]].concat());
            let mut options = Options::new();
            options.add(code::SERVER_IDENTIFIER, *b"\0\x02other");
            options.add(code::IA_NA, [association, &content.encode()].concat());
            let kind = MessageType::Advertise;
            let mut message = Message { kind, transaction: request.transaction, options };
            answer(&mut message);
            socket.send_to(&message.encode(), from).await.unwrap();
        });
        address
    }

    async fn looked(
        own: Option<&str>,
        answer: impl Fn(&mut Message) + Send + 'static,
    ) -> Vec<String> {
        let socket = UdpSocket::bind("[::1]:0").await.unwrap();
        let address = server(answer).await;
        let servers = advertisements(&socket, address, Duration::from_millis(500)).await.unwrap();
        let mut findings = Findings::default();
        judge("p0", own.map(|own| own.parse().unwrap()), &servers, &mut findings);
        lines(&findings)
    }

    #[tokio::test]
    async fn another_server_is_named_with_what_it_offers() {
        let offers = "another DHCPv6 server answers on p0: ::1 offers the address fd00:10::77";
        assert_eq!(looked(Some(OWN), |_| {}).await, [format!("wrong: {offers}")]);
        assert_eq!(looked(None, |_| {}).await, [format!("doubtful: {offers}")]);
        let boots =
            |message: &mut Message| message.options.add(code::BOOT_FILE_URL, *b"http://x/evil.efi");
        let want = format!("wrong: {offers} and the boot file \"http://x/evil.efi\"");
        assert_eq!(looked(None, boots).await, [want]);
    }

    #[tokio::test]
    async fn our_own_server_and_answers_to_other_requests_do_not_count() {
        let fine = ["fine: no other DHCPv6 server answers on p0"];
        let ours = |message: &mut Message| {
            let mut options = Options::new();
            options.add(code::SERVER_IDENTIFIER, server_identifier(OWN.parse().unwrap()));
            message.options = options;
        };
        assert_eq!(looked(Some(OWN), ours).await, fine);
        let to_another = |message: &mut Message| message.transaction = *b"xyz";
        assert_eq!(looked(Some(OWN), to_another).await, fine);
        let reply = |message: &mut Message| message.kind = MessageType::Reply;
        assert_eq!(looked(Some(OWN), reply).await, fine);
    }
}
