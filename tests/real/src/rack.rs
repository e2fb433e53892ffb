//! A rack of machines on its own network; it ends when the value is dropped.

use std::env;
use std::fs::File;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::{Cloud, Firmware, Machine};

/// The rack's address on the provisioning network.
pub(crate) const GATEWAY: &str = "10.78.0.1";

/// The version of IP on the provisioning network. The BMCs always have IPv4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    #[default]
    V4,
    V6,
}

impl Network {
    /// The rack's address on the provisioning network.
    pub(crate) fn gateway(self) -> IpAddr {
        match self {
            Network::V4 => GATEWAY.parse().expect("it is an address"),
            Network::V6 => "fd78::1".parse().expect("it is an address"),
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Network::V4 => "v4",
            Network::V6 => "v6",
        }
    }
}

/// The options of a rack.
#[derive(Clone, Copy, Debug, Default)]
pub struct RackOptions<'a> {
    /// Sizes of the machines, by the variables of `rack.sh`, such as `RACK_MEMORY`.
    pub sizes: &'a [(&'a str, &'a str)],
    pub network: Network,
    /// An address of this host that the machines can reach.
    pub uplink: Option<&'a str>,
    /// The cloud at the address of `uplink` that the service belongs to: its Keystone authenticates the callers of the API, and the service
    /// is its administrator.
    pub cloud: Option<&'a Cloud>,
    /// Further tables of `baremetald.toml`.
    pub tables: &'a str,
    /// The folder with the `kernel`, the `ramdisk` and the `ramdisk.iso` of another agent than ours.
    pub ramdisk: Option<&'a Path>,
}

/// A rack of machines and their BMCs.
#[derive(Debug)]
pub struct Rack {
    /// The namespace is `bedplate-NAME`.
    pub name: String,
    /// In the order in which they were requested.
    pub machines: Vec<Machine>,
    /// The directory of the rack's state.
    pub folder: PathBuf,
}

impl Rack {
    /// Starts a rack with one machine for each firmware, all powered off.
    #[track_caller]
    pub fn up(name: &str, firmware: &[Firmware], given: &RackOptions<'_>) -> Self {
        let mut words = vec!["up"];
        words.extend(firmware.iter().map(|firmware| firmware.as_str()));
        let sizes = [given.sizes, &[("RACK_NETWORK", given.network.as_str())]].concat();
        script(name, &words, &sizes);
        if let Some(address) = given.uplink {
            script(name, &["uplink", address], &[]);
        }
        let machines = script(name, &["json"], given.sizes);
        let machines: Vec<Machine> =
            serde_json::from_str(&machines).expect("rack.sh describes the machines");
        let console = &machines.first().expect("a rack has machines").console;
        let folder =
            console.ancestors().nth(2).expect("a machine's folder is in the rack's").to_owned();
        Rack { name: name.to_owned(), machines, folder }
    }

    /// Adds an interface with the address 10.78.0.(1 + `number`) for a replica of the service.
    #[track_caller]
    pub(crate) fn add_interface(&self, number: usize) {
        script(&self.name, &["replica", &number.to_string()], &[]);
    }

    /// Returns the words that run a command in the rack's network namespace.
    pub fn launcher(&self) -> Vec<String> {
        ["ip", "netns", "exec", &format!("bedplate-{}", self.name)].map(str::to_owned).into()
    }

    /// Returns a command that runs in the rack's network namespace.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let launcher = self.launcher();
        let mut command = Command::new(&launcher[0]);
        command.args(&launcher[1..]).arg(program.as_ref()).stdin(Stdio::null());
        command
    }

    /// Starts a program in the rack's network namespace; its output goes to `LOG.log` in the rack's directory.
    #[track_caller]
    pub fn spawn(&self, log: &str, command: &mut Command) -> Child {
        let file = File::create(self.log(log)).expect("a file can be written");
        command.stdout(file.try_clone().expect("a file can be shared")).stderr(file);
        command.spawn().unwrap_or_else(|error| panic!("{log} cannot be started: {error}"))
    }

    /// Removes a disk, `vda` or `vdb`, of a machine that is off.
    #[track_caller]
    pub fn pull(&self, machine: &Machine, disk: &str) {
        script(&self.name, &["pull", &machine.name, disk], &[]);
    }

    /// Puts a removed disk back.
    #[track_caller]
    pub fn plug(&self, machine: &Machine, disk: &str) {
        script(&self.name, &["plug", &machine.name, disk], &[]);
    }

    /// Returns the path of a program's log.
    pub fn log(&self, name: &str) -> PathBuf {
        self.folder.join(name).with_extension("log")
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        if env::var_os("KEEP_RACK").is_none() {
            script(&self.name, &["down"], &[]);
        }
    }
}

#[track_caller]
fn script(rack: &str, words: &[&str], sizes: &[(&str, &str)]) -> String {
    let run = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("rack.sh"))
        .args(words)
        .env("RACK_NAME", rack)
        .envs(sizes.iter().copied())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .expect("rack.sh can be started");
    // A second panic during unwinding would hide the first.
    assert!(run.status.success() || std::thread::panicking(), "rack.sh {} failed", words.join(" "));
    String::from_utf8_lossy(&run.stdout).into_owned()
}
