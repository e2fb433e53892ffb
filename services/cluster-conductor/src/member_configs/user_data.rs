//! Makes the user-data of members.

use cluster_bootstrap::inline;
use cluster_core::{ClusterObservation, ClusterSpec, Delivery, MemberName};
use ignition::UserData;

use super::bootstrap_data::founding;
use super::event_limiter::EventLimiter;
use super::facts::{MemberFacts, group_of, outside};
use super::{MemberConfigError, Result, claims, config, own};
use crate::cluster_secrets::ClusterSecrets;
use crate::settings::MachineSettings;

/// Makes the configs of members, and hands them out.
pub(crate) struct MemberConfigs {
    pub(crate) settings: MachineSettings,
    pub(crate) secrets: ClusterSecrets,
    pub(super) limiter: EventLimiter,
}

impl MemberConfigs {
    pub(crate) fn new(settings: MachineSettings, secrets: ClusterSecrets) -> Self {
        MemberConfigs { settings, secrets, limiter: EventLimiter::default() }
    }

    /// Returns the user-data for the server of a member. A repeated call returns the same claim until it is redeemed.
    ///
    /// The addresses of the ports that the config names come from `seen`.
    pub(crate) async fn user_data(
        &self,
        spec: &ClusterSpec<'_>,
        machine: &MemberName,
        seen: &ClusterObservation,
    ) -> Result<UserData> {
        let (MachineSettings { kubernetes, nodes }, secrets) = (&self.settings, &self.secrets);
        let founding = founding(secrets, spec, seen).await?;
        let facts = MemberFacts::gather(spec, machine, seen, &founding.founders)?;
        let (outside, token) = (outside(spec, Some(seen)), founding.token()?);
        let group = group_of(spec, machine)?;
        let own = own::own_config(secrets, spec.cluster, group).await?;
        match (group.labels.settings().delivery, own) {
            (Delivery::Inline, Some(own)) => {
                UserData::from_document(&own).map_err(MemberConfigError::TooLong)
            }
            (Delivery::Claim, Some(_)) => {
                claims::claim((nodes.as_ref(), secrets), spec.cluster, machine, &facts).await
            }
            (Delivery::Inline, None) => {
                let config = config::render(
                    (kubernetes, secrets),
                    spec,
                    machine,
                    (&facts, &outside?),
                    token,
                )
                .await?;
                inline(&config).map_err(MemberConfigError::TooLong)
            }
            (Delivery::Claim, None) => {
                // An error in the config is reported now, not when the claim is redeemed. Floating IPs may still be missing.
                let outside = outside.unwrap_or_default();
                config::render((kubernetes, secrets), spec, machine, (&facts, &outside), token)
                    .await?;
                claims::claim((nodes.as_ref(), secrets), spec.cluster, machine, &facts).await
            }
        }
    }
}
