//! The options of a message, or those inside one option; both have the same wire form (RFC 8415 §21.1).

/// Options in the order in which they were received or added. A code can occur several times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options(Vec<(u16, Vec<u8>)>);

/// The length of an option goes beyond the end of its area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the options are cut off")]
pub struct CutOff;

impl Options {
    /// Makes an empty list.
    pub const fn new() -> Self {
        Options(Vec::new())
    }

    /// Decodes options that fill `octets`.
    pub fn decode(mut octets: &[u8]) -> Result<Self, CutOff> {
        let mut options = Options::new();
        while let Some((head, rest)) = octets.split_first_chunk::<4>() {
            let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
            let (value, rest) = rest.split_at_checked(length).ok_or(CutOff)?;
            options.add(u16::from_be_bytes([head[0], head[1]]), value);
            octets = rest;
        }
        if octets.is_empty() { Ok(options) } else { Err(CutOff) }
    }

    /// Encodes the options. A value that is longer than its length field can tell is cut; it fits no datagram either.
    pub fn encode(&self) -> Vec<u8> {
        let mut octets = Vec::new();
        for (code, value) in &self.0 {
            let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
            octets.extend(code.to_be_bytes());
            octets.extend(length.to_be_bytes());
            octets.extend(&value[..usize::from(length)]);
        }
        octets
    }

    /// Adds an option at the end.
    pub fn add(&mut self, code: u16, value: impl Into<Vec<u8>>) {
        self.0.push((code, value.into()));
    }

    /// Returns the first option with this code.
    pub fn get(&self, code: u16) -> Option<&[u8]> {
        self.all(code).next()
    }

    /// Returns all options with this code.
    pub fn all(&self, code: u16) -> impl Iterator<Item = &[u8]> {
        self.0.iter().filter(move |(other, _)| *other == code).map(|(_, value)| value.as_slice())
    }
}
