//! Who waits for events hears that some were written.

use cluster_core::ClusterUuid;
use tokio::sync::broadcast;

/// Who is further behind than this is told to look.
const BEHIND: usize = 64;

/// Rung for each write.
#[derive(Clone)]
pub(crate) struct Bell(broadcast::Sender<ClusterUuid>);

impl Bell {
    pub(crate) fn new() -> Self {
        Bell(broadcast::Sender::new(BEHIND))
    }

    /// Something was written of this cluster.
    pub(crate) fn ring(&self, cluster: ClusterUuid) {
        // Nobody may be listening, and that is well.
        let _ = self.0.send(cluster);
    }

    pub(crate) fn listen(&self, cluster: ClusterUuid) -> Listener {
        Listener { cluster, bell: self.0.subscribe() }
    }
}

/// Hears of what this process writes of one cluster's events, and of its end. Of what others write on the same database
/// it hears nothing.
pub struct Listener {
    cluster: ClusterUuid,
    bell: broadcast::Receiver<ClusterUuid>,
}

impl Listener {
    /// Waits until something was written since it was last heard of. It may return without that.
    pub async fn heard(&mut self) {
        loop {
            match self.bell.recv().await {
                Ok(cluster) if cluster != self.cluster => {}
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {
                    // Whoever looks now sees what rang meanwhile.
                    self.bell = self.bell.resubscribe();
                    return;
                }
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}
