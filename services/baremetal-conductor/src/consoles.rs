//! Serial consoles: a BMC offers its machine's port to one session, which several viewers share.
//!
//! The first viewer opens the port, and the port is closed a while after the last viewer has left. Nothing outlives the process: a limited
//! amount of each machine's output is kept in memory, and input is never kept.

mod port;
mod ring;
mod shared_console;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use baremetal_core::{Node, NodeIdent, NodeUuid};
use bmc::{BmcError, SerialSession};
use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use crate::handle::TurnContext;
use crate::problem::chain;
use port::{OpenPortError, run_port};
pub use shared_console::ConsoleViewer;
use shared_console::SharedConsole;

/// How often open consoles are checked, because another process may have disabled one.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// For how many consoles the latest output is kept while nobody views them.
const MAX_KEPT_CONSOLES: usize = 512;
/// The time limit for closing all ports when the process stops.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// The limits of serial consoles.
#[derive(Clone, Copy, Debug)]
pub struct ConsoleSettings {
    /// How many viewers one node may have at the same time.
    pub viewers_per_node: usize,
    /// How many ports may be open at the same time.
    pub sessions: usize,
    /// How long a port stays open after the last viewer has left.
    pub linger: Duration,
}

impl Default for ConsoleSettings {
    fn default() -> Self {
        ConsoleSettings { viewers_per_node: 8, sessions: 64, linger: Duration::from_secs(20) }
    }
}

/// Why a viewer's console ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleEnd {
    Disabled,
    Deleted,
    /// The owner or lessee of the node changed.
    HandedOver,
    /// The viewer did not read the output in time.
    TooSlow,
    Stopping,
}

impl ConsoleEnd {
    /// Returns the reason as a sentence for the viewer.
    pub const fn as_str(self) -> &'static str {
        match self {
            ConsoleEnd::Disabled => "the console was disabled",
            ConsoleEnd::Deleted => "the node was deleted",
            ConsoleEnd::HandedOver => "the node has another owner or lessee now",
            ConsoleEnd::TooSlow => "you did not read the output in time",
            ConsoleEnd::Stopping => "the service is stopping; connect again",
        }
    }
}

/// Why a viewer is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConsoleError {
    #[error("the console of node \"{node}\" is not enabled")]
    Disabled { node: String },
    /// The node has the maximum number of viewers.
    #[error("the console of node \"{node}\" has the maximum of {at_most} viewers; try again later")]
    Crowded {
        node: String,
        /// The maximum number of viewers.
        at_most: usize,
    },
    /// The maximum number of ports is open.
    #[error("the maximum of {at_most} consoles are open; try again later")]
    Exhausted {
        /// The maximum number of open ports.
        at_most: usize,
    },
    #[error("the service is stopping")]
    Stopping,
}

/// The consoles of all nodes.
#[derive(Debug)]
pub(crate) struct Consoles {
    settings: ConsoleSettings,
    lines: Mutex<HashMap<NodeUuid, Arc<SharedConsole>>>,
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
            sessions: Arc::new(Semaphore::new(settings.sessions)),
            tasks: TaskTracker::new(),
            ending: CancellationToken::new(),
        }
    }

    /// Adds a viewer to the console of `node`. `open` opens the serial port if nobody holds it yet.
    fn enter<F>(
        &self,
        node: &Node,
        open: impl Fn() -> F + Send + Sync + 'static,
    ) -> Result<ConsoleViewer, ConsoleError>
    where
        F: Future<Output = Result<SerialSession, OpenPortError>> + Send + 'static,
    {
        let ConsoleSettings { viewers_per_node, sessions, linger } = self.settings;
        if !node.console_enabled {
            return Err(ConsoleError::Disabled { node: node.label() });
        }
        if self.ending.is_cancelled() {
            return Err(ConsoleError::Stopping);
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

    /// Returns the latest output of the machine of `node`, as far as anybody was viewing it.
    fn latest_output(&self, node: &Node) -> Result<Bytes, ConsoleError> {
        if !node.console_enabled {
            return Err(ConsoleError::Disabled { node: node.label() });
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
    }

    /// Ends the node's console if it began under another owner or lessee.
    fn end_if_handed_over(&self, node: &Node) {
        let is_others = self.lock().get(&node.id).is_some_and(|line| !line.is_of(node));
        if is_others {
            self.end(node.id, ConsoleEnd::HandedOver);
        }
    }

    /// Returns the nodes whose ports are held.
    fn held(&self) -> Vec<NodeUuid> {
        let lines = self.lock();
        lines.iter().filter(|(_, line)| line.is_held()).map(|(id, _)| *id).collect()
    }

    /// Ends all consoles, and waits for a limited time until their ports are closed.
    async fn close(&self) {
        self.ending.cancel();
        let lines: Vec<_> = self.lock().drain().map(|(_, line)| line).collect();
        for line in lines {
            line.end(ConsoleEnd::Stopping);
        }
        self.tasks.close();
        if tokio::time::timeout(CLOSE_TIMEOUT, self.tasks.wait()).await.is_err() {
            warn!("not every console was closed in time; the BMCs will time them out");
        }
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

impl TurnContext {
    /// Adds a viewer to a node's console.
    pub(crate) fn watch_console(
        self: &Arc<Self>,
        node: &Node,
    ) -> Result<ConsoleViewer, ConsoleError> {
        let (context, id) = (self.clone(), node.id);
        self.consoles.enter(node, move || {
            let context = context.clone();
            async move { context.open_port(id).await }
        })
    }

    /// Returns the latest output of the node's console.
    pub(crate) fn console_log(&self, node: &Node) -> Result<Bytes, ConsoleError> {
        self.consoles.latest_output(node)
    }

    /// Opens the serial port of the node's machine, as configured in the node's current record.
    async fn open_port(&self, id: NodeUuid) -> Result<SerialSession, OpenPortError> {
        let failed = |why: String, is_transient| OpenPortError::Failed { why, is_transient };
        let node = self.store.find_node(&NodeIdent::Id(id)).await;
        let node = node.map_err(|why| failed(chain(&why), true))?;
        let node = node.ok_or(OpenPortError::Over(ConsoleEnd::Deleted))?;
        if !node.console_enabled {
            return Err(OpenPortError::Over(ConsoleEnd::Disabled));
        }
        let bmc = self.bmcs.of(&node).map_err(|why| failed(why.to_string(), false))?;
        let what = || "offer a serial console".to_owned();
        let serial = bmc.serial.ok_or_else(|| BmcError::Unsupported { what: what() })?;
        let session = serial.open().await?;
        info!(node.id = %id, "the console of node {} is open", node.label());
        Ok(session)
    }
}

/// Ends consoles that must not be open any more, until `stop` is cancelled; then ends all.
pub(crate) async fn run(
    context: Arc<TurnContext>,
    stop: CancellationToken,
) -> Result<(), crate::RunError> {
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let held = context.consoles.held();
        if held.is_empty() {
            continue;
        }
        let idents: Vec<NodeIdent> = held.iter().copied().map(NodeIdent::Id).collect();
        match context.store.find_nodes(&idents).await {
            Ok(found) => {
                let found: HashMap<NodeUuid, Node> =
                    found.into_iter().map(|node| (node.id, node)).collect();
                for id in held {
                    match found.get(&id) {
                        None => context.consoles.end(id, ConsoleEnd::Deleted),
                        Some(node) if !node.console_enabled => {
                            context.consoles.end(id, ConsoleEnd::Disabled);
                        }
                        Some(node) => context.consoles.end_if_handed_over(node),
                    }
                }
            }
            Err(why) => warn!("cannot check which consoles are enabled: {}", chain(&why)),
        }
    }
    context.consoles.close().await;
    Ok(())
}
