//! A real OpenStack as `openstack.sh up` brings it up, or as `openstack.sh machines` does: then its servers are machines.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use compat::CommandLine;
use serde_json::Value;

/// The cloud, and somebody who uses it with `openstack` commands.
pub struct Cloud {
    /// Its clouds.yaml.
    pub clouds_yaml: PathBuf,
    /// The machine room's folder; none where hypervisors only pretend.
    machines: Option<PathBuf>,
    user: CommandLine,
}

impl Cloud {
    /// The cloud as this user of its clouds.yaml sees it, with machines; none where the environment tells of no such cloud.
    pub fn with_machines(user: &str) -> Option<Self> {
        Cloud::as_told(user, true)
    }

    /// The same for one whose hypervisors only pretend.
    pub fn without_machines(user: &str) -> Option<Self> {
        Cloud::as_told(user, false)
    }

    fn as_told(user: &str, with_machines: bool) -> Option<Self> {
        let told = |name| env::var_os(name).map(PathBuf::from);
        let machines = told("BEDPLATE_TEST_MACHINES");
        let fits = machines.is_some() == with_machines;
        let Some(clouds_yaml) = told("BEDPLATE_TEST_OPENSTACK").filter(|_| fits) else {
            peers::skip(
                "clusters in a cloud",
                "there is no such cloud; `make test-clouds` makes one",
            );
            return None;
        };
        Some(Cloud { machines, ..Cloud::of(clouds_yaml, user) })
    }

    /// Any cloud, whose servers are no machines of a machine room.
    pub fn of(clouds_yaml: PathBuf, user: &str) -> Self {
        let user = CommandLine::in_cloud(&clouds_yaml, user);
        Cloud { clouds_yaml, machines: None, user }
    }

    /// A command that has to succeed; its output, as text.
    #[track_caller]
    pub fn done(&mut self, command: &str) -> String {
        self.user.done(&words(command))
    }

    /// A command that has to be refused; what was said of it.
    #[track_caller]
    pub fn refused(&mut self, command: &str) -> String {
        self.user.refused(&words(command))
    }

    /// Whether a command succeeded that may be refused for a while.
    pub fn goes(&mut self, command: &str) -> bool {
        self.user.run(&words(command)).code == 0
    }

    /// The output of a command that tells something as JSON.
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
        let run = Command::new(script).arg("crash").arg(self.room().join(server)).status();
        assert!(run.expect("machine.sh can be started").success(), "{server} does not crash");
    }

    /// The servers that have a machine.
    pub fn machines(&self) -> Vec<String> {
        let entries = self.room().read_dir().expect("the machine room has a folder").flatten();
        let machine = |path: &Path| path.join("namespace").exists();
        let paths = entries.map(|entry| entry.path()).filter(|path| machine(path));
        paths.filter_map(|path| path.file_name()?.to_str().map(ToOwned::to_owned)).collect()
    }

    /// The addresses that the cloud's own name server has for a name.
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
        let told = env::var("BEDPLATE_TEST_DNS").expect("openstack.sh env tells of it");
        told.split(':').nth(at).expect("it is ADDRESS:PORT").to_owned()
    }

    #[track_caller]
    fn room(&self) -> &Path {
        self.machines.as_deref().expect("the cloud has machines")
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
