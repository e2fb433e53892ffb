//! Downloads of files whose bytes nobody needs: the kernel of this computer drops the bytes instead of copying them.

use std::io::{self, ErrorKind};
use std::time::Duration;

use rustix::net::{RecvFlags, recv};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::{Position, Url};

/// The most bytes that are dropped in one call.
const PIECE: usize = 256 << 10;
/// The longest head of an answer, in bytes.
const LONGEST_HEAD: usize = 16 << 10;
/// A download fails after this time without data.
const PATIENCE: Duration = Duration::from_secs(30);

/// Downloads a file, and returns its size.
///
/// Fails if the answer is not a success with a length. The caller then downloads the file in the ordinary way.
pub(crate) async fn download(url: &Url) -> io::Result<u64> {
    let unsuited = || io::Error::from(ErrorKind::InvalidData);
    let host = url.host_str().ok_or_else(unsuited)?;
    let port = url.port_or_known_default().ok_or_else(unsuited)?;
    let mut stream = TcpStream::connect((host, port)).await?;
    let path = &url[Position::BeforePath..Position::AfterQuery];
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;

    let mut head = Vec::<u8>::with_capacity(1024);
    let end = loop {
        let read = timeout(PATIENCE, stream.read_buf(&mut head)).await??;
        if let Some(at) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if read == 0 || head.len() > LONGEST_HEAD {
            return Err(unsuited());
        }
    };
    let length = content_length(&head[..end]).ok_or_else(unsuited)?;
    let left = length.checked_sub((head.len() - end) as u64).ok_or_else(unsuited)?;
    drop_bytes(&stream, left).await?;
    Ok(length)
}

/// Drops this many bytes of a stream.
async fn drop_bytes(stream: &TcpStream, mut left: u64) -> io::Result<()> {
    let mut piece = vec![0_u8; PIECE];
    while left > 0 {
        timeout(PATIENCE, stream.readable()).await??;
        let dropped = stream.try_io(Interest::READABLE, || {
            // tcp(7): with MSG_TRUNC, the bytes are not copied into the buffer.
            let (_, dropped) = recv(stream, &mut piece[..], RecvFlags::TRUNC)?;
            Ok(dropped)
        });
        match dropped {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(dropped) => left = left.saturating_sub(dropped as u64),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The length in the head of an answer with status 200.
fn content_length(head: &[u8]) -> Option<u64> {
    let mut lines = std::str::from_utf8(head).ok()?.split("\r\n");
    lines.next().filter(|status| status.starts_with("HTTP/1.1 200 "))?;
    lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        if name.eq_ignore_ascii_case("content-length") { value.trim().parse().ok() } else { None }
    })
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_file_is_dropped_and_counted() {
        const LENGTH: usize = 3_000_000;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/ramdisk?a=b", listener.local_addr().unwrap());
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::<u8>::new();
            while !request.ends_with(b"\r\n\r\n") {
                stream.read_buf(&mut request).await.unwrap();
            }
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {LENGTH}\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(&vec![7_u8; LENGTH]).await.unwrap();
            String::from_utf8(request).unwrap()
        };
        let url = Url::parse(&url).unwrap();
        let (bytes, request) = tokio::join!(download(&url), serve);
        assert_eq!(bytes.unwrap(), LENGTH as u64);
        assert!(request.starts_with("GET /ramdisk?a=b HTTP/1.1\r\n"), "{request}");
    }

    #[test]
    fn only_a_success_with_a_length_is_counted() {
        let length = |head: &str| content_length(head.as_bytes());
        assert_eq!(length("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n"), Some(7));
        assert_eq!(length("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"), None);
        assert_eq!(length("HTTP/1.1 404 Not Found\r\ncontent-length: 7\r\n\r\n"), None);
    }
}
