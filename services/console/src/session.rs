//! The session of a logged-in user.

use std::time::Duration;

use api_client::Credentials;
use secrecy::SecretString;
use url::Url;

/// The credential with which the console calls the services.
#[derive(Clone, Debug)]
pub(crate) enum Credential {
    /// A name and password that the services know.
    Password(String, SecretString),
    Token(SecretString),
}

impl Credential {
    /// The credentials for calls to the services.
    pub(crate) fn for_services(&self) -> Credentials {
        match self.clone() {
            Credential::Password(user, password) => Credentials::Password(user, password),
            Credential::Token(token) => Credentials::Token(token),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// The name that pages show.
    pub(crate) name: String,
    /// A unique id of the account: an id of Keystone, or a name that the services know.
    pub(crate) account: String,
    pub(crate) project: Option<String>,
    pub(crate) credential: Credential,
    /// Tokens of projects that the user switched away from, to be revoked at log-out.
    pub(crate) former_tokens: Vec<SecretString>,
    /// The URL of `baremetald` in the catalogue.
    pub(crate) baremetal: Option<Url>,
    /// The URL of `clusterd` in the catalogue.
    pub(crate) clusters: Option<Url>,
    pub(crate) lifetime: Option<Duration>,
}
