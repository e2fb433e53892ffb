//! Declares one route: its handler, its description and its rule.

use axum::extract::{DefaultBodyLimit, Request, State};
use axum::handler::Handler;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use http::StatusCode;
use utoipa::openapi::path::HttpMethod;
use utoipa::openapi::{RefOr, Required, Schema};

use crate::admission::MissingAfterRule;
use crate::policy::ApiState;
use crate::request_recorder::Effect;
use crate::routes::erased::ErasedHandler;
use crate::{ApiError, Caller, JsonShape, Microversion, RequiredAccess, Rule};

/// A handler, with the description and the rule of its route.
pub struct Route<S> {
    pub(super) methods: MethodRouter<S>,
    pub(super) method: HttpMethod,
    /// `None` for a public route.
    pub(super) rule: Option<Rule>,
    /// Whether requests are recorded in the audit trail: the route changes something, or returns a secret.
    pub(super) recorded: bool,
    pub(super) effect: Effect,
    pub(super) summary: &'static str,
    pub(super) since: Option<Microversion>,
    pub(super) body: Option<(RefOr<Schema>, Required)>,
    pub(super) status: u16,
    /// Further statuses of success, whose answers have no body.
    pub(super) empty_answers: Vec<StatusCode>,
    pub(super) answer_body: AnswerBody,
    pub(super) refusals: Vec<StatusCode>,
    pub(super) asks: Vec<&'static str>,
    /// The version that introduced the route, and the answer before.
    pub(super) hidden: Option<(Microversion, Hidden)>,
    pub(super) streams: Option<&'static str>,
}

#[derive(Clone)]
pub(super) enum AnswerBody {
    Undeclared,
    Nothing,
    Json(Box<JsonShape>),
    /// Text of this media type.
    Text(&'static str),
}

/// The first version of every API.
const FIRST: Microversion = Microversion::new(1);

/// The answer of a route to clients that request a version before the route was introduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hidden {
    /// 404, as for a resource that does not exist.
    Resource,
    /// Like `Resource`, but clients that request 1.1, or no version, see the route as well.
    ResourceAfterFirst,
    /// Like `Resource`, but callers whom the rule refuses get this refusal.
    ResourceAfterRule,
    /// 404, as for a path that does not exist.
    Path,
    /// 405, as for a method that the path does not have.
    Method,
    /// 405, as a handler refuses a method.
    MethodOfHandler,
    /// 406, which names the version.
    Version,
}

/// A handler's argument that holds an authenticated caller, so that the handler cannot run without authentication.
pub trait Authenticated {
    fn caller(&self) -> &Caller;
}

impl Authenticated for Caller {
    fn caller(&self) -> &Caller {
        self
    }
}

/// The arguments of a handler whose first argument is [`Authenticated`].
pub trait Guarded {}

macro_rules! guarded {
    ($($argument:ident)*) => {
        impl<M, First: Authenticated, $($argument),*> Guarded for (M, First, $($argument,)*) {}
    };
}
guarded!();
guarded!(A);
guarded!(A B);
guarded!(A B C);
guarded!(A B C D);
guarded!(A B C D E);
guarded!(A B C D E F);
guarded!(A B C D E F G);

impl<S: ApiState + Clone + Send + Sync + 'static> Route<S> {
    /// A `GET` route.
    pub fn get<T: Guarded + 'static>(summary: &'static str, handler: impl Handler<T, S>) -> Self {
        Route::new(MethodFilter::GET, HttpMethod::Get, summary, handler)
    }

    /// A `POST` route.
    pub fn post<T: Guarded + 'static>(summary: &'static str, handler: impl Handler<T, S>) -> Self {
        Route::new(MethodFilter::POST, HttpMethod::Post, summary, handler)
    }

    /// A `PUT` route.
    pub fn put<T: Guarded + 'static>(summary: &'static str, handler: impl Handler<T, S>) -> Self {
        Route::new(MethodFilter::PUT, HttpMethod::Put, summary, handler)
    }

    /// A `PATCH` route.
    pub fn patch<T: Guarded + 'static>(summary: &'static str, handler: impl Handler<T, S>) -> Self {
        Route::new(MethodFilter::PATCH, HttpMethod::Patch, summary, handler)
    }

    /// A `DELETE` route.
    pub fn delete<T: Guarded + 'static>(
        summary: &'static str,
        handler: impl Handler<T, S>,
    ) -> Self {
        Route::new(MethodFilter::DELETE, HttpMethod::Delete, summary, handler)
    }

    /// A `GET` route without authentication.
    pub fn public_get<T: 'static>(summary: &'static str, handler: impl Handler<T, S>) -> Self {
        Route::new(MethodFilter::GET, HttpMethod::Get, summary, handler).public()
    }

    /// A `POST` route without authentication. Its requests are not recorded, because nobody is known to have sent them.
    pub fn public_post<T: 'static>(summary: &'static str, handler: impl Handler<T, S>) -> Self {
        Route::new(MethodFilter::POST, HttpMethod::Post, summary, handler).public()
    }

    fn public(self) -> Self {
        Route { rule: None, recorded: false, ..self }
    }

    fn new<T: 'static>(
        filter: MethodFilter,
        method: HttpMethod,
        summary: &'static str,
        handler: impl Handler<T, S>,
    ) -> Self {
        let methods = on(filter, ErasedHandler::new(handler));
        let reads = matches!(method, HttpMethod::Get | HttpMethod::Head);
        let need = if reads { RequiredAccess::Read } else { RequiredAccess::Change };
        Route {
            methods,
            method,
            rule: Some(S::POLICY.rule(need)),
            recorded: !reads,
            effect: Effect::Any,
            summary,
            since: None,
            body: None,
            status: 200,
            empty_answers: Vec::new(),
            answer_body: AnswerBody::Undeclared,
            refusals: Vec::new(),
            asks: Vec::new(),
            hidden: None,
            streams: None,
        }
    }

    /// Hides the route (404) from clients that request a version before `came`.
    pub fn since(self, came: Microversion) -> Self {
        self.hidden_before(came, Hidden::Resource)
    }

    /// Hides the route from clients that request a version before `came`, with this answer.
    pub fn hidden_before(mut self, came: Microversion, answer: Hidden) -> Self {
        self.methods = self.methods.route_layer(from_fn_with_state((came, answer), hide));
        self.since = Some(came);
        self.hidden = Some((came, answer));
        if matches!(answer, Hidden::Method | Hidden::MethodOfHandler) {
            self.refusals.push(StatusCode::METHOD_NOT_ALLOWED);
        }
        self
    }

    /// Sets the need of the route, if the method does not determine it: by default `GET` reads, and every other method changes something.
    /// Routes that change something or return a secret are recorded.
    pub fn needs(mut self, need: RequiredAccess) -> Self {
        self.recorded = match need {
            RequiredAccess::Read => false,
            RequiredAccess::Change => true,
            RequiredAccess::Administer => self.recorded,
        };
        self.with_rule(S::POLICY.rule(need))
    }

    /// Sets the rule of the route, if the policy of the service does not determine it.
    pub fn with_rule(mut self, rule: Rule) -> Self {
        self.rule = Some(rule);
        self
    }

    /// Declares that all effects of the handler are records in the database, written by the task of the handler. Then the audit trail has the
    /// request's row in the transaction of the first record, and not in a transaction of its own before it.
    pub fn only_records(mut self) -> Self {
        self.effect = Effect::Records;
        self
    }

    /// Sets the largest body of the route, if it differs from the limit of the API.
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.methods = self.methods.route_layer(DefaultBodyLimit::max(bytes));
        self
    }

    /// Sets the schema of the request body.
    pub fn reads(mut self, body: impl Into<RefOr<Schema>>) -> Self {
        self.body = Some((body.into(), Required::True));
        self
    }

    /// Sets the schema of an optional request body.
    pub fn reads_if_sent(mut self, body: impl Into<RefOr<Schema>>) -> Self {
        self.body = Some((body.into(), Required::False));
        self
    }

    /// Sets the status of success, if it is not 200.
    pub fn answers(mut self, status: StatusCode) -> Self {
        self.status = status.as_u16();
        self
    }

    /// Adds a status of success whose answer has no body.
    pub fn or_answers(mut self, status: StatusCode) -> Self {
        self.empty_answers.push(status);
        self
    }

    /// Sets the shape of the JSON answer.
    pub fn returns(mut self, shape: JsonShape) -> Self {
        self.answer_body = AnswerBody::Json(Box::new(shape));
        self
    }

    /// Declares that the answer has no body. Not needed if the status is 204.
    pub fn tells_nothing(mut self) -> Self {
        self.answer_body = AnswerBody::Nothing;
        self
    }

    /// Declares that the answer is text of this media type.
    pub fn tells_text(mut self, kind: &'static str) -> Self {
        self.answer_body = AnswerBody::Text(kind);
        self
    }

    /// Adds statuses of refusals that are specific to this route.
    pub fn refuses<const N: usize>(mut self, statuses: [StatusCode; N]) -> Self {
        self.refusals.extend(statuses);
        self
    }

    /// Adds query parameters of the route.
    pub fn query_parameters(mut self, parameters: impl IntoIterator<Item = &'static str>) -> Self {
        self.asks.extend(parameters);
        self
    }

    /// Declares that the route answers with Server-Sent Events if the client sends `Accept: text/event-stream`; `what` describes the
    /// events.
    pub fn streams(mut self, what: &'static str) -> Self {
        self.streams = Some(what);
        self
    }
}

/// Answers a method that no route of the path has: 404 before the version that introduced the path, then 405.
pub(super) fn refuse_method(asked: Option<&Microversion>, came: Option<Microversion>) -> ApiError {
    match (asked, came) {
        (Some(asked), Some(came)) if !asked.has(came) => {
            ApiError::unrouted(StatusCode::NOT_FOUND, "path not found")
        }
        (Some(_) | None, Some(_) | None) => no_such_method(),
    }
}

/// The answer to a method that no route of the path has.
pub(crate) fn no_such_method() -> ApiError {
    ApiError::unrouted(StatusCode::METHOD_NOT_ALLOWED, "method not allowed for this path")
}

fn too_early(came: Microversion, asked: Microversion) -> String {
    format!("this path requires API version {came}; the requested version is {asked}")
}

/// Refuses the request if the client requests a version before `came`.
async fn hide(
    State((came, answer)): State<(Microversion, Hidden)>,
    mut request: Request,
    next: Next,
) -> Response {
    match request.extensions().get::<Microversion>() {
        Some(asked) if answer == Hidden::ResourceAfterRule && !asked.has(came) => {
            let missing = MissingAfterRule(ApiError::not_found(too_early(came, *asked)));
            request.extensions_mut().insert(missing);
            next.run(request).await
        }
        Some(asked) if answer == Hidden::ResourceAfterFirst && *asked == FIRST => {
            next.run(request).await
        }
        Some(asked) if !asked.has(came) => {
            let why = too_early(came, *asked);
            match answer {
                Hidden::Resource | Hidden::ResourceAfterFirst | Hidden::ResourceAfterRule => {
                    ApiError::not_found(why)
                }
                Hidden::Path => ApiError::protocol(StatusCode::NOT_FOUND, why),
                Hidden::Method => ApiError::protocol(StatusCode::METHOD_NOT_ALLOWED, why),
                Hidden::MethodOfHandler => ApiError::new(StatusCode::METHOD_NOT_ALLOWED, why),
                Hidden::Version => ApiError::not_acceptable(why),
            }
            .into_response()
        }
        Some(_) | None => next.run(request).await,
    }
}
