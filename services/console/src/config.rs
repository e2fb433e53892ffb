//! `console.toml`. Unknown keys are refused; a loaded `Config` is a valid one.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use daemon::{Connections, LogFormat, TlsFiles};
use jiff::SignedDuration;
use openstack_api::{AuthKind, PlainHttp};
use serde::Deserialize;
use url::Url;

use crate::followers::LivePages;

/// `console.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, try_from = "Raw")]
pub struct Config {
    /// How logs look.
    pub log: LogFormat,
    /// Address and port.
    pub listen: SocketAddr,
    /// What it shows of itself over TLS; without it, HTTP is spoken.
    pub tls: Option<TlsFiles>,
    /// Where it may be reached without TLS.
    pub plain_http: PlainHttp,
    /// How people prove who they are.
    pub access: Access,
    /// Where `baremetald` is; where the catalogue says if `None`.
    pub baremetal: Option<Url>,
    /// Where `clusterd` is; where the catalogue says if `None`.
    pub clusters: Option<Url>,
    /// Authorities that signed the services' certificates, PEM, besides the system's.
    pub authorities: Option<PathBuf>,
    /// How long people stay logged in.
    pub sessions: Sessions,
    /// How many connections there are, and how long the slow are waited for.
    pub connections: Connections,
    /// How many pages may be followed live at once.
    pub live_pages: LivePages,
    /// How many wrong passwords for one name from one address are tried in a minute, on average.
    pub guesses_per_minute: NonZeroU32,
}

/// How people prove who they are: as the services ask for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Not at all.
    None,
    /// By a name and password of the services' own.
    HttpBasic,
    /// By a password that Keystone knows.
    Keystone(KeystoneConfig),
}

/// Which Keystone.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeystoneConfig {
    /// Where, with or without `/v3`.
    pub url: Url,
    /// The region whose endpoints are used; the first of the catalogue unless told otherwise.
    #[serde(default)]
    pub region: Option<String>,
    /// The domain that names are of where nobody says another.
    #[serde(default = "default_domain")]
    pub domain: String,
}

fn default_domain() -> String {
    "Default".to_owned()
}

/// How long people stay logged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sessions {
    /// How many at once; the one that rested longest goes for a new one.
    pub at_most: NonZeroUsize,
    /// How long one may rest.
    pub idle_timeout: Duration,
    /// How long one lasts at most; a token may end before.
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
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    plain_http: PlainHttp,
    auth: AuthKind,
    keystone: Option<KeystoneConfig>,
    baremetal: Option<Url>,
    clusters: Option<Url>,
    authorities: Option<PathBuf>,
    sessions: RawSessions,
    connections: Connections,
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
            certificate: None,
            key: None,
            plain_http: PlainHttp::default(),
            auth: AuthKind::None,
            keystone: None,
            baremetal: None,
            clusters: None,
            authorities: None,
            sessions: RawSessions::default(),
            connections: Connections::default(),
            live_pages: NonZeroUsize::MIN.saturating_add(255),
            live_pages_of_an_account: NonZeroUsize::MIN.saturating_add(31),
            live_pages_of_a_session: NonZeroUsize::MIN.saturating_add(15),
            guesses_per_minute: NonZeroU32::MIN.saturating_add(19),
        }
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
                return Err("keystone: is needed with auth = \"keystone\"".to_owned());
            }
            (AuthKind::None | AuthKind::HttpBasic, Some(_)) => {
                return Err("keystone: means nothing without auth = \"keystone\"".to_owned());
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
                return Err(format!("{name}: it must be an http:// or https:// URL"));
            }
        }
        let RawSessions { at_most, idle_timeout, longest } = raw.sessions;
        for (name, time) in [("idle_timeout", idle_timeout), ("longest", longest)] {
            if !time.is_positive() {
                return Err(format!("sessions.{name}: it must be more than 0s"));
            }
        }
        Ok(Config {
            log: raw.log,
            listen: raw.listen,
            tls: TlsFiles::new(raw.certificate, raw.key)?,
            plain_http: raw.plain_http,
            access,
            baremetal,
            clusters,
            authorities: raw.authorities,
            sessions: Sessions {
                at_most,
                idle_timeout: idle_timeout.unsigned_abs(),
                longest: longest.unsigned_abs(),
            },
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
    fn little_has_to_be_said() {
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
    fn what_is_wrong_is_named() {
        for (text, words) in [
            ("colour = 'red'", "unknown field `colour`"),
            ("auth = 'keystone'", "keystone: is needed"),
            ("keystone = { url = 'https://k' }", "keystone: means nothing"),
            ("baremetal = 'ftp://x'", "baremetal: it must be an http"),
            ("sessions = { longest = '0s' }", "sessions.longest: it must be more than 0s"),
            ("certificate = '/x'", "key: is needed with certificate"),
        ] {
            let why = toml::from_str::<Config>(text).expect_err(text).to_string();
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
