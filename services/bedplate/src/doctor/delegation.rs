//! Checks that a DNS zone is delegated: resolvers of the world have to end up at the cloud's name servers.

use std::net::{Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::timeout;

use super::finding::{Check, Findings};

/// The timeout of a name server.
const PATIENCE: Duration = Duration::from_secs(5);
/// The number of attempts, because packets get lost.
const TRIES: u32 = 2;

/// RFC 1035 §4.1.1: a name server's answer about the name servers of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DelegationState {
    /// The number of name servers of the zone.
    Servers(u16),
    /// The zone does not exist.
    NoSuchName,
    /// The name servers that the zone is delegated to do not answer for the zone.
    Failed,
    /// The name server refuses, with this response code.
    Refused(u8),
}

/// Checks that this zone is delegated.
pub(crate) async fn look(
    zone: Option<&str>,
    resolver: Option<SocketAddr>,
    findings: &mut Findings,
) {
    let Some(zone) = zone else {
        return findings.skipped(Check::Dns, "no zone is configured: set --zone");
    };
    let Some(resolver) = resolver.or_else(system_resolver) else {
        return findings.skipped(Check::Dns, "/etc/resolv.conf has no name server: set --resolver");
    };
    let Some(query) = query(zone) else {
        return findings.fail(
            Check::Dns,
            format!("{zone:?} is not a valid zone name"),
            "write it as vms.example.org.",
        );
    };
    for _ in 0..TRIES {
        if let Some(verdict) = ask(resolver, &query).await {
            return judge(zone, resolver, verdict, findings);
        }
    }
    let next = "check /etc/resolv.conf, or set another name server with --resolver";
    findings.warn(Check::Dns, format!("the name server {resolver} does not answer"), next);
}

/// resolv.conf(5): the first name server.
fn system_resolver() -> Option<SocketAddr> {
    let text = std::fs::read_to_string("/etc/resolv.conf").ok()?;
    let named = text.lines().find_map(|line| line.trim().strip_prefix("nameserver"))?;
    Some(SocketAddr::new(named.trim().parse().ok()?, 53))
}

async fn ask(resolver: SocketAddr, query: &[u8]) -> Option<DelegationState> {
    let any: SocketAddr = match resolver {
        SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).await.ok()?;
    socket.connect(resolver).await.ok()?;
    socket.send(query).await.ok()?;
    let mut packet = [0; 4096];
    let length = timeout(PATIENCE, socket.recv(&mut packet)).await.ok()?.ok()?;
    read(query, packet.get(..length)?)
}

/// RFC 1035 §4.1: the query for the name servers of a zone.
fn query(zone: &str) -> Option<Vec<u8>> {
    // The id can be guessed. A forged answer misleads only this check.
    let mut packet = vec![0xbe, 0xd0, 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in zone.trim_end_matches('.').split('.') {
        let length = u8::try_from(label.len()).ok().filter(|length| (1..=63).contains(length))?;
        packet.push(length);
        packet.extend_from_slice(label.as_bytes());
    }
    // The root label, then type NS and class IN.
    packet.extend_from_slice(&[0, 0, 2, 0, 1]);
    (packet.len() <= 271).then_some(packet)
}

/// Parses the answer to this query.
fn read(query: &[u8], answer: &[u8]) -> Option<DelegationState> {
    let &[high, low, flags, code, _, _, many, few, ..] = answer else { return None };
    let is_answer = query.get(..2) == Some(&[high, low]) && flags & 0x80 != 0;
    let count = u16::from_be_bytes([many, few]);
    is_answer.then_some(match code & 0x0f {
        0 => DelegationState::Servers(count),
        2 => DelegationState::Failed,
        3 => DelegationState::NoSuchName,
        other => DelegationState::Refused(other),
    })
}

fn judge(zone: &str, resolver: SocketAddr, verdict: DelegationState, findings: &mut Findings) {
    let next =
        "ask the administrator of the parent zone for NS records of Designate's name servers";
    match verdict {
        DelegationState::Servers(1..) => {
            findings.ok(Check::Dns, format!("the zone {zone} is delegated"))
        }
        DelegationState::Servers(0) | DelegationState::NoSuchName => {
            let what = format!("the zone {zone} is not delegated: {resolver} finds no NS records");
            findings.fail(Check::Dns, what, next);
        }
        DelegationState::Failed => {
            let what = format!(
                "the name servers of the delegated zone {zone} do not answer, according to {resolver}"
            );
            let next = "check that Designate's name servers have the zone, and that port 53 (UDP and TCP) is reachable from there";
            findings.fail(Check::Dns, what, next);
        }
        DelegationState::Refused(code) => {
            let what =
                format!("the name server {resolver} refuses to resolve {zone} (code {code})");
            findings.warn(Check::Dns, what, "set a recursive name server with --resolver");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::tests::lines;

    /// Runs the check with a name server that answers with this code and so many records.
    async fn judged(code: u8, count: u8) -> Vec<String> {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let mut packet = [0; 512];
            let (length, from) = socket.recv_from(&mut packet).await.unwrap();
            // RFC 1035 §4.1.2: QNAME, QTYPE and QCLASS follow the header of twelve octets.
            assert_eq!(&packet[12..length], b"\x03vms\x07example\x00\x00\x02\x00\x01");
            packet[2] |= 0x80;
            packet[3] = code;
            packet[7] = count;
            socket.send_to(&packet[..length], from).await.unwrap();
        });
        let mut findings = Findings::default();
        look(Some("vms.example."), Some(address), &mut findings).await;
        lines(&findings).iter().map(|it| it.replace(&address.to_string(), "RESOLVER")).collect()
    }

    #[tokio::test]
    async fn a_zone_without_delegation_is_a_problem() {
        assert_eq!(judged(0, 2).await, ["fine: the zone vms.example. is delegated"]);
        let want = "wrong: the zone vms.example. is not delegated: RESOLVER finds no NS records";
        assert_eq!(judged(3, 0).await, [want]);
        assert_eq!(judged(0, 0).await, [want]);
        let want = "wrong: the name servers of the delegated zone vms.example. do not answer, according to RESOLVER";
        assert_eq!(judged(2, 0).await, [want]);
        assert!(judged(5, 0).await[0].starts_with("doubtful: the name server RESOLVER refuses"));
    }

    #[test]
    fn an_invalid_name_is_not_queried() {
        assert_eq!(query("a..b"), None);
        assert_eq!(query(&"x".repeat(64)), None);
    }
}
