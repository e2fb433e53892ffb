//! Graphical consoles. Each viewer has a session of its own with the VNC server of the BMC, because the bytes that a server sends depend on
//! what it has sent to the same viewer before.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use baremetal_core::{Node, NodeUuid};
use rfb::{Server, Viewer};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, copy, duplex, split};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::info;

use super::shared_console::ConsoleEnd;
use crate::problem::chain;

/// How many bytes wait in each direction of a session. A slow viewer delays only what the BMC sends to this viewer.
const BYTES_IN_FLIGHT: usize = 64 << 10;

/// The sessions of all viewers.
#[derive(Debug, Default)]
pub(super) struct GraphicalSessions {
    open: Mutex<HashMap<NodeUuid, Vec<Arc<GraphicalSession>>>>,
}

/// A session that one viewer has with the BMC of a node.
#[derive(Debug)]
struct GraphicalSession {
    /// The owner and the lessee when the session began.
    whose: (Option<String>, Option<String>),
    end: OnceLock<ConsoleEnd>,
    over: CancellationToken,
}

impl GraphicalSession {
    fn end(&self, why: ConsoleEnd) {
        // The first reason counts; later ones are ignored.
        let _ = self.end.set(why);
        self.over.cancel();
    }
}

/// One viewer of a graphical console. Dropping the value ends the viewing.
#[derive(Debug)]
pub struct GraphicalViewer {
    /// A server of RFB that asks for no password. The stream ends when the console has ended.
    pub stream: DuplexStream,
    /// How the console ended.
    pub outcome: GraphicalOutcome,
}

/// How a viewer's graphical console ended. The service waits at its stop until the value is dropped, so that the viewer gets the reason.
#[derive(Debug)]
pub struct GraphicalOutcome {
    session: Arc<GraphicalSession>,
    _token: TaskTrackerToken,
}

impl GraphicalOutcome {
    /// Returns why the console ended.
    pub fn end(&self) -> ConsoleEnd {
        self.session.end.get().copied().unwrap_or(ConsoleEnd::Over)
    }
}

/// The other end of a viewer's stream, and the place of the viewer among the sessions.
pub(super) struct SessionTask {
    sessions: Arc<GraphicalSessions>,
    node: NodeUuid,
    session: Arc<GraphicalSession>,
    stream: DuplexStream,
}

impl GraphicalSessions {
    /// Adds a viewer of `node`; `None` if the node has `at_most` viewers. The task has to be run.
    pub(super) fn enter(
        self: &Arc<Self>,
        node: &Node,
        at_most: usize,
        token: TaskTrackerToken,
    ) -> Option<(GraphicalViewer, SessionTask)> {
        let mut open = self.lock();
        let sessions = open.entry(node.id).or_default();
        if sessions.len() >= at_most {
            return None;
        }
        let session = Arc::new(GraphicalSession {
            whose: (node.owner.clone(), node.lessee.clone()),
            end: OnceLock::new(),
            over: CancellationToken::new(),
        });
        sessions.push(session.clone());
        let (viewers, own) = duplex(BYTES_IN_FLIGHT);
        let outcome = GraphicalOutcome { session: session.clone(), _token: token };
        let task = SessionTask { sessions: self.clone(), node: node.id, session, stream: own };
        Some((GraphicalViewer { stream: viewers, outcome }, task))
    }

    /// Ends all sessions with a node.
    pub(super) fn end(&self, node: NodeUuid, why: ConsoleEnd) {
        self.lock().get(&node).into_iter().flatten().for_each(|session| session.end(why));
    }

    /// Ends the sessions with a node that began under another owner or lessee.
    pub(super) fn end_if_handed_over(&self, node: &Node) {
        let whose = (node.owner.clone(), node.lessee.clone());
        let open = self.lock();
        let sessions = open.get(&node.id).into_iter().flatten();
        let others = sessions.filter(|session| session.whose != whose);
        others.for_each(|session| session.end(ConsoleEnd::HandedOver));
    }

    /// Ends all sessions, because the process stops.
    pub(super) fn close(&self) {
        self.lock().values().flatten().for_each(|session| session.end(ConsoleEnd::Stopping));
    }

    /// Returns the nodes with sessions.
    pub(super) fn nodes(&self) -> Vec<NodeUuid> {
        self.lock().keys().copied().collect()
    }

    fn leave(&self, node: NodeUuid, session: &Arc<GraphicalSession>) {
        let mut open = self.lock();
        if let Some(sessions) = open.get_mut(&node) {
            sessions.retain(|other| !Arc::ptr_eq(other, session));
            if sessions.is_empty() {
                open.remove(&node);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<NodeUuid, Vec<Arc<GraphicalSession>>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionTask {
    /// Passes the viewer on to `server` until one side ends the session, or the console ends.
    pub(super) async fn run(self, server: Server) {
        tokio::select! {
            biased;
            () = self.session.over.cancelled() => {}
            why = pass_on(self.stream, &server) => self.session.end(why),
        }
        self.sessions.leave(self.node, &self.session);
    }
}

/// Logs in to `server`, admits the viewer, and copies bytes in both directions until one side ends the session.
async fn pass_on(stream: DuplexStream, server: &Server) -> ConsoleEnd {
    let Ok(greeted) = timeout(server.timeout, Viewer::greet(stream)).await else {
        return ConsoleEnd::TooSlow;
    };
    let Ok(viewer) = greeted else { return ConsoleEnd::Over };
    let bmc = match server.connect().await {
        Ok(bmc) => bmc,
        Err(why) => {
            let why = chain(&why);
            info!("a graphical console was not opened: {why}");
            // The viewer may have left.
            let _ = viewer.refuse(&why).await;
            return ConsoleEnd::Refused;
        }
    };
    let Ok(admitted) = timeout(server.timeout, viewer.admit()).await else {
        return ConsoleEnd::TooSlow;
    };
    if let Ok(stream) = admitted {
        copy_both_ways(bmc, stream).await;
    }
    ConsoleEnd::Over
}

/// Copies bytes until one side ends its stream. Unlike `copy_bidirectional`, does not wait for the other side to end its own.
async fn copy_both_ways(bmc: impl AsyncRead + AsyncWrite, viewer: impl AsyncRead + AsyncWrite) {
    let ((mut from_bmc, mut to_bmc), (mut from_viewer, mut to_viewer)) =
        (split(bmc), split(viewer));
    tokio::select! {
        _ = copy(&mut from_bmc, &mut to_viewer) => {}
        _ = copy(&mut from_viewer, &mut to_bmc) => {}
    }
}

#[cfg(test)]
mod tests;
