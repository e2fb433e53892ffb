//! Swift: containers of objects in the account of a project.

use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest, ApiResult};
use crate::world::World;

/// The longest name of a container, in bytes.
const LONGEST_NAME: usize = 256;

pub(crate) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> ApiAnswer {
    let [account, container, object @ ..] = path else { return Err(error(412)) };
    let project = admitted(asked, account)?;
    let place = (project.to_owned(), (*container).to_owned());
    let name = object.join("/");
    match (asked.method.as_str(), object) {
        ("PUT", []) => create(world, place),
        ("DELETE", []) => {
            let objects = world.containers.get(&place).ok_or_else(|| error(404))?;
            if !objects.is_empty() {
                return Err(error(409));
            }
            world.containers.remove(&place);
            Ok(Answer::empty(204))
        }
        ("GET", []) => {
            let objects = world.containers.get(&place).ok_or_else(|| error(404))?;
            let names = objects.keys().map(|name| format!("{name}\n"));
            let headers = vec![("content-type", "text/plain; charset=utf-8".to_owned())];
            Ok(Answer { status: 200, headers, body: names.collect::<String>().into() })
        }
        ("PUT", _) => {
            let objects = world.containers.get_mut(&place).ok_or_else(|| error(404))?;
            objects.insert(name, asked.body.clone());
            Ok(Answer::empty(201))
        }
        ("GET", _) => {
            let objects = world.containers.get(&place);
            let body = objects.and_then(|it| it.get(&name)).ok_or_else(|| error(404))?.clone();
            let headers = vec![("content-type", "application/octet-stream".to_owned())];
            Ok(Answer { status: 200, headers, body })
        }
        ("DELETE", _) => {
            let objects = world.containers.get_mut(&place);
            objects.and_then(|it| it.remove(&name)).ok_or_else(|| error(404))?;
            Ok(Answer::empty(204))
        }
        _ => Err(error(405)),
    }
}

/// The project of the account, if the caller may work with it. Members operate the account of their project, as clouds with
/// `operator_roles = admin, member` have it.
fn admitted<'a>(asked: &ApiRequest, account: &'a str) -> ApiResult<&'a str> {
    let project = account.strip_prefix("AUTH_").unwrap_or_default();
    let may = asked.caller.may("member") && asked.caller.project == project;
    if may { Ok(project) } else { Err(error(403)) }
}

fn create(world: &mut World, place: (String, String)) -> ApiAnswer {
    if place.1.len() > LONGEST_NAME {
        return Err(error(400));
    }
    let is_new = !world.containers.contains_key(&place);
    world.containers.entry(place).or_default();
    Ok(Answer::empty(if is_new { 201 } else { 202 }))
}

/// A refusal, whose page has Swift's own sentence.
fn error(status: u16) -> ApiError {
    ApiError::new(status, "", "")
}
