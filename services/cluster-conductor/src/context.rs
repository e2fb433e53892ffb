//! The parts of the conductor that turns and requests need.

use std::fmt::{Display, Formatter};
use std::str::FromStr;
use std::sync::Arc;

use cluster_core::{Cluster, ClusterUuid, DrainUuid, Ident, SnapshotUuid, VmUuid};
use cluster_store::{Scope, Store, StoreError};
use newtype_uuid::GenericUuid;
use openstack::Session;
use reconcile::{Queue, Watch};
use replicas::{Membership, ShareKey};
use sealing::Keyring;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::backup_store::BackupStore;
use crate::cloud::{Flavors, ObservationCache};
use crate::cluster_secrets::ClusterSecrets;
use crate::member_configs::MemberConfigs;
use crate::nodes::Clients;
use crate::settings::Settings;
use crate::tenancy::{CloudAccess, TenancyError};

/// The conductor group of everything: clusterd has no others.
pub(crate) const GROUP: &str = "";

/// A resource that has turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ResourceRef {
    Cluster(ClusterUuid),
    Vm(VmUuid),
    Snapshot(SnapshotUuid),
    Drain(DrainUuid),
}

/// Each resource belongs to the conductor that has its id, so that the API knows the conductor too.
impl ShareKey for ResourceRef {
    fn kind(&self) -> &'static str {
        match self {
            ResourceRef::Cluster(id) => id.kind(),
            ResourceRef::Vm(id) => id.kind(),
            ResourceRef::Snapshot(id) => id.kind(),
            ResourceRef::Drain(id) => id.kind(),
        }
    }

    fn id(&self) -> Uuid {
        match self {
            ResourceRef::Cluster(id) => id.id(),
            ResourceRef::Vm(id) => id.id(),
            ResourceRef::Snapshot(id) => id.id(),
            ResourceRef::Drain(id) => id.id(),
        }
    }
}

impl Display for ResourceRef {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.kind(), self.id())
    }
}

/// The text names no resource that this version knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnknownResource;

impl FromStr for ResourceRef {
    type Err = UnknownResource;

    fn from_str(text: &str) -> Result<Self, UnknownResource> {
        let (kind, id) = text.split_once('/').ok_or(UnknownResource)?;
        let id: Uuid = id.parse().map_err(|_| UnknownResource)?;
        let all = [
            ResourceRef::Cluster(ClusterUuid::from_untyped_uuid(id)),
            ResourceRef::Vm(VmUuid::from_untyped_uuid(id)),
            ResourceRef::Snapshot(SnapshotUuid::from_untyped_uuid(id)),
            ResourceRef::Drain(DrainUuid::from_untyped_uuid(id)),
        ];
        all.into_iter().find(|it| it.kind() == kind).ok_or(UnknownResource)
    }
}

/// Operates clusters, VMs, snapshots and drains. Clones share the same conductor.
#[derive(Clone)]
pub struct Conductor {
    pub(crate) context: Arc<ConductorContext>,
}

/// Everything that a turn works with.
pub(crate) struct ConductorContext {
    pub(crate) settings: Settings,
    pub(crate) queue: Queue<ResourceRef>,
    /// The share of this conductor in the work.
    pub(crate) membership: Membership<ResourceRef>,
    pub(crate) store: Store,
    /// `None`: clusterd was given no cloud.
    pub(crate) cloud: Option<CloudAccess>,
    pub(crate) keyring: Arc<Keyring>,
    /// Notified when another key begins to seal, so that stored secrets are re-encrypted at once.
    pub(crate) rotated: Notify,
    pub(crate) secrets: ClusterSecrets,
    pub(crate) member_configs: MemberConfigs,
    /// `None`: clusterd was given no store for backups.
    pub(crate) backup_store: Option<BackupStore>,
    /// The clients of clusters' Kubernetes APIs.
    pub(crate) clients: Clients,
    /// The observations of the last seconds.
    pub(crate) observation_cache: ObservationCache,
    /// The flavors of the last seconds, for requests to the API.
    pub(crate) flavors: Flavors,
    /// Machines are late from its beginning at the earliest, because what they said before may have been missed.
    pub(crate) watch: Watch,
}

impl Conductor {
    /// Schedules a turn of this cluster now.
    pub fn wake(&self, cluster: ClusterUuid) {
        self.context.wake(ResourceRef::Cluster(cluster));
    }

    /// Schedules a turn of this VM now.
    pub fn wake_vm(&self, vm: VmUuid) {
        self.context.wake(ResourceRef::Vm(vm));
    }

    /// Schedules a turn of this snapshot now.
    pub fn wake_snapshot(&self, snapshot: SnapshotUuid) {
        self.context.wake(ResourceRef::Snapshot(snapshot));
    }

    /// Has all conductors look at each other now, because one was drained or undrained.
    pub fn wake_conductors(&self) {
        self.context.membership.tell_of_members();
    }

    /// Whether this conductor does a task that one of the living conductors does for all.
    pub fn has_task(&self, task: &str) -> bool {
        self.context.membership.has_task(task)
    }
}

impl ConductorContext {
    /// Schedules a turn now, by the conductor that works on the resource.
    pub(crate) fn wake(&self, subject: ResourceRef) {
        self.queue.wake(subject);
        self.membership.tell_of(subject);
    }

    pub(crate) async fn cluster(&self, id: ClusterUuid) -> Result<Option<Cluster>, StoreError> {
        let ident = Ident::Id(id.into_untyped_uuid());
        Ok(self.store.find_clusters(&ident, &Scope::All).await?.into_iter().next())
    }

    /// Returns the session in a cluster's project, and the one in clusterd's own; `None` without a cloud.
    pub(crate) async fn sessions(
        &self,
        cluster: &Cluster,
        is_begun: bool,
    ) -> Result<Option<(Session, &Session)>, TenancyError> {
        let Some(cloud_access) = &self.cloud else { return Ok(None) };
        Ok(Some((cloud_access.of(cluster, is_begun).await?, cloud_access.own())))
    }

    /// Returns the session in the project of a VM, and the one in clusterd's own project; `None` without a cloud. `place` is the recorded
    /// project of an existing VM.
    pub(crate) async fn session_for(
        &self,
        project: &str,
        place: Option<&str>,
    ) -> Result<Option<(Session, &Session)>, TenancyError> {
        let Some(cloud_access) = &self.cloud else { return Ok(None) };
        let place = match place {
            Some(place) => place.to_owned(),
            None => cloud_access.place_of(project).await?,
        };
        Ok(Some((cloud_access.enter(&place).await?, cloud_access.own())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_read_from_its_text() {
        let id = Uuid::from_u128(7);
        let text = "00000000-0000-0000-0000-000000000007";
        for (resource, kind) in [
            (ResourceRef::Cluster(ClusterUuid::from_untyped_uuid(id)), "cluster"),
            (ResourceRef::Vm(VmUuid::from_untyped_uuid(id)), "vm"),
            (ResourceRef::Snapshot(SnapshotUuid::from_untyped_uuid(id)), "snapshot"),
            (ResourceRef::Drain(DrainUuid::from_untyped_uuid(id)), "drain"),
        ] {
            assert_eq!(resource.to_string(), format!("{kind}/{text}"));
            assert_eq!(resource.to_string().parse(), Ok(resource));
        }
        for text in ["", "vm/", "vm", "node/00000000-0000-0000-0000-000000000007"] {
            assert_eq!(text.parse::<ResourceRef>(), Err(UnknownResource));
        }
    }
}
