//! The state that all parts of a running cloud share.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::guest::Progress;
use crate::locks::lock;
use crate::world::World;

/// The state that all parts of a running cloud share.
pub(crate) struct Shared {
    pub(crate) address: SocketAddr,
    world: Mutex<World>,
    wake: Notify,
    calls: watch::Sender<u64>,
    /// The progress of each guest, by the id of its server.
    pub(crate) progress: Mutex<BTreeMap<String, Progress>>,
    /// The ports on which guests listen.
    pub(crate) offers: Mutex<Offers>,
    /// The addresses that are open on this host.
    pub(crate) openings: Mutex<Openings>,
    /// Whether the cloud is kept in a file.
    pub(crate) is_kept: bool,
}

impl Shared {
    pub(crate) fn new(
        address: SocketAddr,
        world: World,
        progress: BTreeMap<String, Progress>,
        is_kept: bool,
    ) -> Shared {
        Shared {
            address,
            world: Mutex::new(world),
            wake: Notify::new(),
            calls: watch::Sender::new(0),
            progress: Mutex::new(progress),
            offers: Mutex::default(),
            openings: Mutex::default(),
            is_kept,
        }
    }

    /// Reads or changes the world under its lock.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut World) -> T) -> T {
        look(&mut lock(&self.world))
    }

    /// Wakes the clock, because a new event may be due before the one it waits for.
    pub(crate) fn changed(&self) {
        self.wake.notify_one();
    }

    /// Ends when `changed` was called.
    pub(crate) async fn until_changed(&self) {
        self.wake.notified().await;
    }

    /// Notifies of each call that arrived or ended.
    pub(crate) fn calls(&self) -> watch::Receiver<u64> {
        self.calls.subscribe()
    }

    /// Wakes `wait_until`, because a call arrived or ended.
    pub(crate) fn called(&self) {
        self.calls.send_modify(|number| *number += 1);
    }

    /// Waits until a rule has ended.
    pub(crate) async fn until_gone(&self, rule: u64) {
        while self.with(|world| world.misbehaviour.has(rule, Instant::now())) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until the trap is opened again.
    pub(crate) async fn until_opened(&self, opening: u64) {
        while self.with(|world| world.trap.holds(opening)) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// The ports of servers on which guests listen.
pub(crate) type Offers = HashMap<(String, u16), SocketAddr>;

/// The addresses that are open on this host, and the tasks that serve them.
#[derive(Default)]
pub(crate) struct Openings {
    pub(crate) open: BTreeMap<(IpAddr, u16), (SocketAddr, Vec<AbortHandle>)>,
}

impl Openings {
    pub(crate) fn find(&self, address: IpAddr, port: u16) -> Option<SocketAddr> {
        self.open.get(&(address, port)).map(|(at, _)| *at)
    }

    pub(crate) fn all(&self) -> Vec<(SocketAddr, SocketAddr)> {
        self.open.iter().map(|((ip, port), (at, _))| (SocketAddr::new(*ip, *port), *at)).collect()
    }
}

impl Drop for Openings {
    fn drop(&mut self) {
        for handle in self.open.values().flat_map(|(_, handles)| handles) {
            handle.abort();
        }
    }
}
