//! Tasks that outlive a request (DSP0266 §12): their list, their states, and the task of an accepted request.

use bmc::{BmcError, Result};
use hardware::BmcTask;
use reqwest::StatusCode;
use serde_json::Value;

use crate::answer::Answer;
use crate::document::Document;
use crate::message;
use crate::service::Service;

/// The most tasks of a BMC that are compared.
const MOST_TASKS: usize = 512;
/// The most new tasks that are read to find the one of a request.
const MOST_NEW_TASKS: usize = 8;

impl Service {
    /// Lists the tasks that the BMC knows; `None` if the BMC has no list of tasks.
    ///
    /// # Errors
    ///
    /// Fails if the BMC cannot show its list now. Without the list, an interrupted request could not be told from one that was never sent.
    pub(crate) async fn listed_tasks(&self) -> Result<Option<Vec<String>>> {
        let Some(service) = self.root().await?.tasks.clone() else { return Ok(None) };
        let Some(service) = self.find_unless_busy(&service).await? else { return Ok(None) };
        let Some(tasks) = self.link(&service.body, "Tasks") else { return Ok(None) };
        self.ids(&tasks, MOST_TASKS).await
    }

    /// Returns the first task for which `is_meant` holds, among those that are not in `known`.
    ///
    /// # Errors
    ///
    /// Fails if the BMC cannot show its list or a new task now: the request of the task would be sent once more.
    pub(crate) async fn task_since(
        &self,
        known: &[String],
        is_meant: impl Fn(&Value) -> bool,
    ) -> Result<Option<String>> {
        let tasks = self.listed_tasks().await?.unwrap_or_default();
        let new = tasks.into_iter().filter(|task| !known.contains(task));
        for task in new.take(MOST_NEW_TASKS) {
            let url = self.origin.follow(&task)?;
            let Some(found) = self.find_unless_busy(&url).await? else { continue };
            if is_meant(&found.body) {
                return Ok(Some(task));
            }
        }
        Ok(None)
    }

    pub(crate) async fn task_state(&self, task: &str) -> Result<BmcTask> {
        let look = self.fetch(&self.origin.follow(task)?).await?;
        // DSP0266 §12.2: a monitor disappears once its result was fetched or has expired.
        if matches!(look.status, StatusCode::NOT_FOUND | StatusCode::GONE) {
            return Ok(BmcTask::Gone);
        }
        match look.accepted(&self.origin.host()) {
            Ok(look) => Ok(state(&look)),
            // A monitor shows the error of an operation that failed as its own answer.
            Err(BmcError::Refused { answer, transient: false, .. }) => Ok(BmcTask::Failed(answer)),
            Err(error) => Err(error),
        }
    }

    /// Returns the task of an accepted request. The task itself is preferred to its monitor, because it tells its state.
    pub(crate) fn task_of(&self, answer: &Answer) -> Option<String> {
        let body = answer.document().unwrap_or_default();
        let task = body.id().filter(|_| !body.word("TaskState").is_empty());
        let reported = [task, answer.location.as_deref(), body.at("TaskMonitor").as_str()];
        let mut links = reported.into_iter().flatten();
        links.find_map(|link| self.origin.follow(link).ok()).map(|url| url.path().to_owned())
    }
}

/// Classifies a task, or the answer of a task monitor.
fn state(look: &Answer) -> BmcTask {
    let body = look.document().unwrap_or(Value::Null);
    let failed = || {
        let told = message::sentence(&look.messages());
        let state = body.word("TaskState");
        BmcTask::Failed(format!("the task ended as {state}: {told}"))
    };
    match body.word("TaskState") {
        "New" => BmcTask::New,
        "Starting" | "Pending" | "Suspended" | "Interrupted" | "Service" => BmcTask::Waiting,
        "Completed" if body.word("TaskStatus") == "Critical" => failed(),
        "Completed" => BmcTask::Done,
        "Exception" | "Killed" | "Cancelled" => failed(),
        "" if look.status != StatusCode::ACCEPTED => BmcTask::Done,
        _ => BmcTask::Running,
    }
}
