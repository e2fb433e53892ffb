//! The Redfish side of a BMC (DSP0266): takes one request and returns one answer.

mod answer;
mod console;
mod face;
mod forms;
mod login;
mod problem;
mod resource;
mod schema;
mod session;
mod task;
mod values;

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::log::{self, Outcome};
use crate::machine::Machine;
use crate::profile::{Delete, Get, Post, Profile};
use crate::web;

use answer::Answer;
use face::RedfishFace;
use problem::{Message, Problem};
use resource::{Resource, tag_of};
use values::LARGEST_IMAGE;

/// The largest request body in bytes.
const LARGEST_BODY: usize = 64 * 1024;

/// The OData metadata document, which names the schemas' namespaces (DSP0266 §8.4.2).
const METADATA: &str = include_str!("../documents/metadata.xml");

/// Answers Redfish requests on `listener` until dropped.
pub(crate) async fn run(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    machine: Machine,
    profile: &'static Profile,
) {
    let face = Arc::new(RedfishFace::new(machine, profile));
    web::run(listener, tls, move |request| respond(face.clone(), request)).await;
}

async fn respond(face: Arc<RedfishFace>, mut request: Request<Incoming>) -> Response<Full<Bytes>> {
    if face.machine.faults().drops() {
        // The client gives up first. Its closed connection drops this future.
        std::future::pending::<()>().await;
    }
    face.machine.faults().wait().await;
    if let Some(answer) = console::answer(&face, &mut request) {
        return answer.into_response(request.method());
    }
    let (parts, body) = request.into_parts();
    let largest = if face.takes_images(&parts) { LARGEST_IMAGE } else { LARGEST_BODY };
    let answer = match Limited::new(body, largest).collect().await {
        Ok(body) => face.answer(&parts, &body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Problem::of(Message::BODY_TOO_LARGE).into(),
        Err(_) => Problem::of(Message::MALFORMED_JSON).into(),
    };
    answer.into_response(&parts.method)
}

impl RedfishFace {
    /// Answers one request. A refused request to change the machine is logged.
    pub(crate) fn answer(&self, parts: &Parts, body: &[u8]) -> Answer {
        let path = parts.uri.path();
        if let Some((status, retry_after)) =
            self.machine.faults().status_for(parts.method.as_str(), path)
        {
            self.record_refusal(parts, &format!("a fault answered {status}"));
            return Problem::fault(status, retry_after).into();
        }
        self.try_answer(parts, body).unwrap_or_else(|problem| {
            self.record_refusal(parts, &problem.summary());
            problem.into()
        })
    }

    fn try_answer(&self, parts: &Parts, body: &[u8]) -> Result<Answer, Problem> {
        // DSP0266 §8.2: a client with another OData version gets an error.
        if parts.headers.get("odata-version").is_some_and(|version| version != "4.0") {
            return Err(Problem::of(Message::ODATA_VERSION));
        }
        let resource = Resource::find(parts.uri.path(), self);
        if !resource.as_ref().is_some_and(|resource| resource.is_public(&parts.method)) {
            self.authenticate(&parts.headers)?;
        }
        let resource = resource.ok_or_else(|| Problem::no_such_resource(parts.uri.path()))?;
        refuse_query_options(parts.uri.query())?;

        let row = resource.row;
        match (parts.method.as_str(), row.patch, row.post, row.delete) {
            ("GET" | "HEAD", ..) if row.is_readable() => self.read(&resource, parts),
            ("PATCH", Some(properties), ..) => self.patch(&resource, properties, parts, body),
            ("POST", _, Some(action), _) => self.post(&resource, action, parts, body),
            ("DELETE", .., Some(Delete::Session)) => self.close_session(&resource),
            ("DELETE", .., Some(Delete::Subscription)) => self.unsubscribe(&resource),
            ("DELETE", .., Some(Delete::Volume)) => self.delete_volume(&resource, parts, body),
            _ => Err(Problem::method_not_allowed(&row.methods())),
        }
    }

    /// Whether the request goes to a resource that takes images of firmware.
    fn takes_images(&self, parts: &Parts) -> bool {
        let takes = |resource: Resource| resource.row.post == Some(Post::PushUpdate);
        parts.method == Method::POST && Resource::find(parts.uri.path(), self).is_some_and(takes)
    }

    fn read(&self, resource: &Resource, parts: &Parts) -> Result<Answer, Problem> {
        let missing = || Problem::no_such_resource(&resource.path);
        match resource.row.get {
            Some(Get::Metadata) => return Ok(Answer::xml(METADATA)),
            Some(Get::TaskMonitor) => return self.task_monitor(resource).ok_or_else(missing),
            None => {}
        }
        let document = resource.document(self).ok_or_else(missing)?;
        let tag = tag_of(&document).map(str::to_owned);
        let unchanged = tag.is_some()
            && parts.headers.get("if-none-match").map(|sent| sent.as_bytes())
                == tag.as_deref().map(str::as_bytes);
        let answer = if unchanged {
            Answer::empty(StatusCode::NOT_MODIFIED)
        } else {
            Answer::json(StatusCode::OK, document)
        };
        Ok(answer.with("allow", resource.row.methods().join(", ")).with_tag(tag))
    }

    /// Status 202 while the task of a monitor runs, afterwards the answer to the request.
    fn task_monitor(&self, monitor: &Resource) -> Option<Answer> {
        let path = monitor.path.replace("/TaskMonitors/", "/Tasks/");
        let task = Resource::find(&path, self)?.document(self)?;
        if task["TaskState"] == "Completed" {
            return Some(Answer::empty(StatusCode::NO_CONTENT));
        }
        if task["TaskState"] == "Exception" {
            return Some(RedfishFace::failed_task(&task));
        }
        Some(Answer::json(StatusCode::ACCEPTED, task).with("location", monitor.path.clone()))
    }

    fn close_session(&self, session: &Resource) -> Result<Answer, Problem> {
        let closed = session.id().is_some_and(|id| self.sessions().close(id));
        let missing = || Problem::no_such_resource(&session.path);
        closed.then(|| Answer::empty(StatusCode::NO_CONTENT)).ok_or_else(missing)
    }

    fn record_refusal(&self, parts: &Parts, why: &str) {
        let reads = parts.method == Method::GET || parts.method == Method::HEAD;
        if !reads && !parts.uri.path().contains("SessionService") {
            let request = log::Request::Other(format!("{} {}", parts.method, parts.uri.path()));
            self.machine.record(log::Protocol::Redfish, request, Outcome::Refused(why.to_owned()));
        }
    }
}

/// DSP0266 §7.3: unknown options are refused if they begin with `$`, and ignored otherwise.
fn refuse_query_options(query: Option<&str>) -> Result<(), Problem> {
    let is_unknown = query.unwrap_or_default().split('&').any(|option| option.starts_with('$'));
    if is_unknown { Err(Problem::of(Message::QUERY_NOT_SUPPORTED)) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
