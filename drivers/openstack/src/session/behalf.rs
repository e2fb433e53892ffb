//! On behalf of which request calls are made: its id goes along with each of them.

use tokio::task_local;

task_local! {
    static REQUEST: String;
}

/// Has `work` done on behalf of the request of this id. Every call that it makes, by whatever session, carries the id as
/// `X-Openstack-Request-Id`: what a cloud's services log as the global request id. What it spawns is not on behalf of it.
pub async fn on_behalf_of<T>(request_id: String, work: impl Future<Output = T>) -> T {
    REQUEST.scope(request_id, work).await
}

/// The id of the request on behalf of which this is done, where there is one.
pub fn request_id() -> Option<String> {
    REQUEST.try_with(Clone::clone).ok()
}
