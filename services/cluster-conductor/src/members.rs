//! The API's and the members' own requests about configs, claims and reports.

use std::net::IpAddr;

use cluster_core::{Cluster, ClusterObservation, ClusterSpec, MemberName, NodeGroup, RebootAnswer};
use ignition::UserData;

use crate::Conductor;
use crate::member_configs::{
    self, Answer, CaHandout, CertificateAnswer, MemberConfigError, OwnConfigError, RebootReport,
    ReportResult, StepReport,
};

impl Conductor {
    /// Returns the user-data for the server of a member, as a turn does.
    pub async fn user_data(
        &self,
        cluster: &Cluster,
        groups: &[NodeGroup],
        machine: &MemberName,
        seen: &ClusterObservation,
    ) -> Result<UserData, MemberConfigError> {
        let spec = ClusterSpec { cluster, groups };
        self.context.member_configs.user_data(&spec, machine, seen).await
    }

    /// Tries to make the config of one member per group, and returns the first error.
    ///
    /// A clusterd without any Kubernetes version accepts every cluster: the clusters wait until an administrator configures a version.
    pub fn check_member_configs(
        &self,
        cluster: &Cluster,
        groups: &[NodeGroup],
    ) -> Result<(), MemberConfigError> {
        member_configs::check_member_configs(&self.context.settings.machines, cluster, groups)
    }

    /// Stores a config for servers of this group that are created from now on. The config is sealed, because it may contain secrets.
    /// Returns its version.
    pub async fn set_own_config(
        &self,
        cluster: &Cluster,
        group: &NodeGroup,
        text: &str,
    ) -> Result<String, OwnConfigError> {
        member_configs::set_own_config(&self.context.secrets, cluster, group, text).await
    }

    /// Deletes the config of a group, if it has one.
    pub async fn remove_own_config(
        &self,
        cluster: &Cluster,
        group: &NodeGroup,
    ) -> Result<(), OwnConfigError> {
        member_configs::remove_own_config(&self.context.store, cluster, group).await
    }

    /// Whether servers of this group that are created from now on get a config of the group's own.
    pub async fn has_own_config(
        &self,
        cluster: &Cluster,
        group: &NodeGroup,
    ) -> Result<bool, OwnConfigError> {
        member_configs::has_own_config(&self.context.store, cluster, group).await
    }

    /// Returns the config for a claim that is redeemed from this address.
    pub async fn redeem(&self, claim: &str, token: &str, from: IpAddr) -> Answer {
        let Ok(id) = claim.parse() else { return Answer::Nothing };
        let configs = &self.context.member_configs;
        match member_configs::redeem(configs, id, token, from.to_canonical()).await {
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
        match member_configs::ask_authorities(&self.context.secrets, id, token, holds).await {
            Ok((answer, news)) => {
                if let Some(cluster) = news {
                    self.wake(cluster);
                }
                answer
            }
            Err(error) => {
                tracing::error!(claim.id = %id, "cannot answer a member's request for certificate authorities: {error}");
                CaHandout::Soon
            }
        }
    }

    /// Records a member's report about its certificates, and tells the member whether to renew them now.
    pub async fn take_certificate_report(
        &self,
        claim: &str,
        token: &str,
        report: &str,
    ) -> CertificateAnswer {
        let Ok(id) = claim.parse() else { return CertificateAnswer::Nothing };
        let secrets = &self.context.secrets;
        match member_configs::take_certificate_report(secrets, id, token, report).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::error!(claim.id = %id, "cannot record a member's certificates: {error}");
                CertificateAnswer::ReportAgain(60)
            }
        }
    }

    /// Tells a member whether it may reboot for an update of its operating system. `None`: refused, without a reason.
    pub async fn take_reboot_report(
        &self,
        claim: &str,
        token: &str,
        report: RebootReport,
    ) -> Option<RebootAnswer> {
        let id = claim.parse().ok()?;
        let secrets = &self.context.secrets;
        match member_configs::take_reboot_report(secrets, id, token, report).await {
            Ok(outcome) => {
                let (answer, news) = outcome?;
                if let Some(cluster) = news {
                    self.wake(cluster);
                }
                Some(answer)
            }
            Err(error) => {
                tracing::error!(claim.id = %id, "cannot answer a member that wants to reboot: {error}");
                Some(RebootAnswer::Wait("clusterd cannot read its database".to_owned()))
            }
        }
    }

    /// Records a report. Returns false when the token is wrong.
    pub async fn note_report(&self, claim: &str, token: &str, said: &StepReport) -> bool {
        let Ok(id) = claim.parse() else { return false };
        match member_configs::note_report(&self.context.secrets, id, token, said).await {
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
