//! Tests `bedplate doctor` on a network segment with Debian's dnsmasq as a foreign DHCP server. The test needs root.

#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::getuid;

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn a_foreign_dhcp_server_is_found_and_its_offer_reported() {
    const NAME: &str = "a_foreign_dhcp_server_is_found_and_its_offer_reported";
    if !getuid().is_root() {
        return peers::skip(NAME, "needs root, for network namespaces");
    }
    if let Some(program) = ["ip", "ss", "dnsmasq"].iter().find(|name| !peers::installed(name)) {
        return peers::skip(NAME, format_args!("needs {program}"));
    }
    let segment = Segment::new();
    let dhcp = |said: &str| said.lines().find(|line| line.contains(" eth0")).map(str::to_owned);

    let alone = segment.doctor();
    let reported = dhcp(&alone).unwrap_or_else(|| panic!("{alone}"));
    assert!(reported.starts_with("OK"), "{reported}");

    // A server that only assigns addresses may be intended. A server that also names a boot file breaks network boot.
    for (more, verdict, offers) in [
        (None, "WARN", "10.79.0.1 offers the address 10.79.0.20"),
        (Some("--dhcp-boot=theirs.efi"), "FAIL", "the boot file \"theirs.efi\""),
    ] {
        let server = segment.dnsmasq(more);
        let found = segment.doctor();
        drop(server);
        let reported = dhcp(&found).unwrap_or_else(|| panic!("{found}"));
        assert!(reported.starts_with(verdict) && reported.contains(offers), "{reported}");
    }
}

/// Two network namespaces joined by a virtual cable. The doctor looks at `eth0`, which has no address, as before an installation. The DHCP
/// server runs at the other end.
struct Segment {
    looks: String,
    serves: String,
}

impl Segment {
    fn new() -> Segment {
        let id = std::process::id();
        let segment = Segment { looks: format!("doctor-{id}"), serves: format!("served-{id}") };
        let Segment { looks, serves } = &segment;
        for command in [
            format!("netns add {looks}"),
            format!("netns add {serves}"),
            format!("-n {looks} link add eth0 type veth peer name port0 netns {serves}"),
            format!("-n {looks} link set eth0 up"),
            format!("-n {serves} link set port0 up"),
            format!("-n {serves} addr add 10.79.0.1/24 dev port0"),
        ] {
            let done = Command::new("ip").args(command.split(' ')).status().unwrap();
            assert!(done.success(), "ip {command}");
        }
        segment
    }

    /// Starts dnsmasq, and waits until dnsmasq listens.
    fn dnsmasq(&self, more: Option<&str>) -> Server {
        let arguments = "--no-daemon --conf-file=/dev/null --port=0 --user=root --interface=port0 \
            --bind-interfaces --dhcp-range=10.79.0.20,10.79.0.20,255.255.255.0,10m --no-ping \
            --dhcp-authoritative --leasefile-ro";
        let mut command = within(&self.serves, Path::new("dnsmasq"));
        command.args(arguments.split_whitespace()).args(more).stdin(Stdio::null());
        let server = Server(command.spawn().unwrap());
        let begun = Instant::now();
        loop {
            let mut sockets = within(&self.serves, Path::new("ss"));
            if !sockets.args(["-Huln", "sport", "=", ":67"]).output().unwrap().stdout.is_empty() {
                return server;
            }
            assert!(begun.elapsed() < PATIENCE, "dnsmasq does not listen");
            sleep(Duration::from_millis(20));
        }
    }

    /// Runs the doctor without any configuration, and returns the output.
    fn doctor(&self) -> String {
        let mut doctor = within(&self.looks, Path::new(env!("CARGO_BIN_EXE_bedplate")));
        doctor.args(["doctor", "--interface", "eth0", "--no-images"]);
        doctor.args(["--baremetald", "/none", "--clusterd", "/none"]);
        let said = doctor.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).output();
        String::from_utf8(said.unwrap().stdout).unwrap()
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        for name in [&self.looks, &self.serves] {
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

fn within(namespace: &str, program: &Path) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace]).arg(program);
    command
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
