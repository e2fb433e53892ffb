//! A real OpenStack whose servers are machines, as `openstack.sh machines` brings it up.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use compat::CommandLine;
use serde_json::Value;

/// The cloud, and somebody who uses it with `openstack` commands.
pub struct Cloud {
    /// Its clouds.yaml.
    pub clouds_yaml: PathBuf,
    machines: PathBuf,
    user: CommandLine,
}

impl Cloud {
    /// The cloud as this user of its clouds.yaml sees it; none where the environment tells of no such cloud.
    pub fn of(user: &str) -> Option<Self> {
        let folder = |name| env::var_os(name).map(PathBuf::from);
        let (Some(clouds_yaml), Some(machines)) =
            (folder("BEDPLATE_TEST_OPENSTACK"), folder("BEDPLATE_TEST_MACHINES"))
        else {
            eprintln!("SKIPPED: no cloud with machines; `make test-clusters` makes one");
            return None;
        };
        let user = CommandLine::in_cloud(&clouds_yaml, user);
        Some(Cloud { clouds_yaml, machines, user })
    }

    /// A command that has to succeed; its output, as text.
    #[track_caller]
    pub fn done(&mut self, command: &str) -> String {
        self.user.done(&words(command))
    }

    /// The same for one that tells something as JSON.
    #[track_caller]
    pub fn json(&mut self, command: &str) -> Value {
        self.user.json(&words(command))
    }

    /// One column of what a command tells of an object.
    #[track_caller]
    pub fn value(&mut self, command: &str, column: &str) -> String {
        self.done(&format!("{command} -f value -c {column}")).trim().to_owned()
    }

    /// Takes away the power of a server's machine, of which Nova is not told.
    #[track_caller]
    pub fn crash(&self, server: &str) {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../real/machines/machine.sh");
        let run = Command::new(script).arg("crash").arg(self.machines.join(server)).status();
        assert!(run.expect("machine.sh can be started").success(), "{server} does not crash");
    }

    /// The servers that have a machine.
    pub fn machines(&self) -> Vec<String> {
        let entries = self.machines.read_dir().expect("the machine room has a folder").flatten();
        let machine = |path: &Path| path.join("namespace").exists();
        let paths = entries.map(|entry| entry.path()).filter(|path| machine(path));
        paths.filter_map(|path| path.file_name()?.to_str().map(ToOwned::to_owned)).collect()
    }
}

/// What a URL answers, asked from outside of the cloud.
pub fn fetch(url: &str) -> Option<String> {
    let run = Command::new("curl").args(["-sf", "-m", "3", url]).stderr(Stdio::null()).output();
    let run = run.expect("curl can be started");
    run.status.success().then(|| String::from_utf8_lossy(&run.stdout).into_owned())
}

fn words(command: &str) -> Vec<&str> {
    command.split_whitespace().collect()
}
