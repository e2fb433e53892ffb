//! Answers `POST /servers/{id}/action`.

use serde_json::{Value, json};

use super::history::note_action;
use super::server::{ports, server};
use super::step::{begin, ready};
use super::{console, life, migrate, resize, snapshot, view};
use crate::neutron;
use crate::object::Kind;
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::world::{BackgroundTask, World};

/// The name of an action, the statuses that allow it, the status and task meanwhile, and the status and power state afterwards.
type Move = (&'static str, &'static [&'static str], &'static str, &'static str, &'static str, i64);

/// Actions that only change the status.
const MOVES: [Move; 9] = [
    ("os-start", &["SHUTOFF"], "SHUTOFF", "powering-on", "ACTIVE", 1),
    ("os-stop", &["ACTIVE", "ERROR"], "ACTIVE", "powering-off", "SHUTOFF", 4),
    ("pause", &["ACTIVE"], "ACTIVE", "pausing", "PAUSED", 3),
    ("unpause", &["PAUSED"], "PAUSED", "unpausing", "ACTIVE", 1),
    ("suspend", &["ACTIVE"], "ACTIVE", "suspending", "SUSPENDED", 4),
    ("resume", &["SUSPENDED"], "SUSPENDED", "resuming", "ACTIVE", 1),
    ("shelve", &["ACTIVE", "SHUTOFF"], "ACTIVE", "shelving", "SHELVED_OFFLOADED", 4),
    ("unshelve", &["SHELVED_OFFLOADED"], "SHELVED_OFFLOADED", "spawning", "ACTIVE", 1),
    ("changePassword", &["ACTIVE"], "PASSWORD", "updating_password", "ACTIVE", 1),
];

pub(super) fn answer(world: &mut World, asked: &ApiRequest, id: &str) -> AnswerResult {
    let body = asked.json()?;
    let action = body.as_object().and_then(|body| body.iter().next());
    let (name, given) = action.ok_or_else(|| ApiError::bad("Malformed request body"))?;
    let one = server(world, asked, id)?;
    let locked = one.hidden.contains_key("locked") && !asked.caller.is_admin();
    if locked && !["unlock", "lock", "os-getConsoleOutput"].contains(&name.as_str()) {
        return Err(ApiError::conflict(format!("Instance {id} is locked")));
    }
    if let Some(step) = MOVES.iter().find(|(known, ..)| known == name) {
        return moved(world, asked, id, step);
    }
    match name.as_str() {
        "reboot" => reboot(world, asked, id, given),
        "rebuild" => rebuild(world, asked, id, given),
        "os-migrateLive" => migrate::live(world, asked, id, given),
        "resize" => resize::begin(world, asked, id, given),
        "confirmResize" => resize::confirm(world, asked, id),
        "revertResize" => resize::revert(world, asked, id),
        "createImage" => snapshot::create(world, asked, id, given),
        "lock" | "unlock" => {
            if let Some(one) = world.store.get_mut(Kind::Server, id) {
                if name == "lock" {
                    one.keep("locked", true);
                } else {
                    one.hidden.remove("locked");
                }
            }
            Ok(Answer::empty(202))
        }
        "forceDelete" => life::delete(world, asked, id).map(|_| Answer::empty(202)),
        "os-resetState" => {
            asked.admin("os_compute_api:os-admin-actions:reset_state")?;
            let active = given["state"] == "active";
            if let Some(one) = world.store.get_mut(Kind::Server, id) {
                one.set("status", if active { "ACTIVE" } else { "ERROR" });
                one.keep("task", "");
            }
            Ok(Answer::empty(202))
        }
        "os-getConsoleOutput" => console::output(world, id, given),
        "os-getVNCConsole" | "os-getSPICEConsole" if !asked.since(6) => {
            console::by_action(world, asked, id, given)
        }
        "addSecurityGroup" | "removeSecurityGroup" => groups(
            world,
            asked,
            id,
            given["name"].as_str().unwrap_or_default(),
            name == "addSecurityGroup",
        ),
        _ => Err(ApiError::bad(format!("There is no such action: {name}"))),
    }
}

/// Starts an action that only changes the status.
fn moved(world: &mut World, asked: &ApiRequest, id: &str, step: &Move) -> AnswerResult {
    let (name, from, during, task, after, power) = *step;
    ready(server(world, asked, id)?, name, from)?;
    note_action(world, asked, id, name);
    Ok(begin(world, id, during, task, after, power))
}

fn reboot(world: &mut World, asked: &ApiRequest, id: &str, given: &Value) -> AnswerResult {
    let one = server(world, asked, id)?;
    let (during, task) = match given["type"].as_str() {
        Some("SOFT") => {
            ready(one, "reboot", &["ACTIVE"])?;
            ("REBOOT", "rebooting")
        }
        Some("HARD") => {
            // A reboot that hangs may be repeated as a hard reboot (`task_states.ALLOW_REBOOT`).
            let hangs = one.note("task").starts_with("rebooting");
            if !hangs {
                ready(one, "reboot", &["ACTIVE", "SHUTOFF", "ERROR", "PAUSED", "SUSPENDED"])?;
            }
            ("HARD_REBOOT", "rebooting_hard")
        }
        _ => {
            return Err(ApiError::bad(format!(
                "Invalid input for field/attribute type. Value: {}. {} is not one of ['HARD', 'Hard', 'hard', 'SOFT', 'Soft', 'soft']",
                given["type"], given["type"]
            )));
        }
    };
    note_action(world, asked, id, "reboot");
    Ok(begin(world, id, during, task, "ACTIVE", 1))
}

fn rebuild(world: &mut World, asked: &ApiRequest, id: &str, given: &Value) -> AnswerResult {
    ready(server(world, asked, id)?, "rebuild", &["ACTIVE", "SHUTOFF", "ERROR"])?;
    let image = given["imageRef"].as_str().unwrap_or_default().to_owned();
    world
        .store
        .get(Kind::Image, &image)
        .ok_or_else(|| ApiError::bad("Cannot find image for rebuild"))?;
    if let Some(one) = world.store.get_mut(Kind::Server, id) {
        one.set("image", image);
        if let Some(name) = given["name"].as_str() {
            one.set("name", name);
        }
    }
    if let Some(data) = given["user_data"].as_str() {
        world.user_data.insert(id.to_owned(), data.into());
    }
    note_action(world, asked, id, "rebuild");
    begin(world, id, "REBUILD", "rebuilding", "ACTIVE", 1);
    let shown = view::detail(world, asked, server(world, asked, id)?);
    Ok(Answer::json(202, json!({"server": shown})))
}

fn groups(world: &mut World, asked: &ApiRequest, id: &str, name: &str, add: bool) -> AnswerResult {
    let group = neutron::group_called(world, &asked.caller.project, name);
    let group = group.map(|group| group.id.clone());
    let group = group.ok_or_else(|| {
        ApiError::missing(format!(
            "Security group {name} not found for project {}.",
            asked.caller.project
        ))
    })?;
    for port in ports(world, id) {
        if let Some(port) = world.store.get_mut(Kind::Port, &port) {
            let mut groups = port.list("security_groups").to_vec();
            groups.retain(|one| *one != group.as_str());
            if add {
                groups.push(json!(group));
            }
            port.set("security_groups", groups);
        }
        neutron::touch(world, Kind::Port, &port);
    }
    world.start(BackgroundTask::Reopen);
    Ok(Answer::json(202, Value::Null))
}
