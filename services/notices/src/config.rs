//! The `[notices]` section of a configuration file.

use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use jiff::SignedDuration;
use lease::MailAddress;
use secrecy::SecretString;
use serde::Deserialize;
use url::Url;

/// Where notices are sent to. With neither receiver, notices only appear as events.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NoticesConfig {
    /// The webhook that all notices are posted to.
    pub webhook: Option<WebhookConfig>,
    /// The mail server for contacts who gave a mail address.
    pub mail: Option<MailConfig>,
    pub retry: RetryConfig,
}

/// A webhook that all notices are posted to.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "RawWebhook")]
pub struct WebhookConfig {
    pub target: WebhookTarget,
    /// A file with the secret that signs the notices.
    pub secret_file: PathBuf,
}

/// The address of a webhook, and how it is reached.
#[derive(Clone, Debug)]
pub struct WebhookTarget {
    /// An `https://` URL, or `http://` if `allow_local` is set.
    pub url: Url,
    /// Whether the URL may lead to a loopback or link-local address, and then without TLS.
    pub allow_local: bool,
    /// A PEM file with further certificate authorities that may sign the webhook's certificate.
    pub ca_file: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWebhook {
    url: Url,
    secret_file: PathBuf,
    #[serde(default)]
    allow_local: bool,
    ca_file: Option<PathBuf>,
}

impl TryFrom<RawWebhook> for WebhookConfig {
    type Error = &'static str;

    fn try_from(raw: RawWebhook) -> Result<Self, Self::Error> {
        let RawWebhook { url, secret_file, allow_local, ca_file } = raw;
        let target = WebhookTarget { url, allow_local, ca_file };
        target.check()?;
        Ok(WebhookConfig { target, secret_file })
    }
}

impl WebhookTarget {
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let WebhookTarget { url, allow_local, .. } = self;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(
                "url: must not contain a password, which would appear in logs; put the secret into secret_file",
            );
        }
        match url.scheme() {
            "https" => {}
            "http" if *allow_local => {}
            _ => return Err("url: must begin with https://"),
        }
        Ok(())
    }
}

/// The mail server, and the account on it.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "RawMail")]
pub struct MailConfig {
    pub host: String,
    pub port: u16,
    pub security: Security,
    pub from: MailAddress,
    /// User name and the file with the password; `None` if the server needs no login.
    pub login: Option<(String, PathBuf)>,
    /// A PEM file with further certificate authorities that may sign the server's certificate.
    pub ca_file: Option<PathBuf>,
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
    ca_file: Option<PathBuf>,
}

/// How the connection to the mail server is encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Security {
    /// STARTTLS is required: nothing else is sent before TLS is established.
    #[default]
    StartTls,
    /// TLS from the first byte.
    Tls,
    /// No encryption, for a server on the same machine.
    None,
}

impl TryFrom<RawMail> for MailConfig {
    type Error = &'static str;

    fn try_from(raw: RawMail) -> Result<Self, Self::Error> {
        let RawMail { host, port, security, from, username, password_file, ca_file } = raw;
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
        Ok(MailConfig { host, port, security, from, login, ca_file })
    }
}

/// When a failed notice is retried, and when it is given up.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetryConfig {
    /// The wait after the first failure. Each further wait is twice as long, up to an hour.
    pub first: SignedDuration,
    /// How many attempts are made before a notice is given up.
    pub tries: NonZeroU32,
    /// How often the outbox is checked for letters that are due.
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

/// Why notices cannot be sent with this configuration.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("cannot read {}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("the secret file {} is empty", path.display())]
    Empty { path: PathBuf },
    #[error("cannot use the secret file {}", path.display())]
    Unusable { path: PathBuf, source: cloud_event::InvalidSecret },
    #[error("{} contains no CA certificate", path.display())]
    NoCertificate { path: PathBuf },
    /// The webhook URL is an address that notices are not sent to.
    #[error(
        "webhook: {address} is a loopback or link-local address: use another URL, or set allow_local"
    )]
    Local { address: std::net::IpAddr },
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
    #[error("cannot set up the client for the webhook")]
    Client(#[from] reqwest::Error),
    #[error("cannot set up mail")]
    Mail(#[from] lettre::transport::smtp::Error),
}

/// Reads the secret in a file, without trailing line breaks.
pub(crate) fn secret(path: &Path) -> Result<SecretString, SetupError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| SetupError::Unreadable { path: path.to_owned(), source })?;
    let text = text.trim_end_matches(['\r', '\n']);
    if text.is_empty() {
        return Err(SetupError::Empty { path: path.to_owned() });
    }
    Ok(text.into())
}
