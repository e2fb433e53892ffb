//! Routes a request to the service that answers it, and checks versions, tokens and microversions.

use serde_json::json;

use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest, ApiResult};
use crate::schema;
use crate::service::Service;
use crate::world::World;
use crate::{cinder, designate, glance, keystone, neutron, nova, octavia, placement, swift};

/// Answers one request. Problems become error answers.
pub(crate) fn dispatch(world: &mut World, asked: &mut ApiRequest) -> Answer {
    let verdict = answer(world, asked);
    let mut answer = verdict.unwrap_or_else(|problem| refuse(asked, &problem));
    answer.headers.push(("x-openstack-request-id", asked.request_id.clone()));
    if asked.service == Service::Compute {
        answer.headers.push(("x-compute-request-id", asked.request_id.clone()));
    }
    if let Some((major, _, _)) = asked.service.microversions() {
        let name = version_name(asked.service);
        let version = format!("{major}.{}", asked.version);
        answer.headers.push(("openstack-api-version", format!("{name} {version}")));
        if asked.service == Service::Compute {
            answer.headers.push(("x-openstack-nova-api-version", version));
        }
        answer.headers.push(("vary", "OpenStack-API-Version".to_owned()));
    }
    answer
}

/// The error answer for a problem, in the envelope of the service.
pub(crate) fn refuse(asked: &ApiRequest, problem: &ApiError) -> Answer {
    let (kind, body) = problem.envelope(asked.service, &asked.request_id);
    let headers = vec![("content-type", kind.to_owned())];
    let mut answer = Answer { status: problem.status, headers, body: body.into() };
    if problem.status == 401 {
        let realm = format!("Keystone uri=\"{}/identity\"", asked.base);
        answer = answer.with("www-authenticate", realm);
    }
    if let Some(seconds) = problem.retry_after {
        answer = answer.with("retry-after", seconds.to_string());
    }
    answer
}

fn answer(world: &mut World, asked: &mut ApiRequest) -> ApiAnswer {
    let service = asked.service;
    asked.version = microversion(asked)?;
    if asked.segments.is_empty() {
        let (status, document) = service.versions(&asked.base);
        return Ok(Answer::json(status, document));
    }
    if service != Service::Placement {
        let version = asked.segments.remove(0);
        let known =
            version == service.major() || (version == "v2.0" && service == Service::LoadBalancer);
        if !known {
            return Err(ApiError::unknown_path());
        }
        let has_document = service != Service::ObjectStore;
        if asked.segments.is_empty() && asked.method == http::Method::GET && has_document {
            return Ok(Answer::ok(service.version(&asked.base)));
        }
    }
    let segments = asked.segments.clone();
    let path: Vec<&str> = segments.iter().map(String::as_str).collect();
    if service == Service::Identity
        && asked.method == http::Method::POST
        && path == ["auth", "tokens"]
    {
        return keystone::issue(world, asked);
    }
    asked.caller = keystone::caller(world, asked)?;
    asked.within_rules()?;
    schema::check(asked)?;
    match service {
        Service::Identity => keystone::answer(world, asked, &path),
        Service::Image => glance::answer(world, asked, &path),
        Service::Compute => nova::answer(world, asked, &path),
        Service::Placement => placement::answer(world, asked, &path),
        Service::Network => neutron::answer(world, asked, &path),
        Service::LoadBalancer => octavia::answer(world, asked, &path),
        Service::Dns => designate::answer(world, asked, &path),
        Service::Volume => cinder::answer(world, asked, &path),
        Service::ObjectStore => swift::answer(world, asked, &path),
    }
}

fn version_name(service: Service) -> &'static str {
    if service == Service::Volume { "volume" } else { service.prefix() }
}

/// The minor version that a request asks for. The first microversion if the request names none.
fn microversion(asked: &ApiRequest) -> ApiResult<u32> {
    let Some((major, first, last)) = asked.service.microversions() else { return Ok(0) };
    let name = version_name(asked.service);
    let given = asked.header("openstack-api-version").unwrap_or_default();
    let named = given.split(',').filter_map(|one| one.trim().split_once(' '));
    let mut named =
        named.filter(|(service, _)| *service == name).map(|(_, version)| version.trim());
    let legacy = (asked.service == Service::Compute)
        .then(|| asked.header("x-openstack-nova-api-version"))
        .flatten();
    let Some(text) = named.next().or(legacy) else { return Ok(first) };
    if text == "latest" {
        return Ok(last);
    }
    let parsed = text
        .split_once('.')
        .and_then(|(a, b)| Some((a.parse::<u32>().ok()?, b.parse::<u32>().ok()?)));
    match parsed {
        Some((a, minor)) if a == major && (first..=last).contains(&minor) => Ok(minor),
        Some(_) => Err(ApiError::new(
            406,
            "",
            format!(
                "Version {text} is not supported by the API. Minimum is {major}.{first} and maximum is {major}.{last}."
            ),
        )),
        None => Err(ApiError::bad(format!(
            "API Version String {text} is of invalid format. Must be of format MajorNum.MinorNum."
        ))),
    }
}

/// The error answer that a rule gives.
pub(crate) fn by_rule(
    asked: &ApiRequest,
    status: u16,
    retry_after: Option<u32>,
    message: Option<String>,
) -> Answer {
    let message = message.unwrap_or_else(|| match status {
        429 => "This request was rate-limited.".to_owned(),
        503 => "The service is unavailable.".to_owned(),
        other => json!(crate::request::title(other)).as_str().unwrap_or_default().to_owned(),
    });
    let problem = ApiError { retry_after, ..ApiError::new(status, "", message) };
    refuse(asked, &problem).with("x-openstack-request-id", asked.request_id.clone())
}
