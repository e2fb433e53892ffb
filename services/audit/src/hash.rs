//! Hashes of rows, and the head of a trail.

use std::fmt;
use std::str::FromStr;

/// A SHA-256 hash. As text: 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hash(pub(crate) [u8; 32]);

impl Hash {
    /// The `previous` hash of the first row.
    pub const NONE: Hash = Hash([0; 32]);
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({self})")
    }
}

impl FromStr for Hash {
    type Err = InvalidHead;

    fn from_str(text: &str) -> Result<Self, InvalidHead> {
        let mut bytes = [0; 32];
        let is_lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
        match hex::decode_to_slice(text, &mut bytes) {
            Ok(()) if is_lower => Ok(Hash(bytes)),
            Ok(()) | Err(_) => Err(InvalidHead),
        }
    }
}

/// The head of a trail: number and hash of its last row. As text: `NUMBER:HASH`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// 0 if the trail has no rows.
    pub number: i64,
    pub hash: Hash,
}

/// The text is not a valid head (or hash).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a head of an audit trail: give NUMBER:HASH, the number and the hash (64 hexadecimal digits) of a row"
)]
pub struct InvalidHead;

impl Head {
    /// The head of a trail without rows.
    pub const NONE: Head = Head { number: 0, hash: Hash::NONE };
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.number, self.hash)
    }
}

impl FromStr for Head {
    type Err = InvalidHead;

    fn from_str(text: &str) -> Result<Self, InvalidHead> {
        let (number, hash) = text.trim().split_once(':').ok_or(InvalidHead)?;
        let number = number.parse().ok().filter(|number| *number >= 0).ok_or(InvalidHead)?;
        Ok(Head { number, hash: hash.parse()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_is_written() {
        let head = Head { number: 7, hash: Hash([0xab; 32]) };
        assert_eq!(head.to_string().parse(), Ok(head));
        let hash = "ab".repeat(32);
        for bad in
            ["", "7", ":", "7:ab", &format!("-1:{hash}"), &format!("7:{}", hash.to_uppercase())]
        {
            assert_eq!(bad.parse::<Head>(), Err(InvalidHead), "{bad}");
        }
    }
}
