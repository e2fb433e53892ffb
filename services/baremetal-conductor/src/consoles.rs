//! Consoles. A BMC offers its machine's serial port to one session, which several viewers share; of a graphical console each viewer has a
//! session of its own.
//!
//! The first viewer opens the port, and the port is closed a while after the last viewer has left. Nothing outlives the process: a limited
//! amount of each machine's serial output is kept in memory, and input is never kept.

mod graphical;
mod port;
mod ring;
mod shared_console;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use baremetal_core::{Node, NodeUuid};
use bmc::SerialSession;
use bytes::Bytes;
use rfb::Server;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::warn;

use graphical::GraphicalSessions;
pub use graphical::{GraphicalOutcome, GraphicalViewer};
pub(crate) use port::OpenPortError;
use port::run_port;
use shared_console::SharedConsole;
pub use shared_console::{ConsoleEnd, ConsoleViewer};

/// For how many consoles the latest output is kept while nobody views them.
const MAX_KEPT_CONSOLES: usize = 512;
/// The time limit for closing all ports when the process stops.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// The limits of consoles.
#[derive(Clone, Copy, Debug)]
pub struct ConsoleSettings {
    /// How many viewers one node may have at the same time.
    pub viewers_per_node: usize,
    /// How many ports and graphical consoles may be open at the same time.
    pub sessions: usize,
    /// How long a port stays open after the last viewer has left.
    pub linger: Duration,
}

impl Default for ConsoleSettings {
    fn default() -> Self {
        ConsoleSettings { viewers_per_node: 8, sessions: 64, linger: Duration::from_secs(20) }
    }
}

/// Why a viewer is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConsoleError {
    #[error("the console of node \"{node}\" is not enabled")]
    Disabled { node: String },
    #[error("the console of node \"{node}\" has the maximum of {at_most} viewers; try again later")]
    Crowded {
        node: String,
        /// The maximum number of viewers.
        at_most: usize,
    },
    #[error(
        "the console of node \"{node}\" is graphical: open the URL of /v1/nodes/{node}/states/console"
    )]
    Graphical { node: String },
    #[error("the console of node \"{node}\" is serial: open it with bedplate node console {node}")]
    Serial { node: String },
    /// The node does not say how to reach its console.
    #[error("{why}")]
    Unusable { why: String },
    #[error("the maximum of {at_most} consoles are open; try again later")]
    Exhausted {
        /// The maximum number of open ports.
        at_most: usize,
    },
    #[error("the service is stopping")]
    Stopping,
}

#[derive(Debug)]
pub(crate) struct Consoles {
    settings: ConsoleSettings,
    lines: Mutex<HashMap<NodeUuid, Arc<SharedConsole>>>,
    graphical: Arc<GraphicalSessions>,
    sessions: Arc<Semaphore>,
    /// The tasks that hold ports, and a token of every viewer.
    tasks: TaskTracker,
    ending: CancellationToken,
}

impl Consoles {
    pub(crate) fn new(settings: ConsoleSettings) -> Self {
        Consoles {
            settings,
            lines: Mutex::default(),
            graphical: Arc::default(),
            sessions: Arc::new(Semaphore::new(settings.sessions)),
            tasks: TaskTracker::new(),
            ending: CancellationToken::new(),
        }
    }

    /// Adds a viewer to the console of `node`. `open` opens the serial port if nobody holds it yet.
    pub(crate) fn enter<F>(
        &self,
        node: &Node,
        open: impl Fn() -> F + Send + Sync + 'static,
    ) -> Result<ConsoleViewer, ConsoleError>
    where
        F: Future<Output = Result<SerialSession, OpenPortError>> + Send + 'static,
    {
        let ConsoleSettings { viewers_per_node, sessions, linger } = self.settings;
        self.check_enabled(node)?;
        if node.console_interface().is_graphical() {
            return Err(ConsoleError::Graphical { node: node.label() });
        }
        // The lock is held until the viewer is added, so that no other caller can end this line unnoticed in between.
        let mut lines = self.lock();
        if lines.get(&node.id).is_some_and(|line| line.given_up.is_cancelled()) {
            lines.remove(&node.id);
        }
        if let Some(line) = lines.get(&node.id).filter(|line| !line.is_of(node)) {
            line.end(ConsoleEnd::HandedOver);
            lines.remove(&node.id);
        }
        evict_idle(&mut lines, node.id);
        let line = lines.entry(node.id).or_insert_with(|| Arc::new(SharedConsole::new(node)));
        let held = line.clone();
        let start = |typed| {
            let session = self.sessions.clone().try_acquire_owned();
            let session = session.map_err(|_| ConsoleError::Exhausted { at_most: sessions })?;
            self.tasks.spawn(async move {
                run_port(held, typed, linger, open).await;
                drop(session);
            });
            Ok(())
        };
        let crowded = || ConsoleError::Crowded { node: node.label(), at_most: viewers_per_node };
        line.enter(viewers_per_node, self.tasks.token(), start)
            .map_err(|why| why.unwrap_or_else(crowded))
    }

    /// Opens a session with the graphical console of `node`, which `server` shows.
    pub(crate) fn enter_graphical(
        &self,
        node: &Node,
        server: Server,
    ) -> Result<GraphicalViewer, ConsoleError> {
        let ConsoleSettings { viewers_per_node, sessions, .. } = self.settings;
        self.check_enabled(node)?;
        let session = self.sessions.clone().try_acquire_owned();
        let session = session.map_err(|_| ConsoleError::Exhausted { at_most: sessions })?;
        let crowded = || ConsoleError::Crowded { node: node.label(), at_most: viewers_per_node };
        let entered = self.graphical.enter(node, viewers_per_node, self.tasks.token());
        let (viewer, task) = entered.ok_or_else(crowded)?;
        self.tasks.spawn(async move {
            task.run(server).await;
            drop(session);
        });
        Ok(viewer)
    }

    /// Returns the latest output of the machine of `node`, as far as anybody was viewing it.
    pub(crate) fn latest_output(&self, node: &Node) -> Result<Bytes, ConsoleError> {
        self.check_enabled(node)?;
        if node.console_interface().is_graphical() {
            return Err(ConsoleError::Graphical { node: node.label() });
        }
        let lines = self.lock();
        let line = lines.get(&node.id).filter(|line| line.is_of(node));
        Ok(line.map(|line| line.kept()).unwrap_or_default())
    }

    /// Ends the node's console for all viewers, and drops its output.
    pub(crate) fn end(&self, node: NodeUuid, why: ConsoleEnd) {
        let line = self.lock().remove(&node);
        if let Some(line) = line {
            line.end(why);
        }
        self.graphical.end(node, why);
    }

    /// Ends the node's console if it began under another owner or lessee.
    pub(crate) fn end_if_handed_over(&self, node: &Node) {
        self.graphical.end_if_handed_over(node);
        let is_others = self.lock().get(&node.id).is_some_and(|line| !line.is_of(node));
        if is_others {
            self.end(node.id, ConsoleEnd::HandedOver);
        }
    }

    /// Returns the nodes whose consoles are open.
    pub(crate) fn held(&self) -> BTreeSet<NodeUuid> {
        let lines = self.lock();
        let held = lines.iter().filter(|(_, line)| line.is_held()).map(|(id, _)| *id);
        held.chain(self.graphical.nodes()).collect()
    }

    /// Ends all consoles, and waits for a limited time until their ports are closed.
    pub(crate) async fn close(&self) {
        self.ending.cancel();
        let lines: Vec<_> = self.lock().drain().map(|(_, line)| line).collect();
        for line in lines {
            line.end(ConsoleEnd::Stopping);
        }
        self.graphical.close();
        self.tasks.close();
        if tokio::time::timeout(CLOSE_TIMEOUT, self.tasks.wait()).await.is_err() {
            warn!("not every console was closed in time; the BMCs will time them out");
        }
    }

    fn check_enabled(&self, node: &Node) -> Result<(), ConsoleError> {
        if !node.console_enabled {
            return Err(ConsoleError::Disabled { node: node.label() });
        }
        if self.ending.is_cancelled() {
            return Err(ConsoleError::Stopping);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<NodeUuid, Arc<SharedConsole>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drops the output of one console whose port nobody holds, if there would be too many with the next one.
fn evict_idle(lines: &mut HashMap<NodeUuid, Arc<SharedConsole>>, next: NodeUuid) {
    if lines.len() < MAX_KEPT_CONSOLES || lines.contains_key(&next) {
        return;
    }
    let idle = lines.iter().find(|(_, line)| !line.is_held()).map(|(id, _)| *id);
    if let Some(idle) = idle {
        lines.remove(&idle);
    }
}
