//! RMCP and ASF: the outermost header, and the presence ping (IPMI 2.0 §13.1.3 and §13.2).

const VERSION: u8 = 0x06;
/// The sequence number of a message that needs no acknowledgement.
const NO_ACK: u8 = 0xFF;
const CLASS_ASF: u8 = 0x06;
const CLASS_IPMI: u8 = 0x07;
/// The class bit of an acknowledgement.
const ACK: u8 = 0x80;
/// The enterprise number of the ASF, 4542.
const ASF_IANA: [u8; 4] = [0x00, 0x00, 0x11, 0xBE];
const PING: u8 = 0x80;
const PONG: u8 = 0x40;

pub(crate) const IPMI_HEADER: [u8; 4] = [VERSION, 0, NO_ACK, CLASS_IPMI];

/// The contents of a datagram.
#[derive(Debug, PartialEq)]
pub(crate) enum RmcpMessage<'a> {
    Ping(Ping),
    /// The IPMI session header and the bytes after it.
    Ipmi(&'a [u8]),
}

/// An ASF presence ping.
#[derive(Debug, PartialEq)]
pub(crate) struct Ping {
    sequence: u8,
    tag: u8,
}

impl RmcpMessage<'_> {
    pub(crate) fn read(datagram: &[u8]) -> Option<RmcpMessage<'_>> {
        match datagram {
            [VERSION, _, _, CLASS_IPMI, session @ ..] => Some(RmcpMessage::Ipmi(session)),
            [VERSION, _, sequence, CLASS_ASF, a, b, c, d, PING, tag, _, _, ..]
                if [*a, *b, *c, *d] == ASF_IANA =>
            {
                Some(RmcpMessage::Ping(Ping { sequence: *sequence, tag: *tag }))
            }
            _ => None,
        }
    }
}

impl Ping {
    /// The pong, after an acknowledgement if the ping asks for one.
    pub(crate) fn replies(&self) -> Vec<Vec<u8>> {
        let acknowledgement = vec![VERSION, 0, self.sequence, CLASS_ASF | ACK];
        let mut pong = vec![VERSION, 0, NO_ACK, CLASS_ASF];
        pong.extend(ASF_IANA);
        pong.extend([PONG, self.tag, 0, 16]);
        // Table 13-8: no OEM, IPMI supported (bit 7), ASF 1.0, no security extensions.
        pong.extend(ASF_IANA);
        pong.extend([0, 0, 0, 0, 0x81, 0, 0, 0, 0, 0, 0, 0]);
        if self.sequence == NO_ACK { vec![pong] } else { vec![acknowledgement, pong] }
    }
}
