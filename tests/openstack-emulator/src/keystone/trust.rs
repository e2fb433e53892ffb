//! Trusts, by which one user acts for another.

use serde_json::json;

use super::application_credential::unrestricted;
use super::assignment::{no_links, role, role_document, roles_of, shown};
use super::records::HANDLERS as RECORDS;
use super::refuse;
use super::types::TRUST;
use crate::handlers::Handlers;
use crate::list::Lists;
use crate::object::{Fields, Kind, ReadFields};
use crate::request::{Answer, ApiAnswer, ApiRequest, ApiResult};
use crate::world::{World, short_id};

/// Trusts are visible to both users.
const HANDLERS: Handlers = Handlers {
    update: "",
    lists: Lists {
        is_filter: |_, _, key| Ok(["trustor_user_id", "trustee_user_id"].contains(&key)),
        ..RECORDS.lists
    },
    sees: |_, asked, _, one| {
        let users = [one.text("trustor_user_id"), one.text("trustee_user_id")];
        asked.caller.is_admin() || users.contains(&asked.caller.user.as_str())
    },
    shown: |_, asked, _, one| shown(asked, "OS-TRUST/trusts", one),
    create: |world, asked, _, given| create(world, asked, given),
    delete: |world, asked, of, id| {
        let trust = world.store.get(of.kind, id);
        let is_own = trust.is_some_and(|it| it.text("trustor_user_id") == asked.caller.user);
        if !is_own && !asked.caller.is_admin() {
            return Err(refuse::not_trustor());
        }
        world.store.remove(of.kind, id);
        Ok(())
    },
    ..RECORDS
};

pub(super) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> ApiAnswer {
    match (asked.method.as_str(), path) {
        ("GET", []) => {
            let me = Some(asked.caller.user.as_str());
            let users = [asked.query("trustor_user_id"), asked.query("trustee_user_id")];
            if !users.contains(&me) && !asked.caller.is_admin() {
                return Err(refuse::not_allowed("list_trusts"));
            }
        }
        ("GET", [id, "roles"]) => {
            let trust = world.store.get(Kind::Trust, id).ok_or_else(|| TRUST.missing(id))?;
            return Ok(Answer::ok(json!({"roles": trust.list("roles"), "links": no_links(asked)})));
        }
        _ => {}
    }
    HANDLERS.answer(world, asked, &TRUST, path)
}

fn create(world: &mut World, asked: &ApiRequest, given: &Fields) -> ApiResult<String> {
    unrestricted(asked, "create_trust")?;
    let (trustor, trustee) = (given.text("trustor_user_id"), given.text("trustee_user_id"));
    if trustor != asked.caller.user {
        return Err(refuse::other_trustor());
    }
    world.store.get(Kind::User, trustee).ok_or_else(|| refuse::missing("user", trustee))?;
    let project = given.text("project_id");
    let mine = roles_of(world, trustor, project);
    let mut roles = Vec::new();
    for wanted in given.list("roles") {
        let found = role(world, wanted).ok_or_else(|| refuse::missing("role", wanted))?;
        if !mine.contains(&found.id) {
            return Err(refuse::missing("role", &found.id));
        }
        roles.push(role_document(world, &found.id));
    }
    if roles.is_empty() {
        return Err(refuse::role_needed());
    }
    let mut body = TRUST.new_body(given);
    body["id"] = json!(short_id());
    body["roles"] = json!(roles);
    Ok(world.add(Kind::Trust, project, body))
}
