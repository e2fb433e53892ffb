//! Routes Nova's requests.

use serde_json::json;

use super::server::server;
use super::{
    action, aggregate, attach, compute, console, create, diagnostics, flavor, group, history,
    keypair, life, limits, list, parts, view,
};
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::world::World;

pub(crate) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> AnswerResult {
    let method = asked.method.as_str();
    if method != "GET" {
        asked.writer()?;
    }
    match (method, path) {
        ("GET", ["servers"]) => list::brief(world, asked),
        ("GET", ["servers", "detail"]) => list::detail(world, asked),
        ("POST", ["servers"]) => create::create(world, asked),
        (_, ["servers", id, rest @ ..]) => one(world, asked, id, rest),
        (_, ["flavors", rest @ ..]) => flavor::answer(world, asked, rest),
        (_, ["os-keypairs", rest @ ..]) => keypair::answer(world, asked, rest),
        (_, ["os-server-groups", rest @ ..]) => group::answer(world, asked, rest),
        ("GET", ["limits"]) => limits::absolute(world, asked),
        (_, ["os-quota-sets", rest @ ..]) => limits::quotas(world, asked, rest),
        ("GET", ["os-availability-zone"]) => compute::zones(world, false),
        ("GET", ["os-availability-zone", "detail"]) => {
            asked.admin("os_compute_api:os-availability-zone:detail")?;
            compute::zones(world, true)
        }
        ("GET", ["os-hypervisors", rest @ ..]) => compute::hypervisors(world, asked, rest),
        (_, ["os-services", rest @ ..]) => compute::services(world, asked, rest),
        (_, ["os-aggregates", rest @ ..]) => aggregate::answer(world, asked, rest),
        ("GET", ["extensions"]) => Ok(Answer::ok(json!({"extensions": []}))),
        _ => Err(ApiError::unknown_path()),
    }
}

/// Answers requests for one server.
fn one(world: &mut World, asked: &ApiRequest, id: &str, rest: &[&str]) -> AnswerResult {
    let server = server(world, asked, id)?;
    match (asked.method.as_str(), rest) {
        ("GET", []) => {
            let shown = view::detail(world, asked, server);
            Ok(Answer::ok(json!({"server": shown})))
        }
        ("PUT", []) => parts::rename(world, asked, id),
        ("DELETE", []) => life::delete(world, asked, id),
        ("POST", ["action"]) => action::answer(world, asked, id),
        // These replaced actions with microversion 2.6.
        ("POST", ["remote-consoles"]) if asked.since(6) => console::remote(world, asked, id),
        ("GET", ["diagnostics"]) => diagnostics::show(world, asked, id),
        (_, ["metadata", rest @ ..]) => parts::metadata(world, asked, id, rest),
        (_, ["tags", rest @ ..]) if asked.since(26) => parts::tags(world, asked, id, rest),
        ("GET", ["ips", rest @ ..]) => {
            let addresses = view::addresses(world, asked, server);
            match rest {
                [] => Ok(Answer::ok(json!({"addresses": addresses}))),
                [network, ..] => Ok(Answer::ok(json!({*network: addresses[*network]}))),
            }
        }
        ("GET", ["os-security-groups"]) => parts::security_groups(world, id),
        ("GET", ["os-instance-actions", rest @ ..]) => history::actions(world, id, rest),
        (_, ["os-interface", rest @ ..]) => attach::interfaces(world, asked, id, rest),
        (_, ["os-volume_attachments", rest @ ..]) => attach::volumes(world, asked, id, rest),
        _ => Err(ApiError::unknown_path()),
    }
}
