//! A minimal HTTP client that hides nothing: one request, one connection, all bytes.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;

/// The header with the microversion.
pub const VERSION_HEADER: &str = "X-OpenStack-Ironic-API-Version";

/// A request under construction.
#[derive(Clone, Debug)]
pub struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// The answer to a request.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    /// All headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Request {
    /// Makes a request without body and headers.
    pub fn new(method: &str, path: &str) -> Self {
        Request { method: method.into(), path: path.into(), headers: Vec::new(), body: Vec::new() }
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the microversion.
    pub fn version(self, version: &str) -> Self {
        self.header(VERSION_HEADER, version)
    }

    /// Sets a JSON body.
    pub fn json(self, body: &Value) -> Self {
        self.body(body.to_string().as_bytes()).header("Content-Type", "application/json")
    }

    /// Sets a body of any bytes.
    pub fn body(mut self, body: &[u8]) -> Self {
        self.body = body.to_vec();
        self
    }

    /// Sends the request to `url`, which is `http://HOST:PORT`.
    #[track_caller]
    pub fn send(&self, url: &str) -> Reply {
        let host = url.strip_prefix("http://").expect("the service is asked over http");
        let mut stream = TcpStream::connect(host).expect("the service listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout can be set");
        // With HTTP/1.0 the body ends with the connection and is not chunked.
        let mut head = format!("{} {} HTTP/1.0\r\nHost: {host}\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        if !self.body.is_empty() {
            let _ = write!(head, "Content-Length: {}\r\n", self.body.len());
        }
        stream.write_all(format!("{head}\r\n").as_bytes()).expect("the service takes the head");
        // A service may refuse a body before it has read all of it.
        let _ = stream.write_all(&self.body);
        let mut raw = Vec::new();
        stream.read_to_end(&mut raw).expect("the service answers");
        Reply::parse(&String::from_utf8_lossy(&raw))
    }
}

impl Reply {
    #[track_caller]
    fn parse(raw: &str) -> Self {
        let (head, body) = raw.split_once("\r\n\r\n").expect("an answer has a head and a body");
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1));
        let headers = lines.filter_map(|line| line.split_once(':'));
        Reply {
            status: status.and_then(|code| code.parse().ok()).expect("an answer has a status"),
            headers: headers
                .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
                .collect(),
            body: body.to_owned(),
        }
    }

    /// Returns the value of a header; the name is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        self.read()
    }

    /// Returns the body as a value of this type.
    #[track_caller]
    pub fn read<T: DeserializeOwned>(&self) -> T {
        match serde_json::from_str(&self.body) {
            Ok(value) => value,
            Err(error) => panic!("the answer cannot be read: {error}\n{self:?}"),
        }
    }

    /// Returns the error inside the envelope: JSON in a JSON string.
    #[track_caller]
    pub fn error(&self) -> Value {
        let envelope = self.json();
        let inner = envelope["error_message"].as_str();
        let inner = inner.unwrap_or_else(|| panic!("error_message is not a string: {}", self.body));
        serde_json::from_str(inner).expect("error_message holds JSON")
    }

    /// Checks the status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.body);
        self
    }
}
