//! Owns what all BMCs share: the sockets, the lines, and the task that keeps house.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bmc::Bmc;
use futures::StreamExt;
use futures::stream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;

use crate::client::Client;
use crate::line::{Line, Upkeep};
use crate::port::Port;
use crate::target::Target;

/// How many BMCs the housekeeper talks to at once.
const UPKEEP_AT_ONCE: usize = 64;

/// How long sessions live that nobody uses.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How long a session may be silent before the BMC is told that we are still there; BMCs
    /// forget after 60 s (IPMI 2.0 §6.12.15).
    pub keep_alive_every: Duration,
    /// How long a session stays open after its last command.
    pub close_after: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Pace { keep_alive_every: Duration::from_secs(30), close_after: Duration::from_secs(150) }
    }
}

/// Owns the sockets all BMCs share. Cheap to clone.
#[derive(Clone)]
pub struct Connector {
    shared: Arc<Shared>,
}

/// Lives as long as a connector or a client does.
pub(crate) struct Shared {
    house: Arc<House>,
    pub(crate) pace: Pace,
    /// Serial ports that are ours.
    pub(crate) serials: TaskTracker,
    /// Counts how often everything was closed.
    pub(crate) closings: watch::Sender<u64>,
    /// Aborted when this is dropped.
    _tasks: JoinSet<()>,
}

/// What the background tasks work on.
struct House {
    port: Port,
    lines: Mutex<HashMap<SocketAddr, Vec<Arc<Line>>>>,
}

impl Connector {
    /// Opens the sockets. Must be called within a tokio runtime.
    pub async fn bind() -> io::Result<Self> {
        Connector::bind_with(Pace::default()).await
    }

    /// Opens the sockets, with another pace than BMCs expect.
    pub async fn bind_with(pace: Pace) -> io::Result<Self> {
        let house = Arc::new(House { port: Port::bind()?, lines: Mutex::default() });
        let mut tasks = JoinSet::new();
        let listener = Arc::clone(&house);
        tasks.spawn(async move { listener.port.run().await });
        let keeper = Arc::clone(&house);
        tasks.spawn(async move { keeper.keep(pace).await });
        let (serials, closings) = (TaskTracker::new(), watch::Sender::new(0));
        let shared = Shared { house, pace, serials, closings, _tasks: tasks };
        Ok(Connector { shared: Arc::new(shared) })
    }

    /// What the BMC at `target` can do. Says nothing to it yet.
    pub fn bmc(&self, target: Target) -> Bmc {
        self.client(target).into_bmc()
    }

    /// A client of the BMC at `target`. Says nothing to it yet.
    ///
    /// Clients of the same target share one session.
    pub fn client(&self, target: Target) -> Client {
        let mut lines = self.shared.house.lines();
        let there = lines.entry(target.address).or_default();
        let known = there.iter().find(|line| line.target.is_same_account(&target));
        let line = known.map(Arc::clone).unwrap_or_else(|| {
            let line = Arc::new(Line::new(target));
            there.push(Arc::clone(&line));
            line
        });
        Client::new(Arc::clone(&self.shared), line)
    }

    /// Closes every open session, politely, and gives back every serial port.
    pub async fn close(&self) {
        self.shared.closings.send_modify(|times| *times += 1);
        self.shared.serials.close();
        self.shared.serials.wait().await;
        self.shared.serials.reopen();

        let house = &self.shared.house;
        let close = |line: Arc<Line>| async move { line.close(&house.port).await };
        stream::iter(house.all_lines()).for_each_concurrent(UPKEEP_AT_ONCE, close).await;
    }
}

impl Shared {
    pub(crate) fn port(&self) -> &Port {
        &self.house.port
    }
}

impl House {
    /// Looks after idle sessions until the task that runs this is aborted.
    async fn keep(&self, pace: Pace) {
        let shortest = pace.keep_alive_every.min(pace.close_after);
        let mut tick = tokio::time::interval((shortest / 6).max(Duration::from_millis(1)));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            let attend = |line: Arc<Line>| self.attend(line, pace);
            stream::iter(self.all_lines()).for_each_concurrent(UPKEEP_AT_ONCE, attend).await;
        }
    }

    async fn attend(&self, line: Arc<Line>, pace: Pace) {
        match line.upkeep(pace.keep_alive_every, pace.close_after) {
            Upkeep::Nothing => {}
            Upkeep::KeepAlive => line.keep_alive(&self.port).await,
            Upkeep::Close => line.close(&self.port).await,
            Upkeep::Forget => self.forget(line),
        }
    }

    /// Drops a line that nobody holds any more.
    fn forget(&self, line: Arc<Line>) {
        let mut lines = self.lines();
        let Some(there) = lines.get_mut(&line.target.address) else { return };
        // One is in the table, one is ours. None can be added while the table is locked.
        there.retain(|other| !Arc::ptr_eq(other, &line) || Arc::strong_count(other) > 2);
        if there.is_empty() {
            lines.remove(&line.target.address);
        }
    }

    fn all_lines(&self) -> Vec<Arc<Line>> {
        self.lines().values().flatten().map(Arc::clone).collect()
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<SocketAddr, Vec<Arc<Line>>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
