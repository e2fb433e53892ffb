//! Tasks of a BMC: operations that go on after the BMC accepted a request (DSP0268 `Task`).

/// The state of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BmcTask {
    /// The BMC has the request and has done nothing for it.
    New,
    /// The task waits for something, such as the next start of the machine.
    Waiting,
    Running,
    /// The task ended without an error.
    Done,
    /// The BMC does not know the task any more.
    Gone,
    /// The task ended with an error, in the BMC's words.
    Failed(String),
}

impl BmcTask {
    /// Returns whether the task has ended without an error, as far as the BMC still knows.
    pub fn has_ended_well(&self) -> bool {
        match self {
            BmcTask::Done | BmcTask::Gone => true,
            BmcTask::New | BmcTask::Waiting | BmcTask::Running | BmcTask::Failed(_) => false,
        }
    }
}
