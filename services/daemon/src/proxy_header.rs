//! The PROXY protocol, versions 1 and 2: a load balancer tells the address of the client at the beginning of a connection. HAProxy's document
//! `proxy-protocol.txt` has the sections that are cited here.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::{AsyncRead, AsyncReadExt};

/// The first bytes of version 2 (section 2.2). No HTTP request and no TLS handshake begins like this.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// The first bytes of version 1.
const TEXT: &[u8] = b"PROXY ";
/// The longest header of version 1, with its end (section 2.1).
const LONGEST_TEXT: usize = 107;
/// The longest addresses of version 2 with the further values that a proxy may add.
const LONGEST_BLOCK: usize = 4096;

/// Why the client of a proxy is not known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProxyHeaderError {
    #[error("cannot read the PROXY header")]
    Read(#[from] io::Error),
    #[error("the connection begins with no PROXY header")]
    Missing,
    #[error("the PROXY header is malformed")]
    Malformed,
}

type Result<T> = std::result::Result<T, ProxyHeaderError>;

/// Reads the header, and nothing after it. Returns the address of the client; `None` if the proxy itself is the client, as in its checks.
pub(crate) async fn read<S: AsyncRead + Unpin>(stream: &mut S) -> Result<Option<SocketAddr>> {
    let mut begin = [0; SIGNATURE.len()];
    stream.read_exact(&mut begin).await?;
    if begin == SIGNATURE {
        return read_block(stream).await;
    }
    if !begin.starts_with(TEXT) {
        return Err(ProxyHeaderError::Missing);
    }
    let mut line = begin.to_vec();
    while !line.ends_with(b"\r\n") {
        if line.len() == LONGEST_TEXT {
            return Err(ProxyHeaderError::Malformed);
        }
        line.push(stream.read_u8().await?);
    }
    let line = std::str::from_utf8(&line).map_err(|_| ProxyHeaderError::Malformed)?;
    client_of_line(line)
}

/// Reads the rest of a header of version 2.
async fn read_block<S: AsyncRead + Unpin>(stream: &mut S) -> Result<Option<SocketAddr>> {
    let (command, family) = (stream.read_u8().await?, stream.read_u8().await?);
    let length = usize::from(stream.read_u16().await?);
    if length > LONGEST_BLOCK {
        return Err(ProxyHeaderError::Malformed);
    }
    let mut block = vec![0; length];
    stream.read_exact(&mut block).await?;
    client_of_block(command, family, &block)
}

/// Section 2.1: `PROXY TCP4 CLIENT SERVER CLIENT-PORT SERVER-PORT`.
fn client_of_line(line: &str) -> Result<Option<SocketAddr>> {
    let words: Vec<&str> = line.trim_end().split(' ').collect();
    let address = match words[..] {
        [_, "UNKNOWN", ..] => return Ok(None),
        [_, "TCP4", address, _, port, _] => address.parse().map(IpAddr::V4).ok().zip(Some(port)),
        [_, "TCP6", address, _, port, _] => address.parse().map(IpAddr::V6).ok().zip(Some(port)),
        _ => None,
    };
    let client = address.and_then(|(ip, port)| Some(SocketAddr::new(ip, port.parse().ok()?)));
    client.map(Some).ok_or(ProxyHeaderError::Malformed)
}

/// Section 2.2: the version with the command, the family with the transport, and the addresses.
fn client_of_block(command: u8, family: u8, block: &[u8]) -> Result<Option<SocketAddr>> {
    let client = match (command, family) {
        // LOCAL, or a family that the proxy cannot express: the addresses are to be ignored.
        (0x20, _) | (0x21, 0x00) => return Ok(None),
        (0x21, 0x11) => block.split_first_chunk::<4>().and_then(|(client, rest)| {
            Some((IpAddr::from(Ipv4Addr::from(*client)), rest.get(4..6)?))
        }),
        (0x21, 0x21) => block.split_first_chunk::<16>().and_then(|(client, rest)| {
            Some((IpAddr::from(Ipv6Addr::from(*client)), rest.get(16..18)?))
        }),
        _ => None,
    };
    let client = client.and_then(|(address, port)| {
        let port = u16::from_be_bytes(port.try_into().ok()?);
        Some(SocketAddr::new(address, port))
    });
    client.map(Some).ok_or(ProxyHeaderError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts the client of a connection that begins so, and that all bytes after the header are left.
    async fn check(header: &[u8], want: std::result::Result<Option<&str>, &str>) {
        let connection = [header, b"GET / HTTP/1.1"].concat();
        let mut stream = connection.as_slice();
        let client = read(&mut stream).await;
        if client.is_ok() {
            assert_eq!(stream, b"GET / HTTP/1.1");
        }
        let client = client.map(|client| client.map(|client| client.to_string()));
        let want = want.map(|client| client.map(str::to_owned)).map_err(str::to_owned);
        assert_eq!(client.map_err(|why| why.to_string()), want, "{header:?}");
    }

    fn version_2(command: u8, family: u8, block: &[u8]) -> Vec<u8> {
        let length = u16::try_from(block.len()).unwrap().to_be_bytes();
        [&SIGNATURE[..], &[command, family], &length, block].concat()
    }

    #[tokio::test]
    async fn the_text_of_version_1_names_the_client() {
        check(b"PROXY TCP4 192.0.2.1 10.0.0.5 4711 6385\r\n", Ok(Some("192.0.2.1:4711"))).await;
        let v6 = b"PROXY TCP6 2001:db8::1 2001:db8::2 4711 6385\r\n";
        check(v6, Ok(Some("[2001:db8::1]:4711"))).await;
        check(b"PROXY UNKNOWN\r\n", Ok(None)).await;
        let malformed = Err("the PROXY header is malformed");
        check(b"PROXY TCP4 2001:db8::1 10.0.0.5 4711 6385\r\n", malformed).await;
        check(b"PROXY TCP4 192.0.2.1 10.0.0.5 65536 6385\r\n", malformed).await;
        check(&[b"PROXY ".as_slice(), &[b'x'; 200]].concat(), malformed).await;
    }

    #[tokio::test]
    async fn the_block_of_version_2_names_the_client() {
        // Two addresses, two ports, and a further value of one byte.
        let v4 = [192, 0, 2, 1, 10, 0, 0, 5, 0x12, 0x67, 0x18, 0xf1, 4, 0, 1, 0];
        check(&version_2(0x21, 0x11, &v4), Ok(Some("192.0.2.1:4711"))).await;
        let mut v6 = [0; 36];
        (v6[0], v6[15], v6[33]) = (0xfd, 1, 80);
        check(&version_2(0x21, 0x21, &v6), Ok(Some("[fd00::1]:80"))).await;
        check(&version_2(0x20, 0x00, &[]), Ok(None)).await;
        let malformed = Err("the PROXY header is malformed");
        check(&version_2(0x21, 0x11, &v4[..8]), malformed).await;
        check(&version_2(0x31, 0x11, &v4), malformed).await;
    }

    #[tokio::test]
    async fn a_connection_without_a_header_is_refused() {
        let missing = Err("the connection begins with no PROXY header");
        check(b"", missing).await;
        check(b"\r\n\r\n\0\r\nQUI", missing).await;
        let why = read(&mut b"PROXY TCP4 192".as_slice()).await.unwrap_err();
        assert_eq!(why.to_string(), "cannot read the PROXY header");
    }
}
