//! Live migration of servers: `os-migrateLive`.

use serde_json::Value;

use super::server::{enter, note_action, ready};
use super::server::{port_ids, server};
use super::{hosts, refuse};
use crate::neutron;
use crate::object::{Kind, ReadFields};
use crate::request::{Answer, ApiAnswer, ApiRequest};
use crate::world::{Event, World, stamp};

/// Answers `os-migrateLive`. The request is accepted if the status of the server allows it. Since 2.34 a missing host only shows later, and
/// the server then stays where it is.
pub(super) fn live(world: &mut World, asked: &ApiRequest, id: &str, given: &Value) -> ApiAnswer {
    asked.admin("os_compute_api:os-migrate-server:migrate_live")?;
    let block = &given["block_migration"];
    let is_block = block.is_boolean() || (asked.since(25) && *block == "auto");
    if !is_block || given.get("host").is_none() {
        let field = if is_block { "host" } else { "block_migration" };
        return Err(refuse::migration_needs(given, field));
    }
    let one = server(world, asked, id)?;
    ready(one, "os-migrateLive", &["ACTIVE", "PAUSED"])?;
    let (status, target) = (one.text("status").to_owned(), given.text("host"));
    if target == one.note("host") && !target.is_empty() {
        return Err(refuse::already_there(id, target));
    }
    if !target.is_empty() && world.store.named(Kind::Provider, target).is_none() {
        return Err(refuse::no_target_host(target));
    }
    note_action(world, asked, id, "live-migration");
    enter(world, id, "MIGRATING", "migrating");
    world.store.keep(Kind::Server, id, "status_before", status);
    world.store.keep(Kind::Server, id, "forced_host", target);
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
    world.store.keep(Kind::Server, id, "avoided_host", before.note("host"));
    let moved = hosts::replace(world, &before);
    enter(world, id, before.note("status_before"), "");
    let Some(one) = world.store.get_mut(Kind::Server, id) else { return };
    one.set("updated", stamp());
    for note in ["avoided_host", "forced_host", "status_before"] {
        one.hidden.remove(note);
    }
    let host = one.note("host").to_owned();
    for port in port_ids(world, id).iter().filter(|_| moved) {
        neutron::update(world, Kind::Port, port, |port| port.keep("host", host.as_str()));
    }
}
