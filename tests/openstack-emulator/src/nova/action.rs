//! Answers `POST /servers/{id}/action`.

use serde_json::{Value, json};

use super::server::{begin, enter, note_action, ready};
use super::server::{port_ids, server};
use super::{console, life, migrate, refuse, resize, snapshot, view};
use crate::neutron;
use crate::object::{ChangeLists, Kind, ReadFields};
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest};
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

pub(super) fn answer(world: &mut World, asked: &ApiRequest, id: &str) -> ApiAnswer {
    let body = asked.json()?;
    let action = body.as_object().and_then(|body| body.iter().next());
    let (name, given) = action.ok_or_else(|| ApiError::bad("Malformed request body"))?;
    let one = server(world, asked, id)?;
    let is_locked = one.hidden.contains_key("locked") && !asked.caller.is_admin();
    if is_locked && !["unlock", "lock", "os-getConsoleOutput"].contains(&name.as_str()) {
        return Err(refuse::locked(id));
    }
    if let Some((name, from, during, task, after, power)) = MOVES.iter().find(|it| it.0 == name) {
        ready(one, name, from)?;
        note_action(world, asked, id, name);
        return Ok(begin(world, id, during, task, after, *power));
    }
    match name.as_str() {
        "reboot" => return reboot(world, asked, id, given),
        "rebuild" => return rebuild(world, asked, id, given),
        "os-migrateLive" => return migrate::live(world, asked, id, given),
        "resize" => return resize::begin(world, asked, id, given),
        "confirmResize" => return resize::confirm(world, asked, id),
        "revertResize" => return resize::revert(world, asked, id),
        "createImage" => return snapshot::create(world, asked, id, given),
        "lock" => world.store.keep(Kind::Server, id, "locked", true),
        "unlock" => world.store.change(Kind::Server, id, |one| drop(one.hidden.remove("locked"))),
        "forceDelete" => life::delete(world, asked, id)?,
        "os-resetState" => {
            asked.admin("os_compute_api:os-admin-actions:reset_state")?;
            enter(world, id, if given["state"] == "active" { "ACTIVE" } else { "ERROR" }, "");
        }
        "os-getConsoleOutput" => return console::output(world, asked, id, given),
        "os-getVNCConsole" | "os-getSPICEConsole" if !asked.since(6) => {
            return console::by_action(world, asked, id, given);
        }
        "addSecurityGroup" | "removeSecurityGroup" => {
            return groups(world, asked, id, (name, given));
        }
        _ => return Err(refuse::no_action(name)),
    }
    Ok(Answer::empty(202))
}

fn reboot(world: &mut World, asked: &ApiRequest, id: &str, given: &Value) -> ApiAnswer {
    let one = server(world, asked, id)?;
    let (during, task) = match given["type"].as_str() {
        Some("SOFT") => {
            ready(one, "reboot", &["ACTIVE"])?;
            ("REBOOT", "rebooting")
        }
        Some("HARD") => {
            // A reboot that hangs may be repeated as a hard reboot (`task_states.ALLOW_REBOOT`).
            if !one.note("task").starts_with("rebooting") {
                ready(one, "reboot", &["ACTIVE", "SHUTOFF", "ERROR", "PAUSED", "SUSPENDED"])?;
            }
            ("HARD_REBOOT", "rebooting_hard")
        }
        _ => return Err(refuse::bad_reboot(&given["type"])),
    };
    note_action(world, asked, id, "reboot");
    Ok(begin(world, id, during, task, "ACTIVE", 1))
}

fn rebuild(world: &mut World, asked: &ApiRequest, id: &str, given: &Value) -> ApiAnswer {
    ready(server(world, asked, id)?, "rebuild", &["ACTIVE", "SHUTOFF", "ERROR"])?;
    let found = world.store.get(Kind::Image, given.text("imageRef"));
    let image = found.ok_or_else(|| ApiError::bad("Cannot find image for rebuild"))?.id.clone();
    world.store.set(Kind::Server, id, "image", image);
    if let Some(name) = given["name"].as_str() {
        world.store.set(Kind::Server, id, "name", name);
    }
    if let Some(data) = given["user_data"].as_str() {
        world.records.user_data.insert(id.to_owned(), data.into());
    }
    note_action(world, asked, id, "rebuild");
    begin(world, id, "REBUILD", "rebuilding", "ACTIVE", 1);
    let shown = view::detail(world, asked, server(world, asked, id)?);
    Ok(Answer::json(202, json!({"server": shown})))
}

/// Adds a security group to the ports of a server, or removes it.
fn groups(
    world: &mut World,
    asked: &ApiRequest,
    id: &str,
    (action, given): (&str, &Value),
) -> ApiAnswer {
    let (name, project) = (given.text("name"), &asked.caller.project);
    let group = neutron::group_called(world, project, name).map(|group| group.id.clone());
    let group = group.ok_or_else(|| refuse::unknown_security_group(name, project))?;
    for port in port_ids(world, id) {
        neutron::update(world, Kind::Port, &port, |port| {
            port.body.drop_from("security_groups", |one| *one == group.as_str());
            if action == "addSecurityGroup" {
                port.body.push_to("security_groups", group.as_str());
            }
        });
    }
    world.start(BackgroundTask::Reopen);
    Ok(Answer::json(202, Value::Null))
}
