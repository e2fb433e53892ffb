//! Who waits for events hears that some were written.

use cluster_core::Holder;
use tokio::sync::broadcast;

/// Who is further behind than this is told to look.
const BEHIND: usize = 64;

/// Rung for each write.
#[derive(Clone)]
pub(crate) struct Bell(broadcast::Sender<Holder>);

impl Bell {
    pub(crate) fn new() -> Self {
        Bell(broadcast::Sender::new(BEHIND))
    }

    /// Something was written of this cluster or machine.
    pub(crate) fn ring(&self, of: impl Into<Holder>) {
        // Nobody may be listening, and that is well.
        let _ = self.0.send(of.into());
    }

    pub(crate) fn listen(&self, of: impl Into<Holder>) -> Listener {
        Listener { of: of.into(), bell: self.0.subscribe() }
    }
}

/// Hears of what this process writes of the events of one cluster or machine, and of its end. Of what others write on the same database
/// it hears nothing.
pub struct Listener {
    of: Holder,
    bell: broadcast::Receiver<Holder>,
}

impl Listener {
    /// Waits until something was written since it was last heard of. It may return without that.
    pub async fn heard(&mut self) {
        loop {
            match self.bell.recv().await {
                Ok(of) if of != self.of => {}
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
