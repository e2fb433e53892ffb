//! `POST /servers/{id}/action`.

use serde_json::{Value, json};

use super::{life, limits, parts, server};
use crate::problem::Problem;
use crate::request::{Answer, Asked, Verdict};
use crate::store::{Kind, Object};
use crate::world::{Errand, Event, World};
use crate::{glance, neutron};

/// Name, states it starts from, state meanwhile, task, state after, power after.
type Move = (&'static str, &'static [&'static str], &'static str, &'static str, &'static str, i64);

/// Actions that only lead from one state to another.
const MOVES: [Move; 11] = [
    ("os-start", &["SHUTOFF"], "SHUTOFF", "powering-on", "ACTIVE", 1),
    ("os-stop", &["ACTIVE", "ERROR"], "ACTIVE", "powering-off", "SHUTOFF", 4),
    ("pause", &["ACTIVE"], "ACTIVE", "pausing", "PAUSED", 3),
    ("unpause", &["PAUSED"], "PAUSED", "unpausing", "ACTIVE", 1),
    ("suspend", &["ACTIVE"], "ACTIVE", "suspending", "SUSPENDED", 4),
    ("resume", &["SUSPENDED"], "SUSPENDED", "resuming", "ACTIVE", 1),
    ("confirmResize", &["VERIFY_RESIZE"], "VERIFY_RESIZE", "", "ACTIVE", 1),
    ("revertResize", &["VERIFY_RESIZE"], "REVERT_RESIZE", "resize_reverting", "ACTIVE", 1),
    ("shelve", &["ACTIVE", "SHUTOFF"], "ACTIVE", "shelving", "SHELVED_OFFLOADED", 4),
    ("unshelve", &["SHELVED_OFFLOADED"], "SHELVED_OFFLOADED", "spawning", "ACTIVE", 1),
    ("changePassword", &["ACTIVE"], "PASSWORD", "updating_password", "ACTIVE", 1),
];

pub(super) fn answer(world: &mut World, asked: &Asked, id: &str) -> Verdict {
    let body = asked.json()?;
    let action = body.as_object().and_then(|body| body.iter().next());
    let (name, given) = action.ok_or_else(|| Problem::bad("Malformed request body"))?;
    let one = server(world, asked, id)?;
    let locked = one.hidden.contains_key("locked") && !asked.caller.is_admin();
    if locked && !["unlock", "lock", "os-getConsoleOutput"].contains(&name.as_str()) {
        return Err(Problem::conflict(format!("Instance {id} is locked")));
    }
    let status = one.text("status").to_owned();
    let project = one.project.clone();
    if let Some((_, from, during, task, after, power)) =
        MOVES.iter().find(|(known, ..)| known == name)
    {
        if !from.contains(&status.as_str()) {
            return Err(wrong_state(id, name, &status));
        }
        if name == "revertResize" {
            change_flavor(world, id, &project, None);
        }
        parts::note_action(world, asked, id, name);
        return Ok(begin(world, id, during, task, after, *power));
    }
    match name.as_str() {
        "reboot" => {
            let hard = given["type"] == "HARD";
            let allowed = ["ACTIVE", "SHUTOFF", "ERROR", "PAUSED", "SUSPENDED", "HARD_REBOOT"];
            if !allowed.contains(&status.as_str()) || (!hard && status != "ACTIVE") {
                return Err(wrong_state(id, "reboot", &status));
            }
            parts::note_action(world, asked, id, "reboot");
            Ok(begin(
                world,
                id,
                if hard { "HARD_REBOOT" } else { "REBOOT" },
                "rebooting",
                "ACTIVE",
                1,
            ))
        }
        "rebuild" => {
            let image = given["imageRef"].as_str().unwrap_or_default().to_owned();
            world
                .store
                .get(Kind::Image, &image)
                .ok_or_else(|| Problem::bad("Cannot find image for rebuild"))?;
            if let Some(one) = world.store.get_mut(Kind::Server, id) {
                one.set("image", image);
                if let Some(name) = given["name"].as_str() {
                    one.set("name", name);
                }
            }
            if let Some(data) = given["user_data"].as_str() {
                world.user_data.insert(id.to_owned(), data.into());
            }
            parts::note_action(world, asked, id, "rebuild");
            begin(world, id, "REBUILD", "rebuilding", "ACTIVE", 1);
            let shown = super::view::detail(world, asked, server(world, asked, id)?);
            Ok(Answer::json(202, json!({"server": shown})))
        }
        "resize" => {
            if !["ACTIVE", "SHUTOFF"].contains(&status.as_str()) {
                return Err(wrong_state(id, "resize", &status));
            }
            let flavor = given["flavorRef"].as_str().unwrap_or_default();
            let flavor = world
                .store
                .get(Kind::Flavor, flavor)
                .cloned()
                .ok_or_else(|| Problem::bad(format!("Flavor {flavor} could not be found.")))?;
            change_flavor(world, id, &project, Some(&flavor));
            parts::note_action(world, asked, id, "resize");
            Ok(begin(world, id, "RESIZE", "resize_prep", "VERIFY_RESIZE", 1))
        }
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
        "createImage" => {
            let image = glance::snapshot(
                world,
                &project,
                given["name"].as_str().unwrap_or_default(),
                given["metadata"].clone(),
            );
            parts::note_action(world, asked, id, "createImage");
            let href = format!("{}/image/v2/images/{image}", asked.base);
            if asked.since(45) {
                return Ok(Answer::json(202, json!({"image_id": image})));
            }
            Ok(Answer::empty(202).with("location", href))
        }
        "os-getConsoleOutput" => {
            let text = world
                .store
                .get(Kind::Server, id)
                .map(|one| one.note("console").to_owned())
                .unwrap_or_default();
            let length =
                given["length"].as_u64().or_else(|| given["length"].as_str()?.parse().ok());
            let lines: Vec<&str> = text.lines().collect();
            let from = length.map_or(0, |length| {
                lines.len().saturating_sub(usize::try_from(length).unwrap_or(0))
            });
            Ok(Answer::ok(json!({"output": lines[from..].join("\n")})))
        }
        "os-getVNCConsole" | "os-getSPICEConsole" => Ok(Answer::ok(
            json!({"console": {"type": given["type"], "url": console_url(asked, id)}}),
        )),
        "addSecurityGroup" | "removeSecurityGroup" => groups(
            world,
            asked,
            id,
            given["name"].as_str().unwrap_or_default(),
            name == "addSecurityGroup",
        ),
        _ => Err(Problem::bad(format!("There is no such action: {name}"))),
    }
}

/// Where a console would be.
pub(super) fn console_url(asked: &Asked, id: &str) -> String {
    format!("{}/console/vnc_auto.html?path=%3Ftoken%3D{id}", asked.base)
}

fn wrong_state(id: &str, action: &str, status: &str) -> Problem {
    let action = action.trim_start_matches("os-");
    let state = match status {
        "SHUTOFF" => "stopped",
        "VERIFY_RESIZE" => "resized",
        "BUILD" => "building",
        other => &other.to_ascii_lowercase(),
    };
    Problem::conflict(format!("Cannot '{action}' instance {id} while it is in vm_state {state}"))
}

fn begin(
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
    world.later(delay, Event::Acted(id.to_owned(), after, power));
    Answer::empty(202)
}

/// Gives a server another flavor, or with none the one it had before.
fn change_flavor(world: &mut World, id: &str, project: &str, flavor: Option<&Object>) {
    let Some(one) = world.store.get(Kind::Server, id) else { return };
    let (now, before) = (one.note("flavor").to_owned(), one.note("flavor_before").to_owned());
    let next = flavor.map_or(before, |flavor| flavor.id.clone());
    let one = one.clone();
    limits::give_back(world, &one);
    if let Some(flavor) = world.store.get(Kind::Flavor, &next).cloned() {
        limits::take(world, project, &flavor);
    }
    if let Some(one) = world.store.get_mut(Kind::Server, id) {
        one.keep("flavor_before", now);
        one.keep("flavor", next);
    }
}

fn groups(world: &mut World, asked: &Asked, id: &str, name: &str, add: bool) -> Verdict {
    let mine = |group: &Object| {
        group.project == asked.caller.project && (group.text("name") == name || group.id == name)
    };
    let group = world.store.find(Kind::SecurityGroup, mine).map(|group| group.id.clone());
    let group = group.ok_or_else(|| {
        Problem::missing(format!(
            "Security group {name} not found for project {}.",
            asked.caller.project
        ))
    })?;
    for port in life::ports(world, id) {
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
    world.errand(Errand::Reopen);
    Ok(Answer::json(202, Value::Null))
}
