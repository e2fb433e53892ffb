//! Tests of the boot files for each kind of firmware.

use expect_test::expect;

use super::*;

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
fn ipxe_gets_its_script_and_skips_the_wait_for_a_proxy() {
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
fn an_answer_for_http_boot_has_its_vendor_class() {
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
fn firmware_gets_no_file_that_it_cannot_load() {
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
fn a_name_of_127_octets_fits_the_file_field_and_a_longer_one_goes_in_the_option() {
    let asked = request(MessageType::Discover, &[PXE]);
    for (length, in_field) in [(127, true), (128, false)] {
        let name = "x".repeat(length);
        let boot = Some(BootFile::Tftp { name: name.clone() });
        let decision = Decision::Answer { lease: lease(), boot };
        let message = answer(&config(Mode::Full), &asked, &decision).unwrap().message;
        let option = message.options.text(code::BOOT_FILE_NAME);
        let want = if in_field { (name, None) } else { (String::new(), Some(name)) };
        assert_eq!((String::from_utf8(message.file).unwrap(), option), want, "{length}");
    }
}

#[test]
fn an_answer_is_as_long_as_the_client_accepts_and_a_frame_holds() {
    let sizes: [(&[u8], usize); 6] = [
        (&[], 548),
        (&[4], 548),
        (&[4, 0], 996),
        (&[1, 0], 548),
        (&[0xff, 0xff], 1472),
        (&[4, 0, 0], 548),
    ];
    for (size, limit) in sizes {
        let asked = request(MessageType::Discover, &[(code::MAXIMUM_SIZE, size)]);
        let decision = Decision::Answer { lease: lease(), boot: None };
        let reply = answer(&config(Mode::Full), &asked, &decision).unwrap();
        assert_eq!(reply.limit, limit, "{size:?}");
    }
}
