//! Tickets for WebSockets. A page in a browser can send no header with the request that opens a WebSocket, so the URL carries a ticket.
//!
//! A ticket stands for the credentials of the request that it was issued to. It opens one path, once, for a short time, and is kept in the
//! memory of this process only.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{FromRequestParts, Request};
use http::header::UPGRADE;
use http::request::Parts;
use http::{HeaderMap, HeaderName, StatusCode, Uri};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::auth::CREDENTIAL_HEADERS;
use crate::{ApiError, Query};

/// How long a ticket is valid.
pub const TICKET_LIFETIME: Duration = Duration::from_mins(5);
/// The most tickets that are kept. The oldest is dropped for a new one.
const MAX_TICKETS: usize = 4096;
/// The query parameter with the ticket.
const PARAMETER: &str = "ticket";

/// The tickets that are not used yet, by their digests.
#[derive(Debug, Default)]
pub(crate) struct SocketTickets(Mutex<HashMap<[u8; 32], SocketTicket>>);

struct SocketTicket {
    path: String,
    proofs: HeaderMap,
    issued_at: Instant,
}

impl fmt::Debug for SocketTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketTicket").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Marks a request whose credentials came from a ticket. No page has a ticket that its user did not give it, so its origin does not matter.
#[derive(Clone, Copy, Debug)]
pub struct OpenedByTicket;

impl SocketTickets {
    fn issue(&self, path: String, proofs: HeaderMap, now: Instant) -> String {
        // 244 random bits.
        let ticket = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        let mut tickets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tickets.retain(|_, ticket| now.duration_since(ticket.issued_at) < TICKET_LIFETIME);
        if tickets.len() >= MAX_TICKETS {
            let oldest = tickets.iter().min_by_key(|(_, ticket)| ticket.issued_at);
            let oldest = oldest.map(|(digest, _)| *digest);
            if let Some(oldest) = oldest {
                tickets.remove(&oldest);
            }
        }
        tickets.insert(digest(&ticket), SocketTicket { path, proofs, issued_at: now });
        ticket
    }

    /// Takes the credentials of a ticket, if it is valid for this path. Any use ends the ticket.
    fn redeem(&self, ticket: &str, path: &str, now: Instant) -> Option<HeaderMap> {
        let mut tickets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = tickets.remove(&digest(ticket))?;
        let is_valid = found.path == path && now.duration_since(found.issued_at) < TICKET_LIFETIME;
        is_valid.then_some(found.proofs)
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
        let proofs = self.redeem(&ticket, request.uri().path(), Instant::now());
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

fn digest(ticket: &str) -> [u8; 32] {
    Sha256::digest(ticket.as_bytes()).into()
}

/// Issues tickets to the caller of a request.
pub struct TicketIssuer {
    tickets: Arc<SocketTickets>,
    /// Contains only the headers with credentials.
    proofs: HeaderMap,
}

impl TicketIssuer {
    /// Issues a ticket for a WebSocket at `path`; returns the path with the ticket.
    pub fn issue(&self, path: &str) -> String {
        let ticket = self.tickets.issue(path.to_owned(), self.proofs.clone(), Instant::now());
        format!("{path}?{PARAMETER}={ticket}")
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

    #[test]
    fn a_ticket_opens_its_path_once_and_for_a_short_time() {
        let (tickets, now) = (SocketTickets::default(), Instant::now());
        let issue = |at| tickets.issue("/a".to_owned(), with_token("t"), at);
        let ticket = issue(now);
        let later = now + TICKET_LIFETIME - Duration::from_secs(1);
        assert_eq!(tickets.redeem(&ticket, "/a", later), Some(with_token("t")));
        assert_eq!(tickets.redeem(&ticket, "/a", later), None, "it was used");
        let ticket = issue(now);
        assert_eq!(tickets.redeem(&ticket, "/b", now), None, "it is for another path");
        assert_eq!(tickets.redeem(&ticket, "/a", now), None, "the other path used it");
        assert_eq!(tickets.redeem(&issue(now), "/a", now + TICKET_LIFETIME), None);
        assert_eq!(tickets.redeem("", "/a", now), None);
    }

    #[test]
    fn the_number_of_tickets_is_limited() {
        let (tickets, now) = (SocketTickets::default(), Instant::now());
        let issue = |at| tickets.issue("/a".to_owned(), HeaderMap::new(), at);
        let (first, second) = (issue(now), issue(now + Duration::from_millis(1)));
        for _ in 0..MAX_TICKETS - 1 {
            issue(now + Duration::from_millis(2));
        }
        assert_eq!(tickets.redeem(&first, "/a", now), None, "it was the oldest");
        assert!(tickets.redeem(&second, "/a", now).is_some());
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
        let tickets = SocketTickets::default();
        let issue = || tickets.issue("/a".to_owned(), with_token("t"), Instant::now());
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
