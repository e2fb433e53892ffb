//! The members of an image: the projects that the image is shared with, and whether they accepted it.

use serde_json::{Value, json};

use super::access::{missing, sees};
use crate::object::Kind;
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::world::{World, stamp};

const STATUSES: [&str; 3] = ["pending", "accepted", "rejected"];

/// Answers `METHOD /images/{id}/members/PATH`.
pub(super) fn answer(
    world: &mut World,
    asked: &ApiRequest,
    id: &str,
    path: &[&str],
) -> AnswerResult {
    let image = world.store.get_mut(Kind::Image, id).filter(|image| sees(asked, image));
    let image = image.ok_or_else(|| missing(id))?;
    if image.text("visibility") != "shared" {
        return Err(ApiError::forbidden("Only shared images have members."));
    }
    let owns = asked.sees(&image.project);
    let members = image.hidden.get("members").and_then(Value::as_array);
    let mut members = members.cloned().unwrap_or_default();
    let own = |who: &str| asked.caller.is_admin() || asked.caller.project == who;
    let answer = match (asked.method.as_str(), path) {
        ("GET", []) => {
            members.retain(|member| owns || member["member_id"] == asked.caller.project.as_str());
            return Ok(Answer::ok(json!({"members": members, "schema": "/v2/schemas/members"})));
        }
        ("POST", []) if owns => {
            let given = asked.json()?;
            let who = given["member"].as_str().filter(|who| !who.is_empty());
            let who = who.ok_or_else(|| {
                ApiError::bad("Expected a dict in the form: {\"member\": \"image_id\"}")
            })?;
            if place(&members, who).is_some() {
                return Err(ApiError::conflict(format!(
                    "Image member {who} already exists for image {id}"
                )));
            }
            let member = json!({
                "image_id": id, "member_id": who, "status": "pending", "created_at": stamp(), "updated_at": stamp(),
                "schema": "/v2/schemas/member",
            });
            members.push(member.clone());
            Answer::ok(member)
        }
        (method, [who]) if owns || own(who) => {
            let at = place(&members, who).ok_or_else(|| {
                ApiError::missing(format!("Image member {who} could not be found"))
            })?;
            match method {
                "GET" => return Ok(Answer::ok(members[at].clone())),
                // A project accepts or rejects only for itself.
                "PUT" if own(who) => {
                    let given = asked.json()?;
                    let status = given["status"].as_str().filter(|it| STATUSES.contains(it));
                    let status = status.ok_or_else(|| {
                        ApiError::bad("Status must be one of pending, accepted, rejected.")
                    })?;
                    members[at]["status"] = json!(status);
                    members[at]["updated_at"] = json!(stamp());
                    Answer::ok(members[at].clone())
                }
                "DELETE" if owns => {
                    members.remove(at);
                    Answer::empty(204)
                }
                _ => return Err(refused()),
            }
        }
        ("POST" | "GET" | "PUT" | "DELETE", [] | [_]) => return Err(refused()),
        _ => return Err(ApiError::unknown_path()),
    };
    image.keep("members", members);
    Ok(answer)
}

fn place(members: &[Value], who: &str) -> Option<usize> {
    members.iter().position(|member| member["member_id"] == who)
}

fn refused() -> ApiError {
    ApiError::forbidden("You are not authorized to complete this action.")
}
