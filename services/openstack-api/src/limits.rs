//! Limits on the requests of callers, so that no caller takes resources away from the others.

mod bucket;
mod bytes_in_flight;
mod guesses;
mod json_size;
mod place_counts;
mod recent;

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
use bytes_in_flight::{BytesInFlight, HeldBytes};
use futures::TryStreamExt;
pub use guesses::{CredentialSource, Guess, Guesses, Ticket};
pub(crate) use json_size::check as check_shape;
pub use place_counts::{Place, PlaceCounts};
use recent::RecentMap;

/// The section `[api.limits]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The longest URL, in bytes; a longer one is answered with 414.
    pub url: NonZeroUsize,
    /// The total size of the headers of a request, in bytes; 431.
    pub headers: NonZeroUsize,
    /// The largest body, in bytes, for routes without a limit of their own; 413. `None` selects the default of the API.
    pub body: Option<NonZeroUsize>,
    /// The largest document that a caller may store, in bytes of JSON after a patch; 400.
    pub document: NonZeroUsize,
    /// A page of a list ends early after this many bytes, with a link to the next page.
    pub page: NonZeroUsize,
    /// The deepest nesting of a JSON body; 400.
    pub json_depth: NonZeroUsize,
    /// The most elements in a JSON body; 400.
    pub json_elements: NonZeroUsize,
    /// How many reading requests a caller may send per second, on average; 429. `None` selects the default, which applies only to
    /// authenticated callers.
    pub reads_per_second: Option<NonZeroU32>,
    /// How many changing requests a caller may send per second, like `reads_per_second`.
    pub writes_per_second: Option<NonZeroU32>,
    /// How many requests of all callers are processed at once; 503.
    pub requests_at_once: NonZeroUsize,
    /// How many requests of one caller are processed at once; 503. `None` selects the default, which applies only to authenticated callers.
    pub requests_at_once_each: Option<NonZeroUsize>,
    /// How many bytes of request bodies and of unread answers one caller may have in flight; 503.
    pub bytes_in_flight_each: NonZeroUsize,
    /// How many wrong passwords for one name from one address are verified per minute, on average; ten times as many for all names from one
    /// address, and for tokens; 429.
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

/// The default for authenticated callers: more than the tools of any administrator send.
const READS_PER_SECOND: NonZeroU32 = NonZeroU32::MIN.saturating_add(1999);
/// The default for requests that change something.
const WRITES_PER_SECOND: NonZeroU32 = NonZeroU32::MIN.saturating_add(499);
/// The default for requests that are processed at once.
const AT_ONCE_EACH: NonZeroUsize = NonZeroUsize::MIN.saturating_add(511);
/// How many requests a caller may send in a burst after a pause, in seconds of the average rate.
const BURST: f64 = 4.0;
/// The request rates of this many callers are remembered, at most twice as many.
const CALLERS: usize = 10_000;

/// The limits, and how much each caller uses at present.
#[derive(Debug)]
pub(crate) struct Limiter {
    pub(crate) limits: Limits,
    sent: Mutex<RecentMap<(String, bool), Bucket>>,
    each: PlaceCounts,
    flight: BytesInFlight,
    all: Arc<Semaphore>,
    guesses: Arc<Guesses>,
}

/// Permission to process a request. The limits count the request until its seat is dropped.
#[derive(Debug)]
pub(crate) struct RequestPermit {
    _all: OwnedSemaphorePermit,
    _each: Option<Place>,
    who: String,
    flight: BytesInFlight,
    at_most: usize,
    /// The bytes of the request's body, and of the values parsed from the body.
    body: Mutex<Option<HeldBytes>>,
}

/// Holds the seat of a request, once authentication has shown who the caller is.
pub(crate) type PermitSlot = Arc<OnceLock<RequestPermit>>;

impl Limiter {
    pub(crate) fn new(limits: Limits) -> Self {
        Limiter {
            limits,
            sent: Mutex::new(RecentMap::of(CALLERS)),
            each: PlaceCounts::default(),
            flight: BytesInFlight::default(),
            all: Arc::new(Semaphore::new(limits.requests_at_once.get())),
            guesses: Arc::new(Guesses::new(limits.guesses_per_minute)),
        }
    }

    /// Refuses a URL or headers that are too long.
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
            let why = format!("the headers are longer than {} bytes in total", self.limits.headers);
            return Err(ApiError::protocol(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, why));
        }
        Ok(())
    }

    /// Gives a request of the caller a seat.
    ///
    /// # Errors
    ///
    /// 429 if the caller has sent too many requests lately; 503 if too many requests are being processed.
    pub(crate) fn seat(&self, caller: &Caller, method: &Method) -> Result<RequestPermit, ApiError> {
        self.count(caller, method)?;
        let each = self.limits.requests_at_once_each;
        let each = each.or(caller.user().map(|_| AT_ONCE_EACH));
        let own = match each {
            Some(each) => {
                let place = self.each.enter(caller.user().unwrap_or_default(), each.get());
                let why = || format!("you have {each} requests in progress, which is the limit");
                Some(place.ok_or_else(|| busy(why()))?)
            }
            None => None,
        };
        let all = self.all.clone().try_acquire_owned();
        let all = all.map_err(|_| busy("too many requests are in progress".to_owned()))?;
        Ok(RequestPermit {
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
            (self.limits.reads_per_second, READS_PER_SECOND, "read")
        } else {
            (self.limits.writes_per_second, WRITES_PER_SECOND, "write")
        };
        let Some(limit) = configured.or(caller.user().map(|_| usual)) else { return Ok(()) };
        let per_second = f64::from(limit.get());
        let pace = Pace { per_second, burst: per_second * BURST };
        let (key, now) = ((caller.user().unwrap_or_default().to_owned(), looks), Instant::now());
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = sent.get(&key, || Bucket::full(pace, now)).take(pace, now);
        drop(sent);
        taken.map_err(|left| {
            let why =
                format!("you sent more than {limit} {what} requests in a second: retry later");
            let refusal = ApiError::protocol(StatusCode::TOO_MANY_REQUESTS, why);
            refusal.retry_after(left.as_secs() + 1)
        })
    }

    /// The address that a request with credentials comes from, together with the counters of wrong guesses.
    pub(crate) fn door(&self, request: &Parts) -> CredentialSource {
        CredentialSource { guesses: self.guesses.clone(), from: source(request) }
    }
}

/// Smaller answers are not counted, since a caller has at most one for each connection.
const SMALL: usize = 4 << 10;
/// The bytes that a streamed answer counts in addition to the bytes that wait to be read: the next part is produced while the previous one waits.
const STREAM: usize = 128 << 10;
/// How often a body is in memory while it is processed: as text, as parsed value and as stored document.
const COPIES: usize = 3;
/// The most memory that an element of a JSON text takes once it is parsed, in addition to its text.
const BYTES_AN_ELEMENT: usize = 320;

impl RequestPermit {
    /// Counts a body with this many bytes and elements for the caller, until the request is answered.
    ///
    /// # Errors
    ///
    /// 503 if the caller has too many bytes in flight.
    pub(crate) fn hold_body(&self, bytes: usize, elements: usize) -> Result<(), ApiError> {
        let bytes =
            bytes.saturating_mul(COPIES).saturating_add(elements.saturating_mul(BYTES_AN_ELEMENT));
        let mut body = self.body.lock().unwrap_or_else(PoisonError::into_inner);
        *body = None;
        *body = Some(self.hold(bytes)?);
        Ok(())
    }

    /// Counts an answer for the caller until the client has read it. If the caller has too many bytes in flight, the answer to a reading
    /// request is replaced by a refusal; the answer to a changing request is always sent, because the change has already happened.
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
                    return ApiError::broken(format!("the answer was aborted: {why}"))
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

    fn hold(&self, bytes: usize) -> Result<HeldBytes, ApiError> {
        let why = || {
            let most = self.at_most;
            busy(format!("you have more than {most} bytes in flight: read your answers first"))
        };
        self.flight.hold(&self.who, bytes, self.at_most).ok_or_else(why)
    }
}

fn busy(why: String) -> ApiError {
    ApiError::protocol(StatusCode::SERVICE_UNAVAILABLE, why).retry_after(1)
}

/// The address that the request comes from. Behind a trusted proxy this is the last entry of `X-Forwarded-For`: the proxy wrote that entry
/// itself, while the client may have written the entries before it.
fn source(request: &Parts) -> IpAddr {
    let believed =
        matches!(request.extensions.get::<(Scheme, Forwarded)>(), Some((_, Forwarded::Believed)));
    let reported = request.headers.get_all("x-forwarded-for").iter().next_back();
    let reported =
        reported.and_then(|value| value.to_str().ok()?.rsplit(',').next()?.trim().parse().ok());
    let connected = request.extensions.get::<ConnectInfo<SocketAddr>>();
    let connected = connected.map(|ConnectInfo(from)| from.ip());
    reported.filter(|_| believed).or(connected).unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
}

#[cfg(test)]
mod tests;
