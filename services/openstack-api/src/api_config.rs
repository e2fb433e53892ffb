//! The layer around all handlers: checks each request before its handler, and completes each answer after it.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;

use audit::Trail;
use axum::body::Body;
use axum::extract::{ConnectInfo, DefaultBodyLimit, MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::{Router, response::IntoResponse};
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, Method, StatusCode, Uri};
use jiff::Timestamp;
use metrics::RequestMetrics;
use sealing::Keyring;
use spans::Tracer;
use tower::util::MapRequest;
use tower_http::normalize_path::NormalizePath;
use tracing::{Instrument, debug, debug_span, error};

use crate::auth::CREDENTIAL_HEADERS;
use crate::limits::{Limiter, PermitSlot};
use crate::request_recorder::RequestRecorder;
use crate::request_span;
use crate::routes::no_such_method;
use crate::security_headers::guard;
use crate::socket_tickets::SocketTickets;
use crate::{
    AllowedHostNames, ApiError, BrowserCheck, Envelope, HostName, Kind, Limits, Microversion,
    RequestId, Scheme, TrustedProxies, VersionHeaders,
};

/// The behaviour of one API that does not depend on the route.
#[derive(Clone)]
pub struct ApiConfig {
    /// The headers of microversions.
    pub dialect: VersionHeaders,
    /// Returns the path that serves a request for this path, if another path serves it. The version is `None` if the client requests none.
    pub alias: fn(&str, Option<Microversion>) -> Option<String>,
    /// Returns the answer to a request that no route takes, if the usual one, 404 or 405, differs.
    pub unrouted: fn(&Method, &str, StatusCode) -> Option<(StatusCode, Kind)>,
    /// The format of refusals.
    pub envelope: Envelope,
    /// The value of `WWW-Authenticate` in answers with 401.
    pub challenge: String,
    /// Which requests of browsers are refused.
    pub browsers: BrowserCheck,
    /// The audit trail that requests are recorded in.
    pub trail: Arc<dyn Trail>,
    /// The keys that seal tickets for WebSockets; `None` if one process issues and opens them.
    pub ticket_keys: Option<Arc<Keyring>>,
    /// The largest body, in bytes, if neither the route nor `limits` sets a limit.
    pub longest_body: usize,
    pub settings: ApiSettings,
}

/// The settings of an API that depend on its listener.
#[derive(Clone, Debug)]
pub struct ApiSettings {
    pub scheme: Scheme,
    /// The proxies whose headers are trusted.
    pub proxies: TrustedProxies,
    /// The host names under which clients may reach the API.
    pub hosts: AllowedHostNames,
    pub limits: Limits,
    /// The counters of requests.
    pub requests: RequestMetrics,
    /// Begins the trace of each request.
    pub tracer: Tracer,
}

impl ApiSettings {
    /// The settings of an API without TLS on loopback, which clients may also reach under the host name `api`.
    pub fn sample(limits: Limits) -> Self {
        let hosts = HostName::try_from("api".to_owned());
        let hosts = AllowedHostNames::new([127, 0, 0, 1].into(), hosts.into_iter().collect());
        ApiSettings {
            scheme: Scheme::Http,
            proxies: TrustedProxies::default(),
            hosts,
            limits,
            requests: RequestMetrics::default(),
            tracer: Tracer::default(),
        }
    }
}

/// Clients read one header or the other, so both are sent.
const REQUEST_ID_HEADERS: [HeaderName; 2] = [
    HeaderName::from_static("openstack-request-id"),
    HeaderName::from_static("x-openstack-request-id"),
];

/// `Retry-After` in seconds, for refusals with 503 that do not set their own.
const DEFAULT_RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");

/// Wraps `router` with the layer. Call this last: routes that are added afterwards bypass the layer.
pub fn apply(router: Router, config: ApiConfig) -> Router {
    let unknown = || async { ApiError::unrouted(StatusCode::NOT_FOUND, "path not found") };
    let mismatch = || async { no_such_method() };
    let (alias, dialect) = (config.alias, config.dialect.clone());
    let serve_alias = move |request| serve_alias(request, &dialect, alias);
    let longest = config.settings.limits.body.map_or(config.longest_body, NonZeroUsize::get);
    let limiter = Arc::new(Limiter::new(config.settings.limits));
    let tickets = Arc::new(SocketTickets::new(config.ticket_keys.clone()));
    let router = router
        .layer(DefaultBodyLimit::max(longest))
        .fallback(unknown)
        .method_not_allowed_fallback(mismatch)
        .layer(from_fn_with_state((Arc::new(config), limiter, tickets), count_request));
    let router = MapRequest::new(router, serve_alias);
    // python-ironicclient requests lists as `/v1/nodes/?…`, and OpenStack's own services ignore a trailing slash.
    Router::new().fallback_service(NormalizePath::trim_trailing_slash(router))
}

/// Replaces the path of a request by the path that serves it.
fn serve_alias(
    mut request: Request,
    dialect: &VersionHeaders,
    alias: fn(&str, Option<Microversion>) -> Option<String>,
) -> Request {
    let headers = request.headers();
    let names_version = headers.contains_key(&dialect.header);
    let asked = dialect.negotiate(headers).ok().filter(|_| names_version);
    if let Some(path) = alias(request.uri().path(), asked) {
        let query = request.uri().query().map_or_else(String::new, |query| format!("?{query}"));
        let mut parts = request.uri().clone().into_parts();
        if let Ok(target) = format!("{path}{query}").parse() {
            parts.path_and_query = Some(target);
        }
        if let Ok(uri) = Uri::from_parts(parts) {
            *request.uri_mut() = uri;
        }
    }
    request
}

type Set = (Arc<ApiConfig>, Arc<Limiter>, Arc<SocketTickets>);

/// Handles a request in a span, and counts it under the template of its route.
async fn count_request(set: State<Set>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let timer = set.0.0.settings.requests.begin(request.method().as_str(), route);
    let ApiSettings { tracer, scheme, .. } = &set.0.0.settings;
    let span = request_span::begin(tracer, &request, *scheme);
    let answer = span.run(handle_request(set, request, next)).await;
    timer.answered(answer.status().as_u16());
    request_span::end(span, &answer);
    answer
}

async fn handle_request(
    State((config, limiter, tickets)): State<Set>,
    mut request: Request,
    next: Next,
) -> Response {
    let id = RequestId::new(Timestamp::now());
    let span = debug_span!(
        "request", request.id = %id, request.method = %request.method(), request.path = request.uri().path()
    );
    for proof in CREDENTIAL_HEADERS {
        if let Some(value) = request.headers_mut().get_mut(proof) {
            value.set_sensitive(true);
        }
    }
    let negotiated = config.dialect.negotiate(request.headers()).map_err(ApiError::from);
    let bearable = limiter.check_head(request.uri(), request.headers());
    let admitted = bearable.and_then(|()| tickets.admit(&mut request));
    let bearable = admitted.and_then(|()| config.browsers.check(&request));
    let forwarded = config.settings.proxies.forwarded(peer(&request));
    let watch = RequestRecorder::begin(&config.trail, id, &request, forwarded);
    let looks = request.method().is_safe();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    // Held until the answer is complete.
    let seat = PermitSlot::default();
    let mut answer = match bearable.and(negotiated.clone()) {
        Ok(version) => {
            let extensions = request.extensions_mut();
            extensions.insert(version);
            extensions.insert(id);
            extensions.insert((config.settings.scheme, forwarded));
            extensions.insert((limiter, seat.clone()));
            extensions.insert(tickets);
            extensions.insert(watch.clone());
            // Calls to the cloud made by the handler carry the id of this request.
            let running = openstack::on_behalf_of(watch.known_as(), next.run(request));
            watch.during(running).instrument(span.clone()).await
        }
        Err(why) => why.into_response(),
    };
    answer_unrouted(&mut answer, |usual| (config.unrouted)(&method, &path, usual));
    if let Some(seat) = seat.get() {
        answer = seat.hold_answer(answer, looks).await;
    }
    drop(seat);
    watch.end(answer.status());

    let _entered = span.enter();
    if let Some(refusal) = refusal(&mut answer) {
        wrap(&mut answer, &refusal, &config, id);
    }
    guard(answer.headers_mut(), config.settings.scheme);
    config.dialect.announce(answer.headers_mut(), negotiated.ok());
    if let Ok(value) = HeaderValue::try_from(id.to_string()) {
        for header in REQUEST_ID_HEADERS {
            answer.headers_mut().insert(header, value.clone());
        }
    }
    debug!(answer.status = answer.status().as_u16(), "answered {}", answer.status());
    answer
}

/// The address that the connection comes from.
fn peer(request: &Request) -> Option<IpAddr> {
    request.extensions().get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip())
}

/// Replaces the status of the answer to a request that no route takes.
fn answer_unrouted(
    answer: &mut Response,
    other: impl Fn(StatusCode) -> Option<(StatusCode, Kind)>,
) {
    let refusal = answer.extensions_mut().get_mut::<ApiError>();
    let Some(refusal) = refusal.filter(|refusal| refusal.kind == Kind::Unrouted) else { return };
    let Some((status, kind)) = other(refusal.status) else { return };
    (refusal.status, refusal.kind) = (status, kind);
    *answer.status_mut() = status;
}

/// The refusal in an answer, if the answer is one: made by our code, or by axum, which knows no envelope.
fn refusal(answer: &mut Response) -> Option<ApiError> {
    let ours = answer.extensions_mut().remove::<ApiError>();
    let status = answer.status();
    let refused = status.is_client_error() || status.is_server_error();
    let reason = || ApiError::protocol(status, status.canonical_reason().unwrap_or("refused"));
    ours.or_else(|| refused.then(reason))
}

/// Writes a refusal in the envelope of the API.
fn wrap(answer: &mut Response, refusal: &ApiError, config: &ApiConfig, id: RequestId) {
    if refusal.status.is_server_error() {
        error!("answering {}: {refusal}", refusal.status);
    }
    *answer.body_mut() = Body::from((config.envelope)(refusal, id));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if refusal.status == StatusCode::UNAUTHORIZED
        && let Ok(challenge) = HeaderValue::try_from(&config.challenge)
    {
        headers.insert(WWW_AUTHENTICATE, challenge);
    }
    if let Some(seconds) = refusal.retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if refusal.status == StatusCode::SERVICE_UNAVAILABLE {
        headers.entry(RETRY_AFTER).or_insert(DEFAULT_RETRY_AFTER);
    }
}
