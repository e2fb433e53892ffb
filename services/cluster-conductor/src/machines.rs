//! What each machine of a cluster is told at its creation, and what it is handed out and heard of later.
//!
//! [`user_data`] makes what Nova is given: the whole config, or a claim to it. A claim's row holds the facts of which the
//! config is made when it is redeemed; keys and tokens come from their sealed places then.

mod authorities;
mod claims;
mod config;
mod error;
mod facts;
mod founding;
mod hush;
mod own;
mod redeem;
mod rehearsal;
mod settings;

use std::net::IpAddr;

use cluster_bootstrap::inline;
use cluster_core::{Cluster, ClusterSpec, Delivery, MachineRef, NodeGroup, Seen};
use ignition::UserData;

pub use authorities::Handout;
pub use error::MachinesError;
pub(crate) use founding::join_token;
pub(crate) use hush::Hush;
pub use own::OwnConfigError;
pub use redeem::Answer;
pub use settings::{KubernetesSettings, MachineSettings, NodesListener, SourceAddress};

use crate::handle::{Conductor, World};
use facts::{Facts, group_of};
use redeem::Noted;

/// What the machine's server is to be given as user data: asked again, it is the same while nobody has redeemed it.
///
/// The addresses of the ports it names are taken from `seen`.
pub(crate) async fn user_data(
    world: &World,
    spec: &ClusterSpec<'_>,
    machine: &MachineRef,
    seen: &Seen,
) -> Result<UserData, MachinesError> {
    let founding = founding::founding(world, spec, seen).await?;
    let facts = Facts::gather(spec, machine, seen, &founding.founders)?;
    let (outside, token) = (facts::outside(spec, Some(seen)), founding.token()?);
    let group = group_of(spec, machine)?;
    let own = own::own_config(world, spec.cluster, group).await?;
    match (group.labels.settings().delivery, own) {
        (Delivery::Inline, Some(own)) => {
            UserData::of_document(&own).map_err(MachinesError::TooLong)
        }
        (Delivery::Claim, Some(_)) => claims::claim(world, spec.cluster, machine, &facts).await,
        (Delivery::Inline, None) => {
            let config = config::render(world, spec, machine, &facts, &outside?, token).await?;
            inline(&config).map_err(MachinesError::TooLong)
        }
        (Delivery::Claim, None) => {
            // What would make no config then is said now. Floating addresses may still come.
            let outside = outside.unwrap_or_default();
            config::render(world, spec, machine, &facts, &outside, token).await?;
            claims::claim(world, spec.cluster, machine, &facts).await
        }
    }
}

/// What a machine says of a step of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineReported {
    /// The step: a few letters, digits and `-`.
    pub step: String,
    /// systemd's word: `success`, `exit-code`, `timeout`.
    pub result: String,
    /// The status that its last program ended with.
    pub status: Option<i32>,
}

impl Conductor {
    /// What the server of a machine is to be given as user data, as a turn asks for it.
    pub async fn user_data(
        &self,
        cluster: &Cluster,
        groups: &[NodeGroup],
        machine: &MachineRef,
        seen: &Seen,
    ) -> Result<UserData, MachinesError> {
        user_data(&self.world, &ClusterSpec { cluster, groups }, machine, seen).await
    }

    /// The config of the machine that shows its claim from this address.
    pub async fn redeem(&self, claim: &str, token: &str, from: IpAddr) -> Answer {
        let Ok(id) = claim.parse() else { return Answer::Nothing };
        match redeem::redeem(&self.world, id, token, from.to_canonical()).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::error!(claim.id = %id, "cannot hand out a config: {error}");
                Answer::Later
            }
        }
    }

    /// What a machine is to do that holds this revision of the authorities, and shows what its config gave it for its reports.
    pub async fn authorities_for(&self, claim: &str, token: &str, holds: u32) -> Handout {
        let Ok(id) = claim.parse() else { return Handout::Nothing };
        match authorities::ask(&self.world, id, token, holds).await {
            Ok((told, news)) => {
                if let Some(cluster) = news {
                    self.wake(cluster);
                }
                told
            }
            Err(error) => {
                tracing::error!(claim.id = %id, "cannot tell a machine its authorities: {error}");
                Handout::Soon
            }
        }
    }

    /// Notes what a machine says that shows what its config gave it for that; false, where it shows something else.
    pub async fn note_report(&self, claim: &str, token: &str, said: &MachineReported) -> bool {
        let Ok(id) = claim.parse() else { return false };
        match redeem::note(&self.world, id, token, said).await {
            Ok(Noted::Refused) => false,
            Ok(Noted::Old) => true,
            Ok(Noted::News(cluster)) => {
                self.wake(cluster);
                true
            }
            Err(error) => {
                tracing::error!(claim.id = %id, "cannot note what a machine says: {error}");
                true
            }
        }
    }
}
