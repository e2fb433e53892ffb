//! Tests of addresses: offered, confirmed, renewed, refused.

use expect_test::expect;

use super::*;

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
fn a_machine_without_a_lease_gets_no_answer() {
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
          56 10.78.0.99 is not your address; your address is 10.78.0.20"#]],
    );
}

#[test]
fn a_client_that_chose_another_server_gets_no_answer() {
    let other = (code::SERVER_IDENTIFIER, &[10, 78, 0, 9][..]);
    let asked =
        request(MessageType::Request, &[other, (code::REQUESTED_ADDRESS, &LEASED.octets())]);
    check(
        Mode::Full,
        asked,
        lease(),
        None,
        expect!["silence: the client accepted the offer of the server 10.78.0.9"],
    );
}

#[test]
fn a_renewal_is_answered_at_the_clients_address() {
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
        expect!["silence: a DHCPRELEASE message gets no answer"],
    );
    check(
        Mode::Full,
        request(MessageType::Decline, &[]),
        lease(),
        None,
        expect!["silence: a DHCPDECLINE message gets no answer"],
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
fn a_lease_outside_the_subnet_is_not_given() {
    let elsewhere = Some(Lease { address: Ipv4Addr::new(192, 0, 2, 1).into(), hostname: None });
    check(
        Mode::Full,
        request(MessageType::Discover, &[]),
        elsewhere,
        None,
        expect!["silence: the lease 192.0.2.1 lies outside the subnet"],
    );
}

#[test]
fn only_an_acknowledgement_repeats_the_address_that_the_client_has() {
    let none = Ipv4Addr::UNSPECIFIED;
    for (kind, has, answered, repeated) in [
        (MessageType::Request, LEASED, MessageType::Ack, LEASED),
        (MessageType::Inform, LEASED, MessageType::Ack, LEASED),
        (MessageType::Discover, LEASED, MessageType::Offer, none),
        (MessageType::Request, Ipv4Addr::new(10, 78, 0, 21), MessageType::Nak, none),
    ] {
        let mut asked = request(kind, &[]);
        asked.client_address = has;
        let decision = Decision::Answer { lease: lease(), boot: None };
        let message = answer(&config(Mode::Full), &asked, &decision).unwrap().message;
        assert_eq!(message.message_type(), Some(answered));
        assert_eq!(message.client_address, repeated, "{kind}");
    }
}
