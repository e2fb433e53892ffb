//! What each machine of a cluster is told at its creation, and what it is handed out and heard of later.
//!
//! [`user_data`] makes what Nova is given: the whole config, or a claim to it. A claim's row holds the facts of which the
//! config is made when it is redeemed; keys and tokens come from their sealed places then.

mod claims;
mod config;
mod error;
mod facts;
pub(crate) mod founding;
mod settings;

use cluster_bootstrap::inline;
use cluster_core::{ClusterSpec, Delivery, MachineRef, Seen};
use ignition::UserData;

pub(crate) use error::MachinesError;
pub use settings::{KubernetesSettings, MachineSettings, NodesListener, SourceAddress};

use crate::handle::World;
use facts::{Facts, group_of};

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
    match group_of(spec, machine)?.labels.settings().delivery {
        Delivery::Inline => {
            let config = config::render(world, spec, machine, &facts, &outside?, token).await?;
            inline(&config).map_err(MachinesError::TooLong)
        }
        Delivery::Claim => {
            // What would make no config then is said now. Floating addresses may still come.
            let outside = outside.unwrap_or_default();
            config::render(world, spec, machine, &facts, &outside, token).await?;
            claims::claim(world, spec.cluster, machine, &facts).await
        }
    }
}
