//! What a cluster's machines begin with: who founds the control plane, and by which token others join.
//!
//! Both are kept sealed beside the cluster's keys from the first machine on. Numbers of machines are never given again, so
//! a machine that founds is one of those that the control plane had then; any other of its machines joins.

use cluster_bootstrap::BootstrapToken;
use cluster_core::{Cluster, ClusterSpec, MachineRef, Seen, shape};
use jiff::{SignedDuration, Timestamp};
use sealing::SealError;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::MachinesError;
use super::facts::{Placed, masters, placed};
use crate::handle::World;

/// The name of the secret that holds it.
const BOOTSTRAP: &str = "bootstrap";
/// How long a token is good.
pub(super) const TOKEN_HOURS: u32 = 24;
/// A token is used no more when it is good for less than that: a claim lasts shorter, and joining too.
const LEFT: SignedDuration = SignedDuration::from_hours(4);

/// What is kept. It prints no token.
#[derive(Serialize, Deserialize)]
pub(crate) struct Founding {
    /// The machines that make up the control plane at first.
    pub(crate) founders: Vec<Founder>,
    token: String,
    token_made_at: Timestamp,
    token_expires_at: Timestamp,
}

/// A machine that founds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Founder {
    /// Which machine.
    pub(crate) machine: MachineRef,
    /// Where it was when the others were told.
    pub(crate) placed: Placed,
}

/// What machines show to join, now. The cluster's API has to know it: as long as the cluster's first token lasts, the
/// first machine has told it.
#[derive(Clone, Debug)]
pub(crate) struct JoinToken {
    /// The token.
    pub(crate) token: BootstrapToken,
    /// When it was made.
    pub(crate) made_at: Timestamp,
    /// Until when it is good.
    pub(crate) expires_at: Timestamp,
}

/// What the cluster's machines begin with, made on first use; with a new token where the old one is about to expire.
pub(crate) async fn founding(
    world: &World,
    spec: &ClusterSpec<'_>,
    seen: &Seen,
) -> Result<Founding, MachinesError> {
    let (cluster, now) = (spec.cluster, (world.settings.clock)());
    let kept = match world.store.find_secret(cluster.id, BOOTSTRAP).await? {
        Some(sealed) => open(world, cluster, &sealed)?,
        None => {
            let founders = founders(spec, seen)?;
            let sealed = seal(world, cluster, &with_token(founders, now))?;
            // Two that make it at once both get what was written first.
            let sealed = world.store.keep_secret(cluster.id, BOOTSTRAP, &sealed).await?;
            open(world, cluster, &sealed)?
        }
    };
    renew(world, cluster, kept).await
}

/// The same, of a cluster whose machines have begun.
pub(super) async fn renewed(world: &World, cluster: &Cluster) -> Result<Founding, MachinesError> {
    let sealed = world.store.find_secret(cluster.id, BOOTSTRAP).await?.ok_or(SealError::Broken)?;
    renew(world, cluster, open(world, cluster, &sealed)?).await
}

async fn renew(
    world: &World,
    cluster: &Cluster,
    kept: Founding,
) -> Result<Founding, MachinesError> {
    let now = (world.settings.clock)();
    if kept.token_expires_at.duration_since(now) > LEFT {
        return Ok(kept);
    }
    let renewed = with_token(kept.founders, now);
    world.store.save_secret(cluster.id, BOOTSTRAP, &seal(world, cluster, &renewed)?).await?;
    Ok(renewed)
}

/// What machines show to join, now. Whoever reaches the cluster's API makes it the Secret `bootstrap-token-ID` there.
pub(crate) async fn join_token(
    world: &World,
    spec: &ClusterSpec<'_>,
    seen: &Seen,
) -> Result<JoinToken, MachinesError> {
    founding(world, spec, seen).await?.token()
}

fn founders(spec: &ClusterSpec<'_>, seen: &Seen) -> Result<Vec<Founder>, MachinesError> {
    let shape = shape(spec);
    let founder = |machine: MachineRef| {
        let placed = placed(&machine, &shape, seen)?;
        Ok(Founder { machine, placed })
    };
    masters(spec).map(founder).collect()
}

impl Founding {
    /// The token, as it is to be shown.
    pub(super) fn token(&self) -> Result<JoinToken, MachinesError> {
        let token = BootstrapToken::try_from(self.token.as_str());
        let token = token.map_err(|_| SealError::Broken)?;
        Ok(JoinToken { token, made_at: self.token_made_at, expires_at: self.token_expires_at })
    }
}

fn with_token(founders: Vec<Founder>, now: Timestamp) -> Founding {
    let lasts = SignedDuration::from_hours(TOKEN_HOURS.into());
    Founding {
        founders,
        token: cluster_pki::token().expose().to_owned(),
        token_made_at: now,
        token_expires_at: now.saturating_add(lasts).unwrap_or(Timestamp::MAX),
    }
}

fn place(cluster: &Cluster) -> String {
    format!("{}/{BOOTSTRAP}", cluster.id)
}

fn kept(source: serde_json::Error) -> MachinesError {
    MachinesError::Kept { what: "what the cluster's machines begin with", source }
}

fn seal(world: &World, cluster: &Cluster, of: &Founding) -> Result<String, MachinesError> {
    let plain = Zeroizing::new(serde_json::to_vec(of).map_err(kept)?);
    Ok(world.keys.seal(&place(cluster), &plain)?)
}

fn open(world: &World, cluster: &Cluster, sealed: &str) -> Result<Founding, MachinesError> {
    serde_json::from_slice(&world.keys.open_sealed(&place(cluster), sealed)?).map_err(kept)
}
