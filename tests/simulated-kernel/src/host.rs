//! Hosts: a simulated computer has threads, a clock that can be wrong, a disk that can be slow, and a place in the network.

use std::time::Duration;

use crate::cuts;
use crate::kernel::{self, Host, HostState, Kernel};
use crate::virtual_time::{self, nanos};

impl Host {
    /// Adds a host to the simulation.
    pub fn add() -> Host {
        kernel::with(Kernel::add_host).unwrap_or(Host::FIRST)
    }

    /// Moves the calling thread to this host. Threads that it starts are on the same host.
    pub fn enter(self) {
        kernel::enter(self);
    }

    /// Stops all threads of the host for a while, as SIGSTOP does.
    pub fn pause(self, pause: Duration) {
        let until = virtual_time::now() + nanos(pause);
        self.change(|it| it.paused_until = until);
    }

    /// Ends a pause.
    pub fn resume(self) {
        self.change(|it| it.paused_until = 0);
    }

    /// Sets how far the wall clock of the host is ahead of the time, in seconds.
    pub fn set_clock_ahead(self, seconds: i64) {
        self.change(|it| it.skew = seconds * 1_000_000_000);
    }

    /// Sets how long the disk of the host takes, at most, until data are safe.
    pub fn set_disk_delay(self, most: Duration) {
        self.change(|it| it.disk_delay = nanos(most));
    }

    /// Cuts all connections between two hosts, as if the computer between them had restarted: an answer on its way is lost.
    pub fn cut(self, other: Host) {
        kernel::with(|it| cuts::cut(it, self, other));
    }

    /// Cuts all connections between two hosts. From then on nothing that one of them sends reaches the other.
    pub fn partition(self, other: Host) {
        kernel::with(|it| {
            cuts::cut(it, self, other);
            it.partitions.insert((self.min(other), self.max(other)));
        });
    }

    /// Ends a partition. Connections that were made meanwhile stay silent.
    pub fn reconnect(self, other: Host) {
        kernel::with(|it| it.partitions.remove(&(self.min(other), self.max(other))));
    }

    fn change(self, change: impl FnOnce(&mut HostState)) {
        kernel::with(|it| it.hosts.get_mut(self.0).map(change));
    }
}
