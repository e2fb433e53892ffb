//! The actions of a server, newest first.

use serde_json::json;

use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::world::{World, fine_stamp};

/// Adds an action to a server's history.
pub(super) fn note_action(world: &mut World, asked: &ApiRequest, id: &str, action: &str) {
    let entry = json!({
        "action": action.trim_start_matches("os-"), "instance_uuid": id, "request_id": asked.request_id, "user_id": asked.caller.user,
        "project_id": asked.caller.project, "start_time": fine_stamp(), "updated_at": fine_stamp(), "message": null,
    });
    world.actions.entry(id.to_owned()).or_default().insert(0, entry);
}

/// Answers `GET /servers/{id}/os-instance-actions`.
pub(super) fn actions(world: &World, id: &str, path: &[&str]) -> AnswerResult {
    let all = world.actions.get(id).cloned().unwrap_or_default();
    match path {
        [] => Ok(Answer::ok(json!({"instanceActions": all}))),
        [request] => {
            let one = all.into_iter().find(|one| one["request_id"] == *request);
            let mut one = one.ok_or_else(|| {
                ApiError::missing(format!(
                    "Action for request_id {request} on instance {id} not found"
                ))
            })?;
            one["events"] = json!([]);
            Ok(Answer::ok(json!({"instanceAction": one})))
        }
        _ => Err(ApiError::unknown_path()),
    }
}
