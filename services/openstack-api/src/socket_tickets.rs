//! Tickets for WebSockets. A page in a browser can send no header with the request that opens a WebSocket, so the URL carries a ticket.
//!
//! A ticket contains the credentials of the request that it was issued to. They are sealed with the keys of the service, so each of its
//! processes can open them. A ticket opens one path for a short time, and at each process once.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{FromRequestParts, Request};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::header::UPGRADE;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use jiff::Timestamp;
use sealing::{Keyring, SealError, SealingKeys};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::auth::CREDENTIAL_HEADERS;
use crate::{ApiError, Query};

/// How long a ticket is valid.
pub const TICKET_LIFETIME: Duration = Duration::from_mins(5);
/// The most used tickets that are remembered. With more, the ticket that expires first is forgotten.
const MAX_USED: usize = 4096;
/// The query parameter with the ticket.
const PARAMETER: &str = "ticket";

/// Opens tickets, and remembers which were used, by their digests, until they expire.
pub(crate) struct SocketTickets {
    /// `None` if the system gives no random numbers; then there are no tickets.
    keys: Option<Arc<Keyring>>,
    used: Mutex<HashMap<[u8; 32], Timestamp>>,
}

/// The content of a ticket, in JSON. Its path is the place that it is sealed for.
#[derive(Serialize, Deserialize)]
struct TicketContent {
    expires_at: Timestamp,
    /// The headers with credentials.
    proofs: Vec<(String, String)>,
}

impl fmt::Debug for SocketTickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketTickets").finish_non_exhaustive()
    }
}

/// Marks a request whose credentials came from a ticket. No page has a ticket that its user did not give it, so its origin does not matter.
#[derive(Clone, Copy, Debug)]
pub struct OpenedByTicket;

impl SocketTickets {
    /// Tickets that are sealed with these keys. With `None`, only this process can open them.
    pub(crate) fn new(keys: Option<Arc<Keyring>>) -> Self {
        let own = || {
            let text = SealingKeys::generate().ok()?;
            SealingKeys::parse(&text).ok().map(Arc::<Keyring>::from)
        };
        SocketTickets { keys: keys.or_else(own), used: Mutex::default() }
    }

    fn issue(&self, path: &str, proofs: &HeaderMap, now: Timestamp) -> Result<String, SealError> {
        let text = |(name, value): (&HeaderName, &HeaderValue)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        };
        let expires_at = now.saturating_add(TICKET_LIFETIME).unwrap_or(Timestamp::MAX);
        let content =
            TicketContent { expires_at, proofs: proofs.iter().filter_map(text).collect() };
        // Texts and a time always make a JSON text.
        let content = serde_json::to_vec(&content).unwrap_or_default();
        let keys = self.keys.as_ref().ok_or(SealError::NoRandom)?;
        Ok(BASE64_URL_SAFE_NO_PAD.encode(keys.seal(&place(path), &content)?))
    }

    /// Takes the credentials of a ticket, if it is valid for this path and was not used here.
    fn redeem(&self, ticket: &str, path: &str, now: Timestamp) -> Option<HeaderMap> {
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(ticket).ok()?;
        let sealed = String::from_utf8(sealed).ok()?;
        let content = self.keys.as_ref()?.open_sealed(&place(path), &sealed).ok()?;
        let content: TicketContent = serde_json::from_slice(&content).ok()?;
        if content.expires_at <= now || !self.is_first_use(&sealed, content.expires_at, now) {
            return None;
        }
        let header = |(name, value): &(String, String)| {
            let mut value = HeaderValue::from_str(value).ok()?;
            value.set_sensitive(true);
            Some((HeaderName::from_str(name).ok()?, value))
        };
        Some(content.proofs.iter().filter_map(header).collect())
    }

    /// Notes the use of a ticket. Returns whether it was the first one.
    fn is_first_use(&self, sealed: &str, expires_at: Timestamp, now: Timestamp) -> bool {
        let digest: [u8; 32] = Sha256::digest(sealed.as_bytes()).into();
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.retain(|_, expires_at| *expires_at > now);
        if used.contains_key(&digest) {
            return false;
        }
        if used.len() >= MAX_USED {
            let first = used.iter().min_by_key(|(_, expires_at)| **expires_at);
            let first = first.map(|(digest, _)| *digest);
            if let Some(first) = first {
                used.remove(&first);
            }
        }
        used.insert(digest, expires_at);
        true
    }

    /// Replaces the credentials of a request for a WebSocket by those of the ticket in its URL, if the URL has one.
    ///
    /// # Errors
    ///
    /// 401 if the ticket is not valid.
    pub(crate) fn admit(&self, request: &mut Request) -> Result<(), ApiError> {
        if !request.headers().contains_key(UPGRADE) {
            return Ok(());
        }
        let mut query = Query::parse(request.uri().query().unwrap_or_default())?;
        let Some(ticket) = query.take(PARAMETER) else { return Ok(()) };
        let proofs = self.redeem(&ticket, request.uri().path(), Timestamp::now());
        let why = "the ticket in the URL is unknown, used or expired: get another one";
        let proofs = proofs.ok_or_else(|| ApiError::protocol(StatusCode::UNAUTHORIZED, why))?;
        let target = format!("{}{}", request.uri().path(), query.encode());
        let mut parts = request.uri().clone().into_parts();
        parts.path_and_query = target.parse().ok();
        if let Ok(uri) = Uri::from_parts(parts) {
            *request.uri_mut() = uri;
        }
        for name in CREDENTIAL_HEADERS {
            request.headers_mut().remove(name);
        }
        request.headers_mut().extend(proofs);
        request.extensions_mut().insert(OpenedByTicket);
        Ok(())
    }
}

/// The place that a ticket for this path is sealed for.
fn place(path: &str) -> String {
    format!("ticket of {path}")
}

/// Issues tickets to the caller of a request.
pub struct TicketIssuer {
    tickets: Arc<SocketTickets>,
    /// Contains only the headers with credentials.
    proofs: HeaderMap,
}

impl TicketIssuer {
    /// Issues a ticket for a WebSocket at `path`; returns the path with the ticket.
    ///
    /// # Errors
    ///
    /// 500 if the ticket cannot be sealed.
    pub fn issue(&self, path: &str) -> Result<String, ApiError> {
        let ticket = self.tickets.issue(path, &self.proofs, Timestamp::now());
        let ticket = ticket.map_err(|why| ApiError::broken(format!("no ticket: {why}")))?;
        Ok(format!("{path}?{PARAMETER}={ticket}"))
    }
}

impl<S: Sync> FromRequestParts<S> for TicketIssuer {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let tickets = parts.extensions.get::<Arc<SocketTickets>>().cloned();
        let tickets =
            tickets.ok_or_else(|| ApiError::broken("this route is not behind apply()"))?;
        Ok(TicketIssuer { tickets, proofs: proofs(&parts.headers) })
    }
}

/// The headers with credentials.
pub(crate) fn proofs(headers: &HeaderMap) -> HeaderMap {
    let proof = |name: HeaderName| {
        let value = headers.get(&name)?.clone();
        Some((name, value))
    };
    CREDENTIAL_HEADERS.into_iter().filter_map(proof).collect()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn with_token(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(
            HeaderName::from_static("x-auth-token"),
            http::HeaderValue::from_static(value),
        )])
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn a_ticket_opens_its_path_once_and_for_a_short_time() {
        let tickets = SocketTickets::new(None);
        let issue = || tickets.issue("/a", &with_token("t"), at(0)).unwrap();
        let (ticket, end) = (issue(), i64::try_from(TICKET_LIFETIME.as_secs()).unwrap());
        assert_eq!(tickets.redeem(&ticket, "/b", at(0)), None, "it is for another path");
        assert_eq!(tickets.redeem(&ticket, "/a", at(end - 1)), Some(with_token("t")));
        assert_eq!(tickets.redeem(&ticket, "/a", at(end - 1)), None, "it was used");
        assert_eq!(tickets.redeem(&issue(), "/a", at(end)), None, "it has expired");
        for wrong in ["", "x", &BASE64_URL_SAFE_NO_PAD.encode("sealed:v1:k:x")] {
            assert_eq!(tickets.redeem(wrong, "/a", at(0)), None, "{wrong}");
        }
        assert!(!issue().contains("x-auth-token"), "it is sealed");
    }

    #[test]
    fn each_process_with_the_keys_of_a_service_opens_its_tickets() {
        let text = SealingKeys::generate().unwrap();
        let process = || SocketTickets::new(Some(SealingKeys::parse(&text).unwrap().into()));
        let (one, other, stranger) = (process(), process(), SocketTickets::new(None));
        let ticket = one.issue("/a", &with_token("t"), at(0)).unwrap();
        assert_eq!(stranger.redeem(&ticket, "/a", at(1)), None);
        assert_eq!(other.redeem(&ticket, "/a", at(1)), Some(with_token("t")));
    }

    #[test]
    fn the_number_of_used_tickets_is_limited() {
        let tickets = SocketTickets::new(None);
        let is_first =
            |number: i64| tickets.is_first_use(&number.to_string(), at(number + 9), at(0));
        let most = i64::try_from(MAX_USED).unwrap();
        assert!((0..most).all(is_first));
        assert!(!is_first(most - 1));
        assert_eq!(tickets.used.lock().unwrap().len(), MAX_USED);
        // The one that expires first is forgotten.
        assert!(is_first(most) && is_first(0));
        assert!(!tickets.is_first_use(&most.to_string(), at(most + 9), at(0)));
    }

    fn asked(uri: &str, headers: &[(&str, &str)]) -> Request {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Body::empty()).unwrap()
    }

    #[test]
    fn a_ticket_replaces_the_credentials_of_a_request() {
        let tickets = SocketTickets::new(None);
        let issue = || tickets.issue("/a", &with_token("t"), Timestamp::now()).unwrap();
        let socket = [("upgrade", "websocket"), ("authorization", "Basic b"), ("origin", "null")];
        let mut request = asked(&format!("/a?x=1&ticket={}", issue()), &socket);
        tickets.admit(&mut request).unwrap();
        assert_eq!(request.uri(), "/a?x=1");
        assert!(!request.headers().contains_key("authorization"));
        assert_eq!(request.headers()["x-auth-token"], "t");
        assert!(request.extensions().get::<OpenedByTicket>().is_some());

        let mut request = asked("/a?ticket=wrong", &socket);
        assert_eq!(tickets.admit(&mut request).unwrap_err().status, StatusCode::UNAUTHORIZED);
        // Without a ticket, and for a request that opens no WebSocket, nothing changes.
        let mut request = asked("/a", &socket);
        tickets.admit(&mut request).unwrap();
        assert!(request.extensions().get::<OpenedByTicket>().is_none());
        let uri = format!("/a?ticket={}", issue());
        let mut request = asked(&uri, &[]);
        tickets.admit(&mut request).unwrap();
        assert_eq!(request.uri(), uri.as_str());
    }
}
