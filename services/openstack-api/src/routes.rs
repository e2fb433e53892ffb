//! Declaring routes: none without an authenticated caller, none without a description.

use axum::extract::{DefaultBodyLimit, Request, State};
use axum::handler::Handler;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use axum::{Extension, Router};
use http::StatusCode;
use utoipa::openapi::path::{
    HttpMethod, OperationBuilder, ParameterBuilder, ParameterIn, PathItem, PathsBuilder,
};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{
    ContentBuilder, ObjectBuilder, Paths, RefOr, Required, Response as DocResponse,
    ResponseBuilder, Schema,
};

use crate::{ApiError, Caller, Microversion, Need};

/// Routes, and what they are.
pub struct Routes<S> {
    router: Router<S>,
    paths: PathsBuilder,
    tag: &'static str,
}

/// One route: who answers, and what it says of itself.
pub struct Handle<S> {
    methods: MethodRouter<S>,
    method: HttpMethod,
    public: bool,
    need: Need,
    summary: &'static str,
    since: Option<Microversion>,
    body: Option<RefOr<Schema>>,
    status: u16,
    streams: Option<&'static str>,
}

/// The arguments of a handler whose first is a [`Caller`].
pub trait Guarded {}

macro_rules! guarded {
    ($($argument:ident)*) => {
        impl<M, $($argument),*> Guarded for (M, Caller, $($argument,)*) {}
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

impl<S: Clone + Send + Sync + 'static> Handle<S> {
    /// `GET`.
    pub fn get<H, T>(summary: &'static str, handler: H) -> Self
    where
        H: Handler<T, S>,
        T: Guarded + 'static,
    {
        Handle::new(MethodFilter::GET, HttpMethod::Get, summary, handler)
    }

    /// `POST`.
    pub fn post<H, T>(summary: &'static str, handler: H) -> Self
    where
        H: Handler<T, S>,
        T: Guarded + 'static,
    {
        Handle::new(MethodFilter::POST, HttpMethod::Post, summary, handler)
    }

    /// `PUT`.
    pub fn put<H, T>(summary: &'static str, handler: H) -> Self
    where
        H: Handler<T, S>,
        T: Guarded + 'static,
    {
        Handle::new(MethodFilter::PUT, HttpMethod::Put, summary, handler)
    }

    /// `PATCH`.
    pub fn patch<H, T>(summary: &'static str, handler: H) -> Self
    where
        H: Handler<T, S>,
        T: Guarded + 'static,
    {
        Handle::new(MethodFilter::PATCH, HttpMethod::Patch, summary, handler)
    }

    /// `DELETE`.
    pub fn delete<H, T>(summary: &'static str, handler: H) -> Self
    where
        H: Handler<T, S>,
        T: Guarded + 'static,
    {
        Handle::new(MethodFilter::DELETE, HttpMethod::Delete, summary, handler)
    }

    /// `GET`, for anyone.
    pub fn public_get<H, T>(summary: &'static str, handler: H) -> Self
    where
        H: Handler<T, S>,
        T: 'static,
    {
        let mut public = Handle::new(MethodFilter::GET, HttpMethod::Get, summary, handler);
        public.public = true;
        public
    }

    fn new<H, T>(
        filter: MethodFilter,
        method: HttpMethod,
        summary: &'static str,
        handler: H,
    ) -> Self
    where
        H: Handler<T, S>,
        T: 'static,
    {
        let methods = on(filter, handler);
        let reads = matches!(method, HttpMethod::Get | HttpMethod::Head);
        let need = if reads { Need::Read } else { Need::Change };
        Handle {
            methods,
            method,
            public: false,
            need,
            summary,
            since: None,
            body: None,
            status: 200,
            streams: None,
        }
    }

    /// The route came with this version: a client that asks for an earlier one finds nothing here.
    pub fn since(mut self, came: Microversion) -> Self {
        self.methods = self.methods.route_layer(from_fn_with_state(came, hide));
        self.since = Some(came);
        self
    }

    /// What the route asks of its callers, where the method does not tell: `GET` shows, all else changes.
    pub fn needs(mut self, need: Need) -> Self {
        self.need = need;
        self
    }

    /// The largest body the route reads, where it is not the API's own limit.
    pub fn up_to(mut self, bytes: usize) -> Self {
        self.methods = self.methods.route_layer(DefaultBodyLimit::max(bytes));
        self
    }

    /// What the route reads.
    pub fn reads(mut self, body: impl Into<RefOr<Schema>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// The status of success, where it is not 200.
    pub fn answers(mut self, status: StatusCode) -> Self {
        self.status = status.as_u16();
        self
    }

    /// The route answers Server-Sent Events too, where `Accept: text/event-stream` asks for them: those.
    pub fn streams(mut self, what: &'static str) -> Self {
        self.streams = Some(what);
        self
    }
}

/// Answers 404 to clients that ask for an earlier version.
async fn hide(State(came): State<Microversion>, request: Request, next: Next) -> Response {
    match request.extensions().get::<Microversion>() {
        Some(asked) if !asked.has(came) => ApiError::not_found(format!(
            "this path came with version {came}; the version asked for is {asked}"
        ))
        .into_response(),
        Some(_) | None => next.run(request).await,
    }
}

impl<S: Clone + Send + Sync + 'static> Routes<S> {
    /// No routes yet; those that follow are described under `tag`.
    pub fn new(tag: &'static str) -> Self {
        Routes { router: Router::new(), paths: PathsBuilder::new(), tag }
    }

    /// Adds what answers at `path`.
    pub fn at(mut self, path: &'static str, handles: impl IntoIterator<Item = Handle<S>>) -> Self {
        let mut methods = MethodRouter::new();
        for handle in handles {
            self.paths = self.paths.path(path, describe(self.tag, path, &handle));
            methods = methods.merge(handle.methods.route_layer(Extension(handle.need)));
        }
        self.router = self.router.route(path, methods);
        self
    }

    /// These routes and `others`.
    pub fn merge(self, others: Routes<S>) -> Self {
        let mut paths = self.paths.build();
        paths.merge(others.paths.build());
        Routes { router: self.router.merge(others.router), paths: paths.into(), tag: self.tag }
    }

    /// The routes, and their description.
    pub fn split(self) -> (Router<S>, Paths) {
        (self.router, self.paths.build())
    }
}

fn describe<S>(tag: &str, path: &str, handle: &Handle<S>) -> PathItem {
    let mut operation = OperationBuilder::new()
        .tag(tag)
        .summary(Some(handle.summary))
        .response(handle.status.to_string(), described(handle.streams));
    if let Some(came) = handle.since {
        operation = operation.description(Some(format!("Came with version {came}.")));
    }
    let parts = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    for name in parts {
        let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Path);
        operation = operation.parameter(parameter.required(Required::True).build());
    }
    if handle.streams.is_some() {
        let last = ParameterBuilder::new().name("Last-Event-ID").parameter_in(ParameterIn::Header);
        let last = last.description(Some("The id of the last event that the client has."));
        operation = operation.parameter(last.build());
        operation = operation.response("503", DocResponse::new("Too many streams are open."));
    }
    if let Some(body) = &handle.body {
        let content = ContentBuilder::new().schema(Some(body.clone())).build();
        let body = RequestBodyBuilder::new().content("application/json", content);
        operation = operation.request_body(Some(body.build()));
    }
    if handle.public {
        operation = operation.securities(Some([SecurityRequirement::default()]));
    }
    PathItem::new(handle.method.clone(), operation)
}

/// What success looks like.
fn described(streams: Option<&str>) -> DocResponse {
    let mut answer = ResponseBuilder::new().description("As asked.");
    if let Some(what) = streams {
        let events = Schema::from(ObjectBuilder::new().description(Some(what)).build());
        answer = answer
            .content("application/json", ContentBuilder::new().build())
            .content("text/event-stream", ContentBuilder::new().schema(Some(events)).build());
    }
    answer.build()
}
