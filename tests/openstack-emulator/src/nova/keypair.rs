//! Key pairs, which belong to users, not to projects.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::limits::is_over;
use super::refuse;
use super::types::KEYPAIR;
use crate::list::{self, Links, Lists, PLAIN};
use crate::object::{Fields, Kind, Object, ReadFields};
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest, ApiResult};
use crate::world::{World, fine_stamp};

const LISTS: Lists = Lists {
    is_filter: |_, _, _| Ok(false),
    sort: |_| vec![("name".to_owned(), false)],
    marker: |pair| pair.text("name"),
    ..PLAIN
};

/// A key pair as lists and the answer to a create show it.
fn brief(asked: &ApiRequest, pair: &Object) -> Value {
    let mut body = KEYPAIR.view(asked, pair);
    for key in ["created_at", "deleted", "deleted_at", "id", "updated_at"] {
        body.as_object_mut().and_then(|body| body.remove(key));
    }
    json!({"keypair": body})
}

pub(super) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> ApiAnswer {
    let other = asked.query("user_id").filter(|_| asked.caller.is_admin());
    let user = other.unwrap_or(&asked.caller.user);
    let find = |world: &World, name: &str| {
        let found = of_user(world, user, name).cloned();
        found.ok_or_else(|| refuse::no_keypair(name, user))
    };
    match (asked.method.as_str(), path) {
        ("GET", []) => {
            let page = list::page(world, asked, &KEYPAIR, &LISTS, Some(("user", user)))?;
            list::answer(asked, &KEYPAIR, Links::UnlessLast, page, |pair| brief(asked, pair))
        }
        ("POST", []) => {
            let pair = create(world, user, asked, &asked.wrapped("keypair")?)?;
            Ok(Answer::json(if asked.since(2) { 201 } else { 200 }, brief(asked, &pair)))
        }
        ("GET", [name]) => {
            Ok(Answer::ok(json!({"keypair": KEYPAIR.view(asked, &find(world, name)?)})))
        }
        ("DELETE", [name]) => {
            let pair = find(world, name)?;
            world.store.remove(Kind::Keypair, &pair.id);
            Ok(Answer::empty(if asked.since(2) { 204 } else { 202 }))
        }
        _ => Err(ApiError::unknown_path()),
    }
}

/// The key pair of a user with this name.
pub(super) fn of_user<'w>(world: &'w World, user: &str, name: &str) -> Option<&'w Object> {
    world.store.with_text(Kind::Keypair, "user", user).find(|pair| pair.text("name") == name)
}

fn create(world: &mut World, user: &str, asked: &ApiRequest, given: &Fields) -> ApiResult<Object> {
    let name = given.text("name");
    let legal = |c: char| c.is_ascii_alphanumeric() || " _-.@".contains(c);
    if name.is_empty() || !name.chars().all(legal) {
        return Err(refuse::bad_keypair_name(name));
    }
    if of_user(world, user, name).is_some() {
        return Err(refuse::keypair_exists(name));
    }
    let count = world.store.how_many(Kind::Keypair, "user", user);
    if is_over(world, &asked.caller.project, "key_pairs", count, 1) {
        return Err(refuse::too_many_keypairs());
    }
    // From 2.92 on, Nova generates no keys. Here it never does, because no test needs generated keys.
    let key = given.text_of("public_key").ok_or_else(refuse::public_key_needed)?;
    if !key.starts_with("ssh-") && !key.starts_with("ecdsa-") {
        return Err(refuse::bad_public_key());
    }
    let digest = Sha256::digest(key.as_bytes());
    let fingerprint = digest.iter().take(16).map(|byte| format!("{byte:02x}"));
    let mut body = KEYPAIR.new_body(given);
    body["fingerprint"] = json!(fingerprint.collect::<Vec<_>>().join(":"));
    body["user_id"] = json!(user);
    body["created_at"] = json!(fine_stamp());
    let mut pair = world.object("", body);
    pair.set("id", world.store.all(Kind::Keypair).count() + 1);
    pair.keep("user", user);
    world.store.insert(Kind::Keypair, pair.clone());
    Ok(pair)
}
