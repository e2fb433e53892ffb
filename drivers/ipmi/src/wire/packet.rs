//! Datagrams: RMCP's header, and the session headers of IPMI 1.5 and RMCP+ (IPMI 2.0 §13.6).

use super::{Malformed, Reader};

/// RMCP 1.0, no acknowledgement, class IPMI (IPMI 2.0 table 13-8).
const RMCP: [u8; 4] = [0x06, 0x00, 0xff, 0x07];
/// The authentication type of an IPMI 1.5 packet outside of a session.
const NONE: u8 = 0x00;
/// The authentication type that marks RMCP+.
const PLUS: u8 = 0x06;
const ENCRYPTED: u8 = 0x80;
const AUTHENTICATED: u8 = 0x40;

/// Payload types (IPMI 2.0 table 13-16).
pub(crate) mod payload {
    pub(crate) const IPMI: u8 = 0x00;
    pub(crate) const SERIAL: u8 = 0x01;
    pub(crate) const OPEN_REQUEST: u8 = 0x10;
    pub(crate) const OPEN_RESPONSE: u8 = 0x11;
    pub(crate) const RAKP_1: u8 = 0x12;
    pub(crate) const RAKP_2: u8 = 0x13;
    pub(crate) const RAKP_3: u8 = 0x14;
    pub(crate) const RAKP_4: u8 = 0x15;
}

/// Encodes an IPMI 1.5 packet outside of any session.
pub(crate) fn sessionless(message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(14 + message.len());
    bytes.extend_from_slice(&RMCP);
    bytes.push(NONE);
    bytes.extend_from_slice(&[0; 8]); // sequence number and session id
    bytes.push(message.len() as u8);
    bytes.extend_from_slice(message);
    bytes
}

/// Returns the message in an IPMI 1.5 packet outside of any session.
pub(crate) fn read_sessionless(datagram: &[u8]) -> Result<&[u8], Malformed> {
    let mut reader = body(datagram)?;
    if reader.u8()? != NONE {
        return Err(Malformed("it is not a packet outside of a session"));
    }
    let _sequence_and_session: [u8; 8] = reader.array()?;
    let length = reader.u8()?;
    reader.take(length.into())
}

/// The fields of an RMCP+ packet before its payload.
pub(crate) struct Head {
    pub(crate) payload_type: u8,
    pub(crate) session: u32,
    pub(crate) sequence: u32,
}

/// Encodes an RMCP+ packet outside of a session: a step of opening one.
pub(crate) fn plain(payload_type: u8, payload: &[u8]) -> Vec<u8> {
    start(payload_type, 0, 0, payload)
}

/// Encodes an encrypted and authenticated RMCP+ packet without its authentication code. The caller appends the code, which covers
/// everything after the RMCP header.
pub(crate) fn protected(head: &Head, ciphertext: &[u8]) -> Vec<u8> {
    let kind = head.payload_type | ENCRYPTED | AUTHENTICATED;
    let mut bytes = start(kind, head.session, head.sequence, ciphertext);
    // IPMI 2.0 table 13-8: 0xff until the length of the covered bytes, including these two, is a multiple of four.
    let padding = (4 - (bytes.len() - RMCP.len() + 2) % 4) % 4;
    bytes.extend(std::iter::repeat_n(0xff, padding));
    bytes.extend_from_slice(&[padding as u8, 0x07]);
    bytes
}

/// Returns the part of an RMCP+ packet that its authentication code covers.
pub(crate) fn covered(before_code: &[u8]) -> &[u8] {
    before_code.get(RMCP.len()..).unwrap_or_default()
}

/// An RMCP+ packet that is not verified yet.
pub(crate) struct RmcpPlusPacket<'a> {
    pub(crate) payload_type: u8,
    pub(crate) is_protected: bool,
    pub(crate) session: u32,
    pub(crate) sequence: u32,
    pub(crate) payload: &'a [u8],
}

/// Decodes an RMCP+ packet without its trailer.
pub(crate) fn read_plus(datagram: &[u8]) -> Result<RmcpPlusPacket<'_>, Malformed> {
    let mut reader = body(datagram)?;
    if reader.u8()? != PLUS {
        return Err(Malformed("it is not an RMCP+ packet"));
    }
    let kind = reader.u8()?;
    let (session, sequence) = (reader.u32()?, reader.u32()?);
    let length = reader.u16()?;
    Ok(RmcpPlusPacket {
        payload_type: kind & !(ENCRYPTED | AUTHENTICATED),
        is_protected: kind & ENCRYPTED != 0 && kind & AUTHENTICATED != 0,
        session,
        sequence,
        payload: reader.take(length.into())?,
    })
}

/// Returns our id of the session that a datagram is for; 0 for an answer outside of any session.
///
/// The answers of the handshake have our id not in the header, but at the same position of their payload.
pub(crate) fn addressee(datagram: &[u8]) -> Option<u32> {
    let Ok(packet) = read_plus(datagram) else {
        return read_sessionless(datagram).ok().map(|_| 0);
    };
    match packet.payload_type {
        payload::OPEN_RESPONSE | payload::RAKP_2 | payload::RAKP_4 => {
            packet.payload.get(4..8)?.try_into().ok().map(u32::from_le_bytes)
        }
        _ => Some(packet.session),
    }
}

fn start(kind: u8, session: u32, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(payload.len() + 56);
    bytes.extend_from_slice(&RMCP);
    bytes.extend_from_slice(&[PLUS, kind]);
    bytes.extend_from_slice(&session.to_le_bytes());
    bytes.extend_from_slice(&sequence.to_le_bytes());
    bytes.extend_from_slice(&(payload.len() as u16).to_le_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

fn body(datagram: &[u8]) -> Result<Reader<'_>, Malformed> {
    let mut reader = Reader::new(datagram);
    let [version, _reserved, _sequence, class] = reader.array()?;
    // Bit 7 of the class marks an RMCP acknowledgement, which IPMI never uses.
    if version != RMCP[0] || class != RMCP[3] {
        return Err(Malformed("it is not an IPMI packet"));
    }
    Ok(reader)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_packet_outside_of_a_session_has_the_literal_bytes() {
        let message = hex::decode("2018c88100388e04b5").unwrap();
        let bytes = sessionless(&message);
        assert_eq!(hex::encode(&bytes), "0600ff07000000000000000000092018c88100388e04b5");
        assert_eq!(read_sessionless(&bytes), Ok(&message[..]));
        assert_eq!(addressee(&bytes), Some(0));
    }

    #[test]
    fn the_covered_part_is_padded_to_a_multiple_of_four() {
        for length in 0..40 {
            let head = Head { payload_type: payload::IPMI, session: 1, sequence: 2 };
            let bytes = protected(&head, &vec![7; length]);
            assert_eq!(covered(&bytes).len() % 4, 0, "{length}");
            let padding = usize::from(bytes[bytes.len() - 2]);
            assert_eq!(bytes.len(), 16 + length + padding + 2);
            assert!(padding < 4);
        }
    }

    #[test]
    fn a_step_of_opening_is_addressed_by_our_id_in_its_payload() {
        let bytes = plain(payload::RAKP_2, &[9, 0, 0, 0, 0xa4, 0xa3, 0xa2, 0xa0]);
        assert_eq!(addressee(&bytes), Some(0xa0a2_a3a4));
        assert_eq!(addressee(&plain(payload::RAKP_2, &[9, 0, 0])), None);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>, kind: u8) {
            let _ = addressee(&bytes);
            let mut packet = plain(kind, &bytes);
            let _ = addressee(&packet);
            packet[14] ^= kind;
            let _ = (addressee(&packet), read_plus(&packet).is_ok(), read_sessionless(&packet));
        }
    }
}
