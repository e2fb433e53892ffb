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

    // No version of IP has a server.
    let alone = segment.doctor();
    let is_fine = |line: &&str| line.starts_with("OK") && line.contains(" eth0");
    assert_eq!(alone.lines().filter(is_fine).count(), 2, "{alone}");

    // A server that only assigns addresses may be intended. A server that also names a boot file breaks network boot.
    let boot_files =
        ["--dhcp-boot=theirs.efi", "--dhcp-option=option6:59,http://[fd79::1]/theirs.efi"];
    for (more, verdict, boot_file_of_v4, boot_file_of_v6) in [
        (&[][..], "WARN", "", ""),
        (
            &boot_files[..],
            "FAIL",
            " and the boot file \"theirs.efi\"",
            " and the boot file \"http://[fd79::1]/theirs.efi\"",
        ),
    ] {
        let server = segment.dnsmasq(more);
        let found = segment.doctor();
        drop(server);
        for offers in [
            format!(
                "DHCP server answers on eth0: 10.79.0.1 offers the address 10.79.0.20{boot_file_of_v4}"
            ),
            format!(
                "DHCPv6 server answers on eth0: fe80::1 offers the address fd79::20{boot_file_of_v6}"
            ),
        ] {
            let is_found = |line: &str| line.starts_with(verdict) && line.contains(&offers);
            assert!(found.lines().any(is_found), "no {verdict} {offers} in {found}");
        }
    }
}

/// Two network namespaces joined by a virtual cable. The doctor looks at `eth0`, which has only an address for its link, as before an
/// installation. The DHCP server runs at the other end.
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
            format!("-n {serves} addr add fd79::1/64 dev port0 nodad"),
            format!("-n {serves} addr add fe80::1/64 dev port0 nodad"),
            format!("-n {looks} addr add fe80::2/64 dev eth0 nodad"),
        ] {
            let done = Command::new("ip").args(command.split(' ')).status().unwrap();
            assert!(done.success(), "ip {command}");
        }
        segment
    }

    /// Starts dnsmasq, and waits until dnsmasq listens.
    fn dnsmasq(&self, more: &[&str]) -> Server {
        let arguments = "--no-daemon --conf-file=/dev/null --port=0 --user=root --interface=port0 \
            --bind-interfaces --dhcp-range=10.79.0.20,10.79.0.20,255.255.255.0,10m --no-ping \
            --dhcp-range=fd79::20,fd79::20,64,10m --dhcp-authoritative --leasefile-ro";
        let mut command = within(&self.serves, Path::new("dnsmasq"));
        command.args(arguments.split_whitespace()).args(more).stdin(Stdio::null());
        let server = Server(command.spawn().unwrap());
        let begun = Instant::now();
        let listens = |port: &str| {
            let mut sockets = within(&self.serves, Path::new("ss"));
            !sockets.args(["-Huln", "sport", "=", port]).output().unwrap().stdout.is_empty()
        };
        while !listens(":67") || !listens(":547") {
            assert!(begun.elapsed() < PATIENCE, "dnsmasq does not listen");
            sleep(Duration::from_millis(20));
        }
        server
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
