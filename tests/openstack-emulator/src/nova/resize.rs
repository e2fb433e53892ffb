//! Changes the flavor of servers: `resize`, `confirmResize`, `revertResize`.

use serde_json::Value;

use super::history::note_action;
use super::server::server;
use super::step::{self, ready};
use super::{create, hosts, limits};
use crate::object::{Kind, Object};
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::world::World;

/// Answers `resize`. The request is accepted if flavor, image and quota allow it. A host without room, or a flavor with a smaller disk,
/// only
/// shows later, and the server then keeps its flavor.
pub(super) fn begin(
    world: &mut World,
    asked: &ApiRequest,
    id: &str,
    given: &Value,
) -> AnswerResult {
    let before = server(world, asked, id)?.clone();
    ready(&before, "resize", &["ACTIVE", "SHUTOFF"])?;
    let wanted = given["flavorRef"].as_str().unwrap_or_default();
    let flavor = |id: &str| world.store.get(Kind::Flavor, id).cloned();
    let next = flavor(wanted)
        .ok_or_else(|| ApiError::bad(format!("Flavor {wanted} could not be found.")))?;
    if next.id == before.note("flavor") {
        return Err(ApiError::bad("When resizing, instances must change flavor!"));
    }
    let now = flavor(before.note("flavor"));
    let image = world.store.get(Kind::Image, before.text("image"));
    if let Some(image) = image {
        if image.number("min_ram") > next.number("ram") {
            return Err(ApiError::bad("Flavor's memory is too small for requested image."));
        }
        create::fits_disk(image, &next)?;
    }
    let on_disk = !before.text("image").is_empty();
    let shrinks =
        now.as_ref().is_some_and(|now| on_disk && next.number("disk") < now.number("disk"));
    if let Some(now) = &now {
        limits::check_resize(world, &before.project, now, &next)?;
    }
    note_action(world, asked, id, "resize");
    let stopped = before.text("status") == "SHUTOFF";
    let power = if stopped { 4 } else { 1 };
    if let Some(one) = world.store.get_mut(Kind::Server, id) {
        one.keep("power", power);
    }
    if !shrinks && give(world, id, &next.id) {
        return Ok(step::begin(world, id, "RESIZE", "resize_prep", "VERIFY_RESIZE", power));
    }
    let after = if stopped { "SHUTOFF" } else { "ACTIVE" };
    Ok(step::begin(world, id, "RESIZE", "resize_prep", after, power))
}

/// Answers `confirmResize`: the server returns to its status before the resize, on or off.
pub(super) fn confirm(world: &mut World, asked: &ApiRequest, id: &str) -> AnswerResult {
    let one = server(world, asked, id)?;
    ready(one, "confirmResize", &["VERIFY_RESIZE"])?;
    let (after, power) = rest(one);
    note_action(world, asked, id, "confirmResize");
    step::begin(world, id, "VERIFY_RESIZE", "", after, power);
    Ok(Answer::empty(204))
}

/// Answers `revertResize`: the server gets its former flavor back.
pub(super) fn revert(world: &mut World, asked: &ApiRequest, id: &str) -> AnswerResult {
    let one = server(world, asked, id)?;
    ready(one, "revertResize", &["VERIFY_RESIZE"])?;
    let (after, power) = rest(one);
    let former = one.note("flavor_before").to_owned();
    give(world, id, &former);
    note_action(world, asked, id, "revertResize");
    Ok(step::begin(world, id, "REVERT_RESIZE", "resize_reverting", after, power))
}

fn rest(server: &Object) -> (&'static str, i64) {
    let off = server.hidden.get("power").and_then(Value::as_i64) == Some(4);
    if off { ("SHUTOFF", 4) } else { ("ACTIVE", 1) }
}

/// Changes the flavor of a server. Returns whether a host has room for it.
fn give(world: &mut World, id: &str, flavor: &str) -> bool {
    let Some(before) = world.store.get(Kind::Server, id).cloned() else { return false };
    let Some(next) = world.store.get(Kind::Flavor, flavor).cloned() else { return false };
    if let Some(one) = world.store.get_mut(Kind::Server, id) {
        one.keep("flavor_before", before.note("flavor"));
        one.keep("flavor", next.id.clone());
    }
    if !hosts::replace(world, &before) {
        if let Some(one) = world.store.get_mut(Kind::Server, id) {
            one.keep("flavor", before.note("flavor"));
        }
        return false;
    }
    limits::give_back(world, &before);
    limits::take(world, &before.project, &next);
    true
}
