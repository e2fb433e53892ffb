//! Key pairs, which belong to users, not to projects.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::limits::is_over;
use crate::object::{Kind, Object};
use crate::page;
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::world::{World, fine_stamp};

fn shown(asked: &ApiRequest, pair: &Object) -> Value {
    let mut body = Map::new();
    for key in ["name", "public_key", "fingerprint", "user_id"] {
        body.insert(key.to_owned(), pair.body.get(key).cloned().unwrap_or_default());
    }
    if asked.since(2) {
        body.insert("type".to_owned(), pair.body.get("type").cloned().unwrap_or_default());
    }
    Value::Object(body)
}

pub(super) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> AnswerResult {
    let user = asked
        .query("user_id")
        .filter(|_| asked.caller.is_admin())
        .unwrap_or(&asked.caller.user)
        .to_owned();
    let find = |world: &World, name: &str| {
        let found = of_user(world, &user, name);
        found
            .cloned()
            .ok_or_else(|| ApiError::missing(format!("Keypair {name} not found for user {user}")))
    };
    match (asked.method.as_str(), path) {
        ("GET", []) => {
            let mut mine: Vec<&Object> =
                world.store.with_text(Kind::Keypair, "user", &user).collect();
            page::sort(&mut mine, &[("name".to_owned(), false)]);
            let page =
                page::cut_by(asked, mine, world.settings.page_limit, |pair| pair.text("name"))?;
            let rows: Vec<Value> =
                page.objects.iter().map(|pair| json!({"keypair": shown(asked, pair)})).collect();
            let mut body = json!({"keypairs": rows});
            if let Some(links) = page::links(page.next.as_deref()) {
                body["keypairs_links"] = links;
            }
            Ok(Answer::ok(body))
        }
        ("POST", []) => create(world, asked, &user),
        ("GET", [name]) => {
            let pair = find(world, name)?;
            let mut body = shown(asked, &pair);
            for key in ["created_at", "deleted", "deleted_at", "id", "updated_at"] {
                body[key] = pair.body.get(key).cloned().unwrap_or_default();
            }
            Ok(Answer::ok(json!({"keypair": body})))
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

fn create(world: &mut World, asked: &ApiRequest, user: &str) -> AnswerResult {
    let given = asked.wrapped("keypair")?;
    let name = given.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let legal = |c: char| c.is_ascii_alphanumeric() || " _-.@".contains(c);
    if name.is_empty() || !name.chars().all(legal) {
        return Err(ApiError::bad(format!(
            "Keypair data is invalid: Keypair name contains unsafe characters: {name}"
        )));
    }
    if of_user(world, user, &name).is_some() {
        return Err(ApiError::conflict(format!("Key pair '{name}' already exists.")));
    }
    let count = world.store.how_many(Kind::Keypair, "user", user);
    if is_over(world, &asked.caller.project, "key_pairs", count, 1) {
        return Err(ApiError::forbidden("Quota exceeded, too many key pairs."));
    }
    // From 2.92 on, Nova generates no keys. Here it never does, because no test needs generated keys.
    let Some(key) = given.get("public_key").and_then(Value::as_str) else {
        return Err(ApiError::bad(
            "Invalid input for field/attribute keypair. 'public_key' is a required property",
        ));
    };
    if !key.starts_with("ssh-") && !key.starts_with("ecdsa-") {
        return Err(ApiError::bad("Keypair data is invalid: failed to generate fingerprint"));
    }
    let digest = Sha256::digest(key.as_bytes());
    let fingerprint: Vec<String> =
        digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let kind = given.get("type").cloned().unwrap_or_else(|| json!("ssh"));
    let number = world.store.all(Kind::Keypair).count() + 1;
    let mut pair = world.object("", json!({
        "name": name, "public_key": key, "fingerprint": fingerprint.join(":"), "user_id": user, "type": kind, "created_at": fine_stamp(),
        "deleted": false, "deleted_at": null, "updated_at": null,
    }));
    pair.set("id", number);
    pair.keep("user", user);
    let body = shown(asked, &pair);
    world.store.insert(Kind::Keypair, pair);
    Ok(Answer::json(if asked.since(2) { 201 } else { 200 }, json!({"keypair": body})))
}
