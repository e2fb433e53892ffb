//! Session headers: the IPMI 1.5 one without authentication, and RMCP+ (IPMI 2.0 §13.6, table 13-8).

use crate::ipmi::rmcp::IPMI_HEADER;

const AUTH_NONE: u8 = 0x00;
const AUTH_RMCP_PLUS: u8 = 0x06;
const ENCRYPTED: u8 = 0x80;
const AUTHENTICATED: u8 = 0x40;

/// The length of an RMCP+ session header.
pub(crate) const HEADER: usize = 12;

/// The session header around an IPMI payload.
#[derive(Debug, PartialEq)]
pub(crate) enum Envelope<'a> {
    /// The IPMI 1.5 format outside of any session.
    V15 { payload: &'a [u8] },
    /// The RMCP+ format. `payload` is still encrypted, and nothing has been verified.
    V20 {
        kind: PayloadType,
        encrypted: bool,
        authenticated: bool,
        session: u32,
        sequence: u32,
        payload: &'a [u8],
    },
}

/// The payload types of table 13-16 that this BMC supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum PayloadType {
    Ipmi = 0x00,
    Serial = 0x01,
    OpenSessionRequest = 0x10,
    OpenSessionResponse = 0x11,
    Rakp1 = 0x12,
    Rakp2 = 0x13,
    Rakp3 = 0x14,
    Rakp4 = 0x15,
}

impl PayloadType {
    fn read(byte: u8) -> Option<PayloadType> {
        use PayloadType::{
            Ipmi, OpenSessionRequest, OpenSessionResponse, Rakp1, Rakp2, Rakp3, Rakp4, Serial,
        };
        let steps = [OpenSessionRequest, OpenSessionResponse, Rakp1, Rakp2, Rakp3, Rakp4];
        [Ipmi, Serial].into_iter().chain(steps).find(|kind| *kind as u8 == byte)
    }
}

impl Envelope<'_> {
    /// Reads the bytes after the RMCP header.
    pub(crate) fn read(bytes: &[u8]) -> Option<Envelope<'_>> {
        match bytes {
            [AUTH_NONE, 0, 0, 0, 0, 0, 0, 0, 0, length, rest @ ..] => {
                Some(Envelope::V15 { payload: rest.get(..usize::from(*length))? })
            }
            [AUTH_RMCP_PLUS, kind, i0, i1, i2, i3, s0, s1, s2, s3, l0, l1, rest @ ..] => {
                let length = usize::from(u16::from_le_bytes([*l0, *l1]));
                Some(Envelope::V20 {
                    kind: PayloadType::read(kind & 0x3F)?,
                    encrypted: kind & ENCRYPTED != 0,
                    authenticated: kind & AUTHENTICATED != 0,
                    session: u32::from_le_bytes([*i0, *i1, *i2, *i3]),
                    sequence: u32::from_le_bytes([*s0, *s1, *s2, *s3]),
                    payload: rest.get(..length)?,
                })
            }
            _ => None,
        }
    }
}

/// A datagram in the IPMI 1.5 format, outside of any session.
pub(crate) fn v15(payload: &[u8]) -> Vec<u8> {
    let mut datagram = IPMI_HEADER.to_vec();
    datagram.extend([AUTH_NONE, 0, 0, 0, 0, 0, 0, 0, 0]);
    datagram.push(u8::try_from(payload.len()).unwrap_or(u8::MAX));
    datagram.extend(payload);
    datagram
}

/// A datagram in the RMCP+ format, outside of any session.
pub(crate) fn v20_outside(kind: PayloadType, payload: &[u8]) -> Vec<u8> {
    let mut datagram = IPMI_HEADER.to_vec();
    datagram.extend(v20_header(kind as u8, 0, 0, payload.len()));
    datagram.extend(payload);
    datagram
}

/// The header of an encrypted and authenticated payload.
pub(crate) fn v20_sealed_header(
    kind: PayloadType,
    session: u32,
    sequence: u32,
    length: usize,
) -> Vec<u8> {
    v20_header(ENCRYPTED | AUTHENTICATED | kind as u8, session, sequence, length)
}

fn v20_header(kind: u8, session: u32, sequence: u32, length: usize) -> Vec<u8> {
    let mut header = vec![AUTH_RMCP_PLUS, kind];
    header.extend(session.to_le_bytes());
    header.extend(sequence.to_le_bytes());
    header.extend(u16::try_from(length).unwrap_or(u16::MAX).to_le_bytes());
    header
}
