//! How much of everything callers may have, so that one is in nobody's way.

mod bucket;
mod crowd;
mod flight;
mod guesses;
mod recent;
mod shape;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::ConnectInfo;
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{Method, StatusCode, Uri};
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{ApiError, Caller, Forwarded, Scheme};
use bucket::{Bucket, Pace};
pub use crowd::{Crowd, Place};
use flight::{Flight, Held};
use futures::TryStreamExt;
pub use guesses::{Door, Guess, Guesses, Ticket};
use recent::Recent;
pub(crate) use shape::check as check_shape;

/// `[api.limits]`: how much callers may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The longest URL, in bytes; 414.
    pub url: NonZeroUsize,
    /// All headers of a request together, in bytes; 431.
    pub headers: NonZeroUsize,
    /// The largest body, in bytes, where a route does not say otherwise; 413. Each API has its own if this is not given.
    pub body: Option<NonZeroUsize>,
    /// The largest document that a caller stores, in bytes of JSON, counted after a patch; 400.
    pub document: NonZeroUsize,
    /// After how many bytes a page of a list ends early; it says where the next one begins.
    pub page: NonZeroUsize,
    /// How deep JSON may be nested; 400.
    pub json_depth: NonZeroUsize,
    /// How many elements JSON may have in all; 400.
    pub json_elements: NonZeroUsize,
    /// How many requests that only look a caller may send in a second, on average; 429. Where nobody is asked for a name there
    /// is no limit unless this is given.
    pub reads_per_second: Option<NonZeroU32>,
    /// As many of those that change something.
    pub writes_per_second: Option<NonZeroU32>,
    /// How many requests of all callers are answered at once; 503.
    pub requests_at_once: NonZeroUsize,
    /// How many of one caller's; 503. Where nobody is asked for a name there is no limit unless this is given.
    pub requests_at_once_each: Option<NonZeroUsize>,
    /// How many bytes of bodies and of answers that were not taken yet one caller may have at once; 503.
    pub bytes_in_flight_each: NonZeroUsize,
    /// How many wrong passwords for one name from one address are tried in a minute, on average; ten times as many for all names
    /// there, and tokens; 429.
    pub guesses_per_minute: NonZeroU32,
}

impl Default for Limits {
    fn default() -> Self {
        let size = |bytes: usize| NonZeroUsize::MIN.saturating_add(bytes - 1);
        Limits {
            url: size(8 << 10),
            headers: size(32 << 10),
            body: None,
            document: size(64 << 10),
            page: size(4 << 20),
            json_depth: size(64),
            json_elements: size(200_000),
            reads_per_second: None,
            writes_per_second: None,
            requests_at_once: size(2048),
            requests_at_once_each: None,
            bytes_in_flight_each: size(32 << 20),
            guesses_per_minute: NonZeroU32::MIN.saturating_add(59),
        }
    }
}

/// What a caller with a name has where nothing is configured: more than any tool of an administrator's sends.
const READS_PER_SECOND: NonZeroU32 = NonZeroU32::MIN.saturating_add(1999);
/// The same, of requests that change something.
const WRITES_PER_SECOND: NonZeroU32 = NonZeroU32::MIN.saturating_add(499);
/// The same, of requests that are answered at once.
const AT_ONCE_EACH: NonZeroUsize = NonZeroUsize::MIN.saturating_add(511);
/// How many may be sent at once after a rest, in seconds of their pace.
const BURST: f64 = 4.0;
/// Of how many callers is known how much they sent, twice.
const CALLERS: usize = 10_000;

/// Who has how much of it now.
#[derive(Debug)]
pub(crate) struct Limiter {
    pub(crate) limits: Limits,
    sent: Mutex<Recent<(String, bool), Bucket>>,
    each: Crowd,
    flight: Flight,
    all: Arc<Semaphore>,
    guesses: Arc<Guesses>,
}

/// A request that is being answered, as long as it is kept.
#[derive(Debug)]
pub(crate) struct Seat {
    _all: OwnedSemaphorePermit,
    _each: Option<Place>,
    who: String,
    flight: Flight,
    at_most: usize,
    /// The bytes of the request's body, and of what is made of them.
    body: Mutex<Option<Held>>,
}

/// Where the seat of a request is put once it is known whose it is.
pub(crate) type SeatOf = Arc<OnceLock<Seat>>;

impl Limiter {
    pub(crate) fn new(limits: Limits) -> Self {
        Limiter {
            limits,
            sent: Mutex::new(Recent::of(CALLERS)),
            each: Crowd::default(),
            flight: Flight::default(),
            all: Arc::new(Semaphore::new(limits.requests_at_once.get())),
            guesses: Arc::new(Guesses::new(limits.guesses_per_minute)),
        }
    }

    /// Refuses what is too long to be looked at.
    pub(crate) fn check_head(&self, uri: &Uri, headers: &http::HeaderMap) -> Result<(), ApiError> {
        let query = uri.query().map_or(0, |query| query.len() + 1);
        if uri.path().len() + query > self.limits.url.get() {
            let why = format!("the URL is longer than {} bytes", self.limits.url);
            return Err(ApiError::protocol(StatusCode::URI_TOO_LONG, why));
        }
        let line = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            name.as_str().len() + value.len() + 4
        };
        if headers.iter().map(line).sum::<usize>() > self.limits.headers.get() {
            let why = format!("the headers are longer than {} bytes in all", self.limits.headers);
            return Err(ApiError::protocol(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, why));
        }
        Ok(())
    }

    /// Gives the caller's request a seat.
    ///
    /// # Errors
    ///
    /// 429, when the caller sent too many lately; 503, when too many are being answered.
    pub(crate) fn seat(&self, caller: &Caller, method: &Method) -> Result<Seat, ApiError> {
        self.count(caller, method)?;
        let each = self.limits.requests_at_once_each;
        let each = each.or(caller.user().map(|_| AT_ONCE_EACH));
        let own = match each {
            Some(each) => {
                let place = self.each.enter(caller.user().unwrap_or_default(), each.get());
                let why = || {
                    format!(
                        "{each} requests of yours are being answered, and that is all there may be"
                    )
                };
                Some(place.ok_or_else(|| busy(why()))?)
            }
            None => None,
        };
        let all = self.all.clone().try_acquire_owned();
        let all = all.map_err(|_| busy("too many requests are being answered".to_owned()))?;
        Ok(Seat {
            _all: all,
            _each: own,
            who: caller.user().unwrap_or_default().to_owned(),
            flight: self.flight.clone(),
            at_most: self.limits.bytes_in_flight_each.get(),
            body: Mutex::default(),
        })
    }

    fn count(&self, caller: &Caller, method: &Method) -> Result<(), ApiError> {
        let looks = method.is_safe();
        let (configured, usual, what) = if looks {
            (self.limits.reads_per_second, READS_PER_SECOND, "look")
        } else {
            (self.limits.writes_per_second, WRITES_PER_SECOND, "change something")
        };
        let Some(limit) = configured.or(caller.user().map(|_| usual)) else { return Ok(()) };
        let per_second = f64::from(limit.get());
        let pace = Pace { per_second, burst: per_second * BURST };
        let (key, now) = ((caller.user().unwrap_or_default().to_owned(), looks), Instant::now());
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = sent.get(&key, || Bucket::full(pace, now)).take(pace, now);
        drop(sent);
        taken.map_err(|left| {
            let why = format!(
                "you sent more requests that {what} than {limit} in a second; try again in a while"
            );
            let refusal = ApiError::protocol(StatusCode::TOO_MANY_REQUESTS, why);
            refusal.again_in(left.as_secs() + 1)
        })
    }

    /// Where the request comes from that shows a proof.
    pub(crate) fn door(&self, request: &Parts) -> Door {
        Door { guesses: self.guesses.clone(), from: source(request) }
    }
}

/// Answers below this size are not counted: there are no more of them than a caller has connections.
const SMALL: usize = 4 << 10;
/// What a stream counts beside the bytes that wait to be taken: its next part is made while the one before waits.
const STREAM: usize = 128 << 10;
/// How often a body is in memory while it is worked on: its text, what is made of it, and what is stored.
const COPIES: usize = 3;
/// What one element of a JSON text takes in memory at most, beside its text.
const BYTES_AN_ELEMENT: usize = 320;

impl Seat {
    /// Counts a body of so many bytes and elements for the caller, until the request is answered.
    ///
    /// # Errors
    ///
    /// 503, when the caller has too many bytes in flight.
    pub(crate) fn hold_body(&self, bytes: usize, elements: usize) -> Result<(), ApiError> {
        let bytes =
            bytes.saturating_mul(COPIES).saturating_add(elements.saturating_mul(BYTES_AN_ELEMENT));
        let mut body = self.body.lock().unwrap_or_else(PoisonError::into_inner);
        *body = None;
        *body = Some(self.hold(bytes)?);
        Ok(())
    }

    /// The answer, counted for the caller until it was taken. One to a request that only looks is refused instead, when the caller
    /// has too many bytes in flight.
    pub(crate) async fn hold_answer(&self, answer: Response, looks: bool) -> Response {
        let size = answer.body().size_hint().exact();
        let bytes = match size {
            Some(bytes) => usize::try_from(bytes).unwrap_or(usize::MAX),
            None => STREAM,
        };
        if bytes < SMALL {
            return answer;
        }
        let held = match self.hold(bytes) {
            Ok(held) => held,
            Err(why) if looks => return why.into_response(),
            Err(_) => self.flight.hold_anyway(&self.who, bytes),
        };
        let (head, body) = answer.into_parts();
        let body = match size {
            Some(_) => match to_bytes(body, usize::MAX).await {
                Ok(bytes) => Body::from(held.with(bytes)),
                Err(why) => {
                    return ApiError::broken(format!("the answer broke off: {why}"))
                        .into_response();
                }
            },
            None => {
                let (flight, who) = (self.flight.clone(), self.who.clone());
                Body::from_stream(body.into_data_stream().map_ok(move |part| {
                    let _counts_while_the_stream_lasts = &held;
                    match part.len() {
                        ..SMALL => part,
                        bytes => flight.hold_anyway(&who, bytes).with(part),
                    }
                }))
            }
        };
        Response::from_parts(head, body)
    }

    fn hold(&self, bytes: usize) -> Result<Held, ApiError> {
        let why = || {
            let most = self.at_most;
            busy(format!("more than {most} bytes of yours are in flight; take your answers first"))
        };
        self.flight.hold(&self.who, bytes, self.at_most).ok_or_else(why)
    }
}

fn busy(why: String) -> ApiError {
    ApiError::protocol(StatusCode::SERVICE_UNAVAILABLE, why).again_in(1)
}

/// The address that the request comes from: what the proxy before us says where it is believed, for only its last word is its own.
fn source(request: &Parts) -> IpAddr {
    let believed =
        matches!(request.extensions.get::<(Scheme, Forwarded)>(), Some((_, Forwarded::Believed)));
    let told = request.headers.get_all("x-forwarded-for").iter().next_back();
    let told = told.and_then(|value| value.to_str().ok()?.rsplit(',').next()?.trim().parse().ok());
    let connected = request.extensions.get::<ConnectInfo<SocketAddr>>();
    let connected = connected.map(|ConnectInfo(from)| from.ip());
    told.filter(|_| believed).or(connected).unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
}

#[cfg(test)]
mod tests;
