//! Machines of a network with IPv6: a DHCPv6 client behind a relay, written by hand (RFC 8415, RFC 5970, RFC 8357).

use std::net::{Ipv6Addr, SocketAddr};
use std::time::Duration;

use baremetal_core::Verb;
use hardware::MacAddress;
use tokio::net::UdpSocket;
use tokio::time::timeout;

use crate::machine::mac;
use crate::site::{Pool, TestService, awaited, enrolled};

const POOL: Pool = Pool { listen: "[::1]:0", server: "::1", prefix: 64, range: "::9:1-::9:4" };

const SOLICIT: u8 = 1;
const ADVERTISE: u8 = 2;
const REQUEST: u8 = 3;
const REPLY: u8 = 7;
const DECLINE: u8 = 9;

/// Longer than probing several addresses takes. A missing answer is not awaited any longer.
const PATIENCE: Duration = Duration::from_secs(3);

/// The program that sends a request.
#[derive(Clone, Copy)]
enum Speaker {
    /// Firmware that boots by HTTP.
    Firmware,
    Ipxe,
}

struct Machine {
    relay: UdpSocket,
    server: SocketAddr,
    mac: MacAddress,
}

/// The parts of an answer.
#[derive(Clone, Debug)]
struct Answer {
    kind: u8,
    server: Vec<u8>,
    address: Option<Ipv6Addr>,
    boot_file: Option<String>,
    class: Option<Vec<u8>>,
}

impl Machine {
    async fn new(site: &TestService, mac: MacAddress) -> Machine {
        let relay = UdpSocket::bind("[::1]:0").await.unwrap();
        Machine { relay, server: site.dhcp, mac }
    }

    /// Sends a message to all servers or to one, and returns the answer if one arrives.
    async fn says(
        &self,
        kind: u8,
        speaker: Speaker,
        server: Option<&[u8]>,
        address: Option<Ipv6Addr>,
    ) -> Option<Answer> {
        let mut options = option(1, &[&[0, 4][..], &[7; 16]].concat());
        options.extend(server.map(|it| option(2, it)).unwrap_or_default());
        let had = address.map(|it| option(5, &[&it.octets()[..], &[0; 8]].concat()));
        let association = [&[0, 0, 0, 1][..], &[0; 8], &had.unwrap_or_default()].concat();
        options.extend(option(3, &association));
        options.extend(option(61, &[0, 16]));
        options.extend(match speaker {
            Speaker::Firmware => option(16, b"\x00\x00\x01\x57\x00\x0aHTTPClient"),
            Speaker::Ipxe => option(15, b"\x00\x04iPXE"),
        });
        let message = [&[kind, 0xbe, 0xd0, 1][..], &options].concat();

        // The relay is on the link ::/64, and listens on the port that it sends from.
        let m = self.mac.octets();
        let peer = [0xfe80, 0, 0, 0].map(u16::to_be_bytes).concat();
        let peer = [&peer[..], &[m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]]].concat();
        let link = "::9:0".parse::<Ipv6Addr>().unwrap().octets();
        let forward =
            [&[12, 0][..], &link, &peer, &option(135, &[0, 0]), &option(9, &message)].concat();
        self.relay.send_to(&forward, self.server).await.unwrap();
        let mut packet = [0; 1500];
        let (length, _) = timeout(PATIENCE, self.relay.recv_from(&mut packet)).await.ok()?.unwrap();
        assert_eq!(packet[0], 13, "a relay gets a relay's answer");
        let inner = find(&packet[34..length], 9).unwrap();
        assert_eq!(inner[1..4], [0xbe, 0xd0, 1]);
        let options = &inner[4..];
        let association = find(options, 3);
        let given = association.as_ref().and_then(|it| find(&it[12..], 5));
        Some(Answer {
            kind: inner[0],
            server: find(options, 2).unwrap(),
            address: given.map(|it| <[u8; 16]>::try_from(&it[..16]).unwrap().into()),
            boot_file: find(options, 59).map(|it| String::from_utf8(it).unwrap()),
            class: find(options, 16),
        })
    }

    /// Gets a lease, and returns the answer with the boot file.
    async fn boots(&self, speaker: Speaker) -> Option<Answer> {
        let offer = self.says(SOLICIT, speaker, None, None).await?;
        assert_eq!(offer.kind, ADVERTISE);
        let answer = self.says(REQUEST, speaker, Some(&offer.server), offer.address).await?;
        assert_eq!((answer.kind, answer.address), (REPLY, offer.address), "{answer:?}");
        Some(answer)
    }
}

fn option(code: u8, value: &[u8]) -> Vec<u8> {
    [&[0, code][..], &u16::try_from(value.len()).unwrap().to_be_bytes(), value].concat()
}

/// Returns the first option with this code.
fn find(mut options: &[u8], code: u8) -> Option<Vec<u8>> {
    while let [high, low, a, b, rest @ ..] = options {
        let (value, rest) = rest.split_at(usize::from(u16::from_be_bytes([*a, *b])));
        if [*high, *low] == [0, code] {
            return Some(value.to_vec());
        }
        options = rest;
    }
    None
}

#[tokio::test]
async fn a_machine_boots_over_ipv6_and_its_ramdisk_knows_its_address() {
    let node = awaited("r1u1", mac(1), Verb::Inspect);
    let site = TestService::start(POOL, "refuse", &[node]).await;
    let machine = Machine::new(&site, mac(1)).await;
    let first = machine.boots(Speaker::Firmware).await.unwrap();
    let loader = format!("http://{}/ipxe/snponly.efi", site.provisioning);
    assert_eq!(first.boot_file, Some(loader));
    assert_eq!(first.class.as_deref(), Some(&b"\x00\x00\x01\x57\x00\x0aHTTPClient"[..]));

    let second = machine.boots(Speaker::Ipxe).await.unwrap();
    assert_eq!(second.address, first.address, "another program of the same machine");
    let url = second.boot_file.unwrap();
    let script = site.http.get(&url).send().await.unwrap().text().await.unwrap();
    let address = first.address.unwrap();
    assert_eq!(address, "::9:1".parse::<Ipv6Addr>().unwrap());
    assert!(script.contains(&format!(" bedplate.address={address}/64 ")), "{script}");
}

#[tokio::test]
async fn a_machine_of_ipv6_that_declines_its_address_gets_another() {
    let site = TestService::start(POOL, "refuse", &[enrolled("r1u1", mac(1))]).await;
    let machine = Machine::new(&site, mac(1)).await;
    let first = machine.boots(Speaker::Ipxe).await.unwrap();
    assert_eq!(first.boot_file, None, "nothing waits for the machine");
    let declined = machine.says(DECLINE, Speaker::Ipxe, Some(&first.server), first.address).await;
    assert_eq!(declined.unwrap().kind, REPLY);
    let second = machine.boots(Speaker::Ipxe).await.unwrap();
    assert_ne!(second.address, first.address);
}

#[tokio::test]
async fn an_unknown_machine_is_refused_over_ipv6() {
    let site = TestService::start(POOL, "refuse", &[]).await;
    let machine = Machine::new(&site, mac(1)).await;
    assert!(machine.says(SOLICIT, Speaker::Firmware, None, None).await.is_none());
    assert!(!site.store.has_lease(mac(1)).await.unwrap());
}
