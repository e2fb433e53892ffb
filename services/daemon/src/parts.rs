//! The parts of a service that run side by side: the first one that ends stops all others.

use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

/// Waits for all parts, and returns the result of the part that ended first. When a part ends, by an error, a panic or the cancellation,
/// `stop` is cancelled, and the other parts have to end.
pub async fn stop_together<E: From<JoinError> + 'static>(
    mut parts: JoinSet<Result<(), E>>,
    stop: &CancellationToken,
) -> Result<(), E> {
    let mut outcome = Ok(());
    while let Some(ended) = parts.join_next().await {
        stop.cancel();
        let ended = ended.map_err(E::from).flatten();
        if outcome.is_ok() {
            outcome = ended;
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    enum Failure {
        Refused,
        Panicked,
    }

    impl From<JoinError> for Failure {
        fn from(_: JoinError) -> Self {
            Failure::Panicked
        }
    }

    async fn beside(
        failing: impl Future<Output = Result<(), Failure>> + Send + 'static,
    ) -> Failure {
        let stop = CancellationToken::new();
        let mut parts = JoinSet::new();
        parts.spawn(failing);
        let stopped = stop.clone();
        parts.spawn(async move {
            stopped.cancelled().await;
            Ok(())
        });
        stop_together(parts, &stop).await.unwrap_err()
    }

    #[tokio::test]
    async fn the_first_part_that_fails_stops_the_others() {
        assert!(matches!(beside(async { Err(Failure::Refused) }).await, Failure::Refused));
        let panics = async { Err(std::hint::black_box(None::<Failure>).unwrap()) };
        assert!(matches!(beside(panics).await, Failure::Panicked));
    }
}
