//! The members of an image: the projects that the image is shared with, and whether they accepted it.

use serde_json::{Value, json};

use super::image::sees;
use super::types::{self as refuse, IMAGE};
use crate::object::{Kind, ReadFields};
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest};
use crate::world::{World, stamp};

const STATUSES: [&str; 3] = ["pending", "accepted", "rejected"];

/// Answers `METHOD /images/{id}/members/PATH`.
pub(super) fn answer(world: &mut World, asked: &ApiRequest, id: &str, path: &[&str]) -> ApiAnswer {
    let image = world.store.get_mut(Kind::Image, id).filter(|image| sees(asked, image));
    let image = image.ok_or_else(|| IMAGE.missing(id))?;
    if image.text("visibility") != "shared" {
        return Err(refuse::not_shared());
    }
    let owns = asked.sees(&image.project);
    let mut members = image.hidden.list("members").to_vec();
    let own = |who: &str| asked.caller.is_admin() || asked.caller.project == who;
    let answer = match (asked.method.as_str(), path) {
        ("GET", []) => {
            members.retain(|member| owns || member["member_id"] == asked.caller.project.as_str());
            return Ok(Answer::ok(json!({"members": members, "schema": "/v2/schemas/members"})));
        }
        ("POST", []) if owns => {
            let given = asked.json()?;
            let who = given.text_of("member").filter(|who| !who.is_empty());
            let who = who.ok_or_else(refuse::member_needed)?;
            if place(&members, who).is_some() {
                return Err(refuse::member_exists(who, id));
            }
            let member = json!({
                "image_id": id, "member_id": who, "status": "pending", "created_at": stamp(), "updated_at": stamp(),
                "schema": "/v2/schemas/member",
            });
            members.push(member.clone());
            Answer::ok(member)
        }
        (method, [who]) if owns || own(who) => {
            let at = place(&members, who).ok_or_else(|| refuse::no_member(who))?;
            match method {
                "GET" => return Ok(Answer::ok(members[at].clone())),
                // A project accepts or rejects only for itself.
                "PUT" if own(who) => {
                    let given = asked.json()?;
                    let status = given.text_of("status").filter(|it| STATUSES.contains(it));
                    members[at]["status"] = json!(status.ok_or_else(refuse::bad_status)?);
                    members[at]["updated_at"] = json!(stamp());
                    Answer::ok(members[at].clone())
                }
                "DELETE" if owns => {
                    members.remove(at);
                    Answer::empty(204)
                }
                _ => return Err(refuse::unauthorized()),
            }
        }
        ("POST" | "GET" | "PUT" | "DELETE", [] | [_]) => return Err(refuse::unauthorized()),
        _ => return Err(ApiError::unknown_path()),
    };
    image.keep("members", members);
    Ok(answer)
}

fn place(members: &[Value], who: &str) -> Option<usize> {
    members.iter().position(|member| member["member_id"] == who)
}
