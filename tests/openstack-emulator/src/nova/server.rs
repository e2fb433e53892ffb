//! The servers of callers: their ports, their status, and their past actions.

use serde_json::json;

use super::refuse;
use super::types::SERVER;
use crate::object::{Kind, Object, ReadFields};
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest, ApiResult};
use crate::world::{Event, World, fine_stamp};

/// A server of the caller's project.
pub(super) fn server<'w>(world: &'w World, asked: &ApiRequest, id: &str) -> ApiResult<&'w Object> {
    world.seen(Kind::Server, id, asked).ok_or_else(|| SERVER.missing(id))
}

pub(super) fn port_ids(world: &World, id: &str) -> Vec<String> {
    let server = world.store.get(Kind::Server, id).into_iter();
    server.flat_map(|server| server.hidden.texts("ports")).map(str::to_owned).collect()
}

pub(crate) fn ports<'w>(world: &'w World, server: &'w Object) -> impl Iterator<Item = &'w Object> {
    server.hidden.texts("ports").filter_map(|port| world.store.get(Kind::Port, port))
}

/// Nova's `vm_state` for a status.
pub(super) fn vm_state(status: &str) -> &'static str {
    match status {
        "BUILD" => "building",
        "ACTIVE" | "REBOOT" | "HARD_REBOOT" | "PASSWORD" | "REBUILD" | "RESIZE" | "MIGRATING" => {
            "active"
        }
        "SHUTOFF" => "stopped",
        "PAUSED" => "paused",
        "SUSPENDED" => "suspended",
        "VERIFY_RESIZE" | "REVERT_RESIZE" => "resized",
        "SHELVED_OFFLOADED" => "shelved_offloaded",
        _ => "error",
    }
}

/// Nova's `check_instance_state`: refuses an action that the status does not allow, or while another action is in progress.
pub(super) fn ready(server: &Object, action: &str, from: &[&str]) -> ApiResult {
    let (status, task) = (server.text("status"), server.note("task"));
    // Nova's error messages use other names for some actions than requests do.
    let action = match action {
        "os-migrateLive" => action,
        action => action.trim_start_matches("os-"),
    };
    if !task.is_empty() {
        return Err(refuse::not_now(action, &server.id, "task_state", task));
    }
    if !from.contains(&status) {
        return Err(refuse::not_now(action, &server.id, "vm_state", vm_state(status)));
    }
    Ok(())
}

/// Gives a server a status and a task.
pub(super) fn enter(world: &mut World, id: &str, status: &str, task: &str) {
    world.store.set(Kind::Server, id, "status", status);
    world.store.keep(Kind::Server, id, "task", task);
}

/// Starts an action that ends in the status `after`. It replaces one that is in progress.
pub(super) fn begin(
    world: &mut World,
    id: &str,
    during: &str,
    task: &str,
    after: &'static str,
    power: i64,
) -> Answer {
    enter(world, id, during, task);
    world.forget_action(id);
    let delay = world.settings.times.server_action;
    world.later(delay, Event::Acted(id.to_owned(), after.into(), power));
    Answer::empty(202)
}

/// Adds an action to a server's history.
pub(super) fn note_action(world: &mut World, asked: &ApiRequest, id: &str, action: &str) {
    let entry = json!({
        "action": action.trim_start_matches("os-"), "instance_uuid": id, "request_id": asked.request_id, "user_id": asked.caller.user,
        "project_id": asked.caller.project, "start_time": fine_stamp(), "updated_at": fine_stamp(), "message": null,
    });
    world.records.actions.entry(id.to_owned()).or_default().insert(0, entry);
}

/// Answers `GET /servers/{id}/os-instance-actions`.
pub(super) fn actions(world: &World, id: &str, path: &[&str]) -> ApiAnswer {
    let all = world.records.actions.get(id).cloned().unwrap_or_default();
    match path {
        [] => Ok(Answer::ok(json!({"instanceActions": all}))),
        [request] => {
            let one = all.into_iter().find(|one| one["request_id"] == *request);
            let mut one = one.ok_or_else(|| refuse::no_past_action(request, id))?;
            one["events"] = json!([]);
            Ok(Answer::ok(json!({"instanceAction": one})))
        }
        _ => Err(ApiError::unknown_path()),
    }
}
