//! Decodes captured requests of real firmware: iPXE of Debian 12 on SeaBIOS, and OVMF 2022.11, in QEMU.

use dhcp::{Client, Message, code};
use expect_test::{Expect, expect};

#[track_caller]
fn check(captured: &str, want: Expect) {
    let octets = hex::decode(captured.split_whitespace().collect::<String>()).expect("hexadecimal");
    let message = Message::decode(&octets).expect("a DHCP message");
    let client = Client::from_request(&message).expect("an Ethernet client");
    let requested = message.options.address(code::REQUESTED_ADDRESS);
    want.assert_eq(&format!("{:?} {requested:?}\n{client:#?}", message.message_type()));

    // Options are written in the order in which they were read, so an encoded message equals the captured octets.
    let written = message.encode(1472).expect("it fitted once");
    assert_eq!(hex::encode(written), hex::encode(octets));
}

#[test]
fn ipxe_on_a_bios_discovers() {
    check(
        include_str!("captured/ipxe-bios-discover.hex"),
        expect![[r#"
        Some(Discover) None
        Client {
            mac: 52:54:00:78:00:01,
            architecture: Some(
                X86Bios,
            ),
            kind: Ipxe,
            machine_uuid: Some(
                00112233-4455-6677-8899-aabbccddeeff,
            ),
            vendor_class: Some(
                "PXEClient:Arch:00000:UNDI:002001",
            ),
        }"#]],
    );
}

#[test]
fn a_uefi_pxe_client_requests() {
    check(
        include_str!("captured/ovmf-pxe-request.hex"),
        expect![[r#"
        Some(Request) Some(10.78.0.20)
        Client {
            mac: 52:54:00:78:00:01,
            architecture: Some(
                X64Uefi,
            ),
            kind: Pxe,
            machine_uuid: Some(
                00112233-4455-6677-8899-aabbccddeeff,
            ),
            vendor_class: Some(
                "PXEClient:Arch:00007:UNDI:003000",
            ),
        }"#]],
    );
}

#[test]
fn a_uefi_http_client_discovers() {
    check(
        include_str!("captured/ovmf-http-discover.hex"),
        expect![[r#"
        Some(Discover) None
        Client {
            mac: 52:54:00:78:00:01,
            architecture: Some(
                X64Uefi,
            ),
            kind: Http,
            machine_uuid: Some(
                00112233-4455-6677-8899-aabbccddeeff,
            ),
            vendor_class: Some(
                "HTTPClient:Arch:00016:UNDI:003000",
            ),
        }"#]],
    );
}
