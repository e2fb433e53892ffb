//! Live migration of servers: `os-migrateLive`.

use serde_json::Value;

use super::history::note_action;
use super::hosts;
use super::server::{ports, server};
use super::step::ready;
use crate::neutron;
use crate::object::Kind;
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::world::{Event, World, stamp};

/// Answers `os-migrateLive`. The request is accepted if the status of the server allows it. Since 2.34 a missing host only shows later, and
/// the
/// server then stays where it is.
pub(super) fn live(world: &mut World, asked: &ApiRequest, id: &str, given: &Value) -> AnswerResult {
    asked.admin("os_compute_api:os-migrate-server:migrate_live")?;
    let block = &given["block_migration"];
    let is_block = block.is_boolean() || (asked.since(25) && *block == "auto");
    if !is_block || given.get("host").is_none() {
        let field = if is_block { "host" } else { "block_migration" };
        return Err(ApiError::bad(format!(
            "Invalid input for field/attribute os-migrateLive. Value: {given}. '{field}' is a required property"
        )));
    }
    let one = server(world, asked, id)?;
    ready(one, "os-migrateLive", &["ACTIVE", "PAUSED"])?;
    let (status, here) = (one.text("status").to_owned(), one.note("host").to_owned());
    let target = given["host"].as_str().unwrap_or_default().to_owned();
    if target == here && !target.is_empty() {
        return Err(ApiError::bad(format!(
            "Unable to migrate instance ({id}) to current host ({target})."
        )));
    }
    let known = target.is_empty()
        || world.store.all(Kind::Provider).any(|host| host.text("name") == target);
    if !known {
        return Err(ApiError::bad(format!("Compute host {target} could not be found.")));
    }
    note_action(world, asked, id, "live-migration");
    if let Some(one) = world.store.get_mut(Kind::Server, id) {
        one.set("status", "MIGRATING");
        one.keep("task", "migrating");
        one.keep("status_before", status);
        one.keep("forced_host", target);
    }
    let delay = world.settings.times.server_action;
    world.later(delay, Event::Migrated(id.to_owned()));
    Ok(Answer::empty(202))
}

/// Ends a live migration: the server is on another host, or where it was.
pub(crate) fn migrated(world: &mut World, id: &str) {
    let Some(before) = world.store.get(Kind::Server, id).cloned() else { return };
    if before.note("task") == "deleting" {
        return;
    }
    if let Some(one) = world.store.get_mut(Kind::Server, id) {
        one.keep("avoided_host", before.note("host"));
    }
    let moved = hosts::replace(world, &before);
    let Some(one) = world.store.get_mut(Kind::Server, id) else { return };
    one.set("status", before.note("status_before"));
    one.set("updated", stamp());
    one.keep("task", "");
    for note in ["avoided_host", "forced_host", "status_before"] {
        one.hidden.remove(note);
    }
    if !moved {
        return;
    }
    let host = one.note("host").to_owned();
    for port in ports(world, id) {
        if let Some(port) = world.store.get_mut(Kind::Port, &port) {
            port.keep("host", host.clone());
        }
        neutron::touch(world, Kind::Port, &port);
    }
}
