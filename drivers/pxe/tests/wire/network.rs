//! A private network for one test: namespaces that `ip` creates and that are removed when the test ends.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::Command;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// The server's address on the provisioning network.
pub(crate) const SERVER: std::net::Ipv4Addr = std::net::Ipv4Addr::new(10, 78, 0, 1);

/// The server's address on a provisioning network with IPv6.
pub(crate) const SERVER_V6: std::net::Ipv6Addr =
    std::net::Ipv6Addr::new(0xfd78, 0, 0, 0, 0, 0, 0, 1);

/// Two namespaces: the server's, with a bridge `br0`, and a client's, whose `eth0` is on that bridge.
pub(crate) struct Network {
    pub(crate) server: String,
    pub(crate) client: String,
}

/// Returns the reason why the test cannot run on this machine, if there is one.
pub(crate) fn missing(programs: &[&str], files: &[&str]) -> Option<String> {
    if !rustix::process::getuid().is_root() {
        return Some("needs root, for network namespaces".to_owned());
    }
    let program = programs.iter().find(|name| !peers::installed(name));
    let file = files.iter().find(|name| !std::path::Path::new(name).exists());
    program.or(file).map(|name| format!("needs {name}"))
}

impl Network {
    /// Creates the network; `name` must be unique among the tests that run at once.
    pub(crate) fn new(name: &str) -> Self {
        let id = std::process::id();
        let network =
            Network { server: format!("{name}-s-{id}"), client: format!("{name}-c-{id}") };
        let (server, client) = (&network.server, &network.client);
        ip(&format!("netns add {server}"));
        ip(&format!("netns add {client}"));
        for command in [
            "link set lo up",
            "link add br0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
            "addr add 10.78.0.1/24 dev br0",
            "addr add fd78::1/64 dev br0 nodad",
            "link set br0 addrgenmode none up",
            "addr add fe80::1/64 dev br0 nodad",
            "tuntap add tap0 mode tap",
            "link set tap0 master br0 up",
        ] {
            ip(&format!("-n {server} {command}"));
        }
        ip(&format!("-n {server} link add port0 type veth peer name eth0 netns {client}"));
        ip(&format!("-n {server} link set port0 master br0 up"));
        ip(&format!("-n {client} link set eth0 address 52:54:00:78:00:02 addrgenmode none up"));
        ip(&format!("-n {client} addr add fe80::2/64 dev eth0 nodad"));
        network
    }

    /// Runs `test` in the server's namespace; processes that it starts are in this namespace too.
    pub(crate) fn run(&self, test: impl Future<Output = ()> + Send) {
        let namespace = File::open(format!("/run/netns/{}", self.server)).expect("it was made");
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                // A namespace belongs to a thread, so the runtime must stay on this thread.
                move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
                    .expect("root may enter");
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.expect("a runtime starts").block_on(test);
            });
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        });
    }

    /// A command that runs `program` in the client's namespace.
    pub(crate) fn in_client(&self, program: &str) -> tokio::process::Command {
        let mut command = tokio::process::Command::new("ip");
        command.args(["netns", "exec", &self.client, program]).kill_on_drop(true);
        command
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in [&self.client, &self.server] {
            let deleted = Command::new("ip").args(["netns", "delete", name]).status();
            if !deleted.is_ok_and(|status| status.success()) {
                eprintln!("cannot delete the network namespace {name}");
            }
        }
    }
}

fn ip(arguments: &str) {
    let done = Command::new("ip").args(arguments.split_whitespace()).output().expect("ip runs");
    assert!(done.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&done.stderr));
}
