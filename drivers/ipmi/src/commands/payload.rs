//! Payloads other than commands: activating and deactivating serial over LAN (IPMI 2.0 §24.1 to §24.4).

use crate::wire::packet::payload;
use crate::wire::{Malformed, Reader};

use super::{APPLICATION, Command};

/// The only instance of a serial port that this driver uses.
const INSTANCE: u8 = 1;
/// The auxiliary data of §24.1: encrypted and authenticated, alerts over the same port deferred.
const PROTECTED: u8 = 0x80 | 0x40 | 0x04;

/// The command Activate Payload.
pub(crate) struct ActivateSerial;

/// The parameters of an activated serial port.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SerialActivated {
    /// The longest payload that the BMC accepts, including the header of four bytes.
    pub(crate) longest_in: u16,
    /// The UDP port at which the BMC accepts payloads.
    pub(crate) port: u16,
}

impl Command for ActivateSerial {
    const NAME: &'static str = "Activate Payload";
    const CODE: (u8, u8) = (APPLICATION, 0x48);
    type Answer = SerialActivated;

    fn data(&self) -> Vec<u8> {
        vec![payload::SERIAL, INSTANCE, PROTECTED, 0, 0, 0]
    }

    fn read(&self, answer: &mut Reader<'_>) -> Result<SerialActivated, Malformed> {
        let _auxiliary: [u8; 4] = answer.array()?;
        let longest_in = answer.u16()?;
        let _longest_out = answer.u16()?;
        Ok(SerialActivated { longest_in, port: answer.u16()? })
    }
}

/// The command Deactivate Payload.
pub(crate) struct DeactivateSerial;

impl Command for DeactivateSerial {
    const NAME: &'static str = "Deactivate Payload";
    const CODE: (u8, u8) = (APPLICATION, 0x49);
    type Answer = ();

    fn data(&self) -> Vec<u8> {
        vec![payload::SERIAL, INSTANCE, 0, 0, 0, 0]
    }

    fn read(&self, _answer: &mut Reader<'_>) -> Result<(), Malformed> {
        Ok(())
    }
}

/// The command Get Payload Activation Status.
pub(crate) struct IsSerialActive;

impl Command for IsSerialActive {
    const NAME: &'static str = "Get Payload Activation Status";
    const CODE: (u8, u8) = (APPLICATION, 0x4a);
    type Answer = bool;

    fn data(&self) -> Vec<u8> {
        vec![payload::SERIAL]
    }

    fn read(&self, answer: &mut Reader<'_>) -> Result<bool, Malformed> {
        let [_capacity, first_eight]: [u8; 2] = answer.array()?;
        Ok(first_eight & 1 << (INSTANCE - 1) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activation_is_asked_for_encrypted_and_authenticated() {
        assert_eq!(hex::encode(ActivateSerial.data()), "0101c4000000");
        assert_eq!(hex::encode(DeactivateSerial.data()), "010100000000");
    }

    #[test]
    fn the_answer_to_activation_tells_sizes_and_port() {
        // An answer of ipmi_sim at port 9623.
        let bytes = hex::decode("00000000200000409725ffff").unwrap();
        let answer = ActivateSerial.read(&mut Reader::new(&bytes));
        assert_eq!(answer, Ok(SerialActivated { longest_in: 32, port: 9623 }));
        assert!(ActivateSerial.read(&mut Reader::new(&bytes[..9])).is_err());
    }

    #[test]
    fn the_first_bit_tells_whether_the_first_instance_is_active() {
        let is_active = |bytes: &[u8]| IsSerialActive.read(&mut Reader::new(bytes));
        assert_eq!(is_active(&[1, 0x01, 0]), Ok(true));
        assert_eq!(is_active(&[1, 0x02, 0]), Ok(false));
        assert!(is_active(&[1]).is_err());
    }
}
