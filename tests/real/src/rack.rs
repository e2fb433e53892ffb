//! A rack of machines on a network of its own, up as long as the value lives.

use std::env;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::{Firmware, Machine};

/// The rack's side of the provisioning network.
pub(crate) const GATEWAY: &str = "10.78.0.1";

/// What a rack is given beside what every rack has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Given<'a> {
    /// How large its machines are, by the names that `rack.sh` has for that, such as `RACK_MEMORY`.
    pub sizes: &'a [(&'a str, &'a str)],
    /// An address of this host's that its machines reach.
    pub uplink: Option<&'a str>,
    /// More tables of `baremetald.toml`.
    pub tables: &'a str,
}

/// A rack of machines and their BMCs.
#[derive(Debug)]
pub struct Rack {
    /// Its name, which is also that of its namespace: `bedplate-NAME`.
    pub name: String,
    /// Its machines, in the order they were asked for.
    pub machines: Vec<Machine>,
    /// Where its state is.
    pub folder: PathBuf,
}

impl Rack {
    /// Brings up one machine for each firmware, all powered off.
    #[track_caller]
    pub fn up(name: &str, firmware: &[Firmware], given: &Given<'_>) -> Self {
        let mut words = vec!["up"];
        words.extend(firmware.iter().map(|firmware| firmware.as_str()));
        script(name, &words, given.sizes);
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

    /// The words that put a command inside the rack's network.
    pub fn launcher(&self) -> Vec<String> {
        ["ip", "netns", "exec", &format!("bedplate-{}", self.name)].map(str::to_owned).into()
    }

    /// A command inside the rack's network.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let launcher = self.launcher();
        let mut command = Command::new(&launcher[0]);
        command.args(&launcher[1..]).arg(program.as_ref()).stdin(Stdio::null());
        command
    }

    /// Starts a program inside the rack's network; what it prints goes to `LOG.log` in the rack's folder.
    #[track_caller]
    pub fn spawn(&self, log: &str, command: &mut Command) -> Child {
        let file = File::create(self.log(log)).expect("a file can be written");
        command.stdout(file.try_clone().expect("a file can be shared")).stderr(file);
        command.spawn().unwrap_or_else(|error| panic!("{log} cannot be started: {error}"))
    }

    /// Where what a program prints goes.
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
    // While a failed test unwinds, a second panic would hide the first.
    assert!(run.status.success() || std::thread::panicking(), "rack.sh {} failed", words.join(" "));
    String::from_utf8_lossy(&run.stdout).into_owned()
}
