//! Tests of requests that a relay forwarded.

use expect_test::expect;

use super::*;

#[test]
fn a_relay_is_answered_on_67_or_on_its_source_port() {
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
        expect![
            "silence: the relay asks for the subnet of 127.0.0.1, which this server does not serve"
        ],
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
fn a_relay_broadcasts_a_refusal() {
    let mut asked = request(MessageType::Request, &[(code::REQUESTED_ADDRESS, &[10, 0, 0, 1])]);
    asked.relay = Ipv4Addr::new(10, 78, 0, 253);
    let decision = Decision::Answer { lease: lease(), boot: None };
    let reply = answer(&config(Mode::Full), &asked, &decision).unwrap();
    assert_eq!(reply.to, Destination::Relay(asked.relay));
    assert!(reply.message.broadcast);
}
