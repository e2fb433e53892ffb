//! Tests with clients of other projects: `udhcpc` and `dhcping` in a network namespace (root only), and every TFTP client of Debian on
//! loopback.

use std::net::{IpAddr, Ipv4Addr};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use crate::network::{Network, SERVER, SERVER_V6, missing};
use crate::recorder::Recorder;
use ipnet::{Ipv4Net, Ipv6Net};
use pxe::{Config, Decision, DhcpConfig, DhcpV6Config, Lease, Listen, Mode, Observation, Prober};
use pxe::{RouterAdvertisementConfig, TftpConfig, TftpFiles, start};
use tokio::process::Command;

const LEASED: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 78, 0, 20));

fn on_bridge() -> Config {
    Config {
        dhcp: Some(DhcpConfig {
            listen: Listen::Interface { name: "br0".to_owned(), address: SERVER },
            mode: Mode::Full,
            subnet: Ipv4Net::new_assert(SERVER, 24),
            router: Some(Ipv4Addr::new(10, 78, 0, 254)),
            dns: vec![Ipv4Addr::new(10, 78, 0, 2)],
            domain: Some("rack.test".to_owned()),
            lease_time: Duration::from_secs(600),
            tftp_server: None,
        }),
        dhcp_v6: None,
        tftp: None,
        router_advertisements: Some(RouterAdvertisementConfig {
            interface: "br0".to_owned(),
            managed: None,
        }),
    }
}

fn leased() -> Recorder {
    let lease = Some(Lease { address: LEASED, hostname: Some("r1u7".to_owned()) });
    Recorder::new(Decision::Answer { lease, boot: None })
}

#[test]
fn udhcpc_takes_its_lease() {
    if let Some(reason) = missing(&["ip", "busybox"], &[]) {
        return peers::skip("udhcpc_takes_its_lease", reason);
    }
    let network = Network::new("udhcpc");
    network.run(async {
        let recorder = Arc::new(leased());
        let running = start(on_bridge(), recorder.clone()).await.unwrap();
        // udhcpc passes the lease to the script in environment variables.
        let script = std::env::temp_dir().join(format!("udhcpc-{}.sh", std::process::id()));
        std::fs::write(
            &script,
            "#!/bin/sh\necho \"$1 $ip/$mask $router $dns $domain $hostname $lease\"\n",
        )
        .unwrap();
        std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        let output = network
            .in_client("busybox")
            .args(["udhcpc", "-f", "-q", "-n", "-i", "eth0", "-O", "hostname", "-s"])
            .arg(&script)
            .output()
            .await
            .unwrap();
        std::fs::remove_file(&script).unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let bound = "bound 10.78.0.20/24 10.78.0.254 10.78.0.2 rack.test r1u7 600";
        assert!(said.contains(bound), "{said}{}", String::from_utf8_lossy(&output.stderr));
        recorder
            .saw_all(&[
                Observation::DhcpDiscover,
                Observation::DhcpOffered { address: Some(LEASED), boot_file: None },
                Observation::DhcpAcked { address: LEASED },
            ])
            .await;
        running.stop().await;
    });
}

#[test]
fn an_address_that_answers_echo_requests_is_in_use() {
    if let Some(reason) = missing(&["ip"], &[]) {
        return peers::skip("an_address_that_answers_echo_requests_is_in_use", reason);
    }
    let network = Network::new("probed");
    network.run(async {
        let own = ["addr", "add", "10.78.0.20/24", "dev", "eth0"];
        let own = network.in_client("ip").args(own).status().await;
        assert!(own.unwrap().success());
        let at = Listen::Interface { name: "br0".to_owned(), address: SERVER };
        let prober = Prober::new(&at);
        assert!(prober.is_used(LEASED).await.unwrap());
        assert!(!prober.is_used([10, 78, 0, 21].into()).await.unwrap());
        // A prober without an interface follows the routes: to a routed address, and to an address without a route.
        let prober = Prober::new(&Listen::Socket { address: SERVER, port: 67 });
        assert!(prober.is_used(LEASED).await.unwrap());
        assert!(!prober.is_used([192, 0, 2, 1].into()).await.unwrap());
    });
}

#[test]
fn dhcping_gets_an_answer() {
    if let Some(reason) = missing(&["ip", "dhcping"], &[]) {
        return peers::skip("dhcping_gets_an_answer", reason);
    }
    let network = Network::new("dhcping");
    network.run(async {
        let recorder = Arc::new(leased());
        let running = start(on_bridge(), recorder.clone()).await.unwrap();
        let own = network
            .in_client("ip")
            .args(["addr", "add", "10.78.0.20/24", "dev", "eth0"])
            .status()
            .await;
        assert!(own.unwrap().success());
        let arguments = ["-v", "-s", "10.78.0.1", "-c", "10.78.0.20", "-h", "52:54:00:78:00:02"];
        let output = network.in_client("dhcping").args(arguments).output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("Got answer from: 10.78.0.1"), "{said}");
        recorder.saw_all(&[Observation::DhcpAcked { address: LEASED }]).await;
        running.stop().await;
    });
}

#[test]
fn rdisc6_gets_an_advertisement_without_a_router() {
    if let Some(reason) = missing(&["ip", "rdisc6"], &[]) {
        return peers::skip("rdisc6_gets_an_advertisement_without_a_router", reason);
    }
    let network = Network::new("rdisc6");
    network.run(async {
        let running = start(on_bridge(), Arc::new(leased())).await.unwrap();
        let arguments = ["-1", "-r", "20", "-w", "500", "eth0"];
        let output = network.in_client("rdisc6").args(arguments).output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        let fact = |name: &str| said.lines().find(|line| line.starts_with(name)).map(squeeze);
        let lifetime = "Router lifetime : 0 (0x00000000) seconds".to_owned();
        assert_eq!(fact("Router lifetime"), Some(lifetime), "{said}");
        assert_eq!(fact("Stateful address conf."), Some("Stateful address conf. : No".to_owned()));
        assert!(!said.contains("Prefix"), "{said}");
        running.stop().await;
    });
}

#[test]
fn dhclient_takes_its_lease_over_ipv6() {
    let name = "dhclient_takes_its_lease_over_ipv6";
    if let Some(reason) = missing(&["ip", "dhclient"], &[]) {
        return peers::skip(name, reason);
    }
    let network = Network::new("dhclient6");
    network.run(async {
        let leased: IpAddr = "fd78::20".parse().unwrap();
        let lease = Some(Lease { address: leased, hostname: None });
        let recorder = Arc::new(Recorder::new(Decision::Answer { lease, boot: None }));
        let subnet = Ipv6Net::new_assert(SERVER_V6, 64);
        let listen = Listen::Interface { name: "br0".to_owned(), address: SERVER_V6 };
        let dhcp_v6 = DhcpV6Config {
            listen,
            subnet,
            dns: vec!["fd78::2".parse().unwrap()],
            lease_time: Duration::from_secs(600),
        };
        let config = Config { dhcp_v6: Some(dhcp_v6), ..Config::default() };
        let running = start(config, recorder.clone()).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name).display().to_string();
        let (leases, pid) = (file("leases"), file("pid"));
        let arguments = ["-6", "-1", "-v", "-lf", &leases, "-pf", &pid, "-sf", "/bin/true", "eth0"];
        let output = network.in_client("dhclient").args(arguments).output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let took = std::fs::read_to_string(&leases).unwrap();
        for fact in ["iaaddr fd78::20", "max-life 600", "dhcp6.name-servers fd78::2"] {
            assert!(took.contains(fact), "no {fact} in {took}");
        }
        recorder.saw_all(&[Observation::DhcpAcked { address: leased }]).await;
        let stop = ["-6", "-r", "-lf", &leases, "-pf", &pid, "-sf", "/bin/true", "eth0"];
        let stopped = network.in_client("dhclient").args(stop).output().await.unwrap();
        assert!(stopped.status.success(), "{}", String::from_utf8_lossy(&stopped.stderr));
        running.stop().await;
    });
}

fn squeeze(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Makes a client load a file whose size is no multiple of any block size, and compares the contents.
async fn check_tftp(program: &str, arguments: &[&str]) {
    let name = format!("{program} {}", arguments.join(" "));
    if !peers::installed(program) {
        return peers::skip(&name, format_args!("{program} is not installed"));
    }
    let content: Vec<u8> = (0..1_234_567_u32).map(|at| (at % 251) as u8).collect();
    let mut files = TftpFiles::new();
    files.insert("ipxe.efi", content.clone());
    let tftp = TftpConfig {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        files,
        sessions: 4,
        limits: tftp::Limits::default(),
    };
    let config = Config { tftp: Some(tftp), ..Config::default() };
    let recorder = Arc::new(leased());
    let running = start(config, recorder).await.expect("loopback can be listened on");
    let port = running.tftp.expect("it was asked for").port().to_string();

    let output = std::env::temp_dir().join(format!("tftp-{}-{port}", std::process::id()));
    let at = output.to_str().expect("temporary folders have plain names");
    let filled = arguments.iter().map(|word| word.replace("PORT", &port).replace("OUT", at));
    let done = Command::new(program)
        .args(filled)
        .stdin(Stdio::null())
        .output()
        .await
        .expect("the client runs");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{name}: {said}");
    let loaded = std::fs::read(&output).expect("the client wrote the file");
    std::fs::remove_file(&output).expect("it is ours");
    assert!(loaded == content, "{name}: {} octets of {} arrived", loaded.len(), content.len());
    running.stop().await;
}

#[tokio::test]
async fn curl_loads_a_file() {
    let url = "tftp://127.0.0.1:PORT/ipxe.efi";
    check_tftp("curl", &["-sS", "--tftp-blksize", "1400", "-o", "OUT", url]).await;
    check_tftp("curl", &["-sS", "--tftp-no-options", "-o", "OUT", url]).await;
}

#[tokio::test]
async fn tftp_hpa_loads_a_file() {
    check_tftp("tftp", &["-m", "binary", "127.0.0.1", "PORT", "-c", "get", "ipxe.efi", "OUT"])
        .await;
}

#[tokio::test]
async fn busybox_loads_a_file() {
    let arguments =
        ["tftp", "-g", "-b", "1468", "-r", "ipxe.efi", "-l", "OUT", "127.0.0.1", "PORT"];
    check_tftp("busybox", &arguments).await;
}

#[tokio::test]
async fn atftp_loads_a_file_in_windows() {
    let get = ["--get", "-r", "ipxe.efi", "-l", "OUT", "--option", "blksize 1468"];
    let windows = ["--option", "windowsize 8", "127.0.0.1", "PORT"];
    check_tftp("atftp", &[get.as_slice(), &windows].concat()).await;
}
