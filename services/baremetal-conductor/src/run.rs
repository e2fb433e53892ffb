//! Runs the conductor: the turns of all nodes, and the tasks beside them.

use std::time::Duration;

use replicas::LeaseRefused;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::conductor::Conductor;
use crate::{
    catch_up, crawler, machine_names, node_consoles, racks, replica, seal_keys, sensing, sweep,
    turn,
};

/// The time limit for logging out of all BMCs when the process stops.
const LOG_OUT_TIMEOUT: Duration = Duration::from_secs(3);

/// Why the conductor stopped working.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("a turn panicked")]
    Turn(#[source] tokio::task::JoinError),
    #[error(transparent)]
    Lease(LeaseRefused),
}

impl Conductor {
    /// Resumes all work in progress, and works until `stop` is cancelled.
    ///
    /// # Errors
    ///
    /// Fails if a turn panicked, or if this conductor must not work on its database.
    pub async fn run(self, stop: CancellationToken) -> Result<(), RunError> {
        let mut tasks = JoinSet::new();
        let context = self.context.clone();
        let turns = reconcile::run(
            context.queue.clone(),
            context.settings.workers,
            stop.clone(),
            move |id| turn::turn(id, context.clone()),
        );
        tasks.spawn(async move { turns.await.map_err(RunError::Turn) });
        tasks.spawn(beside(catch_up::run(self.context.clone(), stop.clone())));
        tasks.spawn(beside(sweep::run(self.context.clone(), stop.clone())));
        tasks.spawn(beside(sensing::run(self.context.clone(), stop.clone())));
        let replica = replica::run(self.context.clone(), stop.clone());
        tasks.spawn(async move { replica.await.map_err(RunError::Lease) });
        tasks.spawn(beside(crawler::run(self.context.clone(), stop.clone())));
        tasks.spawn(beside(machine_names::run(self.context.clone(), stop.clone())));
        tasks.spawn(beside(racks::run(self.context.clone(), stop.clone())));
        tasks.spawn(beside(seal_keys::run(self.context.clone(), stop.clone())));
        tasks.spawn(beside(node_consoles::run(self.context.clone(), stop.clone())));
        let mut outcome = Ok(());
        while let Some(ended) = tasks.join_next().await {
            let ended = ended.map_err(RunError::Turn).flatten();
            if ended.is_err() {
                stop.cancel();
            }
            outcome = outcome.and(ended);
        }
        // A BMC that does not answer must not delay the end of the process.
        let _ = timeout(LOG_OUT_TIMEOUT, self.context.bmcs.close()).await;
        outcome
    }
}

/// Runs a task beside the turns, which ends only when the conductor stops.
async fn beside(work: impl Future<Output = ()>) -> Result<(), RunError> {
    work.await;
    Ok(())
}
