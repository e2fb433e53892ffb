//! Translates the decision when the next turn is due for the queue.

use cluster_core::NextTurn;
use reconcile::Requeue;

/// Returns the place of the next turn in the queue.
pub(crate) fn requeue(next: NextTurn) -> Requeue {
    match next {
        NextTurn::Now => Requeue::Now,
        NextTurn::After(pause) => Requeue::After(pause),
    }
}
