//! Opens the consoles of nodes, and ends consoles that must not be open any more.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use baremetal_core::{Node, NodeIdent, NodeUuid};
use bmc::{BmcError, SerialSession};
use bytes::Bytes;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::consoles::{ConsoleEnd, ConsoleError, ConsoleViewer, GraphicalViewer, OpenPortError};
use crate::context::TurnContext;
use crate::problem::chain;

/// How often open consoles are checked, because another process may have disabled one.
const LOOK_EVERY: Duration = Duration::from_secs(1);

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

    /// Opens a session with a node's graphical console.
    pub(crate) fn watch_graphical_console(
        &self,
        node: &Node,
    ) -> Result<GraphicalViewer, ConsoleError> {
        if !node.console_interface().is_graphical() {
            return Err(ConsoleError::Serial { node: node.label() });
        }
        let server = self.bmcs.vnc_server(node);
        let server = server.map_err(|why| ConsoleError::Unusable { why: why.to_string() })?;
        self.consoles.enter_graphical(node, server)
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
pub(crate) async fn run(context: Arc<TurnContext>, stop: CancellationToken) {
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
}
