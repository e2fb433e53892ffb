//! Users and their passwords (IPMI 2.0 §22.27 to §22.30).

use crate::wire::{Malformed, Reader};

use super::{APPLICATION, Command};

/// The channel number for the channel of the request (IPMI 2.0 table 6-1).
const THIS_CHANNEL: u8 = 0x0e;
/// The operation of Set User Password that sets the password.
const SET_PASSWORD: u8 = 2;
/// The bit of Set User Password for a password of 20 bytes.
const LONG: u8 = 0x80;

/// The bytes of a password that every BMC can store.
pub(crate) const SHORT_PASSWORD: usize = 16;
const LONG_PASSWORD: usize = 20;

/// Get User Access (IPMI 2.0 §22.27), of which only the number of user ids is read.
pub(crate) struct CountUsers;

impl Command for CountUsers {
    const NAME: &'static str = "Get User Access";
    const CODE: (u8, u8) = (APPLICATION, 0x44);
    type Answer = u8;

    fn data(&self) -> Vec<u8> {
        vec![THIS_CHANNEL, 1]
    }

    fn read(&self, answer: &mut Reader<'_>) -> Result<u8, Malformed> {
        Ok(answer.u8()? & 0x3f)
    }
}

/// Get User Name (IPMI 2.0 §22.29).
pub(crate) struct GetUserName {
    pub(crate) user: u8,
}

impl Command for GetUserName {
    const NAME: &'static str = "Get User Name";
    const CODE: (u8, u8) = (APPLICATION, 0x46);
    type Answer = Vec<u8>;

    fn data(&self) -> Vec<u8> {
        vec![self.user]
    }

    fn read(&self, answer: &mut Reader<'_>) -> Result<Vec<u8>, Malformed> {
        let padded = answer.rest();
        let end = padded.iter().position(|byte| *byte == 0).unwrap_or(padded.len());
        Ok(padded[..end].to_vec())
    }
}

/// Set User Password (IPMI 2.0 §22.30), for a password of at most 20 bytes.
pub(crate) struct SetUserPassword<'a> {
    pub(crate) user: u8,
    pub(crate) password: &'a str,
}

impl Command for SetUserPassword<'_> {
    const NAME: &'static str = "Set User Password";
    const CODE: (u8, u8) = (APPLICATION, 0x47);
    type Answer = ();

    fn data(&self) -> Vec<u8> {
        let is_long = self.password.len() > SHORT_PASSWORD;
        let (flag, length) = if is_long { (LONG, LONG_PASSWORD) } else { (0, SHORT_PASSWORD) };
        let mut data = vec![flag | self.user, SET_PASSWORD];
        data.extend_from_slice(self.password.as_bytes());
        data.resize(2 + length, 0);
        data
    }

    fn read(&self, _answer: &mut Reader<'_>) -> Result<(), Malformed> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_padded_to_one_of_both_lengths() {
        let data = |password| SetUserPassword { user: 2, password }.data();
        let sixteen = data("0123456789abcdef");
        assert_eq!((sixteen.len(), sixteen[0], sixteen[17]), (18, 2, b'f'));
        let seventeen = data("0123456789abcdefg");
        assert_eq!((seventeen.len(), &seventeen[..2]), (22, &[0x82, 2][..]));
        assert_eq!(seventeen[18..], [b'g', 0, 0, 0]);
    }

    #[test]
    fn a_name_ends_at_its_padding() {
        let read = |bytes: &[u8]| GetUserName { user: 2 }.read(&mut Reader::new(bytes)).unwrap();
        assert_eq!(read(b"admin\0\0\0\0\0\0\0\0\0\0\0"), b"admin");
        assert_eq!(read(b"0123456789abcdef"), b"0123456789abcdef");
        assert_eq!(read(b""), b"");
    }
}
