//! The beginning of an action that ends in another status.

use super::view;
use crate::object::{Kind, Object};
use crate::problem::ApiError;
use crate::request::Answer;
use crate::world::{Event, World};

/// Nova's `check_instance_state`: refuses an action that the status does not allow, or while another action is in progress.
pub(super) fn ready(server: &Object, action: &str, from: &[&str]) -> Result<(), ApiError> {
    let (status, task) = (server.text("status"), server.note("task"));
    // Nova's error messages use other names for some actions than requests do.
    let action = match action {
        "os-migrateLive" => action,
        action => action.trim_start_matches("os-"),
    };
    let held = |attribute: &str, value: &str| {
        let id = &server.id;
        ApiError::conflict(format!(
            "Cannot '{action}' instance {id} while it is in {attribute} {value}"
        ))
    };
    if !task.is_empty() {
        return Err(held("task_state", task));
    }
    if !from.contains(&status) {
        return Err(held("vm_state", view::vm_state(status)));
    }
    Ok(())
}

/// Starts an action that ends in the status `after`.
pub(super) fn begin(
    world: &mut World,
    id: &str,
    during: &str,
    task: &str,
    after: &'static str,
    power: i64,
) -> Answer {
    if let Some(one) = world.store.get_mut(Kind::Server, id) {
        one.set("status", during);
        one.keep("task", task);
    }
    let delay = world.settings.times.server_action;
    world.later(delay, Event::Acted(id.to_owned(), after.into(), power));
    Answer::empty(202)
}
