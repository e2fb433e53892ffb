//! Malformed and hostile datagrams, and the expiry of boot flags and sessions.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::boot::BootDevice;
use crate::ipmi::cipher::{CipherSuite, SessionKeys};
use crate::ipmi::message::checksum;
use crate::ipmi::session::{Active, Privilege};

fn face(profile: &str) -> IpmiFace {
    let spec = json!({
        "name": "m", "uuid": "7d0c3a52-93a2-4f0b-8d5e-0c6f7a1b2c3d", "serial": "S", "manufacturer": "A",
        "model": "M", "firmware": "uefi", "cpus": 1, "memory_mib": 1024,
        "bmc": {"kind": "ipmi", "address": "127.0.0.1:0", "username": "admin", "password": "secret"},
    });
    IpmiFace::new(
        Machine::new(serde_json::from_value(spec).unwrap()),
        Profile::find(profile).unwrap(),
    )
}

/// Opens an administrator session. Returns its id.
fn session(face: &mut IpmiFace) -> u32 {
    let suite = CipherSuite::Suite17;
    let id = face.sessions.open(0xA0A1_A2A3, suite, 0).unwrap().id;
    let mut active = Active::new(SessionKeys::derive(suite, &[9; 32]), Privilege::Administrator);
    active.privilege = Privilege::Administrator;
    face.sessions.find(id).unwrap().active = Some(active);
    id
}

/// The bytes of a request message.
fn request(net_fn: u8, command: u8, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x20, net_fn << 2];
    bytes.push(checksum(&bytes));
    bytes.extend([0x81, 0x04, command]);
    bytes.extend(data);
    bytes.push(checksum(&bytes[3..]));
    bytes
}

/// Sends a request in a session. Returns the completion code and the data.
fn ask(face: &mut IpmiFace, session: u32, net_fn: u8, command: u8, data: &[u8]) -> Vec<u8> {
    let message = request(net_fn, command, data);
    let reply = face.execute(&LanMessage::read(&message).unwrap(), Some(session));
    assert_eq!(checksum(&reply[..3]), 0, "header checksum");
    assert_eq!(checksum(&reply[3..]), 0, "body checksum");
    reply[6..reply.len() - 1].to_vec()
}

const SET_BOOT_OPTIONS: (u8, u8) = (0x00, 0x08);
const GET_BOOT_OPTIONS: (u8, u8) = (0x00, 0x09);

#[test]
fn a_ping_is_answered_in_every_byte() {
    // ASF 2.0 §3.2.4.2: presence ping, tag 0x2A; §3.2.4.3: presence pong.
    let ping = hex::decode("0600ff06000011be802a0000").unwrap();
    let replies = face("generic").handle(&ping);
    assert_eq!(
        replies.iter().map(hex::encode).collect::<Vec<_>>(),
        ["0600ff06000011be402a0010000011be000000008100000000000000"]
    );
    let with_ack = hex::decode("06000706000011be802a0000").unwrap();
    assert_eq!(hex::encode(&face("generic").handle(&with_ack)[0]), "06000786");
}

#[test]
fn authentication_capabilities_are_sent_in_both_formats() {
    // Channel E, IPMI 2.0 data, administrator.
    let request = request(0x06, 0x38, &[0x8E, 0x04]);
    let replies = face("generic").handle(&packet::v15(&request));
    assert_eq!(
        hex::encode(&replies[0]),
        "0600ff0700000000000000000010811c632004380001800402000000001d"
    );
    let replies = face("generic").handle(&packet::v20_outside(PayloadType::Ipmi, &request));
    assert!(hex::encode(&replies[0]).starts_with("0600ff070600000000000000000010"));
}

#[test]
fn cipher_suites_are_sent_as_records() {
    let mut face = face("generic");
    let id = session(&mut face);
    let reported = ask(&mut face, id, 0x06, 0x54, &[0x0E, 0x00, 0x80]);
    assert_eq!(hex::encode(reported), "0001c003014181c011034481");
    let reported = ask(&mut face, id, 0x06, 0x54, &[0x0E, 0x00, 0x00]);
    assert_eq!(hex::encode(reported), "00010141810344");
    let reported = ask(&mut face, id, 0x06, 0x54, &[0x0E, 0x00, 0x81]);
    assert_eq!(hex::encode(reported), "0001");
}

#[tokio::test(start_paused = true)]
async fn boot_flags_lapse_unless_a_power_command_comes_in_time() {
    let mut face = face("generic");
    let id = session(&mut face);
    let pxe = [0x05, 0x80, 0x04, 0, 0, 0];
    let (net_fn, command) = SET_BOOT_OPTIONS;
    assert_eq!(ask(&mut face, id, net_fn, command, &pxe), [0x00]);
    tokio::time::advance(Duration::from_secs(61)).await;
    let (get_net_fn, get) = GET_BOOT_OPTIONS;
    assert_eq!(ask(&mut face, id, get_net_fn, get, &[5, 0, 0]), [0, 1, 5, 0x00, 0x04, 0, 0, 0]);
    assert_eq!(face.machine.take_boot_device().device, None);

    assert_eq!(ask(&mut face, id, net_fn, command, &pxe), [0x00]);
    assert_eq!(ask(&mut face, id, 0x00, 0x02, &[0x01]), [0x00]);
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(face.machine.take_boot_device().device, Some(BootDevice::Pxe));

    // Parameter 3, bit 3: keep the valid bit without a chassis control command.
    assert_eq!(ask(&mut face, id, net_fn, command, &[0x03, 0x08]), [0x00]);
    assert_eq!(ask(&mut face, id, net_fn, command, &pxe), [0x00]);
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(face.machine.take_boot_device().device, Some(BootDevice::Pxe));
}

#[test]
fn two_writers_of_boot_options_take_turns() {
    let mut face = face("generic");
    let id = session(&mut face);
    let (net_fn, command) = SET_BOOT_OPTIONS;
    assert_eq!(ask(&mut face, id, net_fn, command, &[0x00, 0x01]), [0x00]);
    assert_eq!(ask(&mut face, id, net_fn, command, &[0x00, 0x01]), [0x81]);
    assert_eq!(ask(&mut face, id, net_fn, command, &[0x00, 0x00]), [0x00]);
    assert_eq!(ask(&mut face, id, net_fn, command, &[0x7E, 0x00]), [0x80]);
    // Parameter 4: only the bits of the mask are written.
    assert_eq!(ask(&mut face, id, net_fn, command, &[0x04, 0x03, 0xFF]), [0x00]);
    let (net_fn, command) = GET_BOOT_OPTIONS;
    assert_eq!(ask(&mut face, id, net_fn, command, &[4, 0, 0]), [0, 1, 4, 0x00, 0x03]);
}

#[tokio::test(start_paused = true)]
async fn slots_are_freed_by_timeouts_and_unfinished_handshakes() {
    let mut face = face("poor");
    let first = session(&mut face);
    let open =
        hex::decode("0004000001020304000000080100000001000008010000000200000801000000").unwrap();
    let dallying = face.open_session(&open).unwrap();
    assert_eq!(dallying[1], 0x00);
    // Both slots are taken. The session without a finished handshake loses its slot.
    let other = face.open_session(&open).unwrap();
    assert_eq!(other[1], 0x00);
    let second = u32::from_le_bytes([other[8], other[9], other[10], other[11]]);
    let keys = SessionKeys::derive(CipherSuite::Suite3, &[1; 20]);
    face.sessions.find(second).unwrap().active = Some(Active::new(keys, Privilege::User));
    assert_eq!(face.open_session(&open).unwrap(), [0x00, 0x01, 0, 0, 1, 2, 3, 4]);
    // Two requests found every slot taken, though one of them got the slot of another.
    let counted = face.machine.sessions();
    assert_eq!((counted.most(), counted.refused()), (2, 2));

    tokio::time::advance(Duration::from_secs(61)).await;
    face.handle(&[]);
    assert!(face.sessions.find(first).is_none());
    assert_eq!(face.open_session(&open).unwrap()[1], 0x00);
}

#[test]
fn proposals_this_bmc_does_not_have_are_refused_by_name() {
    let mut face = face("generic");
    for (algorithms, status) in [
        ([0, 1, 1], 0x04),
        ([2, 1, 1], 0x04),
        ([1, 2, 1], 0x05),
        ([1, 1, 2], 0x10),
        ([1, 4, 1], 0x11),
        ([3, 1, 1], 0x11),
    ] {
        let mut open = vec![0x07, 0x04, 0, 0, 1, 2, 3, 4];
        for (kind, algorithm) in (0..).zip(algorithms) {
            open.extend([kind, 0, 0, 8, algorithm, 0, 0, 0]);
        }
        assert_eq!(
            face.open_session(&open).unwrap(),
            [0x07, status, 0, 0, 1, 2, 3, 4],
            "{algorithms:?}"
        );
    }
}

#[test]
fn a_repeated_rakp_1_gets_the_same_answer() {
    let mut face = face("generic");
    let open =
        hex::decode("0004000001020304000000080100000001000008010000000200000801000000").unwrap();
    let opened = face.open_session(&open).unwrap();
    let mut rakp1 = vec![0x09, 0, 0, 0];
    rakp1.extend(&opened[8..12]);
    rakp1.extend([0x55; 16]);
    rakp1.extend([0x14, 0, 0, 5]);
    rakp1.extend(b"admin");
    let first = face.rakp1(&rakp1).unwrap();
    assert_eq!(first.len(), 8 + 16 + 16 + 20);
    assert_eq!(face.rakp1(&rakp1).unwrap(), first);

    rakp1[27] = 4;
    assert_eq!(face.rakp1(&rakp1).unwrap()[1], 0x0D, "no user of that name");
    rakp1[27] = 17;
    assert_eq!(face.rakp1(&rakp1).unwrap()[1], 0x0C, "a name too long");
}

#[test]
fn a_changed_or_repeated_packet_gets_no_answer() {
    let mut face = face("generic");
    let id = session(&mut face);
    // With the same id on both sides, a packet of the BMC is also a valid packet of the console.
    face.sessions.find(id).unwrap().console_id = id;
    let sealed = face.sessions.seal(id, PayloadType::Ipmi, &request(0x06, 0x01, &[])).unwrap();
    for position in 4..sealed.len() {
        let mut touched = sealed.clone();
        touched[position] ^= 0x10;
        assert!(face.handle(&touched).is_empty(), "byte {position}");
    }
    assert_eq!(face.handle(&sealed).len(), 1);
    assert!(face.handle(&sealed).is_empty(), "a replay");
}

proptest! {
    #[test]
    fn no_datagram_panics(datagram in proptest::collection::vec(any::<u8>(), 0..300)) {
        face("generic").handle(&datagram);
    }

    #[test]
    fn no_ipmi_datagram_panics(kind in 0u8..0x18, body in proptest::collection::vec(any::<u8>(), 0..80)) {
        let mut datagram = hex::decode("0600ff0706").unwrap();
        datagram.push(kind);
        datagram.extend([0; 8]);
        datagram.extend((body.len() as u16).to_le_bytes());
        datagram.extend(body);
        let mut face = face("generic");
        face.handle(&datagram);
    }

    #[test]
    fn no_command_panics(net_fn in 0u8..0x18, command in any::<u8>(), data in proptest::collection::vec(any::<u8>(), 0..24)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _entered = runtime.enter();
        let mut face = face("generic");
        let id = session(&mut face);
        ask(&mut face, id, net_fn * 2 % 0x40, command, &data);
    }

    #[test]
    fn no_known_command_panics(which in 0usize..64, data in proptest::collection::vec(any::<u8>(), 0..24)) {
        let codes = [0x00, 0x01, 0x02, 0x04, 0x06, 0x07, 0x08, 0x09, 0x10, 0x11, 0x20, 0x22, 0x23, 0x2D, 0x40, 0x43];
        let mut face = face("generic");
        let id = session(&mut face);
        let net_fn = [0x00, 0x04, 0x06, 0x0A][which % 4];
        ask(&mut face, id, net_fn, codes[which / 4], &data);
    }
}
