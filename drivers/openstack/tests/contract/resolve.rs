//! Queries a name server, to check Designate's answers independently.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::timeout;

/// Returns the name server that was given, if there is one.
pub(crate) fn server() -> Option<SocketAddr> {
    let given = std::env::var("BEDPLATE_TEST_DNS").ok()?;
    Some(given.parse().expect("BEDPLATE_TEST_DNS is ADDRESS:PORT"))
}

/// Returns the IPv4 addresses of a name, sorted.
pub(crate) async fn addresses(server: SocketAddr, name: &str) -> Vec<String> {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(server).await.unwrap();
    // RFC 1035 §4.1: an id, no flags, one question.
    let mut question = vec![0x12, 0x34, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.trim_end_matches('.').split('.') {
        question.push(u8::try_from(label.len()).unwrap());
        question.extend(label.as_bytes());
    }
    question.extend([0, 0, 1, 0, 1]);
    socket.send(&question).await.unwrap();
    let mut answer = [0; 1500];
    let length = timeout(Duration::from_secs(5), socket.recv(&mut answer)).await.unwrap().unwrap();
    let count = u16::from_be_bytes([answer[6], answer[7]]);
    // The answer begins with the question, unchanged.
    let mut rest = &answer[question.len()..length];
    let mut found = Vec::new();
    for _ in 0..count {
        // A pointer to the name, type, class, time to live, length.
        let kind = u16::from_be_bytes([rest[2], rest[3]]);
        let size = usize::from(u16::from_be_bytes([rest[10], rest[11]]));
        let data = &rest[12..12 + size];
        if kind == 1 {
            found.push(Ipv4Addr::new(data[0], data[1], data[2], data[3]).to_string());
        }
        rest = &rest[12 + size..];
    }
    found.sort();
    found
}
