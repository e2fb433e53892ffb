//! The limits of a listener: how many connections it accepts, and how long it waits for slow clients.

use std::num::NonZeroUsize;
use std::time::Duration;

use jiff::SignedDuration;
use openstack_api::TrustedProxies;
use serde::Deserialize;

/// The limits of a listener, a section of a configuration file. Times are written like `10s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default, try_from = "Raw")]
pub struct ConnectionLimits {
    /// The most open connections; further clients wait until a connection is closed.
    pub at_most: NonZeroUsize,
    /// The most connections of one address, or of one IPv6 network of 64 bits; further connections are closed at once.
    pub from_one_address: NonZeroUsize,
    /// How long the TLS handshake may take.
    pub handshake_timeout: Duration,
    /// How long the head of a request may take from its first byte, and how long a new connection may take to send its first byte.
    pub header_timeout: Duration,
    /// How long a body may pause, and how long it may stay below `slowest_body`.
    pub body_timeout: Duration,
    /// The slowest accepted transfer rate of a body, in bytes per second.
    pub slowest_body: NonZeroUsize,
    /// How long the client may read nothing of a response that is ready to be sent.
    pub answer_timeout: Duration,
    /// How long a connection may be idle between two requests; with 0s each connection is closed after one request.
    pub idle_timeout: Duration,
    /// The load balancers whose connections begin with a header of the PROXY protocol, which tells the address of the client.
    pub proxy_protocol_from: TrustedProxies,
}

/// The largest head of a request, in bytes; a larger one ends the connection with 431.
pub(crate) const LONGEST_HEAD: usize = 128 << 10;
pub(crate) const MOST_HEADERS: usize = 128;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Raw {
    at_most: NonZeroUsize,
    from_one_address: NonZeroUsize,
    handshake_timeout: SignedDuration,
    header_timeout: SignedDuration,
    body_timeout: SignedDuration,
    slowest_body: NonZeroUsize,
    answer_timeout: SignedDuration,
    idle_timeout: SignedDuration,
    proxy_protocol_from: TrustedProxies,
}

impl Default for Raw {
    fn default() -> Self {
        Raw {
            at_most: NonZeroUsize::MIN.saturating_add(8191),
            // Large enough for a proxy, or for a rack behind one address.
            from_one_address: NonZeroUsize::MIN.saturating_add(4095),
            handshake_timeout: SignedDuration::from_secs(10),
            header_timeout: SignedDuration::from_secs(10),
            body_timeout: SignedDuration::from_secs(30),
            slowest_body: NonZeroUsize::MIN.saturating_add(1023),
            answer_timeout: SignedDuration::from_secs(60),
            idle_timeout: SignedDuration::from_secs(75),
            proxy_protocol_from: TrustedProxies::default(),
        }
    }
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        ConnectionLimits::of(&Raw::default())
    }
}

impl ConnectionLimits {
    /// The same limits for connections that serve a single request each.
    pub fn for_one_request(self) -> Self {
        ConnectionLimits { idle_timeout: Duration::ZERO, ..self }
    }

    fn of(raw: &Raw) -> Self {
        ConnectionLimits {
            at_most: raw.at_most,
            from_one_address: raw.from_one_address,
            handshake_timeout: raw.handshake_timeout.unsigned_abs(),
            header_timeout: raw.header_timeout.unsigned_abs(),
            body_timeout: raw.body_timeout.unsigned_abs(),
            slowest_body: raw.slowest_body,
            answer_timeout: raw.answer_timeout.unsigned_abs(),
            idle_timeout: raw.idle_timeout.unsigned_abs(),
            proxy_protocol_from: raw.proxy_protocol_from,
        }
    }
}

impl TryFrom<Raw> for ConnectionLimits {
    type Error = String;

    fn try_from(raw: Raw) -> Result<Self, Self::Error> {
        for (name, time) in [
            ("handshake_timeout", raw.handshake_timeout),
            ("header_timeout", raw.header_timeout),
            ("body_timeout", raw.body_timeout),
            ("answer_timeout", raw.answer_timeout),
        ] {
            if !time.is_positive() {
                return Err(format!("{name}: must be greater than 0s"));
            }
        }
        if raw.idle_timeout.is_negative() {
            return Err("idle_timeout: must not be negative".to_owned());
        }
        Ok(ConnectionLimits::of(&raw))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_limits_have_defaults_and_invalid_ones_are_refused_by_name() {
        let read: ConnectionLimits = toml::from_str("header_timeout = '2s'").unwrap();
        let want = ConnectionLimits {
            header_timeout: Duration::from_secs(2),
            ..ConnectionLimits::default()
        };
        assert_eq!(read, want);
        for (text, words) in [
            ("at_most = 0", "nonzero"),
            ("body_timeout = '0s'", "body_timeout: must be greater than 0s"),
            ("idle_timeout = '-1s'", "idle_timeout: must not be negative"),
            ("proxy_protocol_from = ['balancer']", "\"balancer\" is neither an IP address"),
            ("colour = 1", "unknown field `colour`"),
        ] {
            let why = toml::from_str::<ConnectionLimits>(text).unwrap_err().to_string();
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
