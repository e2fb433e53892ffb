//! What is sent, sent again and taken, packet by packet.

use super::*;

/// A packet of the BMC's.
fn packet(bytes: &[u8]) -> SerialPacket<'_> {
    SerialPacket::read(bytes).unwrap()
}

/// What is sent at `now`, in hexadecimal.
fn sent(transfer: &mut Transfer, now: Instant) -> String {
    transfer.send(now).map(hex::encode).unwrap_or_default()
}

const REFUSED: u8 = 0x40;
const UNAVAILABLE: u8 = 0x20;

#[test]
fn what_is_typed_goes_in_packets_of_the_bmcs_size_one_at_a_time() {
    let (mut transfer, now) = (Transfer::new(7), Instant::now());
    transfer.type_in(b"abcde");
    assert_eq!(sent(&mut transfer, now), hex::encode(b"\x01\0\0\0abc"));
    assert_eq!(sent(&mut transfer, now), "");
    transfer.hear(&packet(&[0, 1, 3, 0]), now);
    assert_eq!(sent(&mut transfer, now), hex::encode(b"\x02\0\0\0de"));
    assert!(!transfer.is_idle());
    transfer.hear(&packet(&[0, 2, 2, 0]), now);
    assert!(transfer.is_idle());
    assert_eq!(transfer.due(now), None);
}

#[test]
fn what_is_not_acknowledged_is_sent_again_as_it_was() {
    let (mut transfer, now) = (Transfer::new(200), Instant::now());
    transfer.type_in(b"a");
    let first = sent(&mut transfer, now);
    transfer.type_in(b"b");
    // The acknowledgement of another packet.
    transfer.hear(&packet(&[0, 9, 1, 0]), now);
    assert_eq!(transfer.due(now), Some(now + RESEND_AFTER));
    assert_eq!(sent(&mut transfer, now + RESEND_AFTER), first);
    transfer.hear(&packet(&[0, 1, 1, 0]), now);
    assert_eq!(sent(&mut transfer, now), hex::encode(b"\x02\0\0\0b"));
}

#[test]
fn what_is_accepted_in_part_goes_on_from_there() {
    let (mut transfer, now) = (Transfer::new(200), Instant::now());
    transfer.type_in(b"abcd");
    transfer.send(now);
    transfer.hear(&packet(&[0, 1, 3, 0]), now);
    assert_eq!(sent(&mut transfer, now), hex::encode(b"\x02\0\0\0d"));
}

#[test]
fn what_is_refused_waits() {
    let (mut transfer, now) = (Transfer::new(200), Instant::now());
    transfer.type_in(b"ab");
    transfer.send(now);
    transfer.hear(&packet(&[0, 1, 1, REFUSED]), now);
    assert_eq!(sent(&mut transfer, now), "");
    assert_eq!(transfer.due(now), Some(now + UNAVAILABLE_WAIT));
    assert_eq!(sent(&mut transfer, now + UNAVAILABLE_WAIT), hex::encode(b"\x02\0\0\0b"));
    transfer.hear(&packet(&[0, 2, 0, REFUSED]), now);
    // The BMC says that it goes on.
    transfer.hear(&packet(&[0, 0, 0, 0]), now);
    assert_eq!(sent(&mut transfer, now), hex::encode(b"\x03\0\0\0b"));
}

#[test]
fn who_counts_nothing_and_refuses_nothing_took_all() {
    let (mut transfer, now) = (Transfer::new(200), Instant::now());
    transfer.type_in(b"ab");
    transfer.send(now);
    transfer.hear(&packet(&[0, 1, 0, 0]), now);
    assert!(transfer.is_idle());
}

#[test]
fn who_waits_too_long_is_discarded_or_silent() {
    let patience = Duration::from_secs(5);
    let (mut transfer, now) = (Transfer::new(200), Instant::now());
    assert_eq!(transfer.give_up(now + patience, patience), Overdue::No);
    transfer.type_in(b"ab");
    transfer.send(now);
    assert_eq!(transfer.give_up(now, patience), Overdue::No);
    assert_eq!(transfer.give_up(now + patience, patience), Overdue::Silence);
    transfer.hear(&packet(&[0, 1, 0, REFUSED | UNAVAILABLE]), now);
    assert_eq!(transfer.give_up(now + patience, patience), Overdue::Discarded);
    assert!(transfer.is_idle());
    assert_eq!(transfer.give_up(now + patience, patience), Overdue::No);
}

#[test]
fn a_packet_is_taken_once_however_often_it_comes() {
    let mut transfer = Transfer::new(200);
    let third = packet(b"\x03\0\0\0abc");
    assert_eq!(transfer.classify(10, &third), News::New);
    transfer.take(10, 3, 3);
    assert_eq!(transfer.classify(11, &third), News::Repeated(3));
    // With more than it had: the rest comes again, since three are acknowledged.
    assert_eq!(transfer.classify(12, &packet(b"\x03\0\0\0abcdef")), News::Repeated(3));
    let fourth = packet(b"\x04\0\0\0def");
    assert_eq!(transfer.classify(14, &fourth), News::New);
    transfer.take(14, 4, 3);
    // Sent before the fourth, and late.
    assert_eq!(transfer.classify(13, &third), News::Nothing);
    assert_eq!(transfer.classify(15, &packet(&[0, 1, 1, 0])), News::Nothing);
}
