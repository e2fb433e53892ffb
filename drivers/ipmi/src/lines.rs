//! The state that all BMCs share: the sockets, the lines to BMCs, and the task that maintains idle sessions.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;

use crate::line::{BmcLine, Maintenance};
use crate::port::Port;
use crate::target::Target;

/// How many BMCs the maintenance task talks to at once.
const UPKEEP_AT_ONCE: usize = 64;

/// The lifetime of idle sessions.
#[derive(Clone, Copy, Debug)]
pub struct SessionLifetimes {
    /// After this time without a command, the driver sends a keep-alive: a BMC forgets a session after 60 s (IPMI 2.0 §6.12.15).
    pub keep_alive_every: Duration,
    /// How long a session stays open after its last command.
    pub close_after: Duration,
}

impl Default for SessionLifetimes {
    fn default() -> Self {
        SessionLifetimes {
            keep_alive_every: Duration::from_secs(30),
            close_after: Duration::from_secs(150),
        }
    }
}

/// The shared state; lives as long as a connector or a client does.
pub(crate) struct Shared {
    house: Arc<BackgroundState>,
    pub(crate) pace: SessionLifetimes,
    /// Tasks of open serial ports.
    pub(crate) serials: TaskTracker,
    /// Counts the calls of `Connector::close`, each of which ends all serial ports.
    pub(crate) closings: watch::Sender<u64>,
    /// The tasks are aborted when this value is dropped.
    _tasks: JoinSet<()>,
}

/// The state that the background tasks use.
struct BackgroundState {
    port: Port,
    lines: Mutex<HashMap<SocketAddr, Vec<Arc<BmcLine>>>>,
}

impl Shared {
    /// Opens the sockets and starts the background tasks.
    pub(crate) fn bind(pace: SessionLifetimes) -> io::Result<Self> {
        let house = Arc::new(BackgroundState { port: Port::bind()?, lines: Mutex::default() });
        let mut tasks = JoinSet::new();
        let listener = Arc::clone(&house);
        tasks.spawn(async move { listener.port.run().await });
        let keeper = Arc::clone(&house);
        tasks.spawn(async move { keeper.maintain_sessions(pace).await });
        let (serials, closings) = (TaskTracker::new(), watch::Sender::new(0));
        Ok(Shared { house, pace, serials, closings, _tasks: tasks })
    }

    /// Returns the line to `target`; clients of the same target share one.
    pub(crate) fn line(&self, target: Target) -> Arc<BmcLine> {
        let mut lines = self.house.lines();
        let there = lines.entry(target.address).or_default();
        let known = there.iter().find(|line| line.target.is_same_account(&target));
        known.map(Arc::clone).unwrap_or_else(|| {
            let line = Arc::new(BmcLine::new(target));
            there.push(Arc::clone(&line));
            line
        })
    }

    /// Closes every open session and releases every serial port.
    pub(crate) async fn close(&self) {
        self.closings.send_modify(|times| *times += 1);
        self.serials.close();
        self.serials.wait().await;
        self.serials.reopen();

        let house = &self.house;
        let close = |line: Arc<BmcLine>| async move { line.close(&house.port).await };
        stream::iter(house.all_lines()).for_each_concurrent(UPKEEP_AT_ONCE, close).await;
    }

    pub(crate) fn port(&self) -> &Port {
        &self.house.port
    }
}

impl BackgroundState {
    /// Maintains idle sessions until its task is aborted.
    async fn maintain_sessions(&self, pace: SessionLifetimes) {
        let shortest = pace.keep_alive_every.min(pace.close_after);
        let mut tick = tokio::time::interval((shortest / 6).max(Duration::from_millis(1)));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            let attend = |line: Arc<BmcLine>| self.maintain(line, pace);
            stream::iter(self.due_lines(pace)).for_each_concurrent(UPKEEP_AT_ONCE, attend).await;
        }
    }

    async fn maintain(&self, line: Arc<BmcLine>, pace: SessionLifetimes) {
        match line.upkeep(pace.keep_alive_every, pace.close_after) {
            Maintenance::Nothing => {}
            Maintenance::KeepAlive => line.keep_alive(&self.port).await,
            Maintenance::Close => line.close(&self.port).await,
            Maintenance::Forget => self.forget(line),
        }
    }

    /// Drops a line that no client uses.
    fn forget(&self, line: Arc<BmcLine>) {
        let mut lines = self.lines();
        let Some(there) = lines.get_mut(&line.target.address) else { return };
        // The table and this function hold one reference each. No client can add a reference while the table is locked.
        there.retain(|other| !Arc::ptr_eq(other, &line) || Arc::strong_count(other) > 2);
        if there.is_empty() {
            lines.remove(&line.target.address);
        }
    }

    /// Returns the lines that need maintenance now. Of thousands of lines only a few do at a time, so the others get no future.
    fn due_lines(&self, pace: SessionLifetimes) -> Vec<Arc<BmcLine>> {
        let is_due = |line: &&Arc<BmcLine>| {
            line.upkeep(pace.keep_alive_every, pace.close_after) != Maintenance::Nothing
        };
        self.lines().values().flatten().filter(is_due).map(Arc::clone).collect()
    }

    fn all_lines(&self) -> Vec<Arc<BmcLine>> {
        self.lines().values().flatten().map(Arc::clone).collect()
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<SocketAddr, Vec<Arc<BmcLine>>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
