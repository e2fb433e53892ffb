//! TLS sessions of BMCs, so that the connections of a sweep need no full handshake each (RFC 8446 §2.2, RFC 5077).

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

/// At most this many BMCs have a session, of about 2 KiB each. Further BMCs get full handshakes.
const MOST: usize = 20_000;

/// One session of each BMC. rustls' own store keeps eight tickets of each server.
#[derive(Default)]
pub(crate) struct LastSessions(Mutex<HashMap<ServerName<'static>, LastSession>>);

#[derive(Default)]
struct LastSession {
    group: Option<NamedGroup>,
    tls12: Option<Tls12ClientSessionValue>,
    tls13: Option<Tls13ClientSessionValue>,
}

impl LastSessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<ServerName<'static>, LastSession>> {
        // Each change replaces one value, so the map behind a poisoned lock is intact.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, server: ServerName<'static>, change: impl FnOnce(&mut LastSession)) {
        let mut kept = self.lock();
        if kept.len() < MOST || kept.contains_key(&server) {
            change(kept.entry(server).or_default());
        }
    }
}

impl ClientSessionStore for LastSessions {
    fn set_kx_hint(&self, server: ServerName<'static>, group: NamedGroup) {
        self.keep(server, |last| last.group = Some(group));
    }

    fn kx_hint(&self, server: &ServerName<'_>) -> Option<NamedGroup> {
        self.lock().get(server)?.group
    }

    fn set_tls12_session(&self, server: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.keep(server, |last| last.tls12 = Some(session));
    }

    fn tls12_session(&self, server: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.lock().get(server)?.tls12.clone()
    }

    fn remove_tls12_session(&self, server: &ServerName<'static>) {
        if let Some(last) = self.lock().get_mut(server) {
            last.tls12 = None;
        }
    }

    fn insert_tls13_ticket(&self, server: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        self.keep(server, |last| last.tls13 = Some(ticket));
    }

    fn take_tls13_ticket(&self, server: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.lock().get_mut(server)?.tls13.take()
    }
}

impl fmt::Debug for LastSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LastSessions").finish_non_exhaustive()
    }
}
