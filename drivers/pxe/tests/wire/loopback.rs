//! Tests DHCP through a relay and TFTP over real sockets on loopback, octet by octet. Needs no privilege.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use crate::recorder::Recorder;
use ipnet::Ipv4Net;
use pxe::{BootFile, Config, Decision, DhcpConfig, Lease, Listen, Mode, Observation};
use pxe::{TftpConfig, TftpFiles, start};
use tokio::net::UdpSocket;
use tokio::time::timeout;

const MAC: [u8; 6] = [0x52, 0x54, 0, 0x78, 0, 1];
const PATIENCE: Duration = Duration::from_secs(10);

fn config(mode: Mode) -> Config {
    let mut files = TftpFiles::new();
    files.insert("undionly.kpxe", vec![7; 1000]);
    let subnet = Ipv4Net::new_assert(Ipv4Addr::new(10, 78, 0, 0), 24);
    Config {
        dhcp: Some(DhcpConfig {
            listen: Listen::Socket { address: Ipv4Addr::LOCALHOST, port: 0 },
            mode,
            subnet,
            router: None,
            dns: Vec::new(),
            domain: None,
            lease_time: Duration::from_secs(600),
            tftp_server: None,
        }),
        dhcp_v6: None,
        tftp: Some(TftpConfig {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            files,
            sessions: 8,
            limits: tftp::Limits::default(),
        }),
        router_advertisements: None,
    }
}

fn answer(address: Option<IpAddr>) -> Decision {
    let lease = address.map(|address| Lease { address, hostname: None });
    Decision::Answer { lease, boot: Some(BootFile::Tftp { name: "undionly.kpxe".to_owned() }) }
}

/// A message of a PXE ROM, as a relay on loopback forwards it (RFC 8357, RFC 3527).
fn relayed(options: &[u8]) -> Vec<u8> {
    let mut message = vec![0; 240];
    message[..4].copy_from_slice(&[1, 1, 6, 1]);
    message[4..8].copy_from_slice(&[0xde, 0xad, 0xbe, 0xef]);
    message[24..28].copy_from_slice(&[127, 0, 0, 1]);
    message[28..34].copy_from_slice(&MAC);
    message[236..].copy_from_slice(&[99, 130, 83, 99]);
    message.extend_from_slice(options);
    message.extend([60, 9]);
    message.extend(b"PXEClient");
    message.extend([93, 2, 0, 0, 82, 8, 5, 4, 10, 78, 0, 0, 19, 0, 255]);
    message
}

async fn exchange(socket: &UdpSocket, to: SocketAddr, message: &[u8]) -> Vec<u8> {
    socket.send_to(message, to).await.expect("loopback takes it");
    let mut answer = [0; 1500];
    let received = timeout(PATIENCE, socket.recv_from(&mut answer)).await.expect("an answer came");
    let (length, _) = received.expect("loopback gives it");
    answer[..length].to_vec()
}

#[tokio::test]
async fn a_relayed_machine_gets_its_lease_and_its_file() {
    let recorder = Arc::new(Recorder::new(answer(Some(Ipv4Addr::LOCALHOST.into()))));
    // The lease is the loopback address, so that the TFTP transfer is attributed to the same machine.
    let mut config = config(Mode::Full);
    config.dhcp.as_mut().unwrap().subnet = Ipv4Net::new_assert(Ipv4Addr::LOCALHOST, 8);
    let running = start(config, recorder.clone()).await.unwrap();
    let (dhcp, tftp) = (running.dhcp.unwrap(), running.tftp.unwrap());

    let relay = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut discover = relayed(&[53, 1, 1]);
    let link = discover.len() - 7;
    discover[link..link + 4].copy_from_slice(&[127, 0, 0, 0]);
    let offer = exchange(&relay, dhcp, &discover).await;
    assert_eq!(offer[..8], [2, 1, 6, 0, 0xde, 0xad, 0xbe, 0xef]);
    assert_eq!(offer[16..24], [127, 0, 0, 1, 127, 0, 0, 1], "yiaddr and siaddr");
    assert_eq!(&offer[108..122], b"undionly.kpxe\0");
    assert_eq!(offer[236..249], [99, 130, 83, 99, 53, 1, 2, 54, 4, 127, 0, 0, 1]);

    let mut request = relayed(&[53, 1, 3, 54, 4, 127, 0, 0, 1, 50, 4, 127, 0, 0, 1]);
    let link = request.len() - 7;
    request[link..link + 4].copy_from_slice(&[127, 0, 0, 0]);
    let ack = exchange(&relay, dhcp, &request).await;
    assert_eq!(ack[240..243], [53, 1, 5]);

    let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let read = b"\0\x01undionly.kpxe\0octet\0tsize\x000\0blksize\x001468\0";
    let granted = exchange(&client, tftp, read).await;
    assert_eq!(granted, b"\0\x06tsize\x001000\0blksize\x001468\0");
    client.send_to(read, tftp).await.unwrap();
    recorder.saw_all(&[Observation::TftpRead { file: "undionly.kpxe".to_owned() }]).await;

    running.stop().await;
    recorder
        .saw_all(&[
            Observation::DhcpDiscover,
            Observation::DhcpOffered {
                address: Some(Ipv4Addr::LOCALHOST.into()),
                boot_file: Some("undionly.kpxe".to_owned()),
            },
            Observation::DhcpAcked { address: Ipv4Addr::LOCALHOST.into() },
            Observation::TftpRead { file: "undionly.kpxe".to_owned() },
        ])
        .await;
}

#[tokio::test]
async fn a_request_for_another_machines_address_is_refused() {
    let recorder = Arc::new(Recorder::new(answer(Some([10, 78, 0, 20].into()))));
    let running = start(config(Mode::Full), recorder.clone()).await.unwrap();
    let relay = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let request = relayed(&[53, 1, 3, 50, 4, 10, 78, 0, 99]);
    let nak = exchange(&relay, running.dhcp.unwrap(), &request).await;
    assert_eq!(nak[240..243], [53, 1, 6]);
    let reason = "10.78.0.99 is not your address; your address is 10.78.0.20".to_owned();
    recorder.saw_all(&[Observation::DhcpRefused { reason }]).await;
}

#[tokio::test]
async fn an_ignored_machine_is_reported_with_the_reason() {
    let reason = "it is not enrolled".to_owned();
    let recorder = Arc::new(Recorder::new(Decision::Ignore { reason: reason.clone() }));
    let running = start(config(Mode::Full), recorder.clone()).await.unwrap();
    let relay = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    relay.send_to(b"noise", running.dhcp.unwrap()).await.unwrap();
    relay.send_to(&relayed(&[53, 1, 1]), running.dhcp.unwrap()).await.unwrap();
    recorder.saw_all(&[Observation::DhcpDiscover, Observation::DhcpRefused { reason }]).await;
}

#[tokio::test]
async fn a_declined_address_is_reported_unless_another_server_gave_it() {
    let ours = IpAddr::from([10, 78, 0, 20]);
    let recorder = Arc::new(Recorder::new(answer(Some(ours))));
    let running = start(config(Mode::Full), recorder.clone()).await.unwrap();
    let relay = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    for (server, address) in [([127, 0, 0, 9], 19), ([127, 0, 0, 1], 20)] {
        let mut options = vec![53, 1, 4, 54, 4];
        options.extend(server);
        options.extend([50, 4, 10, 78, 0, address]);
        relay.send_to(&relayed(&options), running.dhcp.unwrap()).await.unwrap();
    }
    assert_eq!(recorder.declined().await, [ours]);
}

#[tokio::test]
async fn a_machine_with_an_address_asks_the_proxy_for_its_file() {
    let recorder = Arc::new(Recorder::new(answer(None)));
    let running = start(config(Mode::Proxy), recorder.clone()).await.unwrap();
    let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let offer = exchange(&client, running.dhcp.unwrap(), &relayed(&[53, 1, 1])).await;
    assert_eq!(offer[16..20], [0; 4], "no address");

    let mut request = relayed(&[53, 1, 3]);
    request[12..16].copy_from_slice(&[127, 0, 0, 1]);
    request[24..28].fill(0);
    let ack = exchange(&client, running.proxy_dhcp.unwrap(), &request).await;
    assert_eq!(ack[240..243], [53, 1, 5]);
    assert_eq!(&ack[108..122], b"undionly.kpxe\0");
    recorder.saw_all(&[Observation::DhcpAcked { address: Ipv4Addr::LOCALHOST.into() }]).await;
}

#[tokio::test]
async fn tftp_refuses_unknown_files_and_every_write() {
    let recorder = Arc::new(Recorder::new(answer(None)));
    let running = start(config(Mode::Full), recorder).await.unwrap();
    let tftp = running.tftp.unwrap();
    let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let missing = exchange(&client, tftp, b"\0\x01../etc/passwd\0octet\0").await;
    assert_eq!(missing, b"\0\x05\0\x01no such file\0");
    let write = exchange(&client, tftp, b"\0\x02undionly.kpxe\0octet\0").await;
    assert_eq!(write, b"\0\x05\0\x02this server is read only\0");
    let slash = exchange(&client, tftp, b"\0\x01/undionly.kpxe\0octet\0").await;
    assert_eq!(slash[..5], [0, 3, 0, 1, 7]);
}

#[tokio::test]
async fn a_socket_that_cannot_be_opened_is_named() {
    let recorder = Arc::new(Recorder::new(answer(None)));
    let mut config = config(Mode::Full);
    config.dhcp.as_mut().unwrap().listen =
        Listen::Interface { name: "nowhere0".to_owned(), address: Ipv4Addr::LOCALHOST };
    let error = start(config, recorder).await.unwrap_err();
    assert_eq!(error.to_string(), "network interface \"nowhere0\" not found");
}
