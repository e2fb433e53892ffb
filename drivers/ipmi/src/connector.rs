//! Makes the clients of BMCs, which share the sockets.

use std::io;
use std::sync::Arc;

use bmc::Bmc;

use crate::client::Client;
use crate::lines::{SessionLifetimes, Shared};
use crate::target::Target;

/// The owner of the sockets that all BMCs share. Cheap to clone.
#[derive(Clone)]
pub struct Connector {
    shared: Arc<Shared>,
}

impl Connector {
    /// Opens the sockets. Must be called within a tokio runtime.
    pub async fn bind() -> io::Result<Self> {
        Connector::bind_with(SessionLifetimes::default()).await
    }

    /// Opens the sockets, with other lifetimes of sessions than BMCs expect.
    pub async fn bind_with(pace: SessionLifetimes) -> io::Result<Self> {
        Ok(Connector { shared: Arc::new(Shared::bind(pace)?) })
    }

    /// Makes a `Bmc` for `target` without sending a packet.
    pub fn bmc(&self, target: Target) -> Bmc {
        self.client(target).into_bmc()
    }

    /// Makes a client for the BMC at `target` without sending a packet.
    ///
    /// Clients of the same target share one session.
    pub fn client(&self, target: Target) -> Client {
        let line = self.shared.line(target);
        Client::new(Arc::clone(&self.shared), line)
    }

    /// Closes every open session and releases every serial port.
    pub async fn close(&self) {
        self.shared.close().await;
    }
}
