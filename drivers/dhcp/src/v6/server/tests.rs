use std::time::Duration;

use expect_test::{Expect, expect};
use hardware::MacAddress;
use proptest::prelude::*;

use super::*;
use crate::v6::{DecodeError, Message, Options, Relay};
use crate::{BootFile, ClientKind, Lease};

const OURS: Ipv6Addr = Ipv6Addr::new(0xfd78, 0, 0, 0, 0, 0, 0, 1);
const LEASED: Ipv6Addr = Ipv6Addr::new(0xfd78, 0, 0, 0, 0, 0, 0, 0x100);
/// The link-local address of the card 52:54:00:78:00:01.
const CLIENT: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0x5054, 0x00ff, 0xfe78, 1);

const DUID: (u16, &[u8]) = (code::CLIENT_IDENTIFIER, &[0, 4, 7, 7]);
const IA: (u16, &[u8]) = (code::IA_NA, &[0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0]);
const PXE: (u16, &[u8]) = (code::VENDOR_CLASS, b"\x00\x00\x01\x57\x00\x17PXEClient:Arch:00007:UN");
const HTTP: (u16, &[u8]) =
    (code::VENDOR_CLASS, b"\x00\x00\x01\x57\x00\x18HTTPClient:Arch:00016:UN");
const IPXE: (u16, &[u8]) = (code::USER_CLASS, b"\x00\x04iPXE");

fn config() -> ServerConfig {
    ServerConfig {
        address: OURS,
        subnet: "fd78::/64".parse().unwrap(),
        dns: vec!["fd78::2".parse().unwrap()],
        lease_time: Duration::from_secs(3600),
    }
}

fn request(kind: MessageType, options: &[(u16, &[u8])]) -> Received {
    let mut all = Options::new();
    options.iter().for_each(|(code, value)| all.add(*code, *value));
    let message = Message { kind, transaction: [1, 2, 3], options: all };
    Received { message, relays: Vec::new(), client_address: CLIENT }
}

/// The same with the identifier of this server.
fn to_us(kind: MessageType, options: &[(u16, &[u8])]) -> Received {
    let mut request = request(kind, options);
    request.message.options.add(code::SERVER_IDENTIFIER, config().identifier());
    request
}

/// An identity association with these addresses.
fn association(addresses: &[Ipv6Addr]) -> Vec<u8> {
    let mut content = Options::new();
    let times = [0; 8];
    addresses
        .iter()
        .for_each(|it| content.add(code::IA_ADDRESS, [&it.octets()[..], &times].concat()));
    [IA.1, &content.encode()].concat()
}

fn lease() -> Option<Lease> {
    Some(Lease { address: LEASED.into(), hostname: None })
}

fn tftp() -> Option<BootFile> {
    Some(BootFile::Tftp { name: "snponly.efi".to_owned() })
}

fn http() -> Option<BootFile> {
    Some(BootFile::Http { url: "http://[fd78::1]:6386/ipxe/snponly.efi".parse().unwrap() })
}

/// Prints an answer with one option a line, in hexadecimal or text.
fn show(answer: Result<Reply, NoAnswer>) -> String {
    let reply = match answer {
        Ok(reply) => reply,
        Err(silence) => return format!("silence: {silence}"),
    };
    assert_eq!(reply.message.transaction, [1, 2, 3]);
    let given = reply.address.map_or("no address".to_owned(), |address| address.to_string());
    let mut lines = format!("{}, {given}", reply.message.kind);
    let codes = [IA.0, code::STATUS, code::VENDOR_CLASS, code::DNS_SERVERS, code::BOOT_FILE_URL];
    for code in codes {
        for value in reply.message.options.all(code) {
            let text = value.iter().all(|octet| (32..127).contains(octet));
            let shown =
                if text { String::from_utf8_lossy(value).into_owned() } else { hex::encode(value) };
            lines += &format!("\n  {code} {shown}");
        }
    }
    lines
}

#[track_caller]
fn check(request: &Received, lease: Option<Lease>, boot: Option<BootFile>, want: Expect) {
    let decision = Decision::Answer { lease, boot };
    want.assert_eq(&show(answer(&config(), request, &decision)));
}

#[test]
fn a_client_is_offered_its_address_and_then_given_it() {
    let solicit = request(MessageType::Solicit, &[DUID, IA]);
    check(
        &solicit,
        lease(),
        tftp(),
        expect![[r#"
        Advertise, fd78::100
          3 000000090000070800000b4000050018fd78000000000000000000000000010000000e1000000e10
          23 fd780000000000000000000000000002"#]],
    );
    check(
        &to_us(MessageType::Request, &[DUID, IA]),
        lease(),
        None,
        expect![[r#"
        Reply, fd78::100
          3 000000090000070800000b4000050018fd78000000000000000000000000010000000e1000000e10
          23 fd780000000000000000000000000002"#]],
    );
    check(&solicit, None, tftp(), expect!["silence: the machine has no lease here"]);
    let request = to_us(MessageType::Request, &[DUID, IA]);
    check(
        &request,
        None,
        None,
        expect![[r#"
        Reply, no address
          3 000000090000070800000b40000d001400026e6f2061646472657373206973206c656674"#]],
    );
    let elsewhere = Some(Lease { address: "fd79::1".parse().unwrap(), hostname: None });
    check(&request, elsewhere, None, expect!["silence: the lease fd79::1 lies outside the subnet"]);
}

#[test]
fn firmware_and_ipxe_get_a_boot_file_that_they_can_load() {
    let solicit = |class| request(MessageType::Solicit, &[DUID, IA, class]);
    check(
        &solicit(PXE),
        lease(),
        tftp(),
        expect![[r#"
        Advertise, fd78::100
          3 000000090000070800000b4000050018fd78000000000000000000000000010000000e1000000e10
          23 fd780000000000000000000000000002
          59 tftp://[fd78::1]/snponly.efi"#]],
    );
    check(
        &solicit(HTTP),
        lease(),
        http(),
        expect![[r#"
        Advertise, fd78::100
          3 000000090000070800000b4000050018fd78000000000000000000000000010000000e1000000e10
          16 00000157000a48545450436c69656e74
          23 fd780000000000000000000000000002
          59 http://[fd78::1]:6386/ipxe/snponly.efi"#]],
    );
    check(
        &solicit(HTTP),
        lease(),
        tftp(),
        expect!["silence: firmware of kind Http cannot load snponly.efi"],
    );
    check(
        &solicit(IPXE),
        lease(),
        http(),
        expect![[r#"
        Advertise, fd78::100
          3 000000090000070800000b4000050018fd78000000000000000000000000010000000e1000000e10
          23 fd780000000000000000000000000002
          59 http://[fd78::1]:6386/ipxe/snponly.efi"#]],
    );
    check(
        &solicit(PXE),
        lease(),
        None,
        expect![[r#"
        Advertise, fd78::100
          3 000000090000070800000b4000050018fd78000000000000000000000000010000000e1000000e10
          23 fd780000000000000000000000000002"#]],
    );
}

#[test]
fn a_lease_is_extended_and_other_addresses_are_taken_back() {
    let other = "fd78::200".parse().unwrap();
    let had = association(&[LEASED, other]);
    let renew = to_us(MessageType::Renew, &[DUID, (IA.0, &had)]);
    check(
        &renew,
        lease(),
        None,
        expect![[r#"
        Reply, fd78::100
          3 000000090000070800000b4000050018fd78000000000000000000000000010000000e1000000e1000050018fd7800000000000000000000000002000000000000000000
          23 fd780000000000000000000000000002"#]],
    );
    check(
        &renew,
        None,
        None,
        expect![[r#"
        Reply, no address
          3 000000090000070800000b40000d001f0003746865206d616368696e6520686173206e6f206c656173652068657265"#]],
    );
    let rebind = request(MessageType::Rebind, &[DUID, (IA.0, &had)]);
    check(
        &rebind,
        lease(),
        None,
        expect![[r#"
        Reply, fd78::100
          3 000000090000070800000b4000050018fd78000000000000000000000000010000000e1000000e1000050018fd7800000000000000000000000002000000000000000000
          23 fd780000000000000000000000000002"#]],
    );
    check(&rebind, None, None, expect!["silence: the machine has no lease here"]);
}

#[test]
fn a_second_association_of_a_card_gets_no_address() {
    let two = [DUID, IA, (IA.0, &[0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0])];
    check(
        &to_us(MessageType::Request, &two),
        lease(),
        None,
        expect![[r#"
        Reply, fd78::100
          3 000000090000070800000b4000050018fd78000000000000000000000000010000000e1000000e10
          3 000000080000070800000b40000d0021000261206e6574776f726b20636172642067657473206f6e652061646472657373
          23 fd780000000000000000000000000002"#]],
    );
}

#[test]
fn an_address_is_confirmed_while_it_belongs_to_the_network() {
    let confirm = |addresses: &[Ipv6Addr]| {
        request(MessageType::Confirm, &[DUID, (IA.0, &association(addresses))])
    };
    check(
        &confirm(&[LEASED]),
        None,
        None,
        expect![[r#"
        Reply, no address
          13 0000"#]],
    );
    check(
        &confirm(&["fd79::1".parse().unwrap()]),
        None,
        None,
        expect![[r#"
        Reply, no address
          13 00047468652061646472657373206973206e6f7420696e2074686973206e6574776f726b"#]],
    );
    check(
        &confirm(&[]),
        None,
        None,
        expect!["silence: it is not a request of a DHCP client on Ethernet"],
    );
}

#[test]
fn an_address_is_declined_only_to_the_server_that_gave_it() {
    let had = association(&[LEASED]);
    let decline = to_us(MessageType::Decline, &[DUID, (IA.0, &had)]);
    assert_eq!(declined(&config(), &decline), [LEASED]);
    check(
        &decline,
        None,
        None,
        expect![[r#"
        Reply, no address
          13 0000"#]],
    );
    let other = [DUID, (IA.0, &had), (code::SERVER_IDENTIFIER, &[0, 4, 1])];
    let decline = request(MessageType::Decline, &other);
    assert!(declined(&config(), &decline).is_empty());
    check(&decline, None, None, expect!["silence: the client asks another server"]);
    assert!(declined(&config(), &to_us(MessageType::Release, &[DUID, (IA.0, &had)])).is_empty());
}

#[test]
fn a_client_with_an_address_is_told_the_other_settings() {
    let ask = |options: &[(u16, &[u8])]| request(MessageType::InformationRequest, options);
    check(
        &ask(&[IPXE]),
        lease(),
        http(),
        expect![[r#"
        Reply, no address
          23 fd780000000000000000000000000002
          59 http://[fd78::1]:6386/ipxe/snponly.efi"#]],
    );
    check(
        &ask(&[IA]),
        lease(),
        http(),
        expect!["silence: it is not a request of a DHCP client on Ethernet"],
    );
}

#[test]
fn a_message_without_its_identifiers_gets_no_answer() {
    check(
        &request(MessageType::Solicit, &[IA]),
        lease(),
        None,
        expect!["silence: it is not a request of a DHCP client on Ethernet"],
    );
    check(
        &to_us(MessageType::Solicit, &[DUID, IA]),
        lease(),
        None,
        expect!["silence: it is not a request of a DHCP client on Ethernet"],
    );
    check(
        &request(MessageType::Request, &[DUID, IA]),
        lease(),
        None,
        expect!["silence: it is not a request of a DHCP client on Ethernet"],
    );
    check(
        &request(MessageType::Advertise, &[DUID, IA]),
        lease(),
        None,
        expect!["silence: it is not a request of a DHCP client on Ethernet"],
    );
    let ignored = Decision::Ignore { reason: "no port has this address".to_owned() };
    let answered = answer(&config(), &request(MessageType::Solicit, &[DUID, IA]), &ignored);
    expect!["silence: no port has this address"].assert_eq(&show(answered));
}

fn relay(link: &str, peer: Ipv6Addr, options: &[(u16, &[u8])]) -> Relay {
    let mut all = Options::new();
    options.iter().for_each(|(code, value)| all.add(*code, *value));
    Relay { hops: 0, link: link.parse().unwrap(), peer, options: all }
}

/// Encodes what the relays send, the last one first.
fn forwarded(message: &Message, relays: &[Relay]) -> Vec<u8> {
    relays.iter().rev().fold(message.encode(), |inner, relay| {
        let mut options = relay.options.clone();
        options.add(code::RELAY_MESSAGE, inner);
        let addresses = [relay.link.octets(), relay.peer.octets()].concat();
        [&[12, relay.hops][..], &addresses, &options.encode()].concat()
    })
}

#[test]
fn an_answer_takes_the_way_of_its_request_through_the_relays() {
    let asked = request(MessageType::Solicit, &[DUID, IA]);
    let last = relay("::", "fd78::fe".parse().unwrap(), &[(code::RELAY_SOURCE_PORT, &[0, 0])]);
    let first = relay("fd78::fe", CLIENT, &[(code::INTERFACE_IDENTIFIER, b"port 7")]);
    let datagram = forwarded(&asked.message, &[last, first]);
    let received = Received::decode(&datagram, "fd79::1".parse().unwrap()).unwrap();
    assert_eq!(received.message, asked.message);
    assert_eq!(received.client_address, CLIENT);

    let decision = Decision::Answer { lease: lease(), boot: None };
    let reply = answer(&config(), &received, &decision).unwrap();
    let sent = received.encode_answer(&reply.message);
    assert_eq!(sent[..2], [13, 0]);
    let outer = Options::decode(&sent[34..]).unwrap();
    assert_eq!(outer.get(code::RELAY_SOURCE_PORT), Some(&[0, 0][..]));
    let inner = outer.get(code::RELAY_MESSAGE).unwrap();
    assert_eq!(inner[..2], [13, 0]);
    assert_eq!(inner[18..34], CLIENT.octets());
    let inner = Options::decode(&inner[34..]).unwrap();
    assert_eq!(inner.get(code::INTERFACE_IDENTIFIER), Some(&b"port 7"[..]));
    let answered = Message::decode(inner.get(code::RELAY_MESSAGE).unwrap());
    assert_eq!(answered, Ok(reply.message));
}

#[test]
fn a_relay_of_another_network_gets_no_answer() {
    let asked = request(MessageType::Solicit, &[DUID, IA]);
    let elsewhere = Received { relays: vec![relay("fd79::1", CLIENT, &[])], ..asked };
    check(
        &elsewhere,
        lease(),
        None,
        expect![
            "silence: the relay asks for the subnet of fd79::1, which this server does not serve"
        ],
    );
}

#[test]
fn a_message_that_passed_too_many_relays_is_dropped() {
    let asked = request(MessageType::Solicit, &[DUID, IA]).message;
    let decode = |hops: usize| {
        let relays = vec![relay("fd78::fe", CLIENT, &[]); hops];
        Received::decode(&forwarded(&asked, &relays), CLIENT)
    };
    assert!(decode(8).is_ok());
    assert_eq!(decode(9), Err(DecodeError::TooManyRelays));
}

/// The card of a client with this DUID and source address, and perhaps a relay.
#[track_caller]
fn check_card(duid: &[u8], source: &str, relay: Option<Relay>, want: Option<&str>) {
    let mut request = request(MessageType::Solicit, &[(code::CLIENT_IDENTIFIER, duid), IA]);
    request.client_address = source.parse().unwrap();
    request.relays.extend(relay);
    let mac = Client::from_v6(&request).map(|client| client.mac);
    assert_eq!(mac, want.map(|mac| mac.parse::<MacAddress>().unwrap()));
}

#[test]
fn the_card_of_a_client_is_found_by_relay_address_and_duid() {
    let own = "fe80::5054:ff:fe78:1";
    let private = "fe80::1234:5678:9abc:def0";
    let link = [0, 3, 0, 1, 0x52, 0x54, 0, 0x78, 0, 2];
    let time = [0, 1, 0, 1, 9, 9, 9, 9, 0x52, 0x54, 0, 0x78, 0, 3];
    let reported = [0, 1, 0x52, 0x54, 0, 0x78, 0, 4];
    let relay = relay(
        "fd78::fe",
        own.parse().unwrap(),
        &[(code::CLIENT_LINK_LAYER_ADDRESS, &reported[..])],
    );
    check_card(&link, own, None, Some("52:54:00:78:00:01"));
    check_card(&link, own, Some(relay), Some("52:54:00:78:00:04"));
    check_card(&link, private, None, Some("52:54:00:78:00:02"));
    check_card(&time, private, None, Some("52:54:00:78:00:03"));
    check_card(&[0, 4, 1, 1, 1], private, None, None);
    check_card(&[0, 3, 0, 1, 1, 0, 0, 0, 0, 1], private, None, None);
}

#[test]
fn the_program_of_a_client_is_known_by_its_classes() {
    let kind = |options: &[(u16, &[u8])]| {
        let client = Client::from_v6(&request(MessageType::Solicit, options)).unwrap();
        (client.kind, client.architecture.map(|it| it.to_string()))
    };
    let arm = (code::ARCHITECTURE, &[0, 19, 0, 11][..]);
    assert_eq!(kind(&[PXE]), (ClientKind::Pxe, None));
    assert_eq!(kind(&[HTTP, arm]), (ClientKind::Http, Some("ARM64 UEFI".to_owned())));
    assert_eq!(kind(&[PXE, IPXE]), (ClientKind::Ipxe, None));
    assert_eq!(kind(&[DUID]), (ClientKind::Other, None));
    assert_eq!(kind(&[(code::VENDOR_CLASS, &[0, 0, 1])]), (ClientKind::Other, None));
}

proptest! {
    #[test]
    fn no_datagram_makes_the_server_panic(datagram in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(received) = Received::decode(&datagram, CLIENT) {
            let _ = declined(&config(), &received);
            let decision = Decision::Answer { lease: lease(), boot: http() };
            let _ = answer(&config(), &received, &decision);
        }
    }

    #[test]
    fn every_answer_can_be_read_again(
        kind in 1..=11_u8,
        options in prop::collection::vec(
            (prop::sample::select(vec![1_u16, 2, 3, 15, 16, 61]), prop::collection::vec(any::<u8>(), 0..60)),
            0..8,
        ),
    ) {
        prop_assume!(kind != 10);
        let options: Vec<(u16, &[u8])> = options.iter().map(|(code, value)| (*code, &value[..])).collect();
        let asked = request(MessageType::from_code(kind).unwrap(), &options);
        let decision = Decision::Answer { lease: lease(), boot: http() };
        for asked in [asked.clone(), { let mut asked = asked; asked.message.options.add(2, config().identifier()); asked }] {
            if let Ok(reply) = answer(&config(), &asked, &decision) {
                prop_assert_eq!(Message::decode(&reply.message.encode()), Ok(reply.message));
            }
        }
    }
}
