//! Consoles of servers, and their console output.

use serde_json::{Value, json};

use super::server::server;
use crate::object::Kind;
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::world::{World, new_id};

/// The protocols since microversion 2.6 and their types, and whether this cloud has a proxy for them.
const KINDS: [(&str, &str, bool); 6] = [
    ("vnc", "novnc", true),
    ("vnc", "xvpvnc", false),
    ("spice", "spice-html5", false),
    ("serial", "serial", true),
    ("rdp", "rdp-html5", false),
    ("mks", "webmks", false),
];

/// Answers `POST /servers/{id}/remote-consoles`.
pub(super) fn remote(world: &World, asked: &ApiRequest, id: &str) -> AnswerResult {
    let given = asked.wrapped("remote_console")?;
    let text = |key: &str| given.get(key).and_then(Value::as_str).unwrap_or_default();
    let (protocol, kind) = (text("protocol"), text("type"));
    for (field, value) in [("protocol", protocol), ("type", kind)] {
        let known = KINDS.iter().any(|(a, b, _)| [*a, *b].contains(&value));
        if !known {
            return Err(ApiError::bad(format!(
                "Invalid input for field/attribute {field}. Value: {value}. '{value}' is not one of the known consoles"
            )));
        }
    }
    let url = address(world, asked, id, (protocol, kind))?;
    let console = json!({"protocol": protocol, "type": kind, "url": url});
    Ok(Answer::ok(json!({"remote_console": console})))
}

/// Answers `os-getVNCConsole` and similar actions, which microversion 2.6 removed.
pub(super) fn by_action(
    world: &World,
    asked: &ApiRequest,
    id: &str,
    given: &Value,
) -> AnswerResult {
    let kind = given["type"].as_str().unwrap_or_default();
    let protocol = KINDS.iter().find(|(_, known, _)| *known == kind).map_or("", |row| row.0);
    let url = address(world, asked, id, (protocol, kind))?;
    Ok(Answer::ok(json!({"console": {"type": kind, "url": url}})))
}

/// The URL of a console, with a new token each time.
fn address(
    world: &World,
    asked: &ApiRequest,
    id: &str,
    kind: (&str, &str),
) -> Result<String, ApiError> {
    let one = server(world, asked, id)?;
    if one.note("host").is_empty() {
        return Err(ApiError::conflict("Instance not yet ready"));
    }
    if !KINDS.contains(&(kind.0, kind.1, true)) {
        return Err(ApiError::bad(format!("Unavailable console type {}.", kind.1)));
    }
    let (base, token) = (&asked.base, new_id());
    Ok(match kind.0 {
        "serial" => format!("{}/console/?token={token}", base.replacen("http", "ws", 1)),
        _ => format!("{base}/console/vnc_auto.html?path=%3Ftoken%3D{token}"),
    })
}

/// Answers `os-getConsoleOutput`.
pub(super) fn output(world: &World, id: &str, given: &Value) -> AnswerResult {
    let one = world.store.get(Kind::Server, id);
    let text = one.map(|one| one.note("console").to_owned()).unwrap_or_default();
    let length = given["length"].as_u64().or_else(|| given["length"].as_str()?.parse().ok());
    let lines: Vec<&str> = text.lines().collect();
    let from =
        length.map_or(0, |length| lines.len().saturating_sub(usize::try_from(length).unwrap_or(0)));
    let last: Vec<&str> = lines.into_iter().skip(from).collect();
    Ok(Answer::ok(json!({"output": last.join("\n")})))
}
