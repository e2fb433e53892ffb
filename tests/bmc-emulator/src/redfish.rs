//! The Redfish side of a BMC (DSP0266): takes one request and returns one answer.

mod answer;
mod documents;
mod forms;
mod login;
mod problem;
mod resource;
mod session;
mod task;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::log::{self, Outcome};
use crate::machine::Machine;
use crate::profile::Profile;
use crate::web;

use answer::Answer;
use problem::Problem;
use resource::Resource;
use session::Sessions;
use task::Tasks;

/// The largest request body in bytes.
const LARGEST_BODY: usize = 64 * 1024;

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

async fn respond(face: Arc<RedfishFace>, request: Request<Incoming>) -> Response<Full<Bytes>> {
    if face.machine.faults().drops() {
        // The client gives up first. Its closed connection drops this future.
        std::future::pending::<()>().await;
    }
    face.machine.faults().wait().await;
    let (parts, body) = request.into_parts();
    let answer = match Limited::new(body, LARGEST_BODY).collect().await {
        Ok(body) => face.answer(&parts, &body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Problem::body_too_large().into(),
        Err(_) => Problem::malformed_json().into(),
    };
    answer.into_response(&parts.method)
}

/// The Redfish service of one machine.
pub(crate) struct RedfishFace {
    machine: Machine,
    profile: &'static Profile,
    sessions: Mutex<Sessions>,
    tasks: Mutex<Tasks>,
}

impl RedfishFace {
    pub(crate) fn new(machine: Machine, profile: &'static Profile) -> RedfishFace {
        let sessions = Mutex::new(Sessions::new(&profile.sessions));
        RedfishFace { machine, profile, sessions, tasks: Mutex::default() }
    }

    /// Answers one request. A refused request to change the machine is logged.
    pub(crate) fn answer(&self, parts: &Parts, body: &[u8]) -> Answer {
        let path = parts.uri.path();
        if let Some(status) = self.machine.faults().status_for(parts.method.as_str(), path) {
            self.record_refusal(parts, &format!("a fault answered {status}"));
            return Problem::fault(status).into();
        }
        self.try_answer(parts, body).unwrap_or_else(|problem| {
            self.record_refusal(parts, &problem.summary());
            problem.into()
        })
    }

    fn try_answer(&self, parts: &Parts, body: &[u8]) -> Result<Answer, Problem> {
        // DSP0266 §8.2: a client with another OData version gets an error.
        if parts.headers.get("odata-version").is_some_and(|version| version != "4.0") {
            return Err(Problem::odata_version());
        }
        let resource = Resource::find(parts.uri.path(), self);
        if !resource.as_ref().is_some_and(|resource| resource.is_public(&parts.method)) {
            self.authenticate(&parts.headers)?;
        }
        let resource = resource.ok_or_else(|| Problem::no_such_resource(parts.uri.path()))?;
        refuse_query_options(parts.uri.query())?;

        let allowed = resource.methods(self);
        if !allowed.contains(&parts.method.as_str()) {
            return Err(Problem::method_not_allowed(&parts.method, allowed));
        }
        match parts.method {
            Method::GET | Method::HEAD => self.read(&resource, parts, allowed),
            Method::DELETE => self.delete(&resource),
            Method::PATCH => self.patch(&resource, parts, body),
            _ => self.post(&resource, parts, body),
        }
    }

    fn read(
        &self,
        resource: &Resource,
        parts: &Parts,
        allowed: &[&str],
    ) -> Result<Answer, Problem> {
        let missing = || Problem::no_such_resource(parts.uri.path());
        if let Resource::TaskMonitor(id) = resource {
            return self.task_monitor(*id).ok_or_else(missing);
        }
        if *resource == Resource::Metadata {
            return Ok(Answer::xml(documents::METADATA));
        }
        let document = self.document(resource).ok_or_else(missing)?;
        let tag = self.entity_tag(resource, &document);
        let unchanged = tag.is_some()
            && parts.headers.get("if-none-match").map(|sent| sent.as_bytes())
                == tag.as_deref().map(str::as_bytes);
        let answer = if unchanged {
            Answer::empty(StatusCode::NOT_MODIFIED)
        } else {
            Answer::json(StatusCode::OK, document)
        };
        Ok(answer.with("allow", allowed.join(", ")).with_tag(tag))
    }

    fn delete(&self, resource: &Resource) -> Result<Answer, Problem> {
        if let Resource::Session(id) = resource
            && self.sessions().close(*id)
        {
            return Ok(Answer::empty(StatusCode::NO_CONTENT));
        }
        Err(Problem::no_such_resource(&resource.path(self.profile)))
    }

    fn record_refusal(&self, parts: &Parts, why: &str) {
        let reads = parts.method == Method::GET || parts.method == Method::HEAD;
        if !reads && !parts.uri.path().contains("SessionService") {
            let request = log::Request::Other(format!("{} {}", parts.method, parts.uri.path()));
            self.machine.record(log::Protocol::Redfish, request, Outcome::Refused(why.to_owned()));
        }
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// DSP0266 §7.3: unknown options are refused if they begin with `$`, and ignored otherwise.
fn refuse_query_options(query: Option<&str>) -> Result<(), Problem> {
    let options = query.unwrap_or_default().split('&');
    match options
        .map(|option| option.split('=').next().unwrap_or_default())
        .find(|name| name.starts_with('$'))
    {
        Some(name) => Err(Problem::query_not_supported(name)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
