//! The messages that open an RMCP+ session (IPMI 2.0 §13.17 to §13.23).

use super::crypto::Algorithms;
use super::{Malformed, Reader};

/// Status codes of RMCP+ and RAKP (IPMI 2.0 table 13-15).
pub(crate) mod status {
    pub(crate) const NO_ERRORS: u8 = 0x00;
    pub(crate) const NO_RESOURCES: u8 = 0x01;
    pub(crate) const INVALID_SESSION: u8 = 0x02;
    pub(crate) const INVALID_AUTHENTICATION: u8 = 0x04;
    pub(crate) const INVALID_INTEGRITY: u8 = 0x05;
    pub(crate) const INACTIVE_SESSION: u8 = 0x08;
    pub(crate) const INVALID_ROLE: u8 = 0x09;
    pub(crate) const UNAUTHORIZED_ROLE: u8 = 0x0a;
    pub(crate) const NO_RESOURCES_AT_ROLE: u8 = 0x0b;
    pub(crate) const INVALID_NAME_LENGTH: u8 = 0x0c;
    pub(crate) const UNAUTHORIZED_NAME: u8 = 0x0d;
    pub(crate) const INVALID_CHECK_VALUE: u8 = 0x0f;
    pub(crate) const INVALID_CONFIDENTIALITY: u8 = 0x10;
    pub(crate) const NO_SUITE_MATCH: u8 = 0x11;

    /// Returns the status in the specification's words.
    pub(crate) fn describe(status: u8) -> &'static str {
        match status {
            NO_ERRORS => "no errors",
            NO_RESOURCES => "insufficient resources to create a session",
            INVALID_SESSION => "invalid session id",
            0x03 => "invalid payload type",
            INVALID_AUTHENTICATION => "invalid authentication algorithm",
            INVALID_INTEGRITY => "invalid integrity algorithm",
            0x06 => "no matching authentication payload",
            0x07 => "no matching integrity payload",
            INACTIVE_SESSION => "inactive session id",
            INVALID_ROLE => "invalid role",
            UNAUTHORIZED_ROLE => "unauthorized role or privilege level",
            NO_RESOURCES_AT_ROLE => "insufficient resources to create a session at this role",
            INVALID_NAME_LENGTH => "invalid name length",
            UNAUTHORIZED_NAME => "unauthorized name",
            0x0e => "unauthorized GUID",
            INVALID_CHECK_VALUE => "invalid integrity check value",
            INVALID_CONFIDENTIALITY => "invalid confidentiality algorithm",
            NO_SUITE_MATCH => "no cipher suite matches the proposed algorithms",
            0x12 => "illegal or unrecognized parameter",
            _ => "an unknown status",
        }
    }
}

/// Encodes an RMCP+ Open Session Request.
pub(crate) fn open_request(tag: u8, privilege: u8, console: u32, proposed: Algorithms) -> Vec<u8> {
    let mut bytes = vec![tag, privilege, 0, 0];
    bytes.extend_from_slice(&console.to_le_bytes());
    let payloads =
        [(0, proposed.authentication), (1, proposed.integrity), (2, proposed.confidentiality)];
    for (kind, algorithm) in payloads {
        bytes.extend_from_slice(&[kind, 0, 0, 8, algorithm, 0, 0, 0]);
    }
    bytes
}

/// The first bytes of every answer: tag, status, and our id of the session.
pub(crate) struct Answer<'a> {
    pub(crate) tag: u8,
    pub(crate) status: u8,
    pub(crate) console: u32,
    /// The bytes after the first ones, present if the status is success.
    body: Reader<'a>,
}

impl<'a> Answer<'a> {
    pub(crate) fn read(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut body = Reader::new(payload);
        let [tag, status, _, _] = body.array()?;
        Ok(Answer { tag, status, console: body.u32()?, body })
    }

    /// Decodes the rest of an RMCP+ Open Session Response.
    pub(crate) fn open_response(mut self) -> Result<OpenResponse, Malformed> {
        let managed = self.body.u32()?;
        let mut algorithm =
            || self.body.array().map(|[_, _, _, _, algorithm, _, _, _]: [u8; 8]| algorithm);
        let chosen = Algorithms {
            authentication: algorithm()?,
            integrity: algorithm()?,
            confidentiality: algorithm()?,
        };
        Ok(OpenResponse { managed, chosen })
    }

    /// Decodes the rest of RAKP message 2.
    pub(crate) fn rakp_2(mut self) -> Result<Rakp2<'a>, Malformed> {
        Ok(Rakp2 { random: self.body.array()?, guid: self.body.array()?, code: self.body.rest() })
    }

    /// Returns the rest of RAKP message 4: the integrity check value.
    pub(crate) fn rakp_4(mut self) -> &'a [u8] {
        self.body.rest()
    }
}

/// The content of an RMCP+ Open Session Response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OpenResponse {
    pub(crate) managed: u32,
    pub(crate) chosen: Algorithms,
}

/// Encodes RAKP message 1.
pub(crate) fn rakp_1(tag: u8, managed: u32, random: &[u8; 16], identity: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag, 0, 0, 0];
    bytes.extend_from_slice(&managed.to_le_bytes());
    bytes.extend_from_slice(random);
    // `identity` is role, length and name; the message has two reserved bytes after the role.
    let (role, name) = identity.split_at(identity.len().min(1));
    bytes.extend_from_slice(role);
    bytes.extend_from_slice(&[0, 0]);
    bytes.extend_from_slice(name);
    bytes
}

/// The content of RAKP message 2.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rakp2<'a> {
    pub(crate) random: [u8; 16],
    pub(crate) guid: [u8; 16],
    pub(crate) code: &'a [u8],
}

/// Encodes RAKP message 3; `code` is empty if `status` tells the BMC that we give up.
pub(crate) fn rakp_3(tag: u8, status: u8, managed: u32, code: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag, status, 0, 0];
    bytes.extend_from_slice(&managed.to_le_bytes());
    bytes.extend_from_slice(code);
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::target::CipherSuite;

    use super::*;

    #[test]
    fn opening_asks_for_the_algorithms_of_the_suite() {
        let check = |suite: CipherSuite, want: &str| {
            let bytes = open_request(7, 3, 0xa0a2_a3a4, suite.algorithms());
            assert_eq!(hex::encode(bytes), want);
        };
        check(
            CipherSuite::Three,
            "07030000a4a3a2a0000000080100000001000008010000000200000801000000",
        );
        check(
            CipherSuite::Seventeen,
            "07030000a4a3a2a0000000080300000001000008040000000200000801000000",
        );
    }

    #[test]
    fn the_answer_to_opening_names_the_bmcs_session() {
        let payload = hex::decode(
            "07000300a4a3a2a04433221100000008030000000100000804000000\
             0200000801000000",
        )
        .unwrap();
        let answer = Answer::read(&payload).unwrap();
        assert_eq!((answer.tag, answer.status, answer.console), (7, 0, 0xa0a2_a3a4));
        let chosen = CipherSuite::Seventeen.algorithms();
        assert_eq!(answer.open_response(), Ok(OpenResponse { managed: 0x1122_3344, chosen }));
    }

    #[test]
    fn the_exchange_has_the_literal_bytes() {
        let first = rakp_1(8, 0x1122_3344, &[0xab; 16], b"\x13\x05admin");
        assert_eq!(
            hex::encode(first),
            format!("0800000044332211{}1300000561646d696e", "ab".repeat(16))
        );
        let third = rakp_3(9, 0, 0x1122_3344, &[0xcd; 20]);
        assert_eq!(hex::encode(third), format!("0900000044332211{}", "cd".repeat(20)));
    }

    #[test]
    fn a_refusal_is_eight_bytes_long() {
        let payload = hex::decode("080d0000a4a3a2a0").unwrap();
        let answer = Answer::read(&payload).unwrap();
        assert_eq!(status::describe(answer.status), "unauthorized name");
        assert!(answer.rakp_2().is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            if let Ok(answer) = Answer::read(&bytes) {
                let _ = (answer.open_response(), Answer::read(&bytes).unwrap().rakp_2(), Answer::read(&bytes).unwrap().rakp_4());
            }
        }
    }
}
