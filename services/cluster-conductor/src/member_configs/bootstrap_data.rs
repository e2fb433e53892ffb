//! The bootstrap data of a cluster: the members that found the control plane, and the token with which others join.
//!
//! Both are sealed in the store from the first server on. Member numbers are never reused, so a founding member is one of the first control
//! plane; every other control-plane member joins.

use cluster_bootstrap::BootstrapToken;
use cluster_core::{Cluster, ClusterObservation, ClusterSpec, MemberName, desired_objects};
use jiff::{SignedDuration, Timestamp};
use sealing::SealError;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::facts::{Founder, masters, placed};
use super::{MemberConfigError, Result};
use crate::cluster_secrets::ClusterSecrets;

/// The name of the secret.
const BOOTSTRAP: &str = "bootstrap";
/// How long a token is valid.
pub(super) const TOKEN_HOURS: u32 = 24;
/// A token with less time left is replaced. The time is enough for a claim to be redeemed and for the node to join.
const LEFT: SignedDuration = SignedDuration::from_hours(4);

/// The bootstrap data. The type has no `Debug`, so the token is never printed.
#[derive(Serialize, Deserialize)]
pub(crate) struct BootstrapData {
    /// The members of the first control plane.
    pub(crate) founders: Vec<Founder>,
    token: String,
    token_made_at: Timestamp,
    token_expires_at: Timestamp,
}

/// The token with which nodes join now. The cluster's API must know it: the first founding member registers the first token, the conductor
/// every later one.
#[derive(Clone, Debug)]
pub(crate) struct JoinToken {
    pub(crate) token: BootstrapToken,
    pub(crate) made_at: Timestamp,
    pub(crate) expires_at: Timestamp,
}

/// Returns the bootstrap data, which is made on first use. A token that expires soon is replaced.
pub(crate) async fn founding(
    secrets: &ClusterSecrets,
    spec: &ClusterSpec<'_>,
    seen: &ClusterObservation,
) -> Result<BootstrapData> {
    let (cluster, now) = (spec.cluster, (secrets.clock)());
    let kept = match secrets.store.find_secret(cluster.id, BOOTSTRAP).await? {
        Some(sealed) => open(secrets, cluster, &sealed)?,
        None => {
            let founders = founders(spec, seen)?;
            let sealed = seal(secrets, cluster, &with_token(founders, now))?;
            // Concurrent callers all get the data that was written first.
            let sealed = secrets.store.keep_secret(cluster.id, BOOTSTRAP, &sealed).await?;
            open(secrets, cluster, &sealed)?
        }
    };
    renew(secrets, cluster, kept).await
}

/// As [`founding`], for a cluster that has bootstrap data.
pub(super) async fn renewed(secrets: &ClusterSecrets, cluster: &Cluster) -> Result<BootstrapData> {
    let sealed =
        secrets.store.find_secret(cluster.id, BOOTSTRAP).await?.ok_or(SealError::CannotOpen)?;
    renew(secrets, cluster, open(secrets, cluster, &sealed)?).await
}

async fn renew(
    secrets: &ClusterSecrets,
    cluster: &Cluster,
    kept: BootstrapData,
) -> Result<BootstrapData> {
    let now = (secrets.clock)();
    if kept.token_expires_at.duration_since(now) > LEFT {
        return Ok(kept);
    }
    let renewed = with_token(kept.founders, now);
    secrets.store.save_secret(cluster.id, BOOTSTRAP, &seal(secrets, cluster, &renewed)?).await?;
    Ok(renewed)
}

/// Returns the token with which nodes join now. The caller has to register it as Secret `bootstrap-token-ID` in the cluster.
pub(crate) async fn join_token(
    secrets: &ClusterSecrets,
    spec: &ClusterSpec<'_>,
    seen: &ClusterObservation,
) -> Result<JoinToken> {
    founding(secrets, spec, seen).await?.token()
}

fn founders(spec: &ClusterSpec<'_>, seen: &ClusterObservation) -> Result<Vec<Founder>> {
    let shape = desired_objects(spec);
    let founder = |machine: MemberName| {
        let placed = placed(&machine, &shape, seen)?;
        Ok(Founder { machine, placed })
    };
    masters(spec).map(founder).collect()
}

impl BootstrapData {
    /// Returns the token with its times.
    pub(super) fn token(&self) -> Result<JoinToken> {
        let token = BootstrapToken::try_from(self.token.as_str());
        let token = token.map_err(|_| SealError::CannotOpen)?;
        Ok(JoinToken { token, made_at: self.token_made_at, expires_at: self.token_expires_at })
    }
}

fn with_token(founders: Vec<Founder>, now: Timestamp) -> BootstrapData {
    let lasts = SignedDuration::from_hours(TOKEN_HOURS.into());
    BootstrapData {
        founders,
        token: cluster_pki::new_bootstrap_token().expose().to_owned(),
        token_made_at: now,
        token_expires_at: now.saturating_add(lasts).unwrap_or(Timestamp::MAX),
    }
}

fn place(cluster: &Cluster) -> String {
    format!("{}/{BOOTSTRAP}", cluster.id)
}

fn kept(source: serde_json::Error) -> MemberConfigError {
    MemberConfigError::Kept { what: "the bootstrap data of the cluster", source }
}

fn seal(secrets: &ClusterSecrets, cluster: &Cluster, of: &BootstrapData) -> Result<String> {
    let plain = Zeroizing::new(serde_json::to_vec(of).map_err(kept)?);
    Ok(secrets.keyring.seal(&place(cluster), &plain)?)
}

fn open(secrets: &ClusterSecrets, cluster: &Cluster, sealed: &str) -> Result<BootstrapData> {
    serde_json::from_slice(&secrets.keyring.open_sealed(&place(cluster), sealed)?).map_err(kept)
}
