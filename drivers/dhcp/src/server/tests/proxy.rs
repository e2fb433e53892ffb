//! Tests of ProxyDHCP, beside another DHCP server.

use expect_test::expect;

use super::*;

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
        expect!["silence: no boot file for this machine"],
    );
    check(
        Mode::Proxy,
        request(MessageType::Request, &[PXE]),
        None,
        tftp(),
        expect!["silence: a DHCPREQUEST message gets no answer"],
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
fn a_proxy_has_nothing_to_bind_for_a_client_that_does_not_boot_or_has_no_file() {
    let silence = |options: &[(u8, &[u8])], boot| {
        let decision = Decision::Answer { lease: None, boot };
        let asked = request(MessageType::Request, options);
        show(answer_binding(&config(Mode::Proxy), &asked, &decision))
    };
    assert_eq!(silence(&[], tftp()), "silence: the machine is not booting from the network");
    assert_eq!(silence(&[PXE], None), "silence: no boot file for this machine");
}
