//! An HTTP/1.1 server for tests that can misbehave on demand.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Names are in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// An answer of the server.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// Closes the connection after this many bytes of the body.
    pub(crate) cut: Option<usize>,
    /// Calls the function after this many bytes of the body, and continues once it returns.
    pub(crate) stall: Option<(usize, Box<dyn FnOnce() + Send>)>,
}

impl Reply {
    pub(crate) fn new(status: u16, body: Vec<u8>) -> Reply {
        Reply { status, headers: Vec::new(), body, cut: None, stall: None }
    }

    /// Serves a file, whole or the requested range.
    pub(crate) fn file(request: &Request, bytes: &[u8]) -> Reply {
        let mut reply = match request.header("range").and_then(|range| range.strip_prefix("bytes="))
        {
            Some(range) => {
                let (start, end) = range.split_once('-').unwrap();
                let start: usize = start.parse().unwrap();
                let end = end.parse().map_or(bytes.len(), |end: usize| (end + 1).min(bytes.len()));
                let mut reply = Reply::new(206, bytes[start..end].to_vec());
                let range = format!("bytes {start}-{}/{}", end - 1, bytes.len());
                reply.headers.push(("Content-Range", range));
                reply
            }
            None => Reply::new(200, bytes.to_vec()),
        };
        reply.headers.push(("ETag", "\"one\"".to_owned()));
        reply
    }
}

pub(crate) struct Server {
    address: SocketAddr,
}

impl Server {
    pub(crate) fn start(handler: impl Fn(Request) -> Reply + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let handler = Arc::new(handler);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let handler = handler.clone();
                // The thread ends when its client disconnects.
                thread::spawn(move || converse(stream, &*handler));
            }
        });
        Server { address }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/{}", self.address, path.trim_start_matches('/'))
    }
}

fn converse(stream: TcpStream, handler: &dyn Fn(Request) -> Reply) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut stream = stream;
    loop {
        let request = read(&mut reader)?;
        let Reply { status, headers, body, cut, stall } = handler(request);
        let mut head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).ok()?;
        let mut sent = 0;
        if let Some((at, wait)) = stall {
            stream.write_all(&body[..at]).ok()?;
            sent = at;
            wait();
        }
        if let Some(cut) = cut {
            stream.write_all(&body[sent..cut.max(sent)]).ok()?;
            return None;
        }
        stream.write_all(&body[sent..]).ok()?;
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.map_or(0, |(_, value)| value.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, path, headers, body })
}
