//! Which machine gets which address of the provisioning network.

use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::process::Command;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::time::timeout;

use crate::machine::{DECLINE, Machine, Speaker, mac};
use crate::site::{LOOPBACK, Pool, TestService, enrolled};

/// A pool of three addresses. The test's network namespace uses the first one itself.
const SHARED: Pool =
    Pool { listen: "127.0.0.1:0", server: "10.79.0.1", prefix: 24, range: "10.79.0.10-10.79.0.12" };

#[tokio::test]
async fn an_enrolled_machine_gets_an_address_from_a_pool_full_of_unknown_machines() {
    let enrolled = enrolled("r1u1", mac(100));
    let site = TestService::start(LOOPBACK, "discover", &[enrolled]).await;
    let machine = async |n| Machine::new(site.dhcp, Ipv4Addr::LOCALHOST, mac(n)).await;
    let mut strangers = Vec::new();
    for n in 0..4 {
        strangers.push(machine(n).await.is_offered(Speaker::Firmware).await.unwrap());
    }
    let enrolled = machine(100).await.is_offered(Speaker::Firmware).await;
    assert_eq!(
        enrolled,
        Some(strangers[0]),
        "the stranger who asked longest ago loses its address"
    );
    assert_eq!(machine(4).await.is_offered(Speaker::Firmware).await, None, "none is left");
}

#[test]
fn an_address_that_another_machine_uses_is_given_to_nobody() {
    let name = "an_address_that_another_machine_uses_is_given_to_nobody";
    if !rustix::process::getuid().is_root() {
        return peers::skip(name, "needs root, for a network namespace");
    }
    if !peers::installed("ip") {
        return peers::skip(name, "needs ip");
    }
    let namespace = Namespace::new();
    namespace.run(async {
        let site = TestService::start(SHARED, "refuse", &[enrolled("r1u1", mac(1))]).await;
        let machine = Machine::new(site.dhcp, Ipv4Addr::new(10, 79, 0, 0), mac(1)).await;
        let [used, first, second] = [10, 11, 12].map(|n| Ipv4Addr::new(10, 79, 0, n));
        assert_eq!(machine.is_offered(Speaker::Firmware).await, Some(first), "{used} answers");

        // The machine reports that its address is used by another machine.
        machine.tells(DECLINE, first).await;
        let another =
            async { while machine.is_offered(Speaker::Firmware).await != Some(second) {} };
        timeout(Duration::from_secs(30), another).await.unwrap();

        // A DECLINE for an address without a lease must not take the address from another machine.
        let other = Machine::new(site.dhcp, Ipv4Addr::new(10, 79, 0, 0), mac(2)).await;
        other.tells(DECLINE, second).await;
        assert_eq!(other.is_offered(Speaker::Firmware).await, None, "it is refused");
        assert_eq!(machine.is_offered(Speaker::Firmware).await, Some(second));
    });
}

/// A network namespace in which this host has the first address of the pool.
struct Namespace(String);

impl Namespace {
    fn new() -> Namespace {
        let name = format!("addresses-{}", std::process::id());
        ip(&format!("netns add {name}"));
        let namespace = Namespace(name);
        ip(&format!("-n {} link set lo up", namespace.0));
        ip(&format!("-n {} addr add 10.79.0.10/32 dev lo", namespace.0));
        namespace
    }

    /// Runs `test` in the namespace. A namespace belongs to a thread, so everything runs on one thread.
    fn run(&self, test: impl Future<Output = ()> + Send) {
        let namespace = File::open(format!("/run/netns/{}", self.0)).unwrap();
        let thread = || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(test);
        };
        std::thread::scope(|scope| {
            if let Err(panic) = scope.spawn(thread).join() {
                std::panic::resume_unwind(panic);
            }
        });
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let deleted = Command::new("ip").args(["netns", "delete", &self.0]).status();
        if !deleted.is_ok_and(|status| status.success()) {
            eprintln!("cannot delete the network namespace {}", self.0);
        }
    }
}

fn ip(arguments: &str) {
    let done = Command::new("ip").args(arguments.split_whitespace()).output().unwrap();
    assert!(done.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&done.stderr));
}
