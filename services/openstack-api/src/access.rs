//! The settings of a service that decide how callers authenticate: `auth`, and the sections that belong to it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use openstack::{CloudConfig, ConfigError, RetryPolicy, Session};
use serde::Deserialize;
use url::Url;

use crate::{Auth, Htpasswd, HtpasswdError, Keystone};

/// The setting `auth`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthKind {
    /// No authentication; refused unless the listener is on loopback.
    #[default]
    None,
    HttpBasic,
    /// Tokens issued by Keystone.
    Keystone,
}

/// How callers authenticate, with the files this needs.
#[derive(Clone, Debug)]
pub enum AuthConfig {
    None,
    HttpBasic {
        /// The password file: `USER:HASH` lines, bcrypt or argon2id.
        htpasswd: PathBuf,
    },
    /// By tokens issued by Keystone.
    Keystone(KeystoneAccess),
}

/// The Keystone that validates tokens, and the account that the service uses there.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeystoneAccess {
    /// A clouds.yaml; a secure.yaml in the same folder takes precedence. The user needs the role `service` or `admin` to validate tokens of
    /// others.
    pub clouds_yaml: PathBuf,
    /// The cloud in that file; required if the file has several.
    #[serde(default)]
    pub name: Option<String>,
    /// The URL at which clients get tokens, if clients reach Keystone at another URL than the service.
    #[serde(default)]
    pub public_url: Option<Url>,
    /// How long a validated token is cached. A revoked token stays valid for at most this time.
    #[serde(default = "cache_for")]
    pub cache_for: SignedDuration,
    /// How long a request may wait for Keystone before it is answered with 503.
    #[serde(default = "answer_timeout")]
    pub answer_timeout: SignedDuration,
}

/// The default of keystonemiddleware's `token_cache_time`.
fn cache_for() -> SignedDuration {
    SignedDuration::from_secs(300)
}

/// Longer than a busy Keystone takes, and shorter than the timeouts of clients.
fn answer_timeout() -> SignedDuration {
    SignedDuration::from_secs(15)
}

/// The longest cache time: roles that were revoked must not live longer.
const LONGEST_CACHE: SignedDuration = SignedDuration::from_hours(24);
/// The longest `answer_timeout`: no client waits longer.
const LONGEST_WAIT: SignedDuration = SignedDuration::from_mins(5);

/// Why the authentication of callers cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    #[error("cannot use the password file {}", file.display())]
    Htpasswd { file: PathBuf, source: HtpasswdError },
    #[error("cannot use {} (api.keystone.clouds_yaml)", file.display())]
    Clouds { file: PathBuf, source: ConfigError },
}

impl AuthConfig {
    /// Combines the settings.
    ///
    /// # Errors
    ///
    /// Names the setting that is missing, superfluous or out of range.
    pub fn new(
        kind: AuthKind,
        htpasswd: Option<PathBuf>,
        keystone: Option<KeystoneAccess>,
    ) -> Result<Self, &'static str> {
        match (kind, htpasswd, keystone) {
            (AuthKind::None, None, None) => Ok(AuthConfig::None),
            (AuthKind::HttpBasic, Some(htpasswd), None) => Ok(AuthConfig::HttpBasic { htpasswd }),
            (AuthKind::Keystone, None, Some(keystone))
                if keystone.cache_for.is_negative() || keystone.cache_for > LONGEST_CACHE =>
            {
                Err("keystone.cache_for: must be between 0s and 24h")
            }
            (AuthKind::Keystone, None, Some(keystone))
                if !keystone.answer_timeout.is_positive()
                    || keystone.answer_timeout > LONGEST_WAIT =>
            {
                Err("keystone.answer_timeout: must be greater than 0s and at most 5m")
            }
            (AuthKind::Keystone, None, Some(keystone)) => Ok(AuthConfig::Keystone(keystone)),
            (AuthKind::HttpBasic, None, _) => Err("htpasswd: required with auth = \"http_basic\""),
            (AuthKind::Keystone, _, None) => Err("keystone: required with auth = \"keystone\""),
            (AuthKind::None | AuthKind::Keystone, Some(_), _) => {
                Err("htpasswd: only allowed with auth = \"http_basic\"")
            }
            (AuthKind::None | AuthKind::HttpBasic, _, Some(_)) => {
                Err("keystone: only allowed with auth = \"keystone\"")
            }
        }
    }

    /// Reads the files. Keystone is not contacted yet.
    pub fn open(&self) -> Result<Auth, AccessError> {
        match self {
            AuthConfig::None => Ok(Auth::None),
            AuthConfig::HttpBasic { htpasswd } => {
                let unusable = |source| AccessError::Htpasswd { file: htpasswd.clone(), source };
                Ok(Auth::HttpBasic(Arc::new(Htpasswd::read(htpasswd).map_err(unusable)?)))
            }
            AuthConfig::Keystone(access) => {
                let file = access.clouds_yaml.clone();
                let keystone = access.open();
                let keystone = keystone.map_err(|source| AccessError::Clouds { file, source })?;
                Ok(Auth::Keystone(Arc::new(keystone)))
            }
        }
    }
}

impl KeystoneAccess {
    fn open(&self) -> Result<Keystone, ConfigError> {
        let config = CloudConfig::read(&self.clouds_yaml, self.name.as_deref())?;
        let config = CloudConfig { patience: self.retry_policy(), ..config };
        let url = self.public_url.clone().unwrap_or_else(|| config.auth_url.clone());
        Ok(Keystone::new(Session::new(config)?, &url, self.cache_for.unsigned_abs()))
    }

    /// Short timeouts and few attempts, because a request of a caller waits meanwhile: an early failure is better than a long wait.
    fn retry_policy(&self) -> RetryPolicy {
        let whole = self.answer_timeout.unsigned_abs();
        RetryPolicy {
            attempt_timeout: whole * 2 / 3,
            call_timeout: whole,
            attempts: 2,
            pause: Duration::from_millis(200),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Section {
        auth: AuthKind,
        htpasswd: Option<PathBuf>,
        keystone: Option<KeystoneAccess>,
    }

    fn read(text: &str) -> Result<AuthConfig, &'static str> {
        let Section { auth, htpasswd, keystone } = toml::from_str(text).unwrap();
        AuthConfig::new(auth, htpasswd, keystone)
    }

    #[test]
    fn each_auth_kind_needs_exactly_its_own_settings() {
        const KEYSTONE: &str = "keystone.clouds_yaml = '/c'";
        assert!(matches!(read("auth = 'none'"), Ok(AuthConfig::None)));
        assert!(read("auth = 'http_basic'\nhtpasswd = '/h'").is_ok());
        let Ok(AuthConfig::Keystone(got)) = read(&format!("auth = 'keystone'\n{KEYSTONE}")) else {
            panic!("it is valid")
        };
        assert_eq!(got.cache_for, SignedDuration::from_secs(300));
        for (text, words) in [
            ("auth = 'http_basic'".to_owned(), "htpasswd: required"),
            ("auth = 'none'\nhtpasswd = '/h'".to_owned(), "htpasswd: only allowed"),
            ("auth = 'keystone'".to_owned(), "keystone: required"),
            (format!("auth = 'none'\n{KEYSTONE}"), "keystone: only allowed"),
            (format!("auth = 'http_basic'\nhtpasswd = '/h'\n{KEYSTONE}"), "keystone: only allowed"),
            (format!("auth = 'keystone'\n{KEYSTONE}\nkeystone.cache_for = '-1s'"), "cache_for"),
            (
                format!("auth = 'keystone'\n{KEYSTONE}\nkeystone.answer_timeout = '0s'"),
                "answer_timeout",
            ),
        ] {
            let why = read(&text).expect_err("it contradicts itself");
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
