//! Tests with firmware of other projects: SeaBIOS with iPXE, and OVMF, which boot from our server up to a script.
//!
//! Needs root, for network namespaces and a tap.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ipnet::{Ipv4Net, Ipv6Net};
use pxe::ipxe::Script;
use pxe::{
    BootFile, Client, ClientKind, Config, Decision, DhcpConfig, DhcpV6Config, Lease, Listen,
    Loader, Mode,
};
use pxe::{Observation, RouterAdvertisementConfig, TftpConfig, TftpFiles, start};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Child;
use tokio::time::Instant;

use crate::machine::{self, Firmware, Machine};
use crate::network::{Network, SERVER, SERVER_V6, missing};
use crate::recorder::Recorder;

const LEASED: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 78, 0, 20));
const REASON: &str = "the firmware test is over";
const SCRIPT: &str = "http://10.78.0.1:8080/";
const LEASED_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd78, 0, 0, 0, 0, 0, 0, 0x20));
const SCRIPT_V6: &str = "http://[fd78::1]:8080/";

fn config(mode: Mode) -> Config {
    let mut files = TftpFiles::new();
    for loader in Loader::X86 {
        files.load(loader.file_name(), Path::new(loader.debian_path())).expect("it was looked for");
    }
    Config {
        dhcp: Some(DhcpConfig {
            listen: Listen::Interface { name: "br0".to_owned(), address: SERVER },
            mode,
            subnet: Ipv4Net::new_assert(SERVER, 24),
            router: None,
            dns: Vec::new(),
            domain: None,
            lease_time: Duration::from_secs(600),
            tftp_server: None,
        }),
        dhcp_v6: None,
        tftp: Some(TftpConfig {
            listen: (SERVER, 69).into(),
            files,
            sessions: 8,
            limits: tftp::Limits::default(),
        }),
        router_advertisements: Some(RouterAdvertisementConfig {
            interface: "br0".to_owned(),
            managed: None,
        }),
    }
}

/// A network with IPv6 only.
fn config_v6() -> Config {
    let config = config(Mode::Full);
    let subnet = Ipv6Net::new_assert(SERVER_V6, 64);
    Config {
        dhcp: None,
        dhcp_v6: Some(DhcpV6Config {
            listen: Listen::Interface { name: "br0".to_owned(), address: SERVER_V6 },
            subnet,
            dns: Vec::new(),
            lease_time: Duration::from_secs(600),
        }),
        tftp: config.tftp.map(|tftp| TftpConfig { listen: (SERVER_V6, 69).into(), ..tftp }),
        router_advertisements: Some(RouterAdvertisementConfig {
            interface: "br0".to_owned(),
            managed: Some(subnet),
        }),
    }
}

/// Gives iPXE the script, and gives other firmware the file that loads iPXE.
fn decide(client: &Client, script: &str, lease: Option<Lease>) -> Decision {
    let base = script.parse().expect("it is a URL");
    let boot = match client.kind {
        ClientKind::Ipxe => Some(BootFile::Http { url: base }),
        ClientKind::Pxe | ClientKind::Http | ClientKind::Other => Loader::boot_file(client, &base),
    };
    Decision::Answer { lease, boot }
}

/// Serves the script at `/` and the loaders under their names.
async fn serve_http(address: IpAddr) {
    let listener = TcpListener::bind((address, 8080)).await.expect("the port is free");
    loop {
        let (stream, _) = listener.accept().await.expect("the listener works");
        tokio::spawn(answer_http(stream));
    }
}

async fn answer_http(mut stream: TcpStream) {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if stream.read_buf(&mut head).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let (method, path) = head.split_once(" /").expect("a request line");
    let path = path.split(' ').next().expect("a path");
    let loader = Loader::X86.into_iter().find(|loader| loader.file_name() == path);
    let (kind, body) = match loader {
        Some(loader) => ("application/efi", std::fs::read(loader.debian_path()).expect("is there")),
        None => ("text/plain", Script::refuse(REASON).to_string().into_bytes()),
    };
    let mut answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    if method != "HEAD" {
        answer.extend(body);
    }
    // A client that closes the connection early fails a later check.
    let _ = stream.write_all(&answer).await;
}

/// Starts the other DHCP server of a ProxyDHCP network: dnsmasq in the client's namespace, which only gives addresses.
async fn start_dnsmasq(network: &Network) -> Child {
    let own = ["addr", "add", "10.78.0.2/24", "dev", "eth0"];
    let added = network.in_client("ip").args(own).status().await.expect("ip runs");
    assert!(added.success(), "cannot give dnsmasq an address");
    let arguments = "--no-daemon --conf-file=/dev/null --port=0 --user=root --bind-interfaces \
        --interface=eth0 --dhcp-range=10.78.0.20,10.78.0.20,255.255.255.0,10m --no-ping \
        --dhcp-authoritative --leasefile-ro";
    let mut dnsmasq = network.in_client("dnsmasq");
    dnsmasq.args(arguments.split_whitespace()).spawn().expect("dnsmasq runs")
}

/// The network that a machine boots in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Segment {
    V4(Mode),
    V6,
}

fn check(name: &str, firmware: Firmware, segment: Segment, sightings: &[Observation]) {
    let mut programs = machine::PROGRAMS.to_vec();
    if segment == Segment::V4(Mode::Proxy) {
        programs.push("dnsmasq");
    }
    let files = [machine::FILES, Loader::X86.map(Loader::debian_path)].concat();
    if let Some(reason) = missing(&programs, &files) {
        return peers::skip(name, reason);
    }
    let network = Network::new(name);
    network.run(async {
        let (config, server, script, address) = match segment {
            Segment::V4(Mode::Full) => (config(Mode::Full), SERVER.into(), SCRIPT, Some(LEASED)),
            Segment::V4(Mode::Proxy) => (config(Mode::Proxy), SERVER.into(), SCRIPT, None),
            Segment::V6 => (config_v6(), SERVER_V6.into(), SCRIPT_V6, Some(LEASED_V6)),
        };
        let lease = address.map(|address| Lease { address, hostname: None });
        let decide = move |client: &Client| decide(client, script, lease.clone());
        let recorder = Arc::new(Recorder::deciding(decide));
        let running = start(config, recorder.clone()).await.expect("root may listen");
        let http = tokio::spawn(serve_http(server));
        let other = match segment {
            Segment::V4(Mode::Proxy) => Some(start_dnsmasq(&network).await),
            Segment::V4(Mode::Full) | Segment::V6 => None,
        };

        let began = Instant::now();
        let mut machine = Machine::power_on(firmware, name);
        machine.says(REASON).await;
        eprintln!("{name}: the script ran {:.1} s after power on", began.elapsed().as_secs_f32());
        recorder.saw_all(sightings).await;

        machine.power_off().await;
        http.abort();
        drop(other);
        running.stop().await;
    });
}

fn offered(address: Option<IpAddr>, boot_file: &str) -> Observation {
    Observation::DhcpOffered { address, boot_file: Some(boot_file.to_owned()) }
}

fn read(loader: Loader) -> Observation {
    Observation::TftpRead { file: loader.file_name().to_owned() }
}

#[test]
fn a_bios_machine_reaches_its_script() {
    let sightings = [
        Observation::DhcpDiscover,
        offered(Some(LEASED), SCRIPT),
        Observation::DhcpAcked { address: LEASED },
    ];
    check("bios", Firmware::Bios, Segment::V4(Mode::Full), &sightings);
}

#[test]
fn a_uefi_machine_loads_ipxe_by_tftp_and_reaches_its_script() {
    let sightings = [offered(Some(LEASED), "snponly.efi"), read(Loader::Snponly)];
    check("uefi", Firmware::Uefi, Segment::V4(Mode::Full), &sightings);
}

#[test]
fn a_uefi_machine_loads_ipxe_by_http_and_reaches_its_script() {
    let sightings = [offered(Some(LEASED), "http://10.78.0.1:8080/snponly.efi")];
    check("http", Firmware::UefiHttp, Segment::V4(Mode::Full), &sightings);
}

#[test]
fn a_bios_machine_reaches_its_script_beside_another_dhcp_server() {
    check("proxybios", Firmware::Bios, Segment::V4(Mode::Proxy), &[offered(None, SCRIPT)]);
}

#[test]
fn a_uefi_machine_reaches_its_script_beside_another_dhcp_server() {
    let sightings = [offered(None, "snponly.efi"), read(Loader::Snponly), offered(None, SCRIPT)];
    check("proxyuefi", Firmware::Uefi, Segment::V4(Mode::Proxy), &sightings);
}

#[test]
fn a_uefi_machine_loads_ipxe_by_tftp_over_ipv6_and_reaches_its_script() {
    let sightings = [
        offered(Some(LEASED_V6), "tftp://[fd78::1]/snponly.efi"),
        read(Loader::Snponly),
        offered(Some(LEASED_V6), SCRIPT_V6),
        Observation::DhcpAcked { address: LEASED_V6 },
    ];
    check("uefi6", Firmware::UefiV6, Segment::V6, &sightings);
}

#[test]
fn a_uefi_machine_loads_ipxe_by_http_over_ipv6_and_reaches_its_script() {
    let sightings = [
        offered(Some(LEASED_V6), "http://[fd78::1]:8080/snponly.efi"),
        offered(Some(LEASED_V6), SCRIPT_V6),
    ];
    check("http6", Firmware::UefiHttp, Segment::V6, &sightings);
}
