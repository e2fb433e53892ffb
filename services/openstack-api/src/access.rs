//! What a service's configuration says of its callers: `auth`, and what goes with it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use openstack::{CloudConfig, ConfigError, Patience, Session};
use serde::Deserialize;
use url::Url;

use crate::{Auth, Htpasswd, HtpasswdError, Keystone};

/// `auth`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthKind {
    /// Not at all; refused unless the listener is on loopback.
    #[default]
    None,
    /// HTTP basic authentication.
    HttpBasic,
    /// Tokens of Keystone's.
    Keystone,
}

/// How callers prove who they are, with the files that takes.
#[derive(Clone, Debug)]
pub enum Access {
    /// Not at all.
    None,
    /// By HTTP basic authentication.
    HttpBasic {
        /// The password file: `USER:HASH` lines, bcrypt or argon2id.
        htpasswd: PathBuf,
    },
    /// By tokens of Keystone's.
    Keystone(KeystoneAccess),
}

/// Which Keystone is asked about tokens, and as whom.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeystoneAccess {
    /// A clouds.yaml; what a secure.yaml beside it says goes before it. Its user needs the role `service`, or `admin`.
    pub clouds_yaml: PathBuf,
    /// Which of its clouds; needed where there are several.
    #[serde(default)]
    pub name: Option<String>,
    /// Where clients get their tokens, when that is not where we ask.
    #[serde(default)]
    pub public_url: Option<Url>,
    /// How long what Keystone said of a token is believed, and so the longest that a revoked one is.
    #[serde(default = "cache_for")]
    pub cache_for: SignedDuration,
    /// How long somebody's request waits for Keystone at most, before it is told to come back later.
    #[serde(default = "answer_timeout")]
    pub answer_timeout: SignedDuration,
}

/// As keystonemiddleware's `token_cache_time`.
fn cache_for() -> SignedDuration {
    SignedDuration::from_secs(300)
}

/// Longer than a Keystone that is busy takes, shorter than what clients bear.
fn answer_timeout() -> SignedDuration {
    SignedDuration::from_secs(15)
}

/// Nobody's rights may be that old.
const LONGEST_CACHE: SignedDuration = SignedDuration::from_hours(24);
/// Nobody's client waits that long.
const LONGEST_WAIT: SignedDuration = SignedDuration::from_mins(5);

/// Why nobody could prove who they are.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The password file cannot be used.
    #[error("cannot use the password file {}", file.display())]
    Htpasswd {
        /// Which.
        file: PathBuf,
        /// What is wrong with it.
        source: HtpasswdError,
    },
    /// The clouds.yaml cannot be used.
    #[error("cannot use {} (api.keystone.clouds_yaml)", file.display())]
    Clouds {
        /// Which.
        file: PathBuf,
        /// What is wrong with it.
        source: ConfigError,
    },
}

impl Access {
    /// What these settings mean together.
    ///
    /// # Errors
    ///
    /// What is missing or means nothing, with its name.
    pub fn new(
        kind: AuthKind,
        htpasswd: Option<PathBuf>,
        keystone: Option<KeystoneAccess>,
    ) -> Result<Self, &'static str> {
        match (kind, htpasswd, keystone) {
            (AuthKind::None, None, None) => Ok(Access::None),
            (AuthKind::HttpBasic, Some(htpasswd), None) => Ok(Access::HttpBasic { htpasswd }),
            (AuthKind::Keystone, None, Some(keystone))
                if keystone.cache_for.is_negative() || keystone.cache_for > LONGEST_CACHE =>
            {
                Err("keystone.cache_for: it must be from 0s to 24h")
            }
            (AuthKind::Keystone, None, Some(keystone))
                if !keystone.answer_timeout.is_positive()
                    || keystone.answer_timeout > LONGEST_WAIT =>
            {
                Err("keystone.answer_timeout: it must be more than 0s, and at most 5m")
            }
            (AuthKind::Keystone, None, Some(keystone)) => Ok(Access::Keystone(keystone)),
            (AuthKind::HttpBasic, None, _) => Err("htpasswd: is needed for auth = \"http_basic\""),
            (AuthKind::Keystone, _, None) => Err("keystone: is needed for auth = \"keystone\""),
            (AuthKind::None | AuthKind::Keystone, Some(_), _) => {
                Err("htpasswd: means nothing without auth = \"http_basic\"")
            }
            (AuthKind::None | AuthKind::HttpBasic, _, Some(_)) => {
                Err("keystone: means nothing without auth = \"keystone\"")
            }
        }
    }

    /// Reads the files. Nobody is asked anything yet.
    pub fn open(&self) -> Result<Auth, AccessError> {
        match self {
            Access::None => Ok(Auth::None),
            Access::HttpBasic { htpasswd } => {
                let unusable = |source| AccessError::Htpasswd { file: htpasswd.clone(), source };
                Ok(Auth::HttpBasic(Arc::new(Htpasswd::read(htpasswd).map_err(unusable)?)))
            }
            Access::Keystone(access) => {
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
        let config = CloudConfig { patience: self.patience(), ..config };
        let url = self.public_url.clone().unwrap_or_else(|| config.auth_url.clone());
        Ok(Keystone::new(Session::new(config)?, &url, self.cache_for.unsigned_abs()))
    }

    /// A request of somebody's waits meanwhile: better it fails, and soon.
    fn patience(&self) -> Patience {
        let whole = self.answer_timeout.unsigned_abs();
        Patience {
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

    fn read(text: &str) -> Result<Access, &'static str> {
        let Section { auth, htpasswd, keystone } = toml::from_str(text).unwrap();
        Access::new(auth, htpasswd, keystone)
    }

    #[test]
    fn what_a_kind_needs_has_to_be_there_and_nothing_else() {
        const KEYSTONE: &str = "keystone.clouds_yaml = '/c'";
        assert!(matches!(read("auth = 'none'"), Ok(Access::None)));
        assert!(read("auth = 'http_basic'\nhtpasswd = '/h'").is_ok());
        let Ok(Access::Keystone(got)) = read(&format!("auth = 'keystone'\n{KEYSTONE}")) else {
            panic!("it is valid")
        };
        assert_eq!(got.cache_for, SignedDuration::from_secs(300));
        for (text, words) in [
            ("auth = 'http_basic'".to_owned(), "htpasswd: is needed"),
            ("auth = 'none'\nhtpasswd = '/h'".to_owned(), "htpasswd: means nothing"),
            ("auth = 'keystone'".to_owned(), "keystone: is needed"),
            (format!("auth = 'none'\n{KEYSTONE}"), "keystone: means nothing"),
            (format!("auth = 'http_basic'\nhtpasswd = '/h'\n{KEYSTONE}"), "keystone: means"),
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
