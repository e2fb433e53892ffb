//! The side of the server: connects to the VNC server of a BMC and logs in.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use des::Des;
use des::cipher::{BlockCipherEncrypt, KeyInit};
use hardware::{AllowedHosts, HostRefused};
use secrecy::{ExposeSecret, SecretString};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use crate::version::Version;

/// The security type None (RFC 6143 §7.2.1).
pub(crate) const NO_SECURITY: u8 = 1;
/// The security type VNC Authentication (RFC 6143 §7.2.2).
const BY_PASSWORD: u8 = 2;
/// The longest reason of a server that is read.
const MAX_REASON_BYTES: u64 = 1024;

/// A VNC server, and the password that it asks for.
#[derive(Clone, Debug)]
pub struct Server {
    /// A name or an address. An IPv6 address has no brackets.
    pub host: String,
    pub port: u16,
    /// Empty for a server that asks for none.
    pub password: SecretString,
    /// The hosts that connections may go to.
    pub allowed: AllowedHosts,
    /// The limit for connecting and logging in.
    pub timeout: Duration,
}

/// The reason why no session with a VNC server was opened.
#[derive(Debug, thiserror::Error)]
pub enum RfbError {
    #[error("cannot reach the VNC server at {server}")]
    Unreachable { server: String, source: io::Error },
    #[error("cannot connect to the VNC server at {server}")]
    Forbidden { server: String, source: HostRefused },
    /// The server speaks another protocol, such as HTTPS, or an older RFB.
    #[error("the program at {server} is not a VNC server")]
    NotRfb { server: String },
    #[error(
        "the VNC server at {server} offers no login that this service knows, but the security types {types:?}; \
         enable VNC Authentication in the BMC, without encryption"
    )]
    UnknownSecurity { server: String, types: Vec<u8> },
    /// The server asks for a password, and the node has none.
    #[error("the VNC server at {server} asks for a password")]
    NeedsPassword { server: String },
    /// The server rejected the password.
    #[error("the VNC server at {server} rejected the password{}", reason(why))]
    WrongPassword { server: String, why: String },
    /// The server refused the connection before the login, for example because it has no free session.
    #[error("the VNC server at {server} refused the connection{}", reason(why))]
    Refused { server: String, why: String },
}

fn reason(why: &str) -> String {
    if why.is_empty() { String::new() } else { format!(": {why}") }
}

impl Server {
    /// Connects and logs in. The returned stream is before the `ServerInit` message: a session that is shared with other viewers was asked
    /// for.
    pub async fn connect(&self) -> Result<TcpStream, RfbError> {
        let opening = async {
            let mut stream = self.dial().await?;
            self.log_in(&mut stream).await?;
            Ok(stream)
        };
        let expired = || self.unreachable(io::ErrorKind::TimedOut.into());
        timeout(self.timeout, opening).await.unwrap_or_else(|_| Err(expired()))
    }

    async fn dial(&self) -> Result<TcpStream, RfbError> {
        let found = lookup_host((self.host.as_str(), self.port)).await;
        let mut last = None;
        for address in found.map_err(|source| self.unreachable(source))? {
            last = Some(match self.allowed.check_resolved(&self.host, address.ip()) {
                Ok(()) => match connect(address).await {
                    Ok(stream) => return Ok(stream),
                    Err(source) => self.unreachable(source),
                },
                Err(source) => RfbError::Forbidden { server: self.name(), source },
            });
        }
        Err(last.unwrap_or_else(|| self.unreachable(io::ErrorKind::NotFound.into())))
    }

    async fn log_in(
        &self,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    ) -> Result<(), RfbError> {
        let lost = |source| self.unreachable(source);
        let version = Version::read(stream).await.map_err(lost)?;
        let version = version.ok_or_else(|| RfbError::NotRfb { server: self.name() })?;
        stream.write_all(version.message()).await.map_err(lost)?;
        let security = self.choose_security(stream, version).await?;
        if security == BY_PASSWORD {
            self.prove(stream).await.map_err(lost)?;
        }
        // RFC 6143 §7.1.3. Before 3.8 no result follows the security type None.
        let has_result = security == BY_PASSWORD || version == Version::Eight;
        if has_result && stream.read_u32().await.map_err(lost)? != 0 {
            let why = match version {
                Version::Three | Version::Seven => String::new(),
                Version::Eight => read_reason(stream).await,
            };
            return Err(RfbError::WrongPassword { server: self.name(), why });
        }
        // RFC 6143 §7.3.1: ClientInit with the shared flag.
        stream.write_all(&[1]).await.map_err(lost)
    }

    /// Agrees on a security type that this service knows.
    async fn choose_security(
        &self,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
        version: Version,
    ) -> Result<u8, RfbError> {
        let lost = |source| self.unreachable(source);
        let types = match version {
            Version::Three => {
                let only = stream.read_u32().await.map_err(lost)?;
                if only == 0 { Vec::new() } else { vec![u8::try_from(only).unwrap_or(u8::MAX)] }
            }
            Version::Seven | Version::Eight => {
                let mut types = vec![0; stream.read_u8().await.map_err(lost)?.into()];
                stream.read_exact(&mut types).await.map_err(lost)?;
                types
            }
        };
        if types.is_empty() {
            let why = read_reason(stream).await;
            return Err(RfbError::Refused { server: self.name(), why });
        }
        let has_password = !self.password.expose_secret().is_empty();
        let chosen = match (types.contains(&BY_PASSWORD), types.contains(&NO_SECURITY)) {
            (true, _) if has_password => BY_PASSWORD,
            (_, true) => NO_SECURITY,
            (true, false) => return Err(RfbError::NeedsPassword { server: self.name() }),
            (false, false) => return Err(RfbError::UnknownSecurity { server: self.name(), types }),
        };
        if version > Version::Three {
            stream.write_all(&[chosen]).await.map_err(lost)?;
        }
        Ok(chosen)
    }

    /// Answers the challenge of the server (RFC 6143 §7.2.2).
    async fn prove(&self, stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> io::Result<()> {
        let mut challenge = [0; 16];
        stream.read_exact(&mut challenge).await?;
        let answer = encrypted(challenge, self.password.expose_secret());
        stream.write_all(&answer).await
    }

    fn unreachable(&self, source: io::Error) -> RfbError {
        RfbError::Unreachable { server: self.name(), source }
    }

    fn name(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    // Keys and movements of the pointer are small messages.
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Encrypts the challenge with DES. The key is the password, cut or filled with zeros to 8 bytes, with the bits of each byte reversed (RFC
/// 6143 §7.2.2 and its erratum 4951).
fn encrypted(mut challenge: [u8; 16], password: &str) -> [u8; 16] {
    let mut key = [0; 8];
    for (slot, byte) in key.iter_mut().zip(password.bytes()) {
        *slot = byte.reverse_bits();
    }
    let cipher = Des::new(&key.into());
    for block in challenge.chunks_exact_mut(8) {
        if let Ok(block) = block.try_into() {
            cipher.encrypt_block(block);
        }
    }
    challenge
}

/// Reads the reason of a refusal, as printable text. The refusal counts also if its reason cannot be read.
async fn read_reason(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let Ok(length) = stream.read_u32().await else { return String::new() };
    let mut reason = Vec::new();
    let mut limited = stream.take(u64::from(length).min(MAX_REASON_BYTES));
    if limited.read_to_end(&mut reason).await.is_err() {
        return String::new();
    }
    let reason = String::from_utf8_lossy(&reason).into_owned();
    reason.chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests;
