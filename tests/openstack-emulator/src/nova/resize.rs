//! Changes the flavor of servers: `resize`, `confirmResize`, `revertResize`.

use serde_json::Value;

use super::server::{self, note_action, ready, server};
use super::{create, hosts, limits, refuse};
use crate::object::{Kind, Object, ReadFields};
use crate::request::{Answer, ApiAnswer, ApiRequest, ApiResult};
use crate::world::World;

/// Answers `resize`. The request is accepted if flavor, image and quota allow it. A host without room, or a flavor with a smaller disk, only
/// shows later, and the server then keeps its flavor.
pub(super) fn begin(world: &mut World, asked: &ApiRequest, id: &str, given: &Value) -> ApiAnswer {
    let before = server(world, asked, id)?.clone();
    ready(&before, "resize", &["ACTIVE", "SHUTOFF"])?;
    let wanted = given.text("flavorRef");
    let next = world.store.get(Kind::Flavor, wanted).ok_or_else(|| refuse::no_flavor(wanted))?;
    let next = next.clone();
    if next.id == before.note("flavor") {
        return Err(refuse::same_flavor());
    }
    let image = world.store.get(Kind::Image, before.text("image"));
    if let Some(image) = image {
        create::fits(image, &next)?;
    }
    let mut shrinks = false;
    if let Some(now) = world.store.get(Kind::Flavor, before.note("flavor")) {
        let on_disk = !before.text("image").is_empty();
        shrinks = on_disk && next.number("disk") < now.number("disk");
        limits::check_resize(world, &before.project, now, &next)?;
    }
    note_action(world, asked, id, "resize");
    world.store.keep(Kind::Server, id, "confirming", false);
    let (off, power) =
        if before.text("status") == "SHUTOFF" { ("SHUTOFF", 4) } else { ("ACTIVE", 1) };
    world.store.keep(Kind::Server, id, "power", power);
    let after = if !shrinks && give(world, id, &next.id) { "VERIFY_RESIZE" } else { off };
    Ok(server::begin(world, id, "RESIZE", "resize_prep", after, power))
}

/// Answers `confirmResize`: the server returns to its status before the resize, on or off.
pub(super) fn confirm(world: &mut World, asked: &ApiRequest, id: &str) -> ApiAnswer {
    let one = server(world, asked, id)?;
    ready(one, "confirmResize", &["VERIFY_RESIZE"])?;
    unconfirmed(one)?;
    let (after, power) = rest(one);
    note_action(world, asked, id, "confirmResize");
    world.store.keep(Kind::Server, id, "confirming", true);
    server::begin(world, id, "VERIFY_RESIZE", "", after, power);
    Ok(Answer::empty(204))
}

/// Answers `revertResize`: the server gets its former flavor back.
pub(super) fn revert(world: &mut World, asked: &ApiRequest, id: &str) -> ApiAnswer {
    let one = server(world, asked, id)?;
    ready(one, "revertResize", &["VERIFY_RESIZE"])?;
    unconfirmed(one)?;
    let (after, power) = rest(one);
    let former = one.note("flavor_before").to_owned();
    give(world, id, &former);
    note_action(world, asked, id, "revertResize");
    Ok(server::begin(world, id, "REVERT_RESIZE", "resize_reverting", after, power))
}

/// Refuses to end a resize that is being confirmed. Neither status nor task show that: Nova's `confirm_resize` looks for a migration that is
/// `finished`, and the first confirmation has made it `confirming`.
fn unconfirmed(server: &Object) -> ApiResult {
    if server.hidden.is("confirming") { Err(refuse::not_resized()) } else { Ok(()) }
}

fn rest(server: &Object) -> (&'static str, i64) {
    if server.hidden.field("power") == 4 { ("SHUTOFF", 4) } else { ("ACTIVE", 1) }
}

/// Changes the flavor of a server. Returns whether a host has room for it.
fn give(world: &mut World, id: &str, flavor: &str) -> bool {
    let Some(before) = world.store.get(Kind::Server, id).cloned() else { return false };
    let Some(next) = world.store.get(Kind::Flavor, flavor).cloned() else { return false };
    world.store.keep(Kind::Server, id, "flavor_before", before.note("flavor"));
    world.store.keep(Kind::Server, id, "flavor", next.id.as_str());
    if !hosts::replace(world, &before) {
        world.store.keep(Kind::Server, id, "flavor", before.note("flavor"));
        return false;
    }
    limits::give_back(world, &before);
    limits::take(world, &before.project, &next);
    true
}
