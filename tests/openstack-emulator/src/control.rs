//! The control API under `/_control`: faults, the log of calls, and the objects. For people, and for tests in another process.

use http::Method;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::PoisonError;
use tokio::time::Instant;

use crate::nova::compute_host;
use crate::object::Kind;
use crate::problem::plain;
use crate::seed;
use crate::shared::Shared;
use crate::{clock, keystone};

/// The body of a request for a user: the password of an ordinary member, or a password with roles.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum NewUser {
    Member(String),
    With { password: String, roles: Vec<String> },
}

const MEMBER: [&str; 3] = ["member", "reader", "load-balancer_member"];

type Reply = (u16, Value);

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Reply> {
    serde_json::from_slice(body).map_err(|error| (400, plain(&error.to_string())))
}

/// Answers `METHOD /_control/PATH`.
pub(crate) async fn answer(
    shared: &Shared,
    method: &Method,
    path: &[String],
    query: &str,
    body: &[u8],
) -> Reply {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let result =
        change(shared, method, &path, body).unwrap_or_else(|| look(shared, method, &path, query));
    result.unwrap_or_else(|reply| reply)
}

/// Answers the requests that change something.
fn change(
    shared: &Shared,
    method: &Method,
    path: &[&str],
    body: &[u8],
) -> Option<Result<Reply, Reply>> {
    let done = |value: Value| Ok((200, value));
    let reply = match (method.as_str(), path) {
        ("POST", ["rules"]) => parse(body).and_then(|rule| {
            let id = shared.with(|world| world.misbehaviour.add(rule, Instant::now()));
            done(json!({"id": id}))
        }),
        ("DELETE", ["rules", id]) => {
            let gone =
                id.parse().is_ok_and(|id| shared.with(|world| world.misbehaviour.remove(id)));
            if gone { done(json!({})) } else { Err((404, plain("unknown rule"))) }
        }
        ("DELETE", ["misbehaviour"]) => {
            shared.with(|world| world.misbehaviour.clear());
            done(json!({}))
        }
        ("POST", ["fates"]) => parse(body).and_then(|fate| {
            shared.with(|world| world.misbehaviour.fate(fate));
            done(json!({}))
        }),
        ("POST", ["lags"]) => parse(body).and_then(|lag| {
            shared.with(|world| world.misbehaviour.lags.push(lag));
            done(json!({}))
        }),
        ("PUT", ["times"]) => parse(body).and_then(|times| {
            shared.with(|world| world.settings.times = times);
            done(json!({}))
        }),
        ("PUT", ["latencies"]) => parse(body).and_then(|latencies| {
            shared.with(|world| world.settings.latencies = latencies);
            done(json!({}))
        }),
        ("PUT", ["quotas", project, name]) => parse(body).and_then(|limit: i64| {
            shared.with(|world| {
                let project = seed::project(world, project);
                world.quotas.insert((project, (*name).to_owned()), limit);
            });
            done(json!({}))
        }),
        ("PUT", ["endpoints", kind]) => parse(body).and_then(|url: String| {
            shared.with(|world| keystone::register(world, kind, kind, &url));
            done(json!({}))
        }),
        // Stands in for the reports that nova-compute sends regularly over the message bus.
        ("PUT", ["compute-hosts"]) => parse(body).and_then(|report: compute_host::Report| {
            let reported = shared.with(|world| compute_host::report(world, &report));
            reported.map(|reported| (200, reported)).map_err(|why| (409, plain(&why)))
        }),
        ("PUT", ["projects", project, "users", user]) => parse(body).and_then(|new: NewUser| {
            let (password, roles) = match &new {
                NewUser::Member(password) => (password, MEMBER.map(str::to_owned).to_vec()),
                NewUser::With { password, roles } => (password, roles.clone()),
            };
            let roles: Vec<&str> = roles.iter().map(String::as_str).collect();
            let (user_id, project_id) =
                shared.with(|world| seed::user(world, user, password, project, &roles));
            done(json!({"user_id": user_id, "project_id": project_id}))
        }),
        ("DELETE", ["tokens"]) => {
            shared.with(|world| world.tokens.clear());
            done(json!({}))
        }
        ("DELETE", ["calls"]) => {
            shared.with(|world| world.log.clear());
            done(json!({}))
        }
        _ => return None,
    };
    Some(reply)
}

/// Answers the requests that only read.
fn look(shared: &Shared, method: &Method, path: &[&str], query: &str) -> Result<Reply, Reply> {
    let nothing = || Err((404, plain("unknown path of the control API")));
    if *method != Method::GET {
        return nothing();
    }
    let parameter = |name: &str| {
        let mut pairs = url::form_urlencoded::parse(query.as_bytes());
        pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    };
    let value = match path {
        ["rules"] => {
            let rules = shared.with(|world| world.misbehaviour.rules());
            let rules = rules.into_iter().map(
                |(id, rule, seen, hit)| json!({"id": id, "rule": rule, "seen": seen, "hit": hit}),
            );
            json!(rules.collect::<Vec<_>>())
        }
        ["calls"] => json!(shared.with(|world| world.log.calls())),
        ["times"] => json!(shared.with(|world| world.settings.times)),
        ["guests"] => json!(*shared.progress.lock().unwrap_or_else(PoisonError::into_inner)),
        ["openings"] => {
            let all = shared.openings.lock().unwrap_or_else(PoisonError::into_inner).all();
            json!(
                all.iter().map(|(from, at)| json!({"address": from, "at": at})).collect::<Vec<_>>()
            )
        }
        ["reach"] => {
            let address = parameter("address").and_then(|text| text.parse().ok());
            let port = parameter("port").and_then(|text| text.parse().ok());
            let (Some(address), Some(port)) = (address, port) else {
                return Err((400, plain("address and port are needed")));
            };
            let found =
                shared.openings.lock().unwrap_or_else(PoisonError::into_inner).find(address, port);
            match found {
                Some(at) => json!({"at": at}),
                None => return Err((404, plain("nothing is open there"))),
            }
        }
        ["objects", kind] => {
            let kind: Kind = serde_json::from_value(json!(kind))
                .map_err(|error| (400, plain(&error.to_string())))?;
            json!(shared.with(|world| {
                clock::settle(world);
                world.store.all(kind).map(crate::object::Object::shown).collect::<Vec<_>>()
            }))
        }
        _ => return nothing(),
    };
    Ok((200, value))
}
