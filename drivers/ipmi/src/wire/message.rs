//! IPMI messages, the payload of a session (IPMI 2.0 §13.8, figure 13-4).

use super::{Malformed, Reader};

/// The BMC's slave address (IPMI 2.0 §5.1).
const BMC: u8 = 0x20;
/// The first software id of a remote console (IPMI 2.0 §5.5): 0x40 with the software bit.
const CONSOLE: u8 = 0x81;
/// Sequence numbers of messages have six bits.
pub(crate) const SEQUENCE_MASK: u8 = 0x3f;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) netfn: u8,
    pub(crate) lun: u8,
    pub(crate) command: u8,
    pub(crate) data: &'a [u8],
}

impl Request<'_> {
    /// Encodes the message with this sequence number.
    pub(crate) fn encode(&self, sequence: u8) -> Vec<u8> {
        let head = [BMC, self.netfn << 2 | self.lun & 0b11];
        let mut bytes = Vec::with_capacity(self.data.len() + 7);
        bytes.extend_from_slice(&head);
        bytes.push(checksum(&head));
        bytes.extend_from_slice(&[CONSOLE, (sequence & SEQUENCE_MASK) << 2, self.command]);
        bytes.extend_from_slice(self.data);
        bytes.push(checksum(&bytes[3..]));
        bytes
    }

    /// Whether `response` answers this request, sent with `sequence`.
    pub(crate) fn is_answered_by(&self, response: &Response<'_>, sequence: u8) -> bool {
        response.netfn == self.netfn | 1
            && response.command == self.command
            && response.sequence == sequence & SEQUENCE_MASK
    }
}

/// The BMC's answer to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Response<'a> {
    pub(crate) netfn: u8,
    pub(crate) sequence: u8,
    pub(crate) command: u8,
    pub(crate) completion: u8,
    pub(crate) data: &'a [u8],
}

impl<'a> Response<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let head: [u8; 3] = reader.array()?;
        let body = reader.rest();
        if sum(&head) != 0 || sum(body) != 0 {
            return Err(Malformed("a checksum of the message is wrong"));
        }

        let mut reader = Reader::new(body);
        let [_responder, sequence, command, completion] = reader.array()?;
        let (_checksum, data) = reader.rest().split_last().ok_or(Malformed("it ends too soon"))?;
        Ok(Response { netfn: head[1] >> 2, sequence: sequence >> 2, command, completion, data })
    }
}

fn sum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, byte| byte.wrapping_add(sum))
}

/// Returns the byte that makes the sum of all bytes zero.
fn checksum(bytes: &[u8]) -> u8 {
    sum(bytes).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_request_is_encoded_like_by_ipmitool() {
        let request = Request { netfn: 0x06, lun: 0, command: 0x38, data: &[0x8e, 0x04] };
        assert_eq!(hex::encode(request.encode(0)), "2018c88100388e04b5");
    }

    #[test]
    fn an_answer_is_read_and_matched_by_its_sequence_number() {
        let bytes = hex::decode("811c632004380001800402000000001d").unwrap();
        let response = Response::read(&bytes).unwrap();
        let want = [0x01, 0x80, 0x04, 0x02, 0, 0, 0, 0];
        assert_eq!((response.netfn, response.completion, response.data), (7, 0, &want[..]));

        let request = Request { netfn: 0x06, lun: 0, command: 0x38, data: &[] };
        assert!(request.is_answered_by(&response, 1));
        assert!(!request.is_answered_by(&response, 2));
        let other = Request { command: 0x39, ..request };
        assert!(!other.is_answered_by(&response, 1));
    }

    #[test]
    fn a_wrong_checksum_is_refused() {
        let bytes = hex::decode("811c632004380001800402000000001e").unwrap();
        assert!(Response::read(&bytes).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = Response::read(&bytes);
        }
    }
}
