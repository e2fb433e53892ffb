//! What an administrator says of notices.

use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use jiff::SignedDuration;
use lease::MailAddress;
use secrecy::SecretString;
use serde::Deserialize;
use url::Url;

/// Where notices go. Without either, events alone tell.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NoticesConfig {
    /// A URL that all notices are posted to.
    pub webhook: Option<WebhookConfig>,
    /// How mail is sent to those who gave an address.
    pub mail: Option<MailConfig>,
    /// How often it is tried.
    pub retry: RetryConfig,
}

/// A URL that all notices are posted to.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "RawWebhook")]
pub struct WebhookConfig {
    /// `https://…`.
    pub url: Url,
    /// A file with the secret that the receiver knows them by.
    pub secret_file: PathBuf,
    /// Whether it may be this machine, or its link, and without TLS then.
    pub allow_local: bool,
    /// PEM of further authorities that sign its certificate.
    pub authorities: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWebhook {
    url: Url,
    secret_file: PathBuf,
    #[serde(default)]
    allow_local: bool,
    authorities: Option<PathBuf>,
}

impl TryFrom<RawWebhook> for WebhookConfig {
    type Error = &'static str;

    fn try_from(raw: RawWebhook) -> Result<Self, Self::Error> {
        let RawWebhook { url, secret_file, allow_local, authorities } = raw;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(
                "url: a password in it would be seen in logs; the secret is in secret_file",
            );
        }
        match url.scheme() {
            "https" => {}
            "http" if allow_local => {}
            _ => return Err("url: it has to begin with https://"),
        }
        Ok(WebhookConfig { url, secret_file, allow_local, authorities })
    }
}

/// How mail is sent.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "RawMail")]
pub struct MailConfig {
    /// The mail server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How it is spoken to.
    pub security: Security,
    /// From whom mail comes.
    pub from: MailAddress,
    /// As whom, where the server wants to know: the name, and a file with the password.
    pub login: Option<(String, PathBuf)>,
    /// PEM of further authorities that sign its certificate.
    pub authorities: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMail {
    host: String,
    port: Option<u16>,
    #[serde(default)]
    security: Security,
    from: MailAddress,
    username: Option<String>,
    password_file: Option<PathBuf>,
    authorities: Option<PathBuf>,
}

/// How a mail server is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Security {
    /// In the clear at first, and not a word more before TLS is up.
    #[default]
    StartTls,
    /// TLS from the beginning.
    Tls,
    /// In the clear: for a server on this machine.
    None,
}

impl TryFrom<RawMail> for MailConfig {
    type Error = &'static str;

    fn try_from(raw: RawMail) -> Result<Self, Self::Error> {
        let RawMail { host, port, security, from, username, password_file, authorities } = raw;
        let login = match (username, password_file) {
            (Some(username), Some(file)) => Some((username, file)),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => {
                return Err("username and password_file belong together");
            }
        };
        if login.is_some() && security == Security::None {
            return Err("security: a password is not sent in the clear");
        }
        let port = port.unwrap_or(match security {
            Security::StartTls => 587,
            Security::Tls => 465,
            Security::None => 25,
        });
        Ok(MailConfig { host, port, security, from, login, authorities })
    }
}

/// How often a notice is tried.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetryConfig {
    /// How long is waited after the first failure; twice as long after each that follows, up to an hour.
    pub first: SignedDuration,
    /// After how many tries it is given up.
    pub tries: NonZeroU32,
    /// How often is looked whether any is due.
    pub look_every: SignedDuration,
}

impl Default for RetryConfig {
    fn default() -> Self {
        RetryConfig {
            first: SignedDuration::from_secs(10),
            tries: NonZeroU32::MIN.saturating_add(19),
            look_every: SignedDuration::from_secs(2),
        }
    }
}

/// Why notices cannot be sent as configured.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// There is nothing in a secret's file.
    #[error("there is no secret in {}", path.display())]
    Empty {
        /// Which.
        path: PathBuf,
    },
    /// A file has no certificates.
    #[error("there is no certificate of an authority in {}", path.display())]
    Authorities {
        /// Which.
        path: PathBuf,
    },
    /// The webhook's address is one that is not spoken to.
    #[error("webhook: {address} is this machine or its link, which allow_local does not allow")]
    Local {
        /// The address.
        address: std::net::IpAddr,
    },
    /// TLS cannot be set up.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
    /// The client cannot be set up.
    #[error("cannot set up the client for the webhook")]
    Client(#[from] reqwest::Error),
    /// Mail cannot be set up.
    #[error("cannot set up mail")]
    Mail(#[from] lettre::transport::smtp::Error),
}

/// The secret in a file, without the line's end.
pub(crate) fn secret(path: &Path) -> Result<SecretString, SetupError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| SetupError::Unreadable { path: path.to_owned(), source })?;
    let text = text.trim_end_matches(['\r', '\n']);
    if text.is_empty() {
        return Err(SetupError::Empty { path: path.to_owned() });
    }
    Ok(text.into())
}
