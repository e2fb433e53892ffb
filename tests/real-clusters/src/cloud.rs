//! A real OpenStack, brought up by `openstack.sh up`, or by `openstack.sh machines`, after which servers run as machines made of
//! namespaces.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use compat::CommandLine;
use serde_json::Value;

/// A real OpenStack, and a user who runs `openstack` commands in it.
pub struct Cloud {
    /// The clouds.yaml of the cloud.
    pub clouds_yaml: PathBuf,
    /// The folder of the machine room. `None` if the hypervisors are fakes.
    machines: Option<PathBuf>,
    user: CommandLine,
}

impl Cloud {
    /// The cloud with machines, as this user of its clouds.yaml. `None` if the environment names no such cloud.
    pub fn with_machines(user: &str) -> Option<Self> {
        Cloud::as_told(user, true)
    }

    /// The cloud with fake hypervisors, as this user of its clouds.yaml. `None` if the environment names no such cloud.
    pub fn without_machines(user: &str) -> Option<Self> {
        Cloud::as_told(user, false)
    }

    fn as_told(user: &str, with_machines: bool) -> Option<Self> {
        let reported = |name| env::var_os(name).map(PathBuf::from);
        let machines = reported("BEDPLATE_TEST_MACHINES");
        let fits = machines.is_some() == with_machines;
        let Some(clouds_yaml) = reported("BEDPLATE_TEST_OPENSTACK").filter(|_| fits) else {
            peers::skip(
                "clusters in a cloud",
                "there is no such cloud; `make test-clouds` makes one",
            );
            return None;
        };
        Some(Cloud { machines, ..Cloud::of(clouds_yaml, user) })
    }

    /// The cloud of a clouds.yaml, without a machine room.
    pub fn of(clouds_yaml: PathBuf, user: &str) -> Self {
        let user = CommandLine::in_cloud(&clouds_yaml, user);
        Cloud { clouds_yaml, machines: None, user }
    }

    /// Runs a command that has to succeed, and returns its output.
    #[track_caller]
    pub fn done(&mut self, command: &str) -> String {
        self.user.done(&words(command))
    }

    /// Runs a command that has to be refused, and returns the error text.
    #[track_caller]
    pub fn refused(&mut self, command: &str) -> String {
        self.user.refused(&words(command))
    }

    /// Runs a command that may be refused for a while, and returns whether it succeeded.
    pub fn goes(&mut self, command: &str) -> bool {
        self.user.run(&words(command)).code == 0
    }

    /// The output of a command that prints JSON.
    #[track_caller]
    pub fn json(&mut self, command: &str) -> Value {
        self.user.json(&words(command))
    }

    /// One column of the output of a command that shows an object.
    #[track_caller]
    pub fn value(&mut self, command: &str, column: &str) -> String {
        self.done(&format!("{command} -f value -c {column}")).trim().to_owned()
    }

    /// Cuts the power of a server's machine without telling Nova.
    #[track_caller]
    pub fn crash(&self, server: &str) {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../real/machines/machine.sh");
        let run =
            Command::new(script).arg("crash").arg(self.machine_folder().join(server)).status();
        assert!(run.expect("machine.sh can be started").success(), "{server} does not crash");
    }

    /// Runs a command on the machine of a server, which may fail. Returns whether it succeeded.
    pub fn try_on(&self, server: &str, words: &[&str]) -> bool {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../real/machines/machine.sh");
        let mut run = Command::new(script);
        run.arg("exec").arg(self.machine_folder().join(server)).args(words).stdin(Stdio::null());
        run.status().expect("machine.sh can be started").success()
    }

    /// The ids of the servers that have a machine in the machine room.
    pub fn machines(&self) -> Vec<String> {
        let entries =
            self.machine_folder().read_dir().expect("the machine room has a folder").flatten();
        let machine = |path: &Path| path.join("namespace").exists();
        let paths = entries.map(|entry| entry.path()).filter(|path| machine(path));
        paths.filter_map(|path| path.file_name()?.to_str().map(ToOwned::to_owned)).collect()
    }

    /// The addresses that the cloud's name server returns for a name.
    #[track_caller]
    pub fn dig(&self, name: &str) -> Vec<String> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../real/openstack/openstack.sh");
        let (address, port) = (Self::name_server(0), Self::name_server(1));
        let mut run = Command::new(script);
        run.args(["inside", "dig", "+short", &format!("@{address}"), "-p", &port, name]);
        let run = run.output().expect("openstack.sh can be started");
        let said = String::from_utf8_lossy(&run.stdout).into_owned();
        assert!(run.status.success(), "dig {name}: {said}");
        said.lines().map(ToOwned::to_owned).collect()
    }

    fn name_server(at: usize) -> String {
        let reported = env::var("BEDPLATE_TEST_DNS").expect("openstack.sh env tells of it");
        reported.split(':').nth(at).expect("it is ADDRESS:PORT").to_owned()
    }

    #[track_caller]
    fn machine_folder(&self) -> &Path {
        self.machines.as_deref().expect("the cloud has machines")
    }
}

/// The body that a URL answers, asked from outside of the cloud. `None` on any failure.
pub fn fetch(url: &str) -> Option<String> {
    let run = Command::new("curl").args(["-sf", "-m", "3", url]).stderr(Stdio::null()).output();
    let run = run.expect("curl can be started");
    run.status.success().then(|| String::from_utf8_lossy(&run.stdout).into_owned())
}

fn words(command: &str) -> Vec<&str> {
    command.split_whitespace().collect()
}
