//! Moves the work of a node on: to its next task, to its end, or to a failure.

use baremetal_core::{
    Failure, HistoryEntry, Node, Reason, Task, Work, WorkUuid, fail_work, finish_work,
    start_next_task,
};
use reconcile::Requeue;
use tracing::warn;

use crate::context::TurnContext;
use crate::record::TurnError;

impl TurnContext {
    /// Begins the next task. If no task is left, ends the work in the same write.
    pub(crate) async fn next_task(&self, node: &Node) -> Result<Requeue, TurnError> {
        let node = match node.work.as_ref().and_then(Work::task) {
            Some(Task::AwaitInventory) => match self.take_inventory(node).await {
                Err(TurnError::Machine(problem)) => return self.fail(node, problem.into()).await,
                inspected => inspected?,
            },
            Some(_) | None => node.clone(),
        };
        self.set_progress(node.id, None);
        let now = self.now();
        let (next, entry) = start_next_task(&node, now)?;
        let mut history: Vec<HistoryEntry> = entry.into_iter().collect();
        if next.work.as_ref().is_some_and(|work| work.task().is_some()) {
            return self.record(&node, next, &history).await;
        }
        let (done, entry) = finish_work(&next, WorkUuid::new_v4(), now)?;
        history.push(entry);
        self.record(&node, done, &history).await
    }

    /// Fails the work. The machine is left as it is.
    pub(crate) async fn fail(
        &self,
        node: &Node,
        mut failure: Failure,
    ) -> Result<Requeue, TurnError> {
        if failure.reason == Reason::NoCallback {
            failure.cause += &format!(" ({})", self.sightings.of(node.id).boot_trail());
        }
        warn!(cause = failure.cause, "the work on node {} failed", node.id);
        self.set_progress(node.id, None);
        let (failed, entry) = fail_work(node, failure, self.now())?;
        self.record(node, failed, &[entry]).await
    }
}
