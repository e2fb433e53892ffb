//! Declaring routes: none without an authenticated caller, none without a description, none without a row in the table of
//! who may use it.

mod describe;
mod table;

use std::sync::{Arc, OnceLock};

use axum::extract::{DefaultBodyLimit, FromRef, Request, State};
use axum::handler::Handler;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use axum::{Extension, Router};
use bytes::Bytes;
use http::StatusCode;
use utoipa::openapi::path::{HttpMethod, PathsBuilder};
use utoipa::openapi::{OpenApi, Paths, RefOr, Required, Schema};

use crate::json::json_text;
use crate::policy::Ward;
use crate::{ApiError, Auth, Caller, Microversion, Need, Rule, Shape, audit_routes, json};
use describe::{Told, describe};
pub use table::{Row, Table};

/// What the document calls the shape of every refusal: each API puts its own there.
pub const REFUSAL: &str = "Refusal";

/// Routes, what they are, and who may use them.
pub struct Routes<S> {
    router: Router<S>,
    paths: PathsBuilder,
    table: Table,
    tag: &'static str,
}

/// What stands before a handler that has a caller.
#[derive(Clone, Copy)]
pub(crate) struct Gate {
    /// Who is let in.
    pub(crate) rule: Rule,
    /// What the route does, where that is recorded before it does so.
    pub(crate) recorded: Option<&'static str>,
}

/// One route: who answers, and what it says of itself.
pub struct Handle<S> {
    methods: MethodRouter<S>,
    method: HttpMethod,
    /// Who may use it; `None`: anyone.
    rule: Option<Rule>,
    /// Whether it is recorded who used it: it changes something, or tells a secret.
    recorded: bool,
    summary: &'static str,
    since: Option<Microversion>,
    body: Option<(RefOr<Schema>, Required)>,
    status: u16,
    told: Told,
    refusals: Vec<StatusCode>,
    asks: Vec<&'static str>,
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

impl<S: Ward + Clone + Send + Sync + 'static> Handle<S> {
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
        public.rule = None;
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
            rule: Some(S::POLICY.rule(need)),
            recorded: !reads,
            summary,
            since: None,
            body: None,
            status: 200,
            told: Told::Unsaid,
            refusals: Vec::new(),
            asks: Vec::new(),
            streams: None,
        }
    }

    /// The route came with this version: a client that asks for an earlier one finds nothing here.
    pub fn since(mut self, came: Microversion) -> Self {
        self.methods = self.methods.route_layer(from_fn_with_state(came, hide));
        self.since = Some(came);
        self
    }

    /// What the route asks of its callers, where the method does not tell: `GET` shows, all else changes. What changes things or tells a
    /// secret is recorded.
    pub fn needs(mut self, need: Need) -> Self {
        self.recorded = match need {
            Need::Read => false,
            Need::Change => true,
            Need::Administer => self.recorded,
        };
        self.ruled(S::POLICY.rule(need))
    }

    /// Who may use the route, where the service's policy does not tell.
    pub fn ruled(mut self, rule: Rule) -> Self {
        self.rule = Some(rule);
        self
    }

    /// The largest body the route reads, where it is not the API's own limit.
    pub fn up_to(mut self, bytes: usize) -> Self {
        self.methods = self.methods.route_layer(DefaultBodyLimit::max(bytes));
        self
    }

    /// What the route reads.
    pub fn reads(mut self, body: impl Into<RefOr<Schema>>) -> Self {
        self.body = Some((body.into(), Required::True));
        self
    }

    /// What the route reads, where anything is sent.
    pub fn reads_if_sent(mut self, body: impl Into<RefOr<Schema>>) -> Self {
        self.body = Some((body.into(), Required::False));
        self
    }

    /// The status of success, where it is not 200.
    pub fn answers(mut self, status: StatusCode) -> Self {
        self.status = status.as_u16();
        self
    }

    /// What success tells: JSON of this shape.
    pub fn tells(mut self, shape: Shape) -> Self {
        self.told = Told::Json(Box::new(shape));
        self
    }

    /// Success is told by the status alone. Where that is 204, this need not be said.
    pub fn tells_nothing(mut self) -> Self {
        self.told = Told::Nothing;
        self
    }

    /// What success tells: text of this type.
    pub fn tells_text(mut self, kind: &'static str) -> Self {
        self.told = Told::Text(kind);
        self
    }

    /// What the route may be refused with besides what every route such as this one may be.
    pub fn refuses<const N: usize>(mut self, statuses: [StatusCode; N]) -> Self {
        self.refusals.extend(statuses);
        self
    }

    /// The parameters of a query that the route knows.
    pub fn asks<const N: usize>(mut self, parameters: [&'static str; N]) -> Self {
        self.asks.extend(parameters);
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

impl<S: Ward + Clone + Send + Sync + 'static> Routes<S> {
    /// No routes yet; those that follow are described under `tag`.
    pub fn new(tag: &'static str) -> Self {
        Routes { router: Router::new(), paths: PathsBuilder::new(), table: Table::default(), tag }
    }

    /// Adds what answers at `path`.
    pub fn at(mut self, path: &'static str, handles: impl IntoIterator<Item = Handle<S>>) -> Self {
        let mut methods = MethodRouter::new();
        for handle in handles {
            self.paths = self.paths.path(path, describe(self.tag, path, &handle));
            self.table.add(&handle.method, path, handle.rule, handle.recorded);
            // What the gate reads is what the table shows.
            let recorded = handle.recorded.then_some(handle.summary);
            methods = methods.merge(match handle.rule {
                Some(rule) => handle.methods.route_layer(Extension(Gate { rule, recorded })),
                None => handle.methods,
            });
        }
        self.router = self.router.route(path, methods);
        self
    }

    /// These routes and `others`.
    pub fn merge(self, others: Routes<S>) -> Self {
        let mut paths = self.paths.build();
        paths.merge(others.paths.build());
        Routes {
            router: self.router.merge(others.router),
            paths: paths.into(),
            table: self.table.and(others.table),
            tag: self.tag,
        }
    }

    /// The routes, and those that every API has: `/openapi.json` with what `document` makes of all, `/bedplate/v1/policy` with the table, and
    /// `/bedplate/v1/audit` with what was asked of them.
    pub fn finish(self, document: impl FnOnce(Paths) -> OpenApi) -> Router<S>
    where
        Auth: FromRef<S>,
    {
        // The document itself is many times as large as its text, and nobody else needs it.
        let described = Arc::new(OnceLock::<Bytes>::new());
        let table = Arc::new(OnceLock::<Table>::new());
        let (told, shown) = (described.clone(), table.clone());
        let describe = move || async move {
            json_text(StatusCode::OK, told.get().cloned().unwrap_or_default())
        };
        let show = move |_: Caller| async move { json(StatusCode::OK, &shown.get()) };
        let show = Handle::get("Say who may use which route", show).ruled(Rule::LOOK);
        let described_by = Handle::public_get("Describe every route", describe);
        let own = Routes::new("versions")
            .at("/openapi.json", [described_by.tells(Shape::open())])
            .at("/bedplate/v1/policy", [show.tells(Table::shape())]);
        let all = self.merge(own).merge(audit_routes::routes());
        let text = serde_json::to_vec(&document(all.paths.build()));
        described.get_or_init(|| text.expect("a document has text alone for keys").into());
        table.get_or_init(|| all.table);
        all.router
    }
}
