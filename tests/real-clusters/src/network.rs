//! A network of machines made of namespaces. Dropping the value takes the network down.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cluster_bootstrap::{ClusterSettings, Member};
use ignition::UserData;

use crate::control_plane_logs::last_lines;

/// The address of the network's host, where the mirror and the load balancer listen.
pub const HOST: &str = "10.99.0.1";

/// Machines on one network, with a load balancer and the mirror.
#[derive(Debug)]
pub struct Network {
    name: String,
    balancer: Option<Child>,
    machines: Vec<String>,
}

impl Network {
    /// Brings up a network of this name. `None` if the environment does not ask for real machines.
    #[track_caller]
    pub fn begin(name: &str) -> Option<Self> {
        if env::var_os("BEDPLATE_REAL").is_none() {
            peers::skip(name, "it needs machines; `make test-kubernetes` makes them");
            return None;
        }
        let network = Network { name: name.to_owned(), balancer: None, machines: Vec::new() };
        network.script(&["down"]);
        network.script(&["up"]);
        Some(network)
    }

    /// Starts a load balancer in front of the cluster's control plane, as a cloud would. A load balancer that runs already is replaced.
    #[track_caller]
    pub fn balance(&mut self, cluster: &ClusterSettings) {
        self.stop_balancer();
        let servers: String = cluster
            .control_plane
            .iter()
            .map(|it| {
                format!(
                    "  server {} {}:6443 check check-ssl verify none inter 500ms fall 2 rise 1\n",
                    it.name, it.address
                )
            })
            .collect();
        let config = format!(
            "global\n  maxconn 4000\ndefaults\n  mode tcp\n  timeout connect 2s\n  timeout client 1h\n  timeout server 1h\n\
             frontend api\n  bind {HOST}:{}\n  default_backend control-plane\n\
             backend control-plane\n  option httpchk GET /readyz\n{servers}",
            cluster.endpoint.port
        );
        let path = self.state().join("haproxy.cfg");
        fs::write(&path, config).expect("a file can be written");
        let log = File::create(self.state().join("haproxy.log")).expect("a file can be written");
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(), "haproxy", "-db", "-f"]).arg(path);
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file can be shared"))
            .stderr(log);
        self.balancer = Some(command.spawn().expect("haproxy can be started"));
    }

    /// Boots a machine for the first time, with the user data that Nova would hand to it. Does not wait for the machine.
    #[track_caller]
    pub fn boot(&mut self, machine: &Member, user_data: &UserData) {
        let name = machine.name.as_str();
        let path = self.state().join(format!("{name}.ign"));
        fs::write(&path, user_data.text()).expect("a file can be written");
        self.script(&["boot", name, &machine.address.to_string(), &path.to_string_lossy()]);
        self.machines.push(name.to_owned());
    }

    /// Removes a machine and its disk.
    #[track_caller]
    pub fn destroy(&mut self, machine: &str) {
        self.script(&["destroy", machine]);
        self.machines.retain(|name| name != machine);
    }

    /// Cuts the power of a machine and switches it on again.
    #[track_caller]
    pub fn reboot(&self, machine: &str) {
        self.script(&["reboot", machine]);
    }

    /// Runs a command on a machine, which may fail, and returns its output.
    pub fn try_on(&self, machine: &str, words: &[&str]) -> Option<String> {
        let run =
            self.command(&["exec", machine]).args(words).stderr(Stdio::null()).output().ok()?;
        run.status.success().then(|| String::from_utf8_lossy(&run.stdout).into_owned())
    }

    /// Runs a command on the network's host, which may fail, and returns its output.
    pub fn try_here(&self, words: &[&str]) -> Option<String> {
        let run = self.command(&["network"]).args(words).stderr(Stdio::null()).output().ok()?;
        run.status.success().then(|| String::from_utf8_lossy(&run.stdout).into_owned())
    }

    /// The network namespace of the network's host.
    pub(crate) fn namespace(&self) -> String {
        format!("bedplate-{}", self.name)
    }

    /// The folder with the state of the network.
    pub fn state(&self) -> PathBuf {
        cache().join("kubernetes/nodes").join(&self.name)
    }

    /// The output of a unit of a machine.
    pub fn log(&self, machine: &str, unit: &str) -> String {
        let path =
            self.state().join(machine).join("disk/var/log/units").join(format!("{unit}.log"));
        fs::read_to_string(path).unwrap_or_default()
    }

    fn stop_balancer(&mut self) {
        if let Some(mut balancer) = self.balancer.take() {
            let _ = balancer.kill();
            let _ = balancer.wait();
        }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command =
            Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../real/kubernetes/nodes.sh"));
        command
            .args(words)
            .env("NODES_NAME", &self.name)
            .env("UNIT_RUNNER", compat::program("unit-runner"));
        command.stdin(Stdio::null());
        command
    }

    #[track_caller]
    fn script(&self, words: &[&str]) -> String {
        let run =
            self.command(words).stderr(Stdio::inherit()).output().expect("nodes.sh can be started");
        // A second panic while a failed test unwinds would hide the first one.
        assert!(
            run.status.success() || std::thread::panicking(),
            "nodes.sh {} failed",
            words.join(" ")
        );
        String::from_utf8_lossy(&run.stdout).into_owned()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for machine in &self.machines {
                let boot = fs::read_to_string(self.state().join(machine).join("boot.log"))
                    .unwrap_or_default();
                eprintln!(
                    "{machine}:\n{}{}",
                    last_lines(&boot, 5),
                    last_lines(&self.log(machine, "runner"), 12)
                );
            }
        }
        if env::var_os("KEEP_NODES").is_some() {
            return;
        }
        self.stop_balancer();
        self.script(&["down"]);
    }
}

/// The output of the real `ignition-validate` for this text. Empty if the text is valid.
#[track_caller]
pub fn objections(name: &str, text: &str, state: &Path) -> String {
    let path = state.join(format!("{name}.validate"));
    fs::write(&path, text).expect("a file can be written");
    let run = Command::new("ignition-validate")
        .arg(path)
        .output()
        .expect("ignition-validate is installed");
    String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned()
}

/// The folder where the scripts keep what they build.
pub(crate) fn cache() -> PathBuf {
    let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cache =
        env::var_os("XDG_CACHE_HOME").map(PathBuf::from).unwrap_or_else(|| home.join(".cache"));
    env::var_os("BEDPLATE_CACHE").map(PathBuf::from).unwrap_or_else(|| cache.join("bedplate"))
}
