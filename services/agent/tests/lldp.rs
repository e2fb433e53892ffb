//! Tests LLDP with Debian's `lldpd` as the switch at the other end of the cable, in network namespaces (root only).

#![expect(clippy::unwrap_used, reason = "an unwrap that fails fails the test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use agent::inventory::lldp;
use agent::root::Root;
use agent_protocol::Interface;
use nix::sched::{CloneFlags, unshare};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(20);
/// How long to listen on an interface without a neighbour: `lldpd` sends every second.
const SILENCE: Duration = Duration::from_secs(3);

#[test]
fn a_switch_says_which_of_its_ports_an_interface_is_plugged_into() {
    const NAME: &str = "a_switch_says_which_of_its_ports_an_interface_is_plugged_into";
    if !rustix::process::getuid().is_root() {
        return peers::skip(NAME, "needs root, for network namespaces");
    }
    if let Some(program) = ["ip", "lldpd"].iter().find(|name| !peers::installed(name)) {
        return peers::skip(NAME, format_args!("needs {program}"));
    }
    // A namespace belongs to a thread. This thread's namespace is the machine's, with its own cables and its own /sys.
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).unwrap();
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).unwrap();
    mount("sysfs", "/sys", "sysfs", MountFlags::empty(), None).unwrap();
    let switch = Switch::plugged_into(&["eth0", "eth1"]);
    let _daemon = switch.speaks_on("port0");

    let mut interfaces = vec![linked("eth0")];
    let begin = Instant::now();
    lldp::listen(&Root::new("/"), &mut interfaces, PATIENCE);
    assert!(begin.elapsed() < PATIENCE, "it listened on although all had spoken");
    let heard = serde_json::to_value(&interfaces[0]).unwrap()["lldp"].take();
    let of_type = |wanted: u8| -> Vec<Value> {
        let values = heard.as_array().unwrap().iter();
        values.filter(|value| value[0] == wanted).cloned().collect()
    };
    // Chassis by its MAC address (subtype 4), port by its name (subtype 5), name of the system.
    assert_eq!(of_type(1), [json!([1, "04020000000700"])], "{heard}");
    assert_eq!(of_type(2), [json!([2, "05706f727430"])], "{heard}");
    assert_eq!(of_type(5), [json!([5, "7261636b312d746f72"])], "{heard}");
    assert_eq!(of_type(0), [] as [Value; 0], "{heard}");

    let mut interfaces = vec![linked("eth1"), linked("eth0")];
    lldp::listen(&Root::new("/"), &mut interfaces, SILENCE);
    assert_eq!(interfaces[0].lldp, None, "nobody speaks on that cable");
    assert!(interfaces[1].lldp.is_some(), "who is silent hides who is not");
}

fn linked(name: &str) -> Interface {
    let interface = json!({"name": name, "has_carrier": true});
    serde_json::from_value(interface).unwrap()
}

/// A namespace whose `port0`, `port1`, … are the other ends of the machine's cables.
struct Switch {
    name: String,
    folder: PathBuf,
}

impl Switch {
    fn plugged_into(interfaces: &[&str]) -> Self {
        let name = format!("lldp-{}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&name);
        fs::create_dir_all(&folder).unwrap();
        ip(&format!("netns add {name}"));
        let switch = Switch { name, folder };
        let name = &switch.name;
        for (number, interface) in interfaces.iter().enumerate() {
            ip(&format!("link add {interface} type veth peer name port{number} netns {name}"));
            ip(&format!("-n {name} link set port{number} address 02:00:00:00:07:{number:02x} up"));
            ip(&format!("link set {interface} up"));
        }
        switch
    }

    /// Runs `lldpd` on one port. `lldpd` keeps its state in /run, so each gets its own /run.
    fn speaks_on(&self, port: &str) -> Daemon {
        let settings = self.folder.join("lldpd.conf");
        let words = "configure system hostname rack1-tor\n\
                     configure lldp portidsubtype ifname\n\
                     configure lldp tx-interval 1\n";
        fs::write(&settings, words).unwrap();
        let script =
            "mount -t tmpfs run /run && exec lldpd -dd -u /run/lldpd.socket -I $0 -C $0 -O $1";
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, "sh", "-c", script, port]).arg(settings);
        let log = fs::File::create(self.folder.join("log")).unwrap();
        Daemon(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap())
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", fs::read_to_string(self.folder.join("log")).unwrap_or_default());
        }
        let deleted = Command::new("ip").args(["netns", "delete", &self.name]).status();
        if !deleted.is_ok_and(|status| status.success()) {
            eprintln!("cannot delete the network namespace {}", self.name);
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        // Ended by a signal instead of killed, because `lldpd` ends its child processes only then.
        if let Some(process) = rustix::process::Pid::from_raw(self.0.id().cast_signed()) {
            let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
        }
        let _ = self.0.wait();
    }
}

fn ip(arguments: &str) {
    let done = Command::new("ip").args(arguments.split_whitespace()).output().unwrap();
    assert!(done.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&done.stderr));
}
