//! Records a request in the audit trail: that it was requested, before it is acted on, and its result.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use audit::{Entry, NextWrite, Outcome, Refusal, Trail};
use axum::extract::{ConnectInfo, FromRequestParts, MatchedPath, Request};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use tracing::error;

use crate::{ApiError, Caller, Forwarded, RequestId};

/// Records one request. Clones record the same request. If the last clone is dropped before the answer, the client has disconnected.
#[derive(Clone)]
pub(crate) struct RequestRecorder(Arc<RequestRecord>);

struct RequestRecord {
    trail: Arc<dyn Trail>,
    known: Mutex<RecordedFacts>,
    /// The row `asked`, until the first write of the request takes it.
    next: NextWrite,
}

/// How the requests to a route are recorded.
#[derive(Clone, Copy)]
pub(crate) struct Recorded {
    /// The description of the action.
    pub(crate) action: &'static str,
    pub(crate) effect: Effect,
}

/// The effects of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// All effects are records in the database: the first write carries the row `asked`.
    Records,
    /// The row is written before the handler runs.
    Any,
}

/// The facts about the request that are known so far.
struct RecordedFacts {
    entry: Entry,
    /// Whether the trail has the row `asked`, but no row with the result yet.
    is_open: bool,
}

const ID_LENGTH: usize = "req-00000000-0000-0000-0000-000000000000".len();

impl RequestRecorder {
    pub(crate) fn begin(
        trail: &Arc<dyn Trail>,
        id: RequestId,
        request: &Request,
        forwarded: Forwarded,
    ) -> Self {
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
        let entry = Entry {
            request_id: id.to_string(),
            global_request_id: global_id(request.headers()).unwrap_or_default(),
            source: source(request.headers(), peer.map(|peer| peer.0.ip()), forwarded),
            method: request.method().to_string(),
            ..Entry::new(Outcome::Asked)
        };
        let known = Mutex::new(RecordedFacts { entry, is_open: false });
        RequestRecorder(Arc::new(RequestRecord {
            trail: trail.clone(),
            known,
            next: NextWrite::default(),
        }))
    }

    /// The id under which other services know the request: the id the sender gave it, or else its own id.
    pub(crate) fn known_as(&self) -> String {
        let known = self.0.lock();
        let Entry { request_id, global_request_id, .. } = &known.entry;
        if global_request_id.is_empty() { request_id.clone() } else { global_request_id.clone() }
    }

    pub(crate) fn trail(&self) -> &Arc<dyn Trail> {
        &self.0.trail
    }

    pub(crate) fn is_by(&self, caller: &Caller) {
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let roles = match caller.identity() {
            Some(identity) => {
                let mut roles: Vec<&str> = identity.roles.iter().map(String::as_str).collect();
                roles.sort_unstable();
                roles.join(",")
            }
            None => text(caller.role().map(crate::Role::as_str)),
        };
        let entry = &mut self.0.lock().entry;
        entry.user_id = text(caller.user());
        entry.user_name = text(caller.name());
        entry.project_id = text(caller.project());
        entry.roles = roles;
        entry.service_user_id =
            text(caller.forwarding_service().map(|service| service.user_id.as_str()));
    }

    /// Runs the request, whose first write may carry its row.
    pub(crate) async fn during<F: Future>(&self, request: F) -> F::Output {
        self.0.next.during(request).await
    }

    /// Records that the request is about to be acted on. Call this before any effect.
    ///
    /// # Errors
    ///
    /// The row cannot be written; then the request must not be acted on.
    pub(crate) async fn ask(
        &self,
        Recorded { action, effect }: Recorded,
        parts: &Parts,
    ) -> Result<(), ApiError> {
        let route = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
        let entry = {
            let mut known = self.0.lock();
            known.entry.route = route.to_owned();
            known.entry.target = target(route, parts.uri.path());
            known.entry.action = action.to_owned();
            known.is_open = true;
            known.entry.clone()
        };
        if effect == Effect::Records && self.0.trail.joins_next_write() {
            self.0.next.hold(entry);
            return Ok(());
        }
        let recorded = self.0.trail.record(entry).await;
        recorded.map_err(|why| {
            self.0.lock().is_open = false;
            ApiError::unrecorded(&why)
        })
    }

    /// Records the status of the answer. The answer does not wait for the row: the row before the effect already tells what was done, and
    /// the client gets its answer also if the row cannot be written.
    pub(crate) fn end(&self, status: StatusCode) {
        let is_refusal = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let mut known = self.0.lock();
        if known.is_open {
            known.is_open = false;
            let status = status.as_u16();
            let entry = Entry { outcome: Outcome::Answered, status, ..known.entry.clone() };
            self.0.record_end(entry);
        } else if is_refusal {
            self.0.trail.refused(refusal(&known.entry, status));
        }
    }
}

/// Records the end of something that outlives the answer to the request, such as an upgraded connection.
pub struct ConnectionEndRecorder(RequestRecorder);

impl ConnectionEndRecorder {
    /// Records the end, with `action` as its description. A failure is only logged.
    pub async fn ended(self, action: &str) {
        let status = StatusCode::SWITCHING_PROTOCOLS.as_u16();
        let entry = self.0.0.lock().entry.clone();
        let entry =
            Entry { outcome: Outcome::Answered, status, action: action.to_owned(), ..entry };
        if let Err(why) = self.0.0.trail.record(entry).await {
            error!("cannot record the end of a connection in the audit trail: {why}");
        }
    }
}

impl<S: Sync> FromRequestParts<S> for ConnectionEndRecorder {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let watch = parts.extensions.get::<RequestRecorder>().cloned();
        let watch =
            watch.ok_or_else(|| ApiError::broken("requests to this route are not recorded"))?;
        Ok(ConnectionEndRecorder(watch))
    }
}

impl RequestRecord {
    fn lock(&self) -> MutexGuard<'_, RecordedFacts> {
        // A panic while the lock is held leaves the facts intact, so the poisoned lock can be used.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RequestRecord {
    /// Records the end of the request, after the row `asked` of a request that wrote nothing.
    fn record_end(&self, entry: Entry) {
        for row in self.next.take().into_iter().chain([entry]) {
            self.trail.record_later(row);
        }
    }
}

impl Drop for RequestRecord {
    fn drop(&mut self) {
        let known = self.known.get_mut().unwrap_or_else(PoisonError::into_inner);
        if known.is_open {
            let entry = Entry { outcome: Outcome::Abandoned, ..known.entry.clone() };
            self.record_end(entry);
        }
    }
}

fn refusal(entry: &Entry, status: StatusCode) -> Refusal {
    Refusal {
        status: status.as_u16(),
        source: entry.source.clone(),
        user_id: entry.user_id.clone(),
        user_name: entry.user_name.clone(),
        project_id: entry.project_id.clone(),
    }
}

/// The path parameters as `NAME=VALUE`, separated by spaces. A path contains no spaces.
fn target(route: &str, path: &str) -> String {
    let parts = route.split('/').zip(path.split('/'));
    let named = parts.filter_map(|(name, value)| {
        let name = name.strip_prefix('{')?.strip_suffix('}')?;
        Some(format!("{name}={value}"))
    });
    named.collect::<Vec<_>>().join(" ")
}

/// The id that the sender gave the request, if the id is valid (the same check as in oslo.middleware).
fn global_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get("x-openstack-request-id")?.to_str().ok()?;
    let rest = id.strip_prefix("req-").filter(|_| id.len() == ID_LENGTH)?;
    uuid::Uuid::parse_str(rest).ok().map(|_| id.to_owned())
}

/// The address of the caller: the peer, preceded by the client that a trusted proxy names.
fn source(headers: &HeaderMap, peer: Option<IpAddr>, forwarded: Forwarded) -> String {
    let shown = |address: IpAddr| address.to_canonical().to_string();
    let peer = peer.map(shown).unwrap_or_default();
    let client = match forwarded {
        Forwarded::Believed => forwarded_for(headers).map(shown),
        Forwarded::Ignored => None,
    };
    match client {
        Some(client) if peer.is_empty() => client,
        Some(client) => format!("{client}, {peer}"),
        None => peer,
    }
}

/// The address that the nearest proxy has seen: the last entry of `X-Forwarded-For`, or of `for` in `Forwarded` (RFC 7239). Any client may
/// have written the entries before the last.
fn forwarded_for(headers: &HeaderMap) -> Option<IpAddr> {
    let last = |name: &str| headers.get_all(name).iter().next_back()?.to_str().ok();
    let named = |part: &str| {
        let (name, value) = part.trim().split_once('=')?;
        name.eq_ignore_ascii_case("for").then(|| value.trim().to_owned())
    };
    let found = match (last("x-forwarded-for"), last("forwarded")) {
        (Some(list), _) => list.rsplit(',').next()?.trim().to_owned(),
        (None, Some(list)) => list.rsplit(',').next()?.split(';').find_map(named)?,
        (None, None) => return None,
    };
    let bare = found.trim_matches('"');
    let whole = || bare.parse::<SocketAddr>().ok().map(|address| address.ip());
    bare.trim_matches(['[', ']']).parse().ok().or_else(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_parameters_are_recorded_with_their_names() {
        let route = "/v1/clusters/{cluster}/nodegroups/{nodegroup}";
        assert_eq!(target(route, "/v1/clusters/c%201/nodegroups/g"), "cluster=c%201 nodegroup=g");
        assert_eq!(target("/v1/clusters", "/v1/clusters"), "");
    }

    #[track_caller]
    fn comes_from(headers: &[(&'static str, &str)], forwarded: Forwarded, want: &str) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        let peer = "::ffff:10.0.0.2".parse().ok();
        assert_eq!(source(&map, peer, forwarded), want);
    }

    #[test]
    fn the_client_named_by_a_proxy_is_recorded_only_if_trusted() {
        let list = [("x-forwarded-for", "192.0.2.66, 203.0.113.9")];
        comes_from(&list, Forwarded::Ignored, "10.0.0.2");
        // The client wrote the first address itself; only the second one was seen by the proxy.
        comes_from(&list, Forwarded::Believed, "203.0.113.9, 10.0.0.2");
        let twice = [("x-forwarded-for", "192.0.2.66"), ("x-forwarded-for", "203.0.113.9")];
        comes_from(&twice, Forwarded::Believed, "203.0.113.9, 10.0.0.2");
        for (value, want) in [
            ("for=192.0.2.66, for=203.0.113.9;proto=https", "203.0.113.9, 10.0.0.2"),
            ("proto=https; For=\"[2001:db8::9]:4711\"", "2001:db8::9, 10.0.0.2"),
            ("for=_hidden", "10.0.0.2"),
        ] {
            comes_from(&[("forwarded", value)], Forwarded::Believed, want);
        }
        comes_from(&[], Forwarded::Believed, "10.0.0.2");
    }

    #[test]
    fn a_request_id_of_the_sender_is_used_if_valid() {
        let given = |id: &'static str| {
            global_id(&HeaderMap::from_iter([(
                http::HeaderName::from_static("x-openstack-request-id"),
                http::HeaderValue::from_static(id),
            )]))
        };
        let id = "req-7c9e6679-7425-40de-944b-e07fc1f90ae7";
        assert_eq!(given(id).as_deref(), Some(id));
        for bad in [
            "",
            "req-1",
            "7c9e6679-7425-40de-944b-e07fc1f90ae7",
            "req-{7c9e6679-7425-40de-944b-e07fc1f90ae7}",
        ] {
            assert_eq!(given(bad), None, "{bad}");
        }
    }
}
