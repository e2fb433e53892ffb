//! The user data of a server: a claim to its config, or the config itself.

use std::fmt;

use ignition::build::{header, inline as inlined};
use ignition::{
    Config, Ignition, IgnitionConfig, Resource, Security, SecurityTls, TooLong, UserData, compress,
};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use crate::NodeConfig;

/// The URL that hands out a member's config once, and the token that the request has to show.
#[derive(Clone)]
pub struct Claim {
    pub url: Url,
    /// The token of the header `Authorization: Bearer TOKEN`.
    pub token: SecretString,
    /// The certificate authority of the server's certificate, as PEM. Ignition also accepts the certificate authorities that the image
    /// trusts: Ignition cannot be limited to one.
    pub authority: String,
}

/// Returns user data that contains only a claim: small, and worthless once the claim was used.
pub fn stub(claim: &Claim) -> Result<UserData, TooLong> {
    let bearer = header("Authorization", &format!("Bearer {}", claim.token.expose_secret()));
    let replace = Resource {
        source: Some(claim.url.to_string()),
        http_headers: Some(vec![bearer]),
        ..Resource::default()
    };
    let authority = inlined(claim.authority.as_bytes());
    let tls = SecurityTls { certificate_authorities: Some(vec![authority]) };
    let ignition = Ignition {
        version: Some(ignition::SPEC.to_owned()),
        config: Some(IgnitionConfig { replace: Some(replace), merge: None }),
        security: Some(Security { tls: Some(tls) }),
        ..Ignition::default()
    };
    UserData::from_config(&Config { ignition, ..Config::default() })
}

/// Returns user data that contains the whole config, for servers that cannot reach clusterd. Compresses the config if it would be too long
/// otherwise.
pub fn inline(node: &NodeConfig) -> Result<UserData, TooLong> {
    UserData::from_config(&node.config).or_else(|_| UserData::from_config(&compress(&node.config)))
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Claim({})", self.url)
    }
}
