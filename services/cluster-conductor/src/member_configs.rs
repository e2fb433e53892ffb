//! The user-data and Ignition configs of members, and the reports that members send.
//!
//! [`user_data`] makes the user-data for Nova: the whole config, or a claim to it. The row of a claim holds the facts from which the config
//! is made when the claim is redeemed; keys and tokens are added from their sealed places at that time.

mod authorities;
mod bootstrap_data;
mod claims;
mod config;
mod error;
mod event_limiter;
mod facts;
mod own;
mod redeem;
mod rehearsal;
mod settings;

use std::net::IpAddr;

use cluster_bootstrap::inline;
use cluster_core::{Cluster, ClusterObservation, ClusterSpec, Delivery, MemberName, NodeGroup};
use ignition::UserData;

pub use authorities::CaHandout;
pub(crate) use bootstrap_data::join_token;
pub use error::MemberConfigError;
pub(crate) use event_limiter::EventLimiter;
pub use own::OwnConfigError;
pub use redeem::Answer;
pub use settings::{KubernetesSettings, MachineSettings, NodesListener, SourceAddress};

use crate::handle::{Conductor, ConductorContext};
use facts::{MemberFacts, group_of};
use redeem::ReportResult;

/// Returns the user-data for the server of a member. A repeated call returns the same claim until it is redeemed.
///
/// The addresses of the ports that the config names come from `seen`.
pub(crate) async fn user_data(
    context: &ConductorContext,
    spec: &ClusterSpec<'_>,
    machine: &MemberName,
    seen: &ClusterObservation,
) -> Result<UserData, MemberConfigError> {
    let founding = bootstrap_data::founding(context, spec, seen).await?;
    let facts = MemberFacts::gather(spec, machine, seen, &founding.founders)?;
    let (outside, token) = (facts::outside(spec, Some(seen)), founding.token()?);
    let group = group_of(spec, machine)?;
    let own = own::own_config(context, spec.cluster, group).await?;
    match (group.labels.settings().delivery, own) {
        (Delivery::Inline, Some(own)) => {
            UserData::from_document(&own).map_err(MemberConfigError::TooLong)
        }
        (Delivery::Claim, Some(_)) => claims::claim(context, spec.cluster, machine, &facts).await,
        (Delivery::Inline, None) => {
            let config = config::render(context, spec, machine, &facts, &outside?, token).await?;
            inline(&config).map_err(MemberConfigError::TooLong)
        }
        (Delivery::Claim, None) => {
            // An error in the config is reported now, not when the claim is redeemed. Floating IPs may still be missing.
            let outside = outside.unwrap_or_default();
            config::render(context, spec, machine, &facts, &outside, token).await?;
            claims::claim(context, spec.cluster, machine, &facts).await
        }
    }
}

/// A member's report about a step of its bootstrap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepReport {
    /// The step: a few letters, digits and `-`.
    pub step: String,
    /// systemd's result: `success`, `exit-code`, `timeout`.
    pub result: String,
    /// The exit status of the step's last program.
    pub status: Option<i32>,
}

impl Conductor {
    /// Returns the user-data for the server of a member, as a turn does.
    pub async fn user_data(
        &self,
        cluster: &Cluster,
        groups: &[NodeGroup],
        machine: &MemberName,
        seen: &ClusterObservation,
    ) -> Result<UserData, MemberConfigError> {
        user_data(&self.context, &ClusterSpec { cluster, groups }, machine, seen).await
    }

    /// Returns the config for a claim that is redeemed from this address.
    pub async fn redeem(&self, claim: &str, token: &str, from: IpAddr) -> Answer {
        let Ok(id) = claim.parse() else { return Answer::Nothing };
        match redeem::redeem(&self.context, id, token, from.to_canonical()).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::error!(claim.id = %id, "cannot hand out a config: {error}");
                Answer::Later
            }
        }
    }

    /// Tells a member that holds this CA revision what to do. The member authenticates with its report token.
    pub async fn authorities_for(&self, claim: &str, token: &str, holds: u32) -> CaHandout {
        let Ok(id) = claim.parse() else { return CaHandout::Nothing };
        match authorities::ask(&self.context, id, token, holds).await {
            Ok((told, news)) => {
                if let Some(cluster) = news {
                    self.wake(cluster);
                }
                told
            }
            Err(error) => {
                tracing::error!(claim.id = %id, "cannot answer a member's request for certificate authorities: {error}");
                CaHandout::Soon
            }
        }
    }

    /// Records a report. Returns false when the token is wrong.
    pub async fn note_report(&self, claim: &str, token: &str, said: &StepReport) -> bool {
        let Ok(id) = claim.parse() else { return false };
        match redeem::note(&self.context, id, token, said).await {
            Ok(ReportResult::Refused) => false,
            Ok(ReportResult::Old) => true,
            Ok(ReportResult::News(cluster)) => {
                self.wake(cluster);
                true
            }
            Err(error) => {
                tracing::error!(claim.id = %id, "cannot record a member's report: {error}");
                true
            }
        }
    }
}
