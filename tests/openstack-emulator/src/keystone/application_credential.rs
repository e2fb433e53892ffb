//! Application credentials: some of a user's roles in one project, with a secret of their own.

use serde_json::{Value, json};

use super::assignment::{role, role_document, roles_of, shown};
use super::records::HANDLERS as RECORDS;
use super::refuse;
use super::types::CREDENTIAL;
use crate::handlers::Handlers;
use crate::list::Lists;
use crate::object::{Fields, Kind, Object, ReadFields};
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest, ApiResult};
use crate::world::{World, short_id};

/// The credentials of the user in the path.
const HANDLERS: Handlers = Handlers {
    update: "",
    lists: Lists { is_filter: |_, _, key| Ok(key == "name"), ..RECORDS.lists },
    sees: |_, asked, _, one| asked.segments.iter().any(|segment| segment == one.note("user")),
    shown: |_, asked, _, one| document(asked, one),
    delete: |world, asked, of, id| {
        unrestricted(asked, "delete_application_credential")?;
        world.store.remove(of.kind, id);
        Ok(())
    },
    ..RECORDS
};

fn document(asked: &ApiRequest, one: &Object) -> Value {
    shown(asked, &format!("users/{}/application_credentials", one.note("user")), one)
}

pub(super) fn answer(
    world: &mut World,
    asked: &ApiRequest,
    user: &str,
    path: &[&str],
) -> ApiAnswer {
    if user != asked.caller.user && !asked.caller.is_admin() {
        return Err(refuse::not_allowed("list_application_credentials"));
    }
    match (asked.method.as_str(), path) {
        ("GET", []) => HANDLERS.list(world, asked, &CREDENTIAL, Some(("user", user))),
        ("POST", []) => create(world, asked, user),
        ("GET" | "DELETE", [_]) => HANDLERS.answer(world, asked, &CREDENTIAL, path),
        _ => Err(ApiError::unknown_path()),
    }
}

/// Refuses tokens that come from a restricted application credential or from a trust.
pub(super) fn unrestricted(asked: &ApiRequest, rule: &str) -> ApiResult {
    if asked.caller.restricted { Err(refuse::not_allowed(rule)) } else { Ok(()) }
}

/// The ids of the roles that a new credential gets: those in the request, or all roles that the user has in the project.
fn roles(world: &World, asked: &ApiRequest, given: &Fields) -> ApiResult<Vec<String>> {
    let (user, project) = (&asked.caller.user, &asked.caller.project);
    let mine = roles_of(world, user, project);
    if given.list("roles").is_empty() {
        return Ok(mine);
    }
    let find = |wanted: &Value| {
        let found = role(world, wanted).map(|role| role.id.clone());
        let id = found.ok_or_else(|| refuse::missing("role", wanted.text("name")))?;
        match mine.contains(&id) {
            true => Ok(id),
            false => Err(refuse::role_not_assigned(id, user, project)),
        }
    };
    given.list("roles").iter().map(find).collect()
}

fn create(world: &mut World, asked: &ApiRequest, user: &str) -> ApiAnswer {
    unrestricted(asked, "create_application_credential")?;
    if user != asked.caller.user {
        return Err(refuse::not_allowed("create_application_credential"));
    }
    let given = asked.wrapped("application_credential")?;
    let name = given.text_of("name").ok_or_else(|| refuse::needed("name"))?;
    let is_same = |one: &Object| one.note("user") == user && one.text("name") == name;
    if world.store.find(Kind::ApplicationCredential, is_same).is_some() {
        return Err(refuse::duplicate_credential(name));
    }
    let roles = roles(world, asked, &given)?;
    let roles: Vec<Value> = roles.iter().map(|id| role_document(world, id)).collect();
    let secret = given.text_of("secret").map(str::to_owned);
    let secret = secret.unwrap_or_else(|| format!("{}{}", short_id(), short_id()));
    let mut body = CREDENTIAL.new_body(&given);
    body["id"] = json!(short_id());
    body["project_id"] = json!(asked.caller.project);
    body["roles"] = json!(roles);
    let mut object = world.object(&asked.caller.project, body);
    object.keep("secret", secret.clone());
    object.keep("user", user);
    world.secrets.push(secret.clone());
    let mut answer = document(asked, &object);
    answer["secret"] = json!(secret);
    world.store.insert(Kind::ApplicationCredential, object);
    Ok(Answer::json(201, json!({"application_credential": answer})))
}
