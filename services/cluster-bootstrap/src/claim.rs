//! What a machine is given at its creation: a claim to its config, or the config itself.

use std::fmt;

use ignition::build::{header, inline as inlined};
use ignition::{
    Config, Ignition, IgnitionConfig, Resource, Security, SecurityTls, TooLong, UserData, compress,
};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use crate::NodeConfig;

/// Where a machine's config is handed out, once, to who shows this token.
#[derive(Clone)]
pub struct Claim {
    /// HTTPS.
    pub url: Url,
    /// Goes into the header `Authorization`, as `Bearer TOKEN`.
    pub token: SecretString,
    /// The authority that the server's certificate has to be of, as PEM. Others are believed as well if the image trusts them; Ignition
    /// cannot be told to trust one alone.
    pub authority: String,
}

/// User data that only holds a claim: small, and worth nothing once it was used.
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
    UserData::of(&Config { ignition, ..Config::default() })
}

/// User data that is the config: for machines that do not reach the server. Compressed where it would be too long.
pub fn inline(node: &NodeConfig) -> Result<UserData, TooLong> {
    UserData::of(&node.config).or_else(|_| UserData::of(&compress(&node.config)))
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Claim({})", self.url)
    }
}
