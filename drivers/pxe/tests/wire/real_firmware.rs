//! Tests with firmware of other projects: SeaBIOS with iPXE, and OVMF, which boot from our server up to a script.
//!
//! Needs root, for network namespaces and a tap.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ipnet::Ipv4Net;
use pxe::ipxe::Script;
use pxe::{
    BootFile, Client, ClientKind, Config, Decision, DhcpConfig, Lease, Listen, Loader, Mode,
};
use pxe::{Observation, RouterAdvertisementConfig, TftpConfig, TftpFiles, start};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Child;
use tokio::time::Instant;

use crate::machine::{self, Firmware, Machine};
use crate::network::{Network, SERVER, missing};
use crate::recorder::Recorder;

const LEASED: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 20);
const REASON: &str = "the firmware test is over";
const SCRIPT: &str = "http://10.78.0.1:8080/";

fn config(mode: Mode) -> Config {
    let mut files = TftpFiles::new();
    for loader in Loader::ALL {
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
        tftp: Some(TftpConfig {
            listen: (SERVER, 69).into(),
            files,
            sessions: 8,
            limits: tftp::Limits::default(),
        }),
        router_advertisements: Some(RouterAdvertisementConfig { interface: "br0".to_owned() }),
    }
}

/// Gives iPXE the script, and gives other firmware the file that loads iPXE.
fn decide(client: &Client, lease: Option<Lease>) -> Decision {
    let base = SCRIPT.parse().expect("it is a URL");
    let boot = match client.kind {
        ClientKind::Ipxe => Some(BootFile::Http { url: base }),
        ClientKind::Pxe | ClientKind::Http | ClientKind::Other => Loader::boot_file(client, &base),
    };
    Decision::Answer { lease, boot }
}

/// Serves the script at `/` and the loaders under their names.
async fn serve_http() {
    let listener = TcpListener::bind((SERVER, 8080)).await.expect("the port is free");
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
    let loader = Loader::ALL.into_iter().find(|loader| loader.file_name() == path);
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

fn check(name: &str, firmware: Firmware, mode: Mode, sightings: &[Observation]) {
    let mut programs = machine::PROGRAMS.to_vec();
    if mode == Mode::Proxy {
        programs.push("dnsmasq");
    }
    let files = [machine::FILES, Loader::ALL.map(Loader::debian_path)].concat();
    if let Some(reason) = missing(&programs, &files) {
        return peers::skip(name, reason);
    }
    let network = Network::new(name);
    network.run(async {
        let lease = (mode == Mode::Full).then_some(Lease { address: LEASED, hostname: None });
        let recorder = Arc::new(Recorder::deciding(move |client| decide(client, lease.clone())));
        let running = start(config(mode), recorder.clone()).await.expect("root may listen");
        let http = tokio::spawn(serve_http());
        let other = match mode {
            Mode::Full => None,
            Mode::Proxy => Some(start_dnsmasq(&network).await),
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

fn offered(address: Option<Ipv4Addr>, boot_file: &str) -> Observation {
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
    check("bios", Firmware::Bios, Mode::Full, &sightings);
}

#[test]
fn a_uefi_machine_loads_ipxe_by_tftp_and_reaches_its_script() {
    let sightings = [offered(Some(LEASED), "snponly.efi"), read(Loader::Snponly)];
    check("uefi", Firmware::Uefi, Mode::Full, &sightings);
}

#[test]
fn a_uefi_machine_loads_ipxe_by_http_and_reaches_its_script() {
    let sightings = [offered(Some(LEASED), "http://10.78.0.1:8080/snponly.efi")];
    check("http", Firmware::UefiHttp, Mode::Full, &sightings);
}

#[test]
fn a_bios_machine_reaches_its_script_beside_another_dhcp_server() {
    check("proxybios", Firmware::Bios, Mode::Proxy, &[offered(None, SCRIPT)]);
}

#[test]
fn a_uefi_machine_reaches_its_script_beside_another_dhcp_server() {
    let sightings = [offered(None, "snponly.efi"), read(Loader::Snponly), offered(None, SCRIPT)];
    check("proxyuefi", Firmware::Uefi, Mode::Proxy, &sightings);
}
