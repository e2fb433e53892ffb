//! Wakes readers that wait for events when this process writes some.

use cluster_core::ClusterUuid;
use tokio::sync::broadcast;

/// A listener that is more notifications behind than this is woken, without the notifications it missed.
const BEHIND: usize = 64;

/// Notified at each write.
#[derive(Clone)]
pub(crate) struct WriteNotifier(broadcast::Sender<ClusterUuid>);

impl WriteNotifier {
    pub(crate) fn new() -> Self {
        WriteNotifier(broadcast::Sender::new(BEHIND))
    }

    pub(crate) fn ring(&self, of: ClusterUuid) {
        // Fails when nobody listens, which is fine.
        let _ = self.0.send(of);
    }

    pub(crate) fn listen(&self, of: ClusterUuid) -> Listener {
        Listener { of, bell: self.0.subscribe() }
    }
}

/// Waits for events that this process writes about one cluster, and for its deletion. Writes of other processes on the same database
/// do not wake the listener.
pub struct Listener {
    of: ClusterUuid,
    bell: broadcast::Receiver<ClusterUuid>,
}

impl Listener {
    /// Waits until something was written since the last call. May return without a write.
    pub async fn heard(&mut self) {
        loop {
            match self.bell.recv().await {
                Ok(of) if of != self.of => {}
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {
                    // The caller reads the database next, and sees everything that was written before.
                    self.bell = self.bell.resubscribe();
                    return;
                }
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}
