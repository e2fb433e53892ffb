//! A network of one virtual machine and this host, with the DHCP server that the cloud would run there.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::emulated::Server;
use crate::network::cache;

/// The network device of the machine on this host.
pub(crate) const TAP: &str = "bedplate-fcos";

/// The network. Dropping the value takes the network down.
#[derive(Debug)]
pub struct Lan {
    /// The address of this host. In a cloud, this is the gateway address of the subnet.
    pub host: String,
    folder: PathBuf,
    dhcp: Option<Child>,
}

impl Lan {
    /// Brings up a network of 256 addresses in which this host has the address `host`. `None` if the environment does not ask for real
    /// machines.
    #[track_caller]
    pub fn begin(name: &str, host: &str) -> Option<Self> {
        if env::var_os("BEDPLATE_REAL").is_none() {
            peers::skip(name, "it needs a machine; `make test-ignition` makes it");
            return None;
        }
        let folder = cache().join("fcos/machines").join(name);
        // Removes the network of a test that was killed.
        let _ = fs::remove_dir_all(&folder);
        let _ = ip(&["link", "del", TAP]);
        fs::create_dir_all(&folder).expect("a folder can be made");
        let lan = Lan { host: host.to_owned(), folder, dhcp: None };
        for words in [
            &["tuntap", "add", "dev", TAP, "mode", "tap"][..],
            &["addr", "add", &format!("{host}/24"), "dev", TAP],
            &["link", "set", TAP, "up"],
        ] {
            assert!(ip(words), "ip {} failed", words.join(" "));
        }
        Some(lan)
    }

    /// Starts a DHCP server that answers only this server's port, as Neutron's would.
    #[track_caller]
    pub(crate) fn expect(&mut self, server: &Server) {
        let mut command = Command::new("dnsmasq");
        command.args(["--keep-in-foreground", "--conf-file=/dev/null", "--user=root", "--port=0"]);
        command.args(["--bind-interfaces", "--log-dhcp", "--log-facility=-"]);
        command.arg(format!("--interface={TAP}"));
        command.arg(format!("--dhcp-range={},static,255.255.255.0", self.host));
        command.arg(format!("--dhcp-host={},{},{}", server.mac, server.address, server.name));
        command.arg(format!("--dhcp-leasefile={}", self.folder.join("leases").display()));
        let log = File::create(self.folder.join("dhcp.log")).expect("a file can be written");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.dhcp = Some(command.spawn().expect("dnsmasq can be started"));
    }

    /// Gives the address of a machine to this host.
    #[track_caller]
    pub fn take(&self, address: &str) {
        assert!(ip(&["addr", "add", &format!("{address}/32"), "dev", TAP]), "{address} is not had");
    }

    /// The folder with the state of the network and of its machine.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Lan {
    fn drop(&mut self) {
        if let Some(mut dhcp) = self.dhcp.take() {
            let _ = dhcp.kill();
            let _ = dhcp.wait();
        }
        ip(&["link", "del", TAP]);
        if env::var_os("KEEP_NODES").is_none() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

fn ip(words: &[&str]) -> bool {
    let run = Command::new("ip").args(words).stdin(Stdio::null()).stderr(Stdio::null()).status();
    run.expect("ip can be started").success()
}
