//! Tests the transfer packet by packet: sent, sent again, and accepted.

use super::*;

fn packet(bytes: &[u8]) -> SerialPacket<'_> {
    SerialPacket::read(bytes).unwrap()
}

/// The packet sent at `now`, in hexadecimal.
fn sent(transfer: &mut Transfer, now: Instant) -> String {
    transfer.send(now).map(hex::encode).unwrap_or_default()
}

const REFUSED: u8 = 0x40;
const UNAVAILABLE: u8 = 0x20;

#[test]
fn typed_characters_are_sent_in_packets_of_the_bmcs_size() {
    let (mut transfer, now) = (Transfer::new(7), Instant::now());
    transfer.type_in(b"abcde");
    assert_eq!(sent(&mut transfer, now), hex::encode(b"\x01\0\0\0abc"));
    assert_eq!(sent(&mut transfer, now), "");
    transfer.on_acknowledgement(&packet(&[0, 1, 3, 0]), now);
    assert_eq!(sent(&mut transfer, now), hex::encode(b"\x02\0\0\0de"));
    assert!(!transfer.is_idle());
    transfer.on_acknowledgement(&packet(&[0, 2, 2, 0]), now);
    assert!(transfer.is_idle());
    assert_eq!(transfer.due(now), None);
}

#[test]
fn an_unacknowledged_packet_is_sent_again_unchanged() {
    let (mut transfer, now) = (Transfer::new(200), Instant::now());
    transfer.type_in(b"a");
    let first = sent(&mut transfer, now);
    transfer.type_in(b"b");
    // An acknowledgement of another packet.
    transfer.on_acknowledgement(&packet(&[0, 9, 1, 0]), now);
    assert_eq!(transfer.due(now), Some(now + RESEND_AFTER));
    assert_eq!(sent(&mut transfer, now + RESEND_AFTER), first);
    transfer.on_acknowledgement(&packet(&[0, 1, 1, 0]), now);
    assert_eq!(sent(&mut transfer, now), hex::encode(b"\x02\0\0\0b"));
}

#[test]
fn a_partly_accepted_packet_is_continued() {
    let (mut transfer, now) = (Transfer::new(200), Instant::now());
    transfer.type_in(b"abcd");
    transfer.send(now);
    transfer.on_acknowledgement(&packet(&[0, 1, 3, 0]), now);
    assert_eq!(sent(&mut transfer, now), hex::encode(b"\x02\0\0\0d"));
}

#[test]
fn a_refused_packet_is_delayed() {
    let (mut transfer, now) = (Transfer::new(200), Instant::now());
    transfer.type_in(b"ab");
    transfer.send(now);
    transfer.on_acknowledgement(&packet(&[0, 1, 1, REFUSED]), now);
    assert_eq!(sent(&mut transfer, now), "");
    assert_eq!(transfer.due(now), Some(now + UNAVAILABLE_WAIT));
    assert_eq!(sent(&mut transfer, now + UNAVAILABLE_WAIT), hex::encode(b"\x02\0\0\0b"));
    transfer.on_acknowledgement(&packet(&[0, 2, 0, REFUSED]), now);
    // The BMC reports that the port accepts characters again.
    transfer.on_acknowledgement(&packet(&[0, 0, 0, 0]), now);
    assert_eq!(sent(&mut transfer, now), hex::encode(b"\x03\0\0\0b"));
}

#[test]
fn a_count_of_zero_without_a_refusal_accepts_all() {
    let (mut transfer, now) = (Transfer::new(200), Instant::now());
    transfer.type_in(b"ab");
    transfer.send(now);
    transfer.on_acknowledgement(&packet(&[0, 1, 0, 0]), now);
    assert!(transfer.is_idle());
}

#[test]
fn characters_that_wait_too_long_are_given_up() {
    let patience = Duration::from_secs(5);
    let (mut transfer, now) = (Transfer::new(200), Instant::now());
    assert_eq!(transfer.give_up(now + patience, patience), Overdue::No);
    transfer.type_in(b"ab");
    transfer.send(now);
    assert_eq!(transfer.give_up(now, patience), Overdue::No);
    assert_eq!(transfer.give_up(now + patience, patience), Overdue::Silence);
    transfer.on_acknowledgement(&packet(&[0, 1, 0, REFUSED | UNAVAILABLE]), now);
    assert_eq!(transfer.give_up(now + patience, patience), Overdue::Discarded);
    assert!(transfer.is_idle());
    assert_eq!(transfer.give_up(now + patience, patience), Overdue::No);
}

#[test]
fn a_repeated_packet_is_accepted_once() {
    let mut transfer = Transfer::new(200);
    let third = packet(b"\x03\0\0\0abc");
    assert_eq!(transfer.classify(10, &third), PacketClass::New);
    transfer.take(10, 3, 3);
    assert_eq!(transfer.classify(11, &third), PacketClass::Repeated(3));
    // With more characters than before. The rest comes again in the next packet, because three are acknowledged.
    assert_eq!(transfer.classify(12, &packet(b"\x03\0\0\0abcdef")), PacketClass::Repeated(3));
    let fourth = packet(b"\x04\0\0\0def");
    assert_eq!(transfer.classify(14, &fourth), PacketClass::New);
    transfer.take(14, 4, 3);
    // Sealed before the fourth packet, and received late.
    assert_eq!(transfer.classify(13, &third), PacketClass::Nothing);
    assert_eq!(transfer.classify(15, &packet(&[0, 1, 1, 0])), PacketClass::Nothing);
}
