//! The side of the viewer: the handshake with the program that shows the screen, which needs no password.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::server::NO_SECURITY;
use crate::version::Version;

/// A viewer that has said which version it speaks, and waits to be admitted.
#[derive(Debug)]
pub struct Viewer<S> {
    stream: S,
    version: Version,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Viewer<S> {
    /// Exchanges versions with a viewer.
    pub async fn greet(mut stream: S) -> io::Result<Self> {
        stream.write_all(Version::Eight.message()).await?;
        let version = Version::read(&mut stream).await?;
        let version = version.ok_or_else(|| invalid("the viewer does not speak RFB"))?;
        Ok(Viewer { stream, version })
    }

    /// Admits the viewer without a password. Returns the stream before the `ServerInit` message, which the server sends.
    ///
    /// The viewer's wish for exclusive access (RFC 6143 §7.3.1) is dropped, so that no viewer disconnects the others.
    pub async fn admit(mut self) -> io::Result<S> {
        let stream = &mut self.stream;
        match self.version {
            Version::Three => stream.write_u32(NO_SECURITY.into()).await?,
            Version::Seven | Version::Eight => {
                stream.write_all(&[1, NO_SECURITY]).await?;
                if stream.read_u8().await? != NO_SECURITY {
                    return Err(invalid("the viewer chose a security type that was not offered"));
                }
            }
        }
        if self.version == Version::Eight {
            stream.write_u32(0).await?;
        }
        let _exclusive = stream.read_u8().await?;
        Ok(self.stream)
    }

    /// Refuses the viewer, with a reason that it can show (RFC 6143 §7.1.2: no security types, then the reason).
    pub async fn refuse(mut self, reason: &str) -> io::Result<()> {
        let mut message = match self.version {
            Version::Three => vec![0, 0, 0, 0],
            Version::Seven | Version::Eight => vec![0],
        };
        message.extend(u32::try_from(reason.len()).unwrap_or_default().to_be_bytes());
        message.extend(reason.as_bytes());
        self.stream.write_all(&message).await?;
        self.stream.flush().await
    }
}

fn invalid(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a viewer that sends `typed`, and returns what it gets.
    async fn gets(typed: &[u8], admits: Result<(), &str>) -> (Vec<u8>, bool) {
        let (mut viewer, proxy) = tokio::io::duplex(1024);
        viewer.write_all(typed).await.unwrap();
        let is_done = async {
            let greeted = Viewer::greet(proxy).await?;
            match admits {
                Ok(()) => greeted.admit().await.map(drop),
                Err(why) => greeted.refuse(why).await,
            }
        };
        let is_done = is_done.await.is_ok();
        let mut got = Vec::new();
        viewer.read_to_end(&mut got).await.unwrap();
        (got, is_done)
    }

    #[tokio::test]
    async fn a_viewer_of_each_version_is_admitted() {
        let greeting = b"RFB 003.008\n".to_vec();
        for (typed, more) in [
            (&b"RFB 003.008\n\x01\x00"[..], &[1, 1, 0, 0, 0, 0][..]),
            (b"RFB 003.007\n\x01\x01", &[1, 1]),
            (b"RFB 003.003\n\x01", &[0, 0, 0, 1]),
        ] {
            assert_eq!(gets(typed, Ok(())).await, ([&greeting[..], more].concat(), true));
        }
    }

    #[tokio::test]
    async fn a_viewer_of_each_version_reads_why_it_is_refused() {
        let greeting = b"RFB 003.008\n".to_vec();
        for (typed, more) in [
            (&b"RFB 003.008\n"[..], &b"\0\0\0\0\x02no"[..]),
            (b"RFB 003.007\n", b"\0\0\0\0\x02no"),
            (b"RFB 003.003\n", b"\0\0\0\0\0\0\0\x02no"),
        ] {
            assert_eq!(gets(typed, Err("no")).await, ([&greeting[..], more].concat(), true));
        }
    }

    #[tokio::test]
    async fn a_viewer_that_breaks_the_protocol_is_not_admitted() {
        for typed in [&b"GET / HTTP/1.1\r\n"[..], b"RFB 003.008\n\x02\x00"] {
            assert!(!gets(typed, Ok(())).await.1, "{typed:?}");
        }
    }
}
