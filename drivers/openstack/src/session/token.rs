//! The token of a session, and its content.

use jiff::Timestamp;
use reqwest::header::HeaderName;
use secrecy::SecretString;
use serde::Deserialize;
use tokio::time::Instant;
use url::Url;

use crate::catalogue::Catalogue;
use crate::config::CloudConfig;
use crate::error::Result;
use crate::lenient;
use crate::service::Service;

/// The header with the token that a request is about, or that Keystone issues.
pub(crate) const X_SUBJECT_TOKEN: HeaderName = HeaderName::from_static("x-subject-token");

/// A token with the data that came with it.
#[derive(Debug)]
pub(super) struct Token {
    pub(super) secret: SecretString,
    pub(super) identity: Identity,
    pub(super) catalogue: Catalogue,
    pub(super) renew_at: Instant,
}

/// User and scope of a token, as Keystone reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "TokenBody")]
pub struct Identity {
    pub user_id: String,
    pub user_name: String,
    pub user_domain_id: Option<String>,
    /// Set for a token with a project as scope.
    pub project_id: Option<String>,
    pub project_name: Option<String>,
    pub project_domain_id: Option<String>,
    /// Set for a token with a domain as scope.
    pub domain_id: Option<String>,
    /// Whether the scope is the whole cloud.
    pub system: bool,
    /// The names of the roles in the scope.
    pub roles: Vec<String>,
    pub expires_at: Option<Timestamp>,
}

#[derive(Deserialize)]
pub(super) struct TokenBody {
    user: Named,
    #[serde(default)]
    project: Option<Named>,
    #[serde(default)]
    domain: Option<DomainId>,
    #[serde(default)]
    system: Option<System>,
    #[serde(default)]
    roles: Vec<Named>,
    #[serde(default)]
    pub(super) catalog: Catalogue,
    #[serde(default, deserialize_with = "lenient::time")]
    pub(super) issued_at: Option<Timestamp>,
    // Keystone 22 leaves the zone out if the expiry is an application credential's.
    #[serde(default, deserialize_with = "lenient::time")]
    pub(super) expires_at: Option<Timestamp>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    id: String,
    name: String,
    domain: Option<DomainId>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DomainId {
    id: Option<String>,
}

/// `{"all": true}`, the only value so far.
#[derive(Default, Deserialize)]
#[serde(default)]
struct System {
    all: bool,
}

impl From<TokenBody> for Identity {
    fn from(body: TokenBody) -> Identity {
        let project_domain = body.project.as_ref().and_then(|project| project.domain.as_ref());
        Identity {
            project_domain_id: project_domain.and_then(|domain| domain.id.clone()),
            domain_id: body.domain.and_then(|domain| domain.id),
            system: body.system.is_some_and(|system| system.all),
            user_id: body.user.id,
            user_name: body.user.name,
            user_domain_id: body.user.domain.and_then(|domain| domain.id),
            project_id: body.project.as_ref().map(|project| project.id.clone()),
            project_name: body.project.map(|project| project.name),
            roles: body.roles.into_iter().map(|role| role.name).collect(),
            expires_at: body.expires_at,
        }
    }
}

impl Token {
    pub(super) fn is_fresh(&self) -> bool {
        Instant::now() < self.renew_at
    }

    pub(super) fn endpoint(&self, service: Service, config: &CloudConfig) -> Result<Url> {
        self.catalogue.endpoint(service, config, self.identity.project_id.as_deref())
    }
}
