//! Consoles of servers, and their console output.

use serde_json::{Value, json};

use super::refuse;
use super::server::server;
use crate::object::ReadFields;
use crate::request::{Answer, ApiAnswer, ApiRequest, ApiResult};
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
pub(super) fn remote(world: &World, asked: &ApiRequest, id: &str) -> ApiAnswer {
    let given = asked.wrapped("remote_console")?;
    let (protocol, kind) = (given.text("protocol"), given.text("type"));
    for (field, value) in [("protocol", protocol), ("type", kind)] {
        if !KINDS.iter().any(|(a, b, _)| [*a, *b].contains(&value)) {
            return Err(refuse::unknown_console(field, value));
        }
    }
    let url = address(world, asked, id, (protocol, kind))?;
    let console = json!({"protocol": protocol, "type": kind, "url": url});
    Ok(Answer::ok(json!({"remote_console": console})))
}

/// Answers `os-getVNCConsole` and similar actions, which microversion 2.6 removed.
pub(super) fn by_action(world: &World, asked: &ApiRequest, id: &str, given: &Value) -> ApiAnswer {
    let kind = given.text("type");
    let protocol = KINDS.iter().find(|(_, known, _)| *known == kind).map_or("", |row| row.0);
    let url = address(world, asked, id, (protocol, kind))?;
    Ok(Answer::ok(json!({"console": {"type": kind, "url": url}})))
}

/// The URL of a console, with a new token each time.
fn address(
    world: &World,
    asked: &ApiRequest,
    id: &str,
    (protocol, kind): (&str, &str),
) -> ApiResult<String> {
    if server(world, asked, id)?.note("host").is_empty() {
        return Err(refuse::not_ready());
    }
    if !KINDS.contains(&(protocol, kind, true)) {
        return Err(refuse::unavailable_console(kind));
    }
    let (base, token) = (&asked.base, new_id());
    Ok(match protocol {
        "serial" => format!("{}/console/?token={token}", base.replacen("http", "ws", 1)),
        _ => format!("{base}/console/vnc_auto.html?path=%3Ftoken%3D{token}"),
    })
}

/// Answers `os-getConsoleOutput`.
pub(super) fn output(world: &World, asked: &ApiRequest, id: &str, given: &Value) -> ApiAnswer {
    let lines: Vec<&str> = server(world, asked, id)?.note("console").lines().collect();
    let length = given.number_of("length").and_then(|length| usize::try_from(length).ok());
    let from = length.map_or(0, |length| lines.len().saturating_sub(length));
    Ok(Answer::ok(json!({"output": lines[from..].join("\n")})))
}
