//! The state of the simulation: threads, hosts, sockets. The other modules change it.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use libc::c_int;

use crate::address::{Kind, Name};
use crate::stream::Stream;

static ACTIVE: AtomicBool = AtomicBool::new(false);
static KERNEL: Mutex<Option<Kernel>> = Mutex::new(None);

thread_local! {
    /// The number of the calling thread; `usize::MAX` for a thread that is no part of the simulation.
    static SELF: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// A thread of the simulation.
pub(crate) struct Thread {
    pub(crate) host: Host,
    pub(crate) wait: Wait,
    /// Set to 1 when the thread may go on.
    pub(crate) go: &'static AtomicU32,
    /// The name that libc has for the thread.
    pub(crate) handle: libc::pthread_t,
}

/// Why a thread does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// It runs, or could run.
    Nothing,
    /// It waits for events, or until a time.
    Events {
        poll: libc::c_int,
        until: u64,
    },
    /// It waits for a wake at this address, or until a time.
    Address {
        address: usize,
        until: u64,
    },
    Until(u64),
    /// It waits for the end of another thread.
    End(usize),
    /// It has ended.
    Over,
}

/// A computer of the simulation.
pub(crate) struct HostState {
    pub(crate) paused_until: u64,
    /// How far the wall clock is ahead, in nanoseconds.
    pub(crate) skew: i64,
    pub(crate) disk_delay: u64,
    random: Stream,
}

/// Everything that the simulation knows.
pub(crate) struct Kernel {
    seed: u64,
    pub(crate) threads: Vec<Thread>,
    pub(crate) hosts: Vec<HostState>,
    pub(crate) schedule: Stream,
    pub(crate) choices: Stream,
    pub(crate) faults: Stream,
    pub(crate) connections: Connections,
    pub(crate) partitions: BTreeSet<(Host, Host)>,
    /// The threads that were woken at the address where they waited.
    pub(crate) woken: BTreeSet<usize>,
    /// When connections are cut.
    pub(crate) cuts: BTreeMap<(u64, u64), libc::c_int>,
    pub(crate) digest: u64,
    pub(crate) switches: u64,
    /// The most switches, and what to do after them.
    pub(crate) limit: (u64, fn()),
}

/// A simulated computer. The thread that began the simulation is on the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host(pub(crate) usize);

impl Host {
    /// The host of the thread that began the simulation.
    pub const FIRST: Host = Host(0);
}

/// The first port of those that the kernel chooses.
const FIRST_PORT: u16 = 10_000;

/// The sockets of the program.
#[derive(Default)]
pub(crate) struct Connections {
    pub(crate) sockets: BTreeMap<c_int, Socket>,
    /// The hosts of all names.
    pub(crate) hosts: BTreeMap<Name, Host>,
    ports: u16,
    /// The socket that is never read.
    pub(crate) silence: Option<c_int>,
    /// Of 1000 connections, how many are cut, and within how many nanoseconds.
    pub(crate) losses: (u64, u64),
    made: u64,
    pub(crate) requests: Vec<Request>,
    pub(crate) datagrams: Vec<Datagram>,
}

/// An internet socket, as the program sees it.
#[derive(Clone, Copy)]
pub(crate) struct Socket {
    pub(crate) kind: Kind,
    pub(crate) is_v6: bool,
    pub(crate) host: Host,
    pub(crate) own: Option<SocketAddr>,
    pub(crate) peer: Option<SocketAddr>,
    /// Tells this socket from others that had its number.
    pub(crate) made: u64,
}

/// A request by HTTP without TLS that changes something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// When the request was sent.
    pub at: Duration,
    pub from: Host,
    pub to: SocketAddr,
    /// The method and the path.
    pub line: String,
}

/// A datagram that was sent to a socket of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// When the datagram was sent.
    pub at: Duration,
    pub from: Host,
    pub to: SocketAddr,
}

pub(crate) fn is_active() -> bool {
    ACTIVE.load(Ordering::Relaxed)
}

/// Whether the calling thread is a part of the simulation.
pub(crate) fn is_inside() -> bool {
    is_active() && SELF.get() != usize::MAX
}

/// Runs a function on the state of the simulation, if one is active and the calling thread is a part of it.
pub(crate) fn with<T>(function: impl FnOnce(&mut Kernel) -> T) -> Option<T> {
    if !is_inside() {
        return None;
    }
    // Only one thread of the simulation runs, so the lock is free.
    KERNEL.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(function)
}

/// Moves the calling thread to a host.
pub(crate) fn enter(host: Host) {
    let own = SELF.get();
    with(|it| it.threads.get_mut(own).map(|thread| thread.host = host));
}

/// How far the wall clock of the calling thread's host is ahead, in nanoseconds.
pub(crate) fn skew() -> i64 {
    let own = SELF.get();
    with(|it| it.threads.get(own).map_or(0, |thread| it.hosts[thread.host.0].skew)).unwrap_or(0)
}

/// The number of the calling thread.
pub(crate) fn own() -> usize {
    SELF.get()
}

/// Begins a simulation, with the calling thread on the first host.
pub(crate) fn begin(seed: u64) {
    let kernel = Kernel::new(seed);
    SELF.set(0);
    *KERNEL.lock().unwrap_or_else(PoisonError::into_inner) = Some(kernel);
    ACTIVE.store(true, Ordering::Relaxed);
}

pub(crate) fn end() {
    ACTIVE.store(false, Ordering::Relaxed);
}

/// Makes the calling thread the one with this number; `usize::MAX` for none.
pub(crate) fn become_thread(number: usize) {
    SELF.set(number);
}

impl Kernel {
    /// The state at the beginning, with the calling thread on the first host.
    fn new(seed: u64) -> Kernel {
        let mut kernel = Kernel {
            seed,
            threads: Vec::new(),
            hosts: Vec::new(),
            schedule: Stream::new(seed, 1),
            choices: Stream::new(seed, 2),
            faults: Stream::new(seed, 3),
            connections: Connections::default(),
            partitions: BTreeSet::new(),
            woken: BTreeSet::new(),
            cuts: BTreeMap::new(),
            digest: 0,
            switches: 0,
            limit: (u64::MAX, || {}),
        };
        kernel.add_host();
        // SAFETY: the function has no preconditions.
        kernel.add_thread(Host::FIRST, unsafe { libc::pthread_self() });
        kernel
    }

    pub(crate) fn add_host(&mut self) -> Host {
        let host = Host(self.hosts.len());
        let random = Stream::new(self.seed, 1000 + host.0 as u64);
        self.hosts.push(HostState { paused_until: 0, skew: 0, disk_delay: 0, random });
        host
    }

    /// Adds a thread, which is ready to run.
    pub(crate) fn add_thread(&mut self, host: Host, handle: libc::pthread_t) -> usize {
        let go = Box::leak(Box::new(AtomicU32::new(0)));
        self.threads.push(Thread { host, wait: Wait::Nothing, go, handle });
        self.threads.len() - 1
    }

    /// The host of the calling thread.
    pub(crate) fn own_host(&self) -> Host {
        self.threads[SELF.get()].host
    }

    pub(crate) fn random_of_this_thread(&mut self) -> &mut Stream {
        let host = self.own_host();
        &mut self.hosts[host.0].random
    }
}

impl Connections {
    pub(crate) fn next_port(&mut self) -> u16 {
        self.ports = if self.ports < FIRST_PORT || self.ports == u16::MAX {
            FIRST_PORT
        } else {
            self.ports + 1
        };
        self.ports
    }

    pub(crate) fn add(&mut self, file: c_int, socket: Socket) {
        self.made += 1;
        self.sockets.insert(file, Socket { made: self.made, ..socket });
    }

    /// The host of a name, and the name by which the kernel knows the socket.
    pub(crate) fn find(&self, name: Name) -> Option<(Name, Host)> {
        let found = |name: Name| self.hosts.get(&name).map(|host| (name, *host));
        found(name).or_else(|| found(name.of_any()))
    }

    pub(crate) fn host_of_peer(&self, socket: &Socket) -> Option<Host> {
        let name = Name { kind: socket.kind, address: socket.peer? };
        self.find(name).map(|(_, host)| host)
    }
}
