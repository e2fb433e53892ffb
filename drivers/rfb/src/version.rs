//! The protocol version, which both sides send first (RFC 6143 §7.1.1).

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// The length of the message.
const LENGTH: usize = 12;

/// A protocol version. Versions differ in their handshake alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Version {
    /// The server alone chooses the security type.
    Three,
    /// The viewer chooses the security type.
    Seven,
    /// Like `Seven`, and each login has a result with a reason.
    Eight,
}

impl Version {
    /// The message that names this version.
    pub(crate) const fn message(self) -> &'static [u8; LENGTH] {
        match self {
            Version::Three => b"RFB 003.003\n",
            Version::Seven => b"RFB 003.007\n",
            Version::Eight => b"RFB 003.008\n",
        }
    }

    /// Reads the message of the peer; `None` if the peer does not speak RFB.
    pub(crate) async fn read(peer: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Version>> {
        let mut message = [0; LENGTH];
        peer.read_exact(&mut message).await?;
        Ok(parse(&message))
    }
}

/// The version to use with a peer that sent `message`. RFC 6143 §7.1.1: any other version than 3.7 and 3.8 is treated as 3.3, except later
/// ones, which some servers send and which include 3.8.
fn parse(message: &[u8; LENGTH]) -> Option<Version> {
    let numbers = message.strip_prefix(b"RFB ")?.strip_suffix(b"\n")?;
    let (major, minor) = std::str::from_utf8(numbers).ok()?.split_once('.')?;
    Some(match (major.parse::<u16>().ok()?, minor.parse::<u16>().ok()?) {
        (0..3, _) => return None,
        (3, 0..7) => Version::Three,
        (3, 7) => Version::Seven,
        (3, 8..) | (4.., _) => Version::Eight,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_the_latest_that_both_sides_know() {
        for (message, want) in [
            (b"RFB 003.003\n", Some(Version::Three)),
            (b"RFB 003.005\n", Some(Version::Three)),
            (b"RFB 003.007\n", Some(Version::Seven)),
            (b"RFB 003.008\n", Some(Version::Eight)),
            // A server by Apple, and one by RealVNC.
            (b"RFB 003.889\n", Some(Version::Eight)),
            (b"RFB 004.001\n", Some(Version::Eight)),
            (b"RFB 002.000\n", None),
            (b"RFB +03.008\r", None),
            (b"SSH-2.0-ssh\n", None),
            (b"HTTP/1.1 400", None),
        ] {
            assert_eq!(parse(message), want, "{message:?}");
        }
        for version in [Version::Three, Version::Seven, Version::Eight] {
            assert_eq!(parse(version.message()), Some(version));
        }
    }
}
