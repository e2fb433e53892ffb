//! Packets of serial over LAN (IPMI 2.0 §15.9, tables 15-2 and 15-3).

use super::{Malformed, Reader};

/// Length of the header before the characters.
pub(crate) const HEADER: usize = 4;
/// A count of accepted characters has one byte.
pub(crate) const LONGEST: usize = 255;
/// Packets with characters are numbered 1 to 15; 0 is for packets that only acknowledge.
const LAST_NUMBER: u8 = 0x0f;

/// Bits of the status byte in the BMC's packets.
const REFUSED: u8 = 0x40;
const UNAVAILABLE: u8 = 0x20;
const DEACTIVATED: u8 = 0x10;
const OVERRUN: u8 = 0x08;

/// A packet from the BMC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SerialPacket<'a> {
    /// The packet's number; 0 if it only acknowledges.
    pub(crate) number: u8,
    /// The number of our packet that it acknowledges; 0 for none.
    pub(crate) acknowledged: u8,
    /// How many characters of our packet it accepts.
    pub(crate) accepted: u8,
    status: u8,
    pub(crate) characters: &'a [u8],
}

impl<'a> SerialPacket<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let [number, acknowledged, accepted, status] = reader.array()?;
        let characters = reader.rest();
        if characters.len() > LONGEST {
            return Err(Malformed("it has more characters than can be counted"));
        }
        Ok(SerialPacket {
            number: number & LAST_NUMBER,
            acknowledged: acknowledged & LAST_NUMBER,
            accepted,
            status,
            characters,
        })
    }

    /// Whether the BMC refuses the characters that it does not accept.
    pub(crate) fn refuses(&self) -> bool {
        self.status & REFUSED != 0
    }

    /// Whether the machine's port accepts no characters now.
    pub(crate) fn is_unavailable(&self) -> bool {
        self.status & UNAVAILABLE != 0
    }

    /// Whether the BMC ends the session of the port.
    pub(crate) fn is_deactivated(&self) -> bool {
        self.status & DEACTIVATED != 0
    }

    /// Whether the BMC lost output of the machine.
    pub(crate) fn was_overrun(&self) -> bool {
        self.status & OVERRUN != 0
    }
}

/// Returns the number after `number`.
pub(crate) fn next_number(number: u8) -> u8 {
    if number >= LAST_NUMBER { 1 } else { number + 1 }
}

/// Encodes a packet to the BMC with characters.
pub(crate) fn typed(number: u8, characters: &[u8]) -> Vec<u8> {
    [&[number, 0, 0, 0], characters].concat()
}

/// Encodes a packet to the BMC that accepts `count` characters of its packet `number`.
pub(crate) fn acknowledgement(number: u8, count: u8) -> [u8; HEADER] {
    [0, number, count, 0]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_packet_of_the_bmc_is_read() {
        let bytes = hex::decode("0302054868690d0a").unwrap();
        let packet = SerialPacket::read(&bytes).unwrap();
        assert_eq!((packet.number, packet.acknowledged, packet.accepted), (3, 2, 5));
        assert!(packet.refuses() && packet.was_overrun());
        assert!(!packet.is_unavailable() && !packet.is_deactivated());
        assert_eq!(packet.characters, b"hi\r\n");
        assert!(SerialPacket::read(&bytes[..3]).is_err());
    }

    #[test]
    fn packets_of_ours_have_the_literal_bytes() {
        assert_eq!(hex::encode(typed(15, b"ls\r")), "0f0000006c730d");
        assert_eq!(hex::encode(acknowledgement(7, 200)), "0007c800");
    }

    #[test]
    fn packet_numbers_wrap_without_zero() {
        assert_eq!((next_number(0), next_number(14), next_number(15)), (1, 15, 1));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = SerialPacket::read(&bytes);
        }
    }
}
