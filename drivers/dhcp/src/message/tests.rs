use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::{Architecture, Client};

#[track_caller]
fn check_error(octets: &[u8], want: Expect) {
    want.assert_eq(&Message::decode(octets).unwrap_err().to_string());
}

fn minimal() -> Vec<u8> {
    let mut octets = vec![0; FIXED];
    octets[0] = 1;
    octets[1] = 1;
    octets[2] = 6;
    octets.extend(MAGIC);
    octets
}

#[test]
fn octets_that_are_not_dhcp_are_refused_with_the_reason() {
    check_error(&[], expect!["0 octets are too few for a DHCP message"]);
    check_error(&[1; 239], expect!["239 octets are too few for a DHCP message"]);
    check_error(&[1; 300], expect!["the magic cookie of DHCP is missing"]);

    let mut octets = minimal();
    octets.extend([53, 2, 1]);
    check_error(&octets, expect!["option 53 is cut off"]);

    let mut octets = minimal();
    octets[2] = 17;
    check_error(&octets, expect!["a hardware address of 17 octets does not fit its field"]);

    let mut octets = minimal();
    octets[0] = 3;
    check_error(&octets, expect!["operation 3 is neither request nor reply"]);
}

#[test]
fn a_missing_end_mark_is_accepted() {
    let mut octets = minimal();
    octets.extend([53, 1, 1]);
    assert_eq!(Message::decode(&octets).unwrap().message_type(), Some(MessageType::Discover));
}

#[test]
fn overloaded_fields_are_options_and_pieces_are_joined() {
    let mut octets = minimal();
    octets.extend([52, 1, 3, 67, 2, b'a', b'b', 255]);
    octets[FILE][..5].copy_from_slice(&[67, 2, b'c', b'd', 255]);
    octets[SERVER_NAME][..4].copy_from_slice(&[67, 1, b'e', 255]);
    let message = Message::decode(&octets).unwrap();
    assert_eq!(message.options.text(code::BOOT_FILE_NAME).as_deref(), Some("abcde"));
    assert!(message.file.is_empty() && message.server_name.is_empty());
    assert_eq!(message.options.get(code::OVERLOAD), None);
}

#[test]
fn a_field_that_is_not_overloaded_stays_text() {
    for (overload, file, server_name, option) in
        [(1, "", "server", "file"), (2, "file", "", "server"), (4, "file", "server", "")]
    {
        let mut octets = minimal();
        octets.extend([52, 1, overload, 255]);
        octets[FILE][..4].copy_from_slice(b"file");
        octets[SERVER_NAME][..6].copy_from_slice(b"server");
        let area = |text: &str| [&[67, text.len() as u8], text.as_bytes(), &[255]].concat();
        match overload {
            1 => octets[FILE][..7].copy_from_slice(&area("file")),
            2 => octets[SERVER_NAME][..9].copy_from_slice(&area("server")),
            _ => {}
        }
        let message = Message::decode(&octets).unwrap();
        assert_eq!(message.file, file.as_bytes(), "overload {overload}");
        assert_eq!(message.server_name, server_name.as_bytes(), "overload {overload}");
        let read = message.options.text(code::BOOT_FILE_NAME).unwrap_or_default();
        assert_eq!(read, option, "overload {overload}");
    }
}

#[test]
fn the_architecture_is_read_from_its_option_and_else_from_the_vendor_class() {
    let check = |option: &[u8], class: &str, want: Option<Architecture>| {
        let mut message = Message::decode(&minimal()).unwrap();
        message.hardware_address = vec![0x52, 0x54, 0, 0x78, 0, 1];
        if !option.is_empty() {
            message.options.set(code::ARCHITECTURE, option);
        }
        message.options.set(code::VENDOR_CLASS, class);
        assert_eq!(
            Client::from_request(&message).unwrap().architecture,
            want,
            "{option:?} {class}"
        );
    };
    let class = "PXEClient:Arch:00007:UNDI:003001";
    check(&[], class, Some(Architecture::X64Uefi));
    check(&[0, 11], class, Some(Architecture::Arm64Uefi));
    check(&[0, 0, 0, 7], class, Some(Architecture::X86Bios));
    check(&[11], class, Some(Architecture::X64Uefi));
    check(&[1, 0], "PXEClient", Some(Architecture::Other(256)));
    check(&[], "PXEClient", None);
    check(&[], "Arch", None);
}

#[test]
fn a_group_address_is_no_clients_address() {
    let mut octets = minimal();
    octets[28..34].copy_from_slice(&[0xff; 6]);
    assert_eq!(Client::from_request(&Message::decode(&octets).unwrap()), None);
}

#[test]
fn options_too_long_for_the_datagram_go_on_in_the_free_fields() {
    let mut message = Message::decode(&minimal()).unwrap();
    message.options.set(code::MESSAGE_TYPE, [1]);
    message.options.set(code::DOMAIN_NAME, vec![b'd'; 110]);
    message.options.set(code::BOOT_FILE_NAME, vec![b'b'; 50]);
    let octets = message.encode(260).unwrap();
    assert_eq!(octets[240..243], [code::OVERLOAD, 1, 3]);
    assert_eq!(Message::decode(&octets), Ok(message.clone()));

    message.file = b"taken".to_vec();
    assert_eq!(message.encode(260), Err(EncodeError::TooLong { limit: 260 }));
}

fn any_message() -> impl Strategy<Value = Message> {
    let text = |room| prop::collection::vec(1..=255_u8, 0..=room);
    let addresses = any::<[u32; 4]>().prop_map(|all| all.map(Ipv4Addr::from));
    let hardware = (any::<u8>(), prop::collection::vec(any::<u8>(), 0..=16));
    let option = (1..=254_u8, prop::collection::vec(any::<u8>(), 0..600));
    let counts = (any::<u32>(), any::<u16>(), any::<u8>(), any::<bool>());
    (addresses, hardware, counts, text(64), text(128), prop::collection::vec(option, 0..6))
        .prop_map(|(addresses, hardware, counts, server_name, file, pairs)| {
            let mut options = Options::new();
            // Relay information is always written last, and the overload option is written only by the encoder.
            for (code, octets) in pairs {
                if !matches!(code, code::OVERLOAD | code::RELAY_INFORMATION) {
                    options.set(code, octets);
                }
            }
            Message {
                operation: Operation::Request,
                hardware_type: hardware.0,
                hops: counts.2,
                transaction: counts.0,
                seconds: counts.1,
                broadcast: counts.3,
                client_address: addresses[0],
                your_address: addresses[1],
                next_server: addresses[2],
                relay: addresses[3],
                hardware_address: hardware.1,
                server_name,
                file,
                options,
            }
        })
}

proptest! {
    #[test]
    fn an_encoded_message_is_decoded_again(message in any_message(), limit in 240..4000_usize) {
        match message.encode(limit) {
            Ok(octets) => {
                prop_assert!(octets.len() <= limit.max(SHORTEST));
                prop_assert_eq!(Message::decode(&octets), Ok(message));
            }
            Err(error) => prop_assert_eq!(error, EncodeError::TooLong { limit }),
        }
    }

    #[test]
    fn no_octets_panic(mut octets in prop::collection::vec(any::<u8>(), 0..700), cookie: bool) {
        if cookie && octets.len() >= 240 {
            octets[0] = 1;
            octets[2] %= 17;
            octets[236..240].copy_from_slice(&MAGIC);
        }
        if let Ok(message) = Message::decode(&octets) {
            let _ = Client::from_request(&message);
            let _ = crate::RelayInformation::of(&message);
            let _ = message.encode(octets.len());
        }
    }

    #[test]
    fn a_damaged_message_never_panics(message in any_message(), at: prop::sample::Index, octet: u8) {
        if let Ok(mut octets) = message.encode(1500) {
            let at = at.index(octets.len());
            octets[at] = octet;
            let _ = Message::decode(&octets);
            let _ = Message::decode(&octets[..at]);
        }
    }
}
