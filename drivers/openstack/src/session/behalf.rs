//! The request on whose behalf calls are made: its id is sent with each call.

use tokio::task_local;

task_local! {
    static REQUEST: String;
}

/// Runs `work` on behalf of the request with this id. Every call within, in whatever session, sends the id as `X-Openstack-Request-Id`,
/// which the cloud's services log as the global request id. Tasks that `work` spawns are not included.
pub async fn on_behalf_of<T>(request_id: String, work: impl Future<Output = T>) -> T {
    REQUEST.scope(request_id, work).await
}

/// Returns the id of the request on whose behalf the current task runs.
pub fn request_id() -> Option<String> {
    REQUEST.try_with(Clone::clone).ok()
}
