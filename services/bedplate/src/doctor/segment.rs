//! Finds other DHCP servers on the provisioning network: sends a DISCOVER, and reports every server that makes an offer and is not ours.

mod exchange;
mod v6;

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use dhcp::{Message, MessageType, Operation, Options, code};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;

use super::configured::Configured;
use super::finding::{Check, Findings};
use exchange::{OURS, PATIENCE, answers, description};

/// RFC 2131 §2: the longest message that every server accepts.
const LONGEST: usize = 576;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DhcpOffer {
    address: Ipv4Addr,
    /// The offered address; `None` if the server offers only a boot file.
    offered: Option<Ipv4Addr>,
    boot_file: Option<String>,
}

/// Checks the named interface, or the interface in the configuration.
pub(crate) async fn look(
    said: Option<&str>,
    configured: Option<&Configured>,
    findings: &mut Findings,
) {
    let text = |key: &str| configured?.text(&["provisioning", "dhcp", key]);
    let Some(interface) = said.map(str::to_owned).or_else(|| text("interface")) else {
        let what = "no interface is configured: set --interface to search for DHCP servers";
        return findings.skipped(Check::Dhcp, what);
    };
    // The provisioning network has the version of our server's address. Without our server, the network may have both versions.
    let own: Option<IpAddr> = text("server").and_then(|server| server.parse().ok());
    let searched = match own {
        Some(IpAddr::V4(own)) => search(&interface, Some(own), findings).await,
        Some(IpAddr::V6(own)) => v6::search(&interface, Some(own), findings).await,
        None => search_both(&interface, findings).await,
    };
    if let Err(why) = searched {
        report(&interface, &why, findings);
    }
}

/// Searches a network of which nothing is known.
async fn search_both(interface: &str, findings: &mut Findings) -> io::Result<()> {
    search(interface, None, findings).await?;
    if let Err(why) = v6::search(interface, None, findings).await {
        let what = format!("cannot search {interface} for DHCPv6 servers: {why}");
        findings.skipped(Check::Dhcp, what);
    }
    Ok(())
}

/// Searches the segment of this interface. `own` is the address of our own server.
async fn search(interface: &str, own: Option<Ipv4Addr>, findings: &mut Findings) -> io::Result<()> {
    let socket = client_socket(interface)?;
    let everybody = SocketAddr::from((Ipv4Addr::BROADCAST, 67));
    let servers = offers(&socket, everybody, PATIENCE).await?;
    judge(interface, own, &servers, findings);
    Ok(())
}

/// Reports that no request could be sent.
fn report(interface: &str, why: &io::Error, findings: &mut Findings) {
    if why.kind() == io::ErrorKind::PermissionDenied {
        let what = format!("sending a DHCP request on {interface} needs root");
        findings.skipped(Check::Dhcp, what);
    } else if why.raw_os_error() == Some(rustix::io::Errno::NODEV.raw_os_error()) {
        let next = "list the interfaces with `ip link`, and set provisioning.dhcp.interface";
        findings.fail(Check::Dhcp, format!("the interface {interface} does not exist"), next);
    } else {
        let next = format!("check the interface with `ip link show {interface}`");
        findings.fail(Check::Dhcp, format!("cannot send on {interface}: {why}"), next);
    }
}

/// RFC 2131 §4.1: a client socket, on port 68 of one interface.
fn client_socket(interface: &str) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_address(true)?;
    socket.bind_device(Some(interface.as_bytes()))?;
    socket.set_broadcast(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, 68)).into())?;
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket.into())
}

/// Collects the offers within this time.
async fn offers(
    socket: &UdpSocket,
    servers: SocketAddr,
    patience: Duration,
) -> io::Result<BTreeSet<DhcpOffer>> {
    let transaction = u32::from_be_bytes(*b"beds");
    let request = discover(transaction).encode(LONGEST).map_err(io::Error::other)?;
    let read = |octets: &[u8], from: SocketAddr| {
        Message::decode(octets).ok().and_then(|it| offer(&it, transaction, from))
    };
    answers(socket, &request, servers, patience, read).await
}

/// PXE 2.1 §2.2.1: a request like the one of UEFI firmware, so that servers that offer only a boot file answer too.
fn discover(transaction: u32) -> Message {
    let mut options = Options::new();
    options.set(code::MESSAGE_TYPE, [MessageType::Discover.code()]);
    options.set(code::PARAMETER_LIST, [code::SUBNET_MASK, code::ROUTER, code::BOOT_FILE_NAME]);
    options.set(code::VENDOR_CLASS, *b"PXEClient:Arch:00007:UNDI:003016");
    options.set(code::ARCHITECTURE, [0, 7]);
    options.set(code::NETWORK_INTERFACE, [1, 3, 16]);
    Message {
        operation: Operation::Request,
        hardware_type: 1,
        hops: 0,
        transaction,
        seconds: 0,
        broadcast: true,
        client_address: Ipv4Addr::UNSPECIFIED,
        your_address: Ipv4Addr::UNSPECIFIED,
        next_server: Ipv4Addr::UNSPECIFIED,
        relay: Ipv4Addr::UNSPECIFIED,
        hardware_address: OURS.to_vec(),
        server_name: Vec::new(),
        file: Vec::new(),
        options,
    }
}

/// The offer in a message; `None` if the message is no answer to this request.
fn offer(message: &Message, transaction: u32, from: SocketAddr) -> Option<DhcpOffer> {
    let kind = message.options.get(code::MESSAGE_TYPE)?;
    let is_ours = message.operation == Operation::Reply
        && message.transaction == transaction
        && kind == [MessageType::Offer.code()];
    if !is_ours {
        return None;
    }
    let sender = match from {
        SocketAddr::V4(from) => Some(*from.ip()),
        SocketAddr::V6(_) => None,
    };
    let named = String::from_utf8_lossy(&message.file).into_owned();
    let boot_file = message.options.text(code::BOOT_FILE_NAME).unwrap_or(named);
    Some(DhcpOffer {
        address: message.options.address(code::SERVER_IDENTIFIER).or(sender)?,
        offered: Some(message.your_address).filter(|address| !address.is_unspecified()),
        boot_file: Some(boot_file).filter(|file| !file.is_empty()),
    })
}

fn judge(
    interface: &str,
    own: Option<Ipv4Addr>,
    servers: &BTreeSet<DhcpOffer>,
    findings: &mut Findings,
) {
    let foreign: Vec<&DhcpOffer> = servers.iter().filter(|it| Some(it.address) != own).collect();
    if foreign.is_empty() {
        return findings.ok(Check::Dhcp, format!("no other DHCP server answers on {interface}"));
    }
    for DhcpOffer { address, offered, boot_file } in foreign {
        let offers = description(offered.map(IpAddr::V4), boot_file.as_deref());
        let what = format!("another DHCP server answers on {interface}: {address} offers {offers}");
        match boot_file {
            // Beside a server that only assigns addresses, baremetald works as a ProxyDHCP server.
            None => findings.warn(
                Check::Dhcp,
                what,
                "disable that server on this network, or set provisioning.dhcp.mode = \"proxy\" to leave the addresses to it: see the network guide",
            ),
            Some(_) => findings.fail(
                Check::Dhcp,
                what,
                "disable that server on this network, or remove its boot file: machines use the first answer",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::tests::lines;

    /// A DHCP server that makes one offer, which `answer` modifies.
    async fn server(answer: impl Fn(&mut Message) + Send + 'static) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let mut packet = [0; 2048];
            let (length, from) = socket.recv_from(&mut packet).await.unwrap();
            let mut message = Message::decode(&packet[..length]).unwrap();
            assert_eq!(message.options.get(code::MESSAGE_TYPE), Some(&[1][..]));
            message.operation = Operation::Reply;
            message.options.set(code::MESSAGE_TYPE, [MessageType::Offer.code()]);
            message.options.set(code::SERVER_IDENTIFIER, [10, 0, 0, 9]);
            message.your_address = Ipv4Addr::new(10, 0, 0, 77);
            answer(&mut message);
            socket.send_to(&message.encode(LONGEST).unwrap(), from).await.unwrap();
        });
        address
    }

    async fn looked(own: &str, answer: impl Fn(&mut Message) + Send + 'static) -> Vec<String> {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = server(answer).await;
        let servers = offers(&socket, address, Duration::from_millis(500)).await.unwrap();
        let mut findings = Findings::default();
        judge("p0", own.parse().ok(), &servers, &mut findings);
        lines(&findings)
    }

    #[tokio::test]
    async fn another_server_is_named_with_what_it_offers() {
        let want =
            "doubtful: another DHCP server answers on p0: 10.0.0.9 offers the address 10.0.0.77";
        assert_eq!(looked("10.0.0.1", |_| {}).await, [want]);
        let boots = |message: &mut Message| message.file = b"evil.efi".to_vec();
        let want = "wrong: another DHCP server answers on p0: 10.0.0.9 offers the address 10.0.0.77 and the boot file \"evil.efi\"";
        assert_eq!(looked("10.0.0.1", boots).await, [want]);
    }

    #[tokio::test]
    async fn our_own_server_and_answers_to_other_requests_do_not_count() {
        assert_eq!(looked("10.0.0.9", |_| {}).await, ["fine: no other DHCP server answers on p0"]);
        let to_another = |message: &mut Message| message.transaction += 1;
        assert_eq!(
            looked("10.0.0.1", to_another).await,
            ["fine: no other DHCP server answers on p0"]
        );
    }

    #[tokio::test]
    async fn a_missing_interface_is_a_problem() {
        let mut findings = Findings::default();
        look(Some("no-such-0"), None, &mut findings).await;
        let [line] = &lines(&findings)[..] else { panic!() };
        // Without root the check fails before, at the socket.
        assert!(
            line == "wrong: the interface no-such-0 does not exist"
                || line.starts_with("skipped: sending a DHCP request"),
            "{line}"
        );
    }
}
