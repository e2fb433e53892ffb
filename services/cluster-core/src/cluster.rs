//! The record of a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use jiff::Timestamp;
use lease::{Lease, MailAddress};
use serde::{Deserialize, Serialize};
use trace_context::TraceContext;

use crate::{
    Backup, BackupUuid, CaRevision, ClusterParameters, ClusterUuid, Condition, DesiredState,
    FailureCount, Key, KubernetesVersion, LabelsCompared, MemberCertificates, MemberName,
    MemberReboot, Name, Owner, RebootPhase, ReportedHealth, Restore, RestorePhase, Roll,
    TemplateUuid,
};

/// A cluster: what its owner asked for, and what the conductor concluded from the last observation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    pub id: ClusterUuid,
    /// Counts the changes; an update names the version it read, so that no change is lost.
    pub version: i64,
    /// The project that owns the cluster.
    pub project: String,
    pub user: String,
    pub name: Name,
    /// The template that the cluster was made from.
    pub template: TemplateUuid,
    pub created_at: Timestamp,
    pub updated_at: Option<Timestamp>,
    /// The parameters, copied from the template when the cluster was created.
    pub blueprint: ClusterParameters,
    /// The version of the control plane. During an upgrade the old one, until every control-plane member has the new one.
    pub kubernetes: KubernetesVersion,
    /// The public key of the caller's keypair. `None` without a keypair, and for a keypair of clusterd's own user in Nova.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_key: Option<String>,
    /// How the labels of the cluster differ from those of its template.
    pub labels_compared: LabelsCompared,
    /// After how many minutes an unfinished creation counts as failed; `None`: never.
    pub create_timeout: Option<u32>,
    /// Whether the cluster should exist or be deleted.
    pub desire: DesiredState,
    /// When every condition was last found true after a request. `None` until the cluster is complete for the first time.
    pub completed_at: Option<Timestamp>,
    /// When the owner last asked for a change. A failure before this time no longer delays a retry.
    pub asked_at: Timestamp,
    /// The id of that request. The conductor's calls to the cloud carry the id, so that they can be traced back to it.
    #[serde(default)]
    pub asked_by: Option<String>,
    /// The trace of the request that asked for what is in progress, recorded with the intent: the turns after a restart continue the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
    /// `https://ADDRESS:PORT`, once the address is known.
    pub api_address: Option<String>,
    /// The address of each member, once known.
    pub machine_addresses: BTreeMap<MemberName, IpAddr>,
    /// The members that have become Kubernetes nodes, including deleted members that Kubernetes or etcd still lists.
    #[serde(default)]
    pub nodes: BTreeSet<MemberName>,
    /// The members of `nodes` that were not ready, or whose health was unknown, at the last observation.
    #[serde(default)]
    pub unready: BTreeSet<MemberName>,
    /// The generation of the cluster's application credential; the conductor replaces the credential when the number rises.
    #[serde(default)]
    pub credential: u32,
    /// The first member number of the next node group. Higher than every number of a deleted group, so that no new member gets the name of
    /// an old one.
    #[serde(default)]
    pub first_machine: u32,
    /// The revision of the certificate authorities that all members must hold.
    #[serde(default)]
    pub authorities: CaRevision,
    /// The roll in progress, which replaces members by members with other parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roll: Option<Roll>,
    /// The certificates of the members that have reported them.
    #[serde(default)]
    pub certificates: BTreeMap<MemberName, MemberCertificates>,
    /// The member that reboots for an update of its operating system.
    #[serde(default)]
    pub reboot: Option<MemberReboot>,
    /// The members whose pods could not be evicted for a reboot, and when each was uncordoned again. Each may try again some hours later.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub undrained: BTreeMap<MemberName, Timestamp>,
    /// Failures of the cloud to create an object, which delay the next attempt.
    #[serde(default)]
    pub setbacks: BTreeMap<Key, FailureCount>,
    /// The id of the cloud's project in which the cluster is created; `None` before the first turn. Recorded once, so that a later change
    /// of the configuration does not move the cluster.
    #[serde(default)]
    pub cloud_project: Option<String>,
    /// The lease; `None`: the cluster exists without end.
    #[serde(default)]
    pub lending: Option<ClusterLease>,
    /// Whether the end of the lease switched the servers off, or they are starting again; `None`: they run.
    #[serde(default)]
    pub rest: Option<LeasePower>,
    /// The backups of etcd, also those that are being made or deleted.
    #[serde(default)]
    pub backups: Vec<Backup>,
    /// The restoration of the control plane that is in progress.
    #[serde(default)]
    pub restore: Option<Restore>,
    /// The number of restorations. A member that was created before the last one has to start its kubelet again.
    #[serde(default)]
    pub restores: u32,
    /// The health that a client reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported_health: Option<ReportedHealth>,
    /// The conclusions of the last observation.
    pub conditions: Vec<Condition>,
}

impl Cluster {
    /// Makes a new cluster with the labels of its template and without a limit on the time of its creation.
    pub fn new(
        id: ClusterUuid,
        owner: Owner,
        name: Name,
        (template, blueprint): (TemplateUuid, ClusterParameters),
        now: Timestamp,
    ) -> Self {
        let kubernetes = blueprint.labels.settings().kubernetes;
        Cluster {
            id,
            version: 1,
            project: owner.project,
            user: owner.user,
            name,
            template,
            created_at: now,
            updated_at: None,
            blueprint,
            kubernetes: kubernetes.unwrap_or(KubernetesVersion::DEFAULT),
            ssh_key: None,
            labels_compared: LabelsCompared::default(),
            create_timeout: None,
            desire: DesiredState::Exist,
            completed_at: None,
            asked_at: now,
            asked_by: None,
            trace: None,
            api_address: None,
            machine_addresses: BTreeMap::new(),
            nodes: BTreeSet::new(),
            unready: BTreeSet::new(),
            credential: 1,
            first_machine: 0,
            authorities: CaRevision::default(),
            roll: None,
            certificates: BTreeMap::new(),
            reboot: None,
            undrained: BTreeMap::new(),
            setbacks: BTreeMap::new(),
            cloud_project: None,
            lending: None,
            rest: None,
            backups: Vec::new(),
            restore: None,
            restores: 0,
            reported_health: None,
            conditions: Vec::new(),
        }
    }

    /// Returns the Nova keypair of the servers. Nova finds only keypairs of clusterd's own user, so the caller's key is in the members'
    /// configs instead.
    pub fn nova_keypair(&self) -> Option<&str> {
        self.blueprint.keypair.as_deref().filter(|_| self.ssh_key.is_none())
    }

    /// Returns the trace of the last request, until everything that the request asked for is complete.
    pub fn trace_in_progress(&self) -> Option<&TraceContext> {
        let is_complete = self.completed_at.is_some_and(|at| at >= self.asked_at);
        let is_wanted = self.desire == DesiredState::Exist;
        self.trace.as_ref().filter(|_| !(is_complete && is_wanted))
    }

    /// Whether programs of version 0.1.0 can work on a new cluster: they read no version of Kubernetes after 1.34, and would give the servers
    /// a keypair of clusterd's own user.
    pub fn suits_0_1(&self) -> bool {
        self.kubernetes.minor <= 34 && self.ssh_key.is_none()
    }

    /// Whether the member renews its certificates now, for which it restarts the processes of its Kubernetes node.
    pub fn is_renewing(&self, machine: &MemberName) -> bool {
        self.certificates.get(machine).is_some_and(|held| held.renewing_since.is_some())
    }

    /// Whether a roll is in progress that is not paused.
    pub fn is_rolling(&self) -> bool {
        self.roll.as_ref().is_some_and(|roll| !roll.is_paused)
    }

    /// Whether the member may reboot now for an update of its operating system, or does so.
    pub fn is_rebooting(&self, machine: &MemberName) -> bool {
        let reboot = self.reboot.as_ref().filter(|it| it.machine == *machine);
        reboot.is_some_and(|it| it.phase == RebootPhase::Permitted)
    }

    /// Whether the servers should be off.
    pub fn is_off(&self) -> bool {
        self.rest == Some(LeasePower::Off) && self.desire == DesiredState::Exist
    }

    /// Whether the servers of the control plane are being deleted for a restoration.
    pub fn is_clearing(&self) -> bool {
        self.restore.as_ref().is_some_and(|it| it.phase == RestorePhase::Clearing)
    }

    /// Returns the backup from which control-plane members that are created now start; `None`: they join as usual.
    pub fn starts_from(&self) -> Option<BackupUuid> {
        let restore = self.restore.as_ref()?;
        (restore.phase == RestorePhase::Starting).then_some(restore.backup)
    }

    /// Returns since when the servers are starting again; `None` when they are not.
    pub fn waking_since(&self) -> Option<Timestamp> {
        match (self.rest, self.desire) {
            (Some(LeasePower::Waking { since }), DesiredState::Exist) => Some(since),
            (Some(LeasePower::Off) | None, _) | (_, DesiredState::Gone) => None,
        }
    }
}

/// The lease of a cluster, with the address for its notices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterLease {
    /// The length of the lease, and the stages that were already taken.
    pub lease: Lease,
    /// A mail address that receives notices about the end of the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<MailAddress>,
}

/// Why the servers of a cluster do not run as usual.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeasePower {
    /// The lease ended: the servers are switched off and stay off.
    Off,
    /// The lease was extended, or its end undone: the servers are starting again.
    Waking { since: Timestamp },
}
