//! Checks the ports. The kernel lists all sockets in `/proc/net`, also for users without privileges (proc_pid_net(5)).

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::configured::{Configured, Listener};
use super::finding::{Check, Findings};

/// The state of a listening TCP socket (Linux, `include/net/tcp_states.h`). Every UDP socket counts.
const LISTENS: &str = "0A";

/// The listening sockets of this computer.
#[derive(Default)]
struct Listening {
    tcp: Vec<SocketAddr>,
    udp: Vec<SocketAddr>,
}

/// Checks that a running service listens on its ports, and that no other program uses the ports of a service that does not answer.
pub(crate) fn look(configured: &Configured, answers: bool, findings: &mut Findings) {
    judge(
        configured.service.program(),
        &configured.listeners(),
        &Listening::now(),
        answers,
        findings,
    );
}

fn judge(
    program: &str,
    wanted: &[Listener],
    listening: &Listening,
    answers: bool,
    findings: &mut Findings,
) {
    let mut is_fine = true;
    for Listener { what, is_tcp, address } in wanted {
        let (sockets, protocol) =
            if *is_tcp { (&listening.tcp, "TCP") } else { (&listening.udp, "UDP") };
        let is_taken = sockets.iter().any(|it| meets(*it, *address));
        let place = format!("{protocol} port {address} ({what})");
        match (answers, is_taken) {
            (true, true) | (false, false) => continue,
            (true, false) => findings.fail(
                Check::Ports,
                format!("{program} answers, but does not listen on {place}"),
                format!("restart {program}: its configuration has changed since the start"),
            ),
            (false, true) => findings.fail(
                Check::Ports,
                format!("another program uses {place}, and {program} does not answer"),
                format!(
                    "find the program with `ss -{}lpn sport = :{}`; stop it, or configure another port for {program}",
                    if *is_tcp { 't' } else { 'u' },
                    address.port()
                ),
            ),
        }
        is_fine = false;
    }
    if is_fine && !wanted.is_empty() {
        let how =
            if answers { "listens on all its ports" } else { "is stopped, and its ports are free" };
        findings.ok(Check::Ports, format!("{program} {how}"));
    }
}

/// Whether the sockets cannot be bound at the same time.
fn meets(one: SocketAddr, other: SocketAddr) -> bool {
    let is_any = one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() == other.port() && (is_any || one.ip() == other.ip())
}

impl Listening {
    fn now() -> Listening {
        let read = |file: &str| fs::read_to_string(format!("/proc/net/{file}")).unwrap_or_default();
        let all = |files: [&str; 2], tcp| {
            files.iter().flat_map(|file| sockets(&read(file), tcp)).collect()
        };
        Listening { tcp: all(["tcp", "tcp6"], true), udp: all(["udp", "udp6"], false) }
    }
}

/// Parses the sockets in a table of `/proc/net`.
fn sockets(table: &str, listening_only: bool) -> Vec<SocketAddr> {
    let socket = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, _, state) = (fields.next()?, fields.next()?, fields.next()?);
        let (ip, port) = local.split_once(':')?;
        let port = u16::from_str_radix(port, 16).ok()?;
        let is_wanted = !listening_only || state == LISTENS;
        is_wanted.then_some(SocketAddr::new(address(ip)?, port))
    };
    table.lines().skip(1).filter_map(socket).collect()
}

/// Parses an address as the kernel prints it: words of 32 bits in memory order, each printed as a number in the byte order of this
/// computer.
fn address(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(hex.get(at..at + 8)?, 16).ok();
    match hex.len() {
        8 => Some(Ipv4Addr::from(word(0)?.to_ne_bytes()).into()),
        32 => {
            let mut octets = [0; 16];
            for (at, octets) in octets.chunks_exact_mut(4).enumerate() {
                octets.copy_from_slice(&word(at * 8)?.to_ne_bytes());
            }
            Some(Ipv6Addr::from(octets).to_canonical())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::tests::lines;

    fn wanted() -> [Listener; 1] {
        [Listener { what: "its API", is_tcp: true, address: "127.0.0.1:6385".parse().unwrap() }]
    }

    fn judged(listening: &[&str], answers: bool) -> Vec<String> {
        let tcp = listening.iter().map(|it| it.parse().unwrap()).collect();
        let mut findings = Findings::default();
        let listening = Listening { tcp, udp: Vec::new() };
        judge("baremetald", &wanted(), &listening, answers, &mut findings);
        lines(&findings)
    }

    #[test]
    fn a_port_that_another_program_uses_is_a_problem() {
        let want = "wrong: another program uses TCP port 127.0.0.1:6385 (its API), and baremetald does not answer";
        assert_eq!(judged(&["0.0.0.0:6385"], false), [want]);
        assert_eq!(
            judged(&["10.0.0.1:6385"], false),
            ["fine: baremetald is stopped, and its ports are free"]
        );
    }

    #[test]
    fn a_port_without_a_listener_is_a_problem_if_the_service_runs() {
        let want =
            "wrong: baremetald answers, but does not listen on TCP port 127.0.0.1:6385 (its API)";
        assert_eq!(judged(&[], true), [want]);
        assert_eq!(judged(&["[::]:6385"], true), ["fine: baremetald listens on all its ports"]);
    }

    #[test]
    fn the_kernels_tables_are_read() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = std::net::UdpSocket::bind("[::1]:0").unwrap();
        let now = Listening::now();
        assert!(now.tcp.contains(&listener.local_addr().unwrap()));
        assert!(now.udp.contains(&socket.local_addr().unwrap()));
        // A connected socket does not listen.
        let own = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(!Listening::now().tcp.contains(&own.local_addr().unwrap()));
    }
}
