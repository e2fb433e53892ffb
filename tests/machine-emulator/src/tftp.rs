//! A TFTP client like a boot ROM's: reads one file (RFC 1350) with the options of RFC 2347, 2348 and 2349.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::timeout;

/// The block size that PXE ROMs request: it fills an Ethernet frame.
const BLOCK: usize = 1468;
const PATIENCE: Duration = Duration::from_secs(1);
const TRIES: u32 = 5;

/// The reasons why a transfer failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TftpError {
    #[error("cannot use a socket for TFTP")]
    Socket(#[from] io::Error),
    #[error("no answer from {0}")]
    Silence(SocketAddr),
    #[error("the server refuses with {code}: {message}")]
    Refused { code: u16, message: String },
    #[error("the server sent what is not TFTP")]
    Nonsense,
}

/// Reads `file` from `server` with the local address `own`; returns the file's size and drops its data.
pub(crate) async fn read(
    own: SocketAddr,
    server: SocketAddr,
    file: &str,
) -> Result<u64, TftpError> {
    let socket = UdpSocket::bind(own).await?;
    let mut request = vec![0, 1];
    for word in [file, "octet", "blksize", &BLOCK.to_string(), "tsize", "0"] {
        request.extend(word.as_bytes());
        request.push(0);
    }
    let mut transfer = Transfer { socket, peer: server, block: 512, last: 0, bytes: 0 };
    let mut packet = request;
    loop {
        match transfer.exchange(&packet).await? {
            Next::Send(next) => packet = next,
            Next::Done => return Ok(transfer.bytes),
        }
    }
}

struct Transfer {
    socket: UdpSocket,
    /// The server's port for this transfer, known after its first packet (RFC 1350 §4).
    peer: SocketAddr,
    block: usize,
    /// The number of the last received block.
    last: u16,
    bytes: u64,
}

enum Next {
    Send(Vec<u8>),
    Done,
}

impl Transfer {
    /// Sends `packet` until a useful answer arrives.
    async fn exchange(&mut self, packet: &[u8]) -> Result<Next, TftpError> {
        let mut answer = [0; BLOCK + 64];
        for _ in 0..TRIES {
            self.socket.send_to(packet, self.peer).await?;
            let deadline = tokio::time::Instant::now() + PATIENCE;
            while let Ok(received) =
                timeout(deadline.duration_since(tokio::time::Instant::now()), async {
                    self.socket.recv_from(&mut answer).await
                })
                .await
            {
                let (length, from) = received?;
                let begun = self.last > 0 || self.block != 512;
                if from.ip() != self.peer.ip() || (begun && from.port() != self.peer.port()) {
                    continue;
                }
                if let Some(next) = self.take(&answer[..length], from)? {
                    return Ok(next);
                }
            }
        }
        Err(TftpError::Silence(self.peer))
    }

    /// Handles `answer`; `None` if it is useless.
    fn take(&mut self, answer: &[u8], from: SocketAddr) -> Result<Option<Next>, TftpError> {
        match answer {
            // A DATA packet.
            [0, 3, high, low, data @ ..] => {
                let number = u16::from_be_bytes([*high, *low]);
                if number != self.last.wrapping_add(1) {
                    return Ok(None);
                }
                self.peer = from;
                self.last = number;
                self.bytes += data.len() as u64;
                if data.len() < self.block {
                    // The last acknowledgement; if it is lost, the server times out.
                    let acknowledgement = [0, 4, *high, *low];
                    let _ = self.socket.try_send_to(&acknowledgement, from);
                    return Ok(Some(Next::Done));
                }
                Ok(Some(Next::Send(vec![0, 4, *high, *low])))
            }
            // OACK, RFC 2347.
            [0, 6, options @ ..] if self.last == 0 => {
                self.peer = from;
                let words: Vec<&[u8]> = options.split(|octet| *octet == 0).collect();
                for pair in words.chunks_exact(2) {
                    if pair[0].eq_ignore_ascii_case(b"blksize") {
                        let size = std::str::from_utf8(pair[1]).ok().and_then(|t| t.parse().ok());
                        let size = size.filter(|size| (8..=BLOCK).contains(size));
                        self.block = size.ok_or(TftpError::Nonsense)?;
                    }
                }
                Ok(Some(Next::Send(vec![0, 4, 0, 0])))
            }
            [0, 5, high, low, message @ ..] => Err(TftpError::Refused {
                code: u16::from_be_bytes([*high, *low]),
                message: String::from_utf8_lossy(message).trim_end_matches('\0').to_owned(),
            }),
            _ => Ok(None),
        }
    }
}
