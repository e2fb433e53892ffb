//! Routes Keystone's requests.

use serde_json::json;

use super::assignment::no_links;
use super::{application_credential, catalogue, directory, refuse, token, trust};
use crate::request::{Answer, ApiAnswer, ApiRequest};
use crate::world::World;

/// Answers requests that have a token.
pub(crate) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> ApiAnswer {
    if !asked.body.is_empty() && !asked.json()?.is_object() {
        return Err(refuse::no_object());
    }
    match (asked.method.as_str(), path) {
        (_, ["auth", "tokens"]) => token::answer(world, asked),
        ("GET", ["auth", "catalog"]) => {
            let catalog =
                catalogue::catalog(world, asked, &asked.caller.user, &asked.caller.project);
            Ok(Answer::ok(
                json!({"catalog": catalog, "links": {"self": format!("{}/v3/auth/catalog", asked.root())}}),
            ))
        }
        ("GET", ["auth", "projects"] | ["users", _, "projects"]) => {
            directory::own_projects(world, asked)
        }
        (_, ["users", user, "application_credentials", rest @ ..]) => {
            application_credential::answer(world, asked, user, rest)
        }
        ("GET", ["users", _, "access_rules"]) => {
            Ok(Answer::ok(json!({"access_rules": [], "links": no_links(asked)})))
        }
        (_, ["OS-TRUST", "trusts", rest @ ..]) => trust::answer(world, asked, rest),
        _ => directory::answer(world, asked, path),
    }
}
