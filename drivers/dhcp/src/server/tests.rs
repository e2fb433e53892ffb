use std::time::Duration;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::{Destination, Options};

const OURS: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
const LEASED: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 20);

fn config(mode: Mode) -> ServerConfig {
    ServerConfig {
        mode,
        address: OURS,
        tftp_server: None,
        subnet: Subnet { address: Ipv4Addr::new(10, 78, 0, 0), prefix: 24 },
        router: Some(Ipv4Addr::new(10, 78, 0, 254)),
        dns: vec![Ipv4Addr::new(10, 78, 0, 2), Ipv4Addr::new(10, 78, 0, 3)],
        domain: Some("rack.test".to_owned()),
        lease_time: Duration::from_secs(3600),
    }
}

fn request(kind: MessageType, options: &[(u8, &[u8])]) -> Message {
    let mut all = Options::new();
    all.set(code::MESSAGE_TYPE, [kind.code()]);
    options.iter().for_each(|(code, octets)| all.set(*code, *octets));
    Message {
        operation: Operation::Request,
        hardware_type: 1,
        hops: 0,
        transaction: 7,
        seconds: 0,
        broadcast: false,
        client_address: Ipv4Addr::UNSPECIFIED,
        your_address: Ipv4Addr::UNSPECIFIED,
        next_server: Ipv4Addr::UNSPECIFIED,
        relay: Ipv4Addr::UNSPECIFIED,
        hardware_address: vec![0x52, 0x54, 0, 0x78, 0, 1],
        server_name: Vec::new(),
        file: Vec::new(),
        options: all,
    }
}

const PXE: (u8, &[u8]) = (code::VENDOR_CLASS, b"PXEClient:Arch:00000:UNDI:002001");
const HTTP: (u8, &[u8]) = (code::VENDOR_CLASS, b"HTTPClient:Arch:00016:UNDI:003001");
const IPXE: (u8, &[u8]) = (code::USER_CLASS, b"iPXE");

fn lease() -> Option<Lease> {
    Some(Lease { address: LEASED, hostname: Some("r1u7".to_owned()) })
}

fn tftp() -> Option<BootFile> {
    Some(BootFile::Tftp { name: "undionly.kpxe".to_owned() })
}

fn http() -> Option<BootFile> {
    Some(BootFile::Http { url: "http://10.78.0.1:8080/boot/1".parse().unwrap() })
}

/// One line a fact: destination, addresses, file, options in hexadecimal or text.
fn show(answer: Result<Reply, Silence>) -> String {
    let reply = match answer {
        Ok(reply) => reply,
        Err(silence) => return format!("silence: {silence}"),
    };
    let message = &reply.message;
    let mut lines = format!(
        "{:?} to {:?}, your {}, next {}, file {:?}",
        message.message_type().unwrap(),
        reply.to,
        message.your_address,
        message.next_server,
        String::from_utf8_lossy(&message.file),
    );
    for (code, octets) in message.options.iter() {
        let text = octets.len() > 3 && octets.iter().all(|octet| (32..127).contains(octet));
        let shown =
            if text { String::from_utf8_lossy(octets).into_owned() } else { hex::encode(octets) };
        lines += &format!("\n  {code} {shown}");
    }
    lines
}

#[track_caller]
fn check(mode: Mode, request: Message, lease: Option<Lease>, boot: Option<BootFile>, want: Expect) {
    let decision = Decision::Answer { lease, boot };
    want.assert_eq(&show(answer(&config(mode), &request, &decision)));
}

#[test]
fn a_bios_is_offered_its_lease_and_a_file_by_tftp() {
    let asked = request(MessageType::Discover, &[PXE, (code::PARAMETER_LIST, &[1, 3, 66, 67])]);
    check(
        Mode::Full,
        asked,
        lease(),
        tftp(),
        expect![[r#"
        Offer to Broadcast, your 10.78.0.20, next 10.78.0.1, file "undionly.kpxe"
          53 02
          54 0a4e0001
          51 00000e10
          1 ffffff00
          28 0a4e00ff
          3 0a4e00fe
          6 0a4e00020a4e0003
          15 rack.test
          12 r1u7
          67 undionly.kpxe
          66 10.78.0.1"#]],
    );
}

#[test]
fn ipxe_is_offered_its_script_and_told_not_to_wait_for_a_proxy() {
    let asked = request(MessageType::Discover, &[PXE, IPXE]);
    check(
        Mode::Full,
        asked,
        lease(),
        http(),
        expect![[r#"
        Offer to Broadcast, your 10.78.0.20, next 10.78.0.1, file "http://10.78.0.1:8080/boot/1"
          53 02
          54 0a4e0001
          51 00000e10
          1 ffffff00
          28 0a4e00ff
          3 0a4e00fe
          6 0a4e00020a4e0003
          15 rack.test
          12 r1u7
          175 b00101"#]],
    );
}

#[test]
fn http_boot_hears_its_own_vendor_class() {
    let asked = request(MessageType::Discover, &[HTTP, (code::PARAMETER_LIST, &[67])]);
    check(
        Mode::Full,
        asked,
        lease(),
        http(),
        expect![[r#"
        Offer to Broadcast, your 10.78.0.20, next 10.78.0.1, file "http://10.78.0.1:8080/boot/1"
          53 02
          54 0a4e0001
          51 00000e10
          1 ffffff00
          28 0a4e00ff
          3 0a4e00fe
          6 0a4e00020a4e0003
          15 rack.test
          12 r1u7
          67 http://10.78.0.1:8080/boot/1
          60 HTTPClient"#]],
    );
}

#[test]
fn an_operating_system_gets_its_lease_and_no_boot_file() {
    let asked = request(MessageType::Discover, &[(code::CLIENT_IDENTIFIER, &[1, 2, 3])]);
    check(
        Mode::Full,
        asked,
        lease(),
        tftp(),
        expect![[r#"
        Offer to Broadcast, your 10.78.0.20, next 0.0.0.0, file ""
          53 02
          54 0a4e0001
          61 010203
          51 00000e10
          1 ffffff00
          28 0a4e00ff
          3 0a4e00fe
          6 0a4e00020a4e0003
          15 rack.test
          12 r1u7"#]],
    );
}

#[test]
fn firmware_is_not_sent_what_it_cannot_load() {
    let asked = request(MessageType::Discover, &[PXE]);
    check(
        Mode::Full,
        asked,
        lease(),
        http(),
        expect!["silence: firmware of kind Pxe cannot load http://10.78.0.1:8080/boot/1"],
    );
    let asked = request(MessageType::Discover, &[HTTP]);
    check(
        Mode::Full,
        asked,
        lease(),
        tftp(),
        expect!["silence: firmware of kind Http cannot load undionly.kpxe"],
    );
}

#[test]
fn a_stranger_hears_nothing() {
    let asked = request(MessageType::Discover, &[]);
    check(Mode::Full, asked.clone(), None, None, expect!["silence: the machine has no lease here"]);
    let ignore = Decision::Ignore { reason: "the machine is not enrolled".to_owned() };
    expect!["silence: the machine is not enrolled"].assert_eq(&show(answer(
        &config(Mode::Full),
        &asked,
        &ignore,
    )));
}

#[test]
fn the_address_offered_is_confirmed_and_any_other_is_refused() {
    let select = |address: Ipv4Addr| {
        let address = address.octets();
        request(
            MessageType::Request,
            &[(code::SERVER_IDENTIFIER, &OURS.octets()), (code::REQUESTED_ADDRESS, &address)],
        )
    };
    check(
        Mode::Full,
        select(LEASED),
        lease(),
        None,
        expect![[r#"
        Ack to Broadcast, your 10.78.0.20, next 0.0.0.0, file ""
          53 05
          54 0a4e0001
          51 00000e10
          1 ffffff00
          28 0a4e00ff
          3 0a4e00fe
          6 0a4e00020a4e0003
          15 rack.test
          12 r1u7"#]],
    );
    check(
        Mode::Full,
        select(Ipv4Addr::new(10, 78, 0, 99)),
        lease(),
        None,
        expect![[r#"
        Nak to Broadcast, your 0.0.0.0, next 0.0.0.0, file ""
          53 06
          54 0a4e0001
          56 10.78.0.99 is not yours, 10.78.0.20 is"#]],
    );
}

#[test]
fn another_server_being_chosen_is_respected() {
    let other = (code::SERVER_IDENTIFIER, &[10, 78, 0, 9][..]);
    let asked =
        request(MessageType::Request, &[other, (code::REQUESTED_ADDRESS, &LEASED.octets())]);
    check(
        Mode::Full,
        asked,
        lease(),
        None,
        expect!["silence: the client chose the server 10.78.0.9"],
    );
}

#[test]
fn a_renewal_is_answered_where_the_client_is() {
    let mut asked = request(MessageType::Request, &[]);
    asked.client_address = LEASED;
    check(
        Mode::Full,
        asked,
        lease(),
        None,
        expect![[r#"
        Ack to Client(10.78.0.20), your 10.78.0.20, next 0.0.0.0, file ""
          53 05
          54 0a4e0001
          51 00000e10
          1 ffffff00
          28 0a4e00ff
          3 0a4e00fe
          6 0a4e00020a4e0003
          15 rack.test
          12 r1u7"#]],
    );
}

#[test]
fn an_inform_gets_everything_but_a_lease() {
    let mut asked = request(MessageType::Inform, &[]);
    asked.client_address = Ipv4Addr::new(10, 78, 0, 77);
    check(
        Mode::Full,
        asked,
        None,
        None,
        expect![[r#"
        Ack to Client(10.78.0.77), your 0.0.0.0, next 0.0.0.0, file ""
          53 05
          54 0a4e0001
          1 ffffff00
          28 0a4e00ff
          3 0a4e00fe
          6 0a4e00020a4e0003
          15 rack.test"#]],
    );
}

#[test]
fn a_release_takes_no_answer() {
    check(
        Mode::Full,
        request(MessageType::Release, &[]),
        lease(),
        None,
        expect!["silence: a DHCPRELEASE takes no answer"],
    );
    check(
        Mode::Full,
        request(MessageType::Decline, &[]),
        lease(),
        None,
        expect!["silence: a DHCPDECLINE takes no answer"],
    );
    check(
        Mode::Full,
        request(MessageType::Offer, &[]),
        lease(),
        None,
        expect!["silence: it is not a request of a DHCP client on Ethernet"],
    );
}

#[test]
fn a_relay_is_answered_on_67_or_where_it_says() {
    let mut asked = request(MessageType::Discover, &[]);
    asked.relay = Ipv4Addr::new(10, 78, 0, 253);
    check(
        Mode::Full,
        asked.clone(),
        lease(),
        None,
        expect![[r#"
        Offer to Relay(10.78.0.253), your 10.78.0.20, next 0.0.0.0, file ""
          53 02
          54 0a4e0001
          51 00000e10
          1 ffffff00
          28 0a4e00ff
          3 0a4e00fe
          6 0a4e00020a4e0003
          15 rack.test
          12 r1u7"#]],
    );

    asked.relay = Ipv4Addr::new(127, 0, 0, 1);
    check(
        Mode::Full,
        asked.clone(),
        lease(),
        None,
        expect!["silence: the relay asks for the subnet of 127.0.0.1, which is not ours"],
    );

    asked.options.set(code::RELAY_INFORMATION, [5, 4, 10, 78, 0, 0, 19, 0]);
    check(
        Mode::Full,
        asked,
        lease(),
        None,
        expect![[r#"
        Offer to RelaySourcePort(127.0.0.1), your 10.78.0.20, next 0.0.0.0, file ""
          53 02
          54 0a4e0001
          82 05040a4e00001300
          51 00000e10
          1 ffffff00
          28 0a4e00ff
          3 0a4e00fe
          6 0a4e00020a4e0003
          15 rack.test
          12 r1u7"#]],
    );
}

#[test]
fn a_refusal_through_a_relay_is_broadcast_there() {
    let mut asked = request(MessageType::Request, &[(code::REQUESTED_ADDRESS, &[10, 0, 0, 1])]);
    asked.relay = Ipv4Addr::new(10, 78, 0, 253);
    let decision = Decision::Answer { lease: lease(), boot: None };
    let reply = answer(&config(Mode::Full), &asked, &decision).unwrap();
    assert_eq!(reply.to, Destination::Relay(asked.relay));
    assert!(reply.message.broadcast);
}

#[test]
fn a_lease_outside_the_subnet_is_not_given() {
    let elsewhere = Some(Lease { address: Ipv4Addr::new(192, 0, 2, 1), hostname: None });
    check(
        Mode::Full,
        request(MessageType::Discover, &[]),
        elsewhere,
        None,
        expect!["silence: the lease 192.0.2.1 lies outside the subnet"],
    );
}

#[test]
fn a_proxy_offers_a_boot_file_and_no_address() {
    check(
        Mode::Proxy,
        request(MessageType::Discover, &[PXE]),
        None,
        tftp(),
        expect![[r#"
        Offer to Broadcast, your 0.0.0.0, next 10.78.0.1, file "undionly.kpxe"
          53 02
          54 0a4e0001
          60 PXEClient
          43 060108ff"#]],
    );
    check(
        Mode::Proxy,
        request(MessageType::Discover, &[HTTP]),
        None,
        http(),
        expect![[r#"
        Offer to Broadcast, your 0.0.0.0, next 10.78.0.1, file "http://10.78.0.1:8080/boot/1"
          53 02
          54 0a4e0001
          60 HTTPClient"#]],
    );
}

#[test]
fn a_proxy_leaves_everything_else_to_the_server() {
    check(
        Mode::Proxy,
        request(MessageType::Discover, &[]),
        lease(),
        tftp(),
        expect!["silence: the machine is not booting from the network"],
    );
    check(
        Mode::Proxy,
        request(MessageType::Discover, &[PXE]),
        None,
        None,
        expect!["silence: there is nothing for the machine to boot"],
    );
    check(
        Mode::Proxy,
        request(MessageType::Request, &[PXE]),
        None,
        tftp(),
        expect!["silence: a DHCPREQUEST takes no answer"],
    );
}

#[test]
fn a_proxy_confirms_the_boot_item_asked_for_on_its_own_port() {
    let mut asked =
        request(MessageType::Request, &[PXE, (code::VENDOR_SPECIFIC, &[71, 4, 0, 0, 0, 0, 255])]);
    asked.client_address = Ipv4Addr::new(10, 78, 0, 77);
    let decision = Decision::Answer { lease: None, boot: tftp() };
    let answer = answer_binding(&config(Mode::Proxy), &asked, &decision);
    expect![[r#"
        Ack to Sender, your 0.0.0.0, next 10.78.0.1, file "undionly.kpxe"
          53 05
          54 0a4e0001
          60 PXEClient
          43 060108470400000000ff"#]]
    .assert_eq(&show(answer));
}

#[test]
fn a_long_url_goes_in_the_option_and_fits() {
    let url = format!("http://10.78.0.1/{}", "x".repeat(300));
    let boot = Some(BootFile::Http { url: url.parse().unwrap() });
    let decision = Decision::Answer { lease: lease(), boot };
    let asked = request(MessageType::Discover, &[IPXE]);
    let reply = answer(&config(Mode::Full), &asked, &decision).unwrap();
    assert_eq!(reply.limit, 548);
    let octets = reply.message.encode(reply.limit).unwrap();
    let read = Message::decode(&octets).unwrap();
    assert_eq!(read.options.text(code::BOOT_FILE_NAME), Some(url));
}

#[test]
fn subnets_of_every_length_have_a_mask() {
    let subnet = |prefix| Subnet { address: Ipv4Addr::new(10, 1, 2, 3), prefix };
    assert_eq!(subnet(0).mask(), Ipv4Addr::UNSPECIFIED);
    assert_eq!(subnet(20).mask(), Ipv4Addr::new(255, 255, 240, 0));
    assert_eq!(subnet(32).mask(), Ipv4Addr::BROADCAST);
    assert_eq!(subnet(24).broadcast(), Ipv4Addr::new(10, 1, 2, 255));
}

proptest! {
    #[test]
    fn every_answer_can_be_sent_and_repeats_the_transaction(
        kind in 1..=8_u8,
        options in prop::collection::vec((1..=254_u8, prop::collection::vec(any::<u8>(), 0..255)), 0..8),
        relay: u32,
        client: u32,
        proxy: bool,
    ) {
        let mut asked = request(MessageType::from_code(kind).unwrap(), &[]);
        options.into_iter().for_each(|(code, octets)| asked.options.set(code, octets));
        asked.relay = Ipv4Addr::from(relay);
        asked.client_address = Ipv4Addr::from(client);
        let config = config(if proxy { Mode::Proxy } else { Mode::Full });
        let decision = Decision::Answer { lease: lease(), boot: http() };
        let answers = [answer(&config, &asked, &decision), answer_binding(&config, &asked, &decision)];
        for reply in answers.into_iter().flatten() {
            prop_assert_eq!(reply.message.transaction, asked.transaction);
            prop_assert_eq!(reply.message.operation, Operation::Reply);
            let _ = reply.message.encode(reply.limit);
        }
    }
}
