//! `console.toml`. Unknown keys are refused; a loaded `Config` is a valid one.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use daemon::{ConnectionLimits, DatabaseConfig, LogFormat, MetricsConfig, TlsFiles};
use jiff::SignedDuration;
use openstack_api::{AuthKind, PlainHttp};
use serde::Deserialize;
use url::Url;

use crate::live_page_registry::LivePages;

/// The configuration of consoled, `console.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, try_from = "Raw")]
pub struct Config {
    pub log: LogFormat,
    pub listen: SocketAddr,
    /// The listener of metrics; `None` if none are served.
    pub metrics: Option<MetricsConfig>,
    /// The certificate and key for TLS; `None` means plain HTTP.
    pub tls: Option<TlsFiles>,
    /// The addresses at which plain HTTP is permitted.
    pub plain_http: PlainHttp,
    pub access: Access,
    /// The URL of `baremetald`; `None` means the URL in the cloud's catalogue.
    pub baremetal: Option<Url>,
    /// The URL of `clusterd`; `None` means the URL in the cloud's catalogue.
    pub clusters: Option<Url>,
    /// A PEM file with certificate authorities for the services' certificates, in addition to those of the system.
    pub ca_file: Option<PathBuf>,
    /// A PostgreSQL in which several consoles behind a load balancer have their sessions; `None` means in memory.
    pub database: Option<DatabaseConfig>,
    pub sessions: Sessions,
    /// The maximum number of connections, and the timeouts for slow clients.
    pub connections: ConnectionLimits,
    /// The maximum number of live pages at once.
    pub live_pages: LivePages,
    /// How many wrong passwords for one name from one address are tried in a minute, on average.
    pub guesses_per_minute: NonZeroU32,
}

/// How users authenticate. Has to match the authentication of the services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Every visitor may use the console.
    None,
    /// With a name and password that the services know.
    HttpBasic,
    /// With a password that Keystone knows.
    Keystone(KeystoneConfig),
}

/// The Keystone that authenticates users.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeystoneConfig {
    /// With or without `/v3`.
    pub url: Url,
    /// The region of the endpoints; `None` means the first region in the catalogue.
    #[serde(default)]
    pub region: Option<String>,
    /// The domain of a user or project if the user names no other.
    #[serde(default = "default_domain")]
    pub domain: String,
}

fn default_domain() -> String {
    "Default".to_owned()
}

/// How long users stay logged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sessions {
    /// The maximum number of sessions. A new session replaces the one that was idle longest.
    pub at_most: NonZeroUsize,
    /// How long a session may be idle.
    pub idle_timeout: Duration,
    /// The maximum duration of a session; a session also ends with its token.
    pub longest: Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawSessions {
    at_most: NonZeroUsize,
    idle_timeout: SignedDuration,
    longest: SignedDuration,
}

impl Default for RawSessions {
    fn default() -> Self {
        RawSessions {
            at_most: NonZeroUsize::MIN.saturating_add(9999),
            idle_timeout: SignedDuration::from_hours(1),
            longest: SignedDuration::from_hours(12),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Raw {
    log: LogFormat,
    listen: SocketAddr,
    metrics: Option<MetricsConfig>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    plain_http: PlainHttp,
    auth: AuthKind,
    keystone: Option<KeystoneConfig>,
    baremetal: Option<Url>,
    clusters: Option<Url>,
    ca_file: Option<PathBuf>,
    database: Option<DatabaseConfig>,
    sessions: RawSessions,
    connections: ConnectionLimits,
    live_pages: NonZeroUsize,
    live_pages_of_an_account: NonZeroUsize,
    live_pages_of_a_session: NonZeroUsize,
    guesses_per_minute: NonZeroU32,
}

impl Default for Raw {
    fn default() -> Self {
        Raw {
            log: LogFormat::default(),
            listen: SocketAddr::from(([127, 0, 0, 1], 9510)),
            metrics: None,
            certificate: None,
            key: None,
            plain_http: PlainHttp::default(),
            auth: AuthKind::None,
            keystone: None,
            baremetal: None,
            clusters: None,
            ca_file: None,
            database: None,
            sessions: RawSessions::default(),
            connections: ConnectionLimits::default(),
            live_pages: NonZeroUsize::MIN.saturating_add(255),
            live_pages_of_an_account: NonZeroUsize::MIN.saturating_add(31),
            live_pages_of_a_session: NonZeroUsize::MIN.saturating_add(15),
            guesses_per_minute: NonZeroU32::MIN.saturating_add(19),
        }
    }
}

impl TryFrom<RawSessions> for Sessions {
    type Error = String;

    fn try_from(raw: RawSessions) -> Result<Self, Self::Error> {
        let RawSessions { at_most, idle_timeout, longest } = raw;
        for (name, time) in [("idle_timeout", idle_timeout), ("longest", longest)] {
            if !time.is_positive() {
                return Err(format!("sessions.{name}: must be more than 0s"));
            }
        }
        let (idle_timeout, longest) = (idle_timeout.unsigned_abs(), longest.unsigned_abs());
        Ok(Sessions { at_most, idle_timeout, longest })
    }
}

impl TryFrom<Raw> for Config {
    type Error = String;

    fn try_from(raw: Raw) -> Result<Self, Self::Error> {
        let access = match (raw.auth, raw.keystone) {
            (AuthKind::None, None) => Access::None,
            (AuthKind::HttpBasic, None) => Access::HttpBasic,
            (AuthKind::Keystone, Some(keystone)) => Access::Keystone(keystone),
            (AuthKind::Keystone, None) => {
                return Err("keystone: required with auth = \"keystone\"".to_owned());
            }
            (AuthKind::None | AuthKind::HttpBasic, Some(_)) => {
                return Err("keystone: only permitted with auth = \"keystone\"".to_owned());
            }
        };
        let nearby = |given: Option<Url>, port: u16| match (&access, given) {
            (_, Some(url)) => Ok(Some(url)),
            (Access::Keystone(_), None) => Ok(None),
            (Access::None | Access::HttpBasic, None) => {
                Url::parse(&format!("http://127.0.0.1:{port}"))
                    .map(Some)
                    .map_err(|why| why.to_string())
            }
        };
        let (baremetal, clusters) = (nearby(raw.baremetal, 6385)?, nearby(raw.clusters, 9511)?);
        for (name, url) in [("baremetal", &baremetal), ("clusters", &clusters)] {
            if url
                .as_ref()
                .is_some_and(|url| !matches!(url.scheme(), "http" | "https") || !url.has_host())
            {
                return Err(format!("{name}: must be an http:// or https:// URL"));
            }
        }
        Ok(Config {
            log: raw.log,
            listen: raw.listen,
            metrics: raw.metrics,
            tls: TlsFiles::new(raw.certificate, raw.key)?,
            plain_http: raw.plain_http,
            access,
            baremetal,
            clusters,
            ca_file: raw.ca_file,
            database: raw.database,
            sessions: raw.sessions.try_into()?,
            connections: raw.connections,
            live_pages: LivePages {
                at_most: raw.live_pages.get(),
                of_an_account: raw.live_pages_of_an_account.get(),
                of_a_session: raw.live_pages_of_a_session.get(),
            },
            guesses_per_minute: raw.guesses_per_minute,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_configuration_is_valid() {
        let config: Config = toml::from_str("").expect("it is valid");
        assert_eq!(config.listen.to_string(), "127.0.0.1:9510");
        assert_eq!(
            config.baremetal.map(|url| url.to_string()).as_deref(),
            Some("http://127.0.0.1:6385/")
        );
        let text = "auth = 'keystone'\nkeystone = { url = 'https://k:5000' }";
        let config: Config = toml::from_str(text).expect("it is valid");
        assert_eq!(config.clusters, None, "the catalogue says where it is");
    }

    #[test]
    fn an_invalid_configuration_is_refused_by_key() {
        for (text, words) in [
            ("colour = 'red'", "unknown field `colour`"),
            ("auth = 'keystone'", "keystone: required"),
            ("keystone = { url = 'https://k' }", "keystone: only permitted"),
            ("baremetal = 'ftp://x'", "baremetal: must be an http"),
            ("sessions = { longest = '0s' }", "sessions.longest: must be more than 0s"),
            ("certificate = '/x'", "key: required with certificate"),
        ] {
            let why = toml::from_str::<Config>(text).expect_err(text).to_string();
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
