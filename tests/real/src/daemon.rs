//! `baremetald` in the rack's network namespace, with its provisioning listener on the rack's bridge.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use compat::program;
use compat::wait::wait_for;

use crate::cloud::API_IN_CLOUD;
use crate::{Cloud, Firmware, Network, Rack, RackOptions};

/// The URL of the API, in the rack's network namespace.
pub(crate) const API: &str = "http://127.0.0.1:6385";

const START_TIMEOUT: Duration = Duration::from_secs(30);

/// A running `baremetald`.
pub struct Daemon {
    process: Child,
    log: PathBuf,
}

impl Daemon {
    /// Starts the daemon and waits until it listens.
    #[track_caller]
    pub fn start(rack: &Rack, given: &RackOptions<'_>) -> Self {
        let config = rack.folder.join("baremetald.toml");
        fs::write(&config, configuration(rack, given)).expect("a file can be written");
        let mut command = rack.command(program("baremetald"));
        command.arg("--config").arg(&config).env("RUST_BACKTRACE", "1");
        let mut process = rack.spawn("baremetald", &mut command);
        let log = rack.log("baremetald");
        wait_for("baremetald to listen", START_TIMEOUT, || {
            if let Ok(Some(status)) = process.try_wait() {
                panic!("baremetald ended with {status}:\n{}", last_lines(&log, 30));
            }
            rack.folder.join("state/listeners.json").is_file().then_some(())
        });
        Daemon { process, log }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            eprintln!("baremetald said last:\n{}", last_lines(&self.log, 80));
        }
    }
}

/// Returns the end of a log, for the reader of a failed test.
pub(crate) fn last_lines(log: &Path, count: usize) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

fn configuration(rack: &Rack, given: &RackOptions<'_>) -> String {
    let gateway = given.network.gateway();
    let ours = ramdisk_folder();
    let ramdisk = given.ramdisk.unwrap_or(&ours);
    format!(
        r#"
state_dir = "{state}"

{api}

[bmc]
ca_file = "{authority}"

[provisioning]
listen = "{listen}"
kernel = "{ramdisk}/kernel"
ramdisk = "{ramdisk}/ramdisk"
iso = "{ramdisk}/ramdisk.iso"
# QEMU without hardware virtualisation loses ticks on a busy host, and Linux then panics in its check of the timer.
kernel_parameters = ["console=ttyS0", "no_timer_check"]
tftp = "{tftp}"
router_advertisements = "br0"

[provisioning.dhcp]
interface = "br0"
server = "{gateway}"
{addresses}
{router}

{cloud}
{https}
{tables}"#,
        api = api(given),
        cloud = given.cloud.map(|cloud| format!("[cloud]\n{}", account(cloud))).unwrap_or_default(),
        https = https(rack, gateway),
        listen = SocketAddr::new(gateway, 6386),
        tftp = SocketAddr::new(gateway, 69),
        addresses = match given.network {
            Network::V4 => "prefix = 24\nrange = \"10.78.0.100-10.78.0.199\"",
            Network::V6 => "prefix = 64\nrange = \"fd78::100-fd78::1ff\"",
        },
        router = given.uplink.map(|_| format!("router = \"{gateway}\"")).unwrap_or_default(),
        tables = given.tables,
        state = rack.folder.join("state").display(),
        ramdisk = ramdisk.display(),
        authority = rack.machines[0].ca.display(),
    )
}

/// The section of the API's listener: on loopback without authentication, or at the uplink with the cloud's Keystone.
fn api(given: &RackOptions<'_>) -> String {
    match given.cloud {
        None => "[api]\nlisten = \"127.0.0.1:6385\"".to_owned(),
        Some(cloud) => format!(
            "[api]\nlisten = \"{API_IN_CLOUD}\"\nauth = \"keystone\"\nplain_http = \"anywhere\"\n[api.keystone]\n{}",
            account(cloud)
        ),
    }
}

/// The keys of a section that name the administrator of a cloud.
fn account(cloud: &Cloud) -> String {
    format!("clouds_yaml = \"{}\"\nname = \"admin\"", cloud.clouds_yaml.display())
}

/// Returns the listener from which firmware loads iPXE by HTTPS, if a machine of the rack does.
fn https(rack: &Rack, gateway: IpAddr) -> String {
    let listen = SocketAddr::new(gateway, 6387);
    let folder = rack.folder.display();
    let table = format!(
        "[provisioning.https]\nlisten = \"{listen}\"\ncertificate = \"{folder}/boot.pem\"\nkey = \"{folder}/boot.key\""
    );
    let uses = rack.machines.iter().any(|machine| machine.firmware == Firmware::Https);
    if uses { table } else { String::new() }
}

/// Returns the folder in which `make build` puts our ramdisk: next to the profile's folder, which has the programs.
pub(crate) fn ramdisk_folder() -> PathBuf {
    let program = program("baremetald");
    program.ancestors().nth(2).expect("a profile's folder is in target").join("ramdisk")
}
