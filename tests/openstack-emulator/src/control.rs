//! The control API under `/_control`: faults, the log of calls, and the objects. For people, and for tests in another process.

use http::Method;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::locks::lock;
use crate::nova::compute_host;
use crate::object::Kind;
use crate::request::plain;
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
type ReplyResult = Result<Reply, Reply>;

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
fn change(shared: &Shared, method: &Method, path: &[&str], body: &[u8]) -> Option<ReplyResult> {
    let done = |(): ()| json!({});
    let reply: Result<Value, Reply> = match (method.as_str(), path) {
        ("POST", ["rules"]) => parse(body).map(|rule| {
            let id = shared.with(|world| world.misbehaviour.add(rule, Instant::now()));
            json!({"id": id})
        }),
        ("DELETE", ["rules", id]) => {
            let is_gone =
                id.parse().is_ok_and(|id| shared.with(|world| world.misbehaviour.remove(id)));
            if is_gone { Ok(json!({})) } else { Err((404, plain("unknown rule"))) }
        }
        ("DELETE", ["misbehaviour"]) => {
            shared.with(|world| world.misbehaviour.clear());
            Ok(json!({}))
        }
        ("POST", ["fates"]) => {
            parse(body).map(|fate| shared.with(|world| world.misbehaviour.fate(fate))).map(done)
        }
        ("POST", ["lags"]) => {
            parse(body).map(|lag| shared.with(|world| world.misbehaviour.lags.push(lag))).map(done)
        }
        ("PUT", ["times"]) => {
            parse(body).map(|times| shared.with(|world| world.settings.times = times)).map(done)
        }
        ("PUT", ["latencies"]) => {
            parse(body).map(|all| shared.with(|world| world.settings.latencies = all)).map(done)
        }
        ("PUT", ["quotas", project, name]) => parse(body)
            .map(|limit| shared.with(|world| seed::set_quota(world, project, name, limit)))
            .map(done),
        ("PUT", ["endpoints", kind]) => parse(body).map(|url: String| {
            shared.with(|world| keystone::register(world, kind, kind, &url));
            json!({})
        }),
        // Stands in for the reports that nova-compute sends regularly over the message bus.
        ("PUT", ["compute-hosts"]) => parse(body).and_then(|report: compute_host::Report| {
            let reported = shared.with(|world| compute_host::report(world, &report));
            reported.map_err(|why| (409, plain(&why)))
        }),
        ("PUT", ["projects", project, "users", user]) => parse(body).map(|new: NewUser| {
            let (password, roles) = match &new {
                NewUser::Member(password) => (password, MEMBER.to_vec()),
                NewUser::With { password, roles } => {
                    (password, roles.iter().map(String::as_str).collect())
                }
            };
            let (user_id, project_id) =
                shared.with(|world| seed::user(world, user, password, project, &roles));
            json!({"user_id": user_id, "project_id": project_id})
        }),
        ("DELETE", ["tokens"]) => {
            shared.with(|world| world.tokens.clear());
            Ok(json!({}))
        }
        ("DELETE", ["calls"]) => {
            shared.with(|world| world.log.clear());
            Ok(json!({}))
        }
        _ => return None,
    };
    Some(reply.map(|value| (200, value)))
}

/// Answers the requests that only read.
fn look(shared: &Shared, method: &Method, path: &[&str], query: &str) -> ReplyResult {
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
        ["guests"] => json!(*lock(&shared.progress)),
        ["openings"] => {
            let all = lock(&shared.openings).all();
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
            let found = lock(&shared.openings).find(address, port);
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
