//! Replays captured conversations: the driver must send what ipmitool sent, and accept what ipmitool accepted.

use std::net::SocketAddr;
use std::time::Duration;

use proptest::prelude::*;

use crate::captured::{Conversation, SUITE_SEVENTEEN, SUITE_THREE};
use crate::session::Answer as CommandAnswer;
use crate::target::Privilege;
use crate::wire::message::Request;

use super::*;

const CONSOLE: u32 = 0xa0a2_a3a4;
/// Position of a message's tag, after the header. ipmitool always sends 0.
const TAG: usize = 16;
const CONVERSATIONS: [(CipherSuite, Conversation); 2] =
    [(CipherSuite::Three, SUITE_THREE), (CipherSuite::Seventeen, SUITE_SEVENTEEN)];

fn target(password: &str) -> Target {
    Target {
        address: SocketAddr::from(([127, 0, 0, 1], 623)),
        username: "admin".to_owned(),
        password: password.to_owned().into(),
        cipher_suite: None,
        privilege: Privilege::Operator,
        timeout: Duration::from_secs(1),
    }
}

fn handshake<'t>(target: &'t Target, suite: CipherSuite, captured: &Conversation) -> Handshake<'t> {
    let rakp_1 = hex::decode(captured.rakp_1).unwrap();
    let console_random = *rakp_1[TAG + 8..].first_chunk().unwrap();
    Handshake::new(target, suite, CONSOLE, console_random)
}

/// Returns a captured answer with the tag that the BMC would have sent to us.
fn tagged(handshake: &Handshake<'_>, captured: &str) -> Vec<u8> {
    let mut datagram = hex::decode(captured).unwrap();
    datagram[TAG] = handshake.tag();
    datagram
}

#[track_caller]
fn check_sends(handshake: &Handshake<'_>, captured: &str) {
    let mut datagram = handshake.datagram();
    assert_eq!(datagram[TAG], handshake.tag());
    datagram[TAG] = 0;
    assert_eq!(hex::encode(datagram), captured);
}

fn advance(handshake: &mut Handshake<'_>, captured: &str) -> Result<Step, HandshakeError> {
    let datagram = tagged(handshake, captured);
    handshake.receive(&datagram)
}

fn established(suite: CipherSuite, captured: &Conversation) -> Session {
    let target = target("secret");
    let mut handshake = handshake(&target, suite, captured);
    check_sends(&handshake, captured.open);
    assert!(matches!(advance(&mut handshake, captured.opened), Ok(Step::Next)));
    check_sends(&handshake, captured.rakp_1);
    assert!(matches!(advance(&mut handshake, captured.rakp_2), Ok(Step::Next)));
    check_sends(&handshake, captured.rakp_3);
    match advance(&mut handshake, captured.rakp_4) {
        Ok(Step::Established(session)) => *session,
        _ => panic!("the session is not open"),
    }
}

#[test]
fn a_session_opens_with_the_bytes_ipmitool_sends() {
    for (suite, captured) in CONVERSATIONS {
        established(suite, &captured);
    }
}

#[test]
fn a_command_is_sealed_and_its_answer_opened_like_by_ipmitool() {
    let request = Request { netfn: 6, lun: 0, command: 0x3b, data: &[3] };
    for (suite, captured) in CONVERSATIONS {
        let mut session = established(suite, &captured);
        // ipmitool's first packet in a session has number 3.
        session.seal(&request, 0, [0; 16]);
        session.seal(&request, 0, [0; 16]);

        let sent = hex::decode(captured.request).unwrap();
        let vector = *sent[16..].first_chunk().unwrap();
        let number = session.message_number_of(&sent);
        assert_eq!(hex::encode(session.seal(&request, number, vector)), captured.request);

        let answered = hex::decode(captured.answer).unwrap();
        let answer = session.open(&answered, &request, number).unwrap();
        assert_eq!(answer, Some(CommandAnswer { completion: 0, data: vec![3] }));
        assert!(session.open(&answered, &request, number).is_err(), "a copy is not new");
    }
}

#[test]
fn every_changed_bit_is_detected() {
    let request = Request { netfn: 6, lun: 0, command: 0x3b, data: &[3] };
    for (suite, captured) in CONVERSATIONS {
        let answered = hex::decode(captured.answer).unwrap();
        let number = established(suite, &captured)
            .message_number_of(&hex::decode(captured.request).unwrap());
        // The code covers everything except the RMCP header, which carries no information.
        for bit in 4 * 8..answered.len() * 8 {
            let mut session = established(suite, &captured);
            let mut changed = answered.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(session.open(&changed, &request, number).is_err(), "bit {bit}");
            let answer = session.open(&answered, &request, number).unwrap();
            let want = CommandAnswer { completion: 0, data: vec![3] };
            assert_eq!(answer, Some(want), "the genuine one is still welcome");
        }
    }
}

#[test]
fn a_bmc_without_the_password_is_detected() {
    for (suite, captured) in CONVERSATIONS {
        let target = target("guess");
        let mut handshake = handshake(&target, suite, &captured);
        assert!(advance(&mut handshake, captured.opened).is_ok());
        let refused = advance(&mut handshake, captured.rakp_2);
        assert_eq!(refused.err(), Some(HandshakeError::WrongPassword));
        let farewell = handshake.abort_message().unwrap();
        assert_eq!(farewell[TAG + 1], status::INVALID_CHECK_VALUE);
        assert_eq!(farewell[TAG + 4..TAG + 8], handshake.datagram()[TAG + 4..TAG + 8]);
    }
}

#[test]
fn a_bmc_cannot_choose_another_suite() {
    let target = target("secret");
    let mut handshake = handshake(&target, CipherSuite::Seventeen, &SUITE_SEVENTEEN);
    let refused = advance(&mut handshake, SUITE_THREE.opened);
    assert_eq!(refused.err(), Some(HandshakeError::SuiteRefused));
}

#[test]
fn the_last_message_is_refused_at_every_wrong_length_and_value() {
    for (suite, captured) in CONVERSATIONS {
        let target = target("secret");
        let mut handshake = handshake(&target, suite, &captured);
        assert!(advance(&mut handshake, captured.opened).is_ok());
        assert!(advance(&mut handshake, captured.rakp_2).is_ok());

        let last = tagged(&handshake, captured.rakp_4);
        for length in 8..last.len() - TAG {
            let mut short = last[..TAG + length].to_vec();
            short[14] = length as u8;
            assert!(matches!(handshake.receive(&short), Err(HandshakeError::Malformed { .. })));
        }
        let mut wrong = last;
        *wrong.last_mut().unwrap() ^= 1;
        assert_eq!(handshake.receive(&wrong).err(), Some(HandshakeError::OtherKey));
    }
}

#[test]
fn late_answers_and_those_to_others_are_ignored() {
    let target = target("secret");
    let mut handshake = handshake(&target, CipherSuite::Three, &SUITE_THREE);
    let opened = tagged(&handshake, SUITE_THREE.opened);
    assert!(matches!(handshake.receive(&opened), Ok(Step::Next)));
    assert!(matches!(handshake.receive(&opened), Ok(Step::Ignored)));

    let mut of_others = tagged(&handshake, SUITE_THREE.rakp_2);
    of_others[TAG + 4] ^= 1;
    assert!(matches!(handshake.receive(&of_others), Ok(Step::Ignored)));
    let mut of_another_tag = tagged(&handshake, SUITE_THREE.rakp_2);
    of_another_tag[TAG] ^= 0x80;
    assert!(matches!(handshake.receive(&of_another_tag), Ok(Step::Ignored)));
}

#[test]
fn each_refusal_has_its_error() {
    let target = target("secret");
    let refuse = |status: u8| {
        let mut handshake = handshake(&target, CipherSuite::Three, &SUITE_THREE);
        let mut datagram = tagged(&handshake, SUITE_THREE.opened);
        datagram[TAG + 1] = status;
        handshake.receive(&datagram).err()
    };
    for status in [0x04, 0x05, 0x10, 0x11] {
        assert_eq!(refuse(status), Some(HandshakeError::SuiteRefused));
    }
    let step = "RMCP+ Open Session";
    assert_eq!(refuse(0x01), Some(HandshakeError::Refused { step, status: 0x01 }));
}

proptest! {
    #[test]
    fn no_payload_panics(payload: Vec<u8>, stage in 0usize..3) {
        let target = target("secret");
        let mut handshake = handshake(&target, CipherSuite::Three, &SUITE_THREE);
        for captured in [SUITE_THREE.opened, SUITE_THREE.rakp_2].iter().take(stage) {
            prop_assert!(advance(&mut handshake, captured).is_ok());
        }
        let kind = [payload::OPEN_RESPONSE, payload::RAKP_2, payload::RAKP_4][stage];
        let mut answer = vec![handshake.tag(), 0, 0, 0];
        answer.extend_from_slice(&CONSOLE.to_le_bytes());
        answer.extend_from_slice(&payload);
        let _ = handshake.receive(&packet::plain(kind, &answer));
        let _ = handshake.receive(&packet::plain(kind, &payload));
        let _ = handshake.receive(&payload);
    }

    #[test]
    fn no_packet_of_a_session_panics(bytes: Vec<u8>) {
        let request = Request { netfn: 6, lun: 0, command: 0x01, data: &[] };
        for (suite, captured) in CONVERSATIONS {
            let mut session = established(suite, &captured);
            let _ = session.open(&bytes, &request, 1);
            let _ = session.open(&session.forge(&bytes), &request, 1);
        }
    }
}
