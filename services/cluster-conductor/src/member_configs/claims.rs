//! Claims: the credentials with which servers fetch their configs.
//!
//! The credential derives from the service's key and the claim's id, and the store holds only its digest. As long as a claim is not
//! redeemed, a repeated call returns the same one, so a crash before the server is created wastes nothing.

use std::time::Duration;

use cluster_bootstrap::stub;
use cluster_core::{ClaimUuid, Cluster, MemberName};
use cluster_store::Claim;
use ignition::UserData;
use jiff::{SignedDuration, Timestamp};
use ring::digest::{SHA256, digest};
use sealing::Purpose;
use zeroize::Zeroizing;

use super::facts::MemberFacts;
use super::{MemberConfigError, Result};
use crate::cluster_secrets::ClusterSecrets;
use crate::settings::NodesListener;

/// Returns user-data with a claim for the member: the existing claim, as long as it can be redeemed, or a new one.
pub(super) async fn claim(
    (nodes, secrets): (Option<&NodesListener>, &ClusterSecrets),
    cluster: &Cluster,
    machine: &MemberName,
    facts: &MemberFacts,
) -> Result<UserData> {
    let nodes = nodes.ok_or(MemberConfigError::NoListener)?;
    let now = (secrets.clock)();
    let expires_at = later(now, nodes.claim_lasts);
    let facts = serde_json::to_string(facts)
        .map_err(|source| MemberConfigError::Kept { what: "the facts of a claim", source })?;
    let (id, token) = match reusable(secrets, cluster, machine, now).await? {
        Some((id, token)) if secrets.store.renew_claim(id, &facts, expires_at).await? => {
            (id, token)
        }
        Some(_) | None => {
            let id = ClaimUuid::new_v4();
            let token = secrets.keyring.derive(Purpose::Claim, &id.to_string())?.token;
            let new = Claim {
                id,
                cluster: cluster.id,
                machine: machine.clone(),
                digest: digest_of(&token),
                facts,
                expires_at,
                redeemed_at: None,
                redeemed_by: None,
            };
            secrets.store.insert_claim(&new).await?;
            (id, token)
        }
    };
    let url = nodes.url.join(&format!("v1/claims/{id}")).expect("an id is a path");
    let claim = cluster_bootstrap::Claim {
        url,
        token: token.as_str().into(),
        authority: nodes.authority.clone(),
    };
    stub(&claim).map_err(MemberConfigError::TooLong)
}

/// Returns the member's claim with its credential, if it can still be redeemed.
async fn reusable(
    secrets: &ClusterSecrets,
    cluster: &Cluster,
    machine: &MemberName,
    now: Timestamp,
) -> Result<Option<(ClaimUuid, Zeroizing<String>)>> {
    let Some(given) = secrets.store.claim_of(cluster.id, machine).await? else { return Ok(None) };
    let token = secrets.keyring.derive(Purpose::Claim, &given.id.to_string())?.token;
    // Another key may have become the current one since.
    let is_good =
        given.redeemed_at.is_none() && given.expires_at > now && given.digest == digest_of(&token);
    Ok(is_good.then_some((given.id, token)))
}

pub(super) fn kept(source: serde_json::Error) -> MemberConfigError {
    MemberConfigError::Kept { what: "the facts of a claim", source }
}

/// Returns the SHA-256 in hex.
pub(super) fn digest_of(token: &str) -> String {
    hex::encode(digest(&SHA256, token.as_bytes()))
}

fn later(now: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    now.saturating_add(by).unwrap_or(Timestamp::MAX)
}
