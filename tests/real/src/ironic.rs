//! A real Ironic in the rack's network namespace, with what it expects beside itself: a DHCP and TFTP server, and a web server for the files
//! that it writes.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::Rack;
use crate::daemon::{last_lines, ramdisk_folder};
use crate::rack::GATEWAY;

/// The port of Ironic's API; the next one is the port of the web server.
const PORT: u16 = 16385;

/// Debian's iPXE, for the firmware of UEFI machines.
const BOOT_LOADERS: &str = "/usr/lib/ipxe";

/// Returns the URL of the API, in the rack's network namespace.
pub(crate) fn api() -> String {
    format!("http://{GATEWAY}:{PORT}")
}

/// A running Ironic.
pub(crate) struct Ironic {
    name: String,
    state: String,
    beside: Vec<Child>,
}

impl Ironic {
    /// Starts Ironic and waits until it answers.
    #[track_caller]
    pub(crate) fn start(rack: &Rack) -> Self {
        let state = rack.folder.join("ironic").display().to_string();
        let config = rack.folder.join("ironic.conf");
        fs::write(&config, settings()).expect("a file can be written");
        make_environment();
        let mut up = script(&rack.name, &state, "up");
        let run = up.env("IRONIC_CONFIG", &config).output().expect("ironic.sh can be started");
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "ironic.sh up: {said}");

        let mut files = rack.command("python3");
        files.args(["-m", "http.server", "--bind", GATEWAY, "--directory"]);
        files.arg(format!("{state}/http")).arg((PORT + 1).to_string());
        let mut leases = rack.command("dnsmasq");
        leases.args(dhcp(rack));
        let beside = vec![rack.spawn("files", &mut files), rack.spawn("dnsmasq", &mut leases)];
        Ironic { name: rack.name.clone(), state, beside }
    }
}

impl Drop for Ironic {
    fn drop(&mut self) {
        for process in &mut self.beside {
            let _ = process.kill();
            let _ = process.wait();
        }
        if std::thread::panicking() {
            let log = Path::new(&self.state).join("log");
            eprintln!("Ironic said last:\n{}", last_lines(&log, 80));
        }
        let _ = script(&self.name, &self.state, "down").output();
    }
}

/// Makes Ironic's Python environment, outside of the rack's network, from which PyPI cannot be reached.
#[track_caller]
fn make_environment() {
    let real = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = Command::new(real.join("venv.sh"))
        .arg(real.join("ironic/requirements.txt"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .expect("venv.sh can be started");
    assert!(made.success(), "venv.sh failed");
}

/// Returns `ironic.sh WORD`, in the network of this rack.
fn script(rack: &str, state: &str, word: &str) -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("ironic/ironic.sh");
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &format!("bedplate-{rack}")]).arg(script).arg(word);
    command.env("IRONIC_ADDRESS", GATEWAY).env("IRONIC_PORT", PORT.to_string());
    command.env("IRONIC_STATE", state).stdin(Stdio::null());
    command
}

/// Returns the settings beyond those of `ironic.sh`.
fn settings() -> String {
    format!(
        "[DEFAULT]
default_deploy_interface = direct
default_inspect_interface = agent
[conductor]
automated_clean = true
file_url_allowed_paths = {}
[inspector]
require_managed_boot = true
[pxe]
kernel_append_params = console=ttyS0 no_timer_check
",
        ramdisk_folder().display()
    )
}

/// Returns dnsmasq's arguments: UEFI machines load iPXE, and iPXE loads Ironic's script.
fn dhcp(rack: &Rack) -> Vec<String> {
    let leases = rack.folder.join("dnsmasq.leases").display().to_string();
    let script = format!("http://{GATEWAY}:{}/boot.ipxe", PORT + 1);
    [
        "--keep-in-foreground",
        "--conf-file=/dev/null",
        "--port=0",
        "--user=root",
        "--pid-file",
        "--log-facility=-",
        "--log-dhcp",
        "--interface=br0",
        "--bind-interfaces",
        "--dhcp-authoritative",
        "--dhcp-range=10.78.0.100,10.78.0.199,1h",
        // Without an answer to its router solicitation, iPXE waits for 14 s.
        "--enable-ra",
        "--dhcp-range=::,constructor:br0,ra-only",
        "--enable-tftp",
        &format!("--tftp-root={BOOT_LOADERS}"),
        &format!("--dhcp-leasefile={leases}"),
        "--dhcp-match=set:ipxe,175",
        "--dhcp-boot=tag:!ipxe,snponly.efi",
        &format!("--dhcp-boot=tag:ipxe,{script}"),
    ]
    .map(str::to_owned)
    .into()
}
