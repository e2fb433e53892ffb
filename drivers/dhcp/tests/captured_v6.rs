//! Decodes captured DHCPv6 requests of real firmware: OVMF 2022.11, and iPXE of Debian 12 started by it, in QEMU.

use dhcp::v6::{MessageType, Received};
use dhcp::{Architecture, Client, ClientKind};

/// The machine's address on its link, made of 52:54:00:78:00:00 or 52:54:00:78:00:01.
#[track_caller]
fn check(captured: &str, source: &str, kind: ClientKind, class: &str) {
    let octets = hex::decode(captured.split_whitespace().collect::<String>()).expect("hexadecimal");
    let request = Received::decode(&octets, source.parse().expect("an address"));
    let request = request.expect("a DHCPv6 message");
    assert_eq!(request.message.kind, MessageType::Solicit);
    let client = Client::from_v6(&request).expect("an Ethernet client");
    assert_eq!(client.kind, kind);
    assert_eq!(client.architecture, Some(Architecture::X64Uefi));
    assert_eq!(client.vendor_class.as_deref(), Some(class));
    let last = source.rsplit(':').next().expect("a part");
    assert_eq!(client.mac.to_string(), format!("52:54:00:78:00:0{last}"));

    // Options are written in the order in which they were read, so an encoded message equals the captured octets.
    assert_eq!(hex::encode(request.message.encode()), hex::encode(octets));
}

#[test]
fn a_uefi_pxe_client_solicits() {
    let captured = include_str!("captured/ovmf-pxe-solicit.hex");
    let class = "PXEClient:Arch:00007:UNDI:003000";
    check(captured, "fe80::5054:ff:fe78:0", ClientKind::Pxe, class);
}

#[test]
fn a_uefi_http_client_solicits() {
    let captured = include_str!("captured/ovmf-http-solicit.hex");
    let class = "HTTPClient:Arch:00016:UNDI:003000";
    check(captured, "fe80::5054:ff:fe78:1", ClientKind::Http, class);
}

#[test]
fn ipxe_on_uefi_solicits() {
    let captured = include_str!("captured/ipxe-uefi-solicit.hex");
    let class = "PXEClient:Arch:00007:UNDI:003010";
    check(captured, "fe80::5054:ff:fe78:0", ClientKind::Ipxe, class);
}
