//! The parts of the conductor that turns and requests need.

use std::sync::Arc;

use cluster_core::{Cluster, ClusterUuid, DrainUuid, Ident, SnapshotUuid, VmUuid};
use cluster_store::{Scope, Store, StoreError};
use newtype_uuid::GenericUuid;
use openstack::Session;
use reconcile::{Queue, Watch};
use sealing::Keyring;
use tokio::sync::Notify;

use crate::cloud::{Flavors, ObservationCache};
use crate::cluster_secrets::ClusterSecrets;
use crate::member_configs::MemberConfigs;
use crate::nodes::Clients;
use crate::settings::Settings;
use crate::tenancy::{CloudAccess, TenancyError};

/// A resource that has turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ResourceRef {
    Cluster(ClusterUuid),
    Vm(VmUuid),
    Snapshot(SnapshotUuid),
    Drain(DrainUuid),
}

/// Operates clusters, VMs, snapshots and drains. Clones share the same conductor.
#[derive(Clone)]
pub struct Conductor {
    pub(crate) context: Arc<ConductorContext>,
    pub(crate) queue: Queue<ResourceRef>,
}

/// Everything that a turn works with.
pub(crate) struct ConductorContext {
    pub(crate) settings: Settings,
    pub(crate) store: Store,
    /// `None`: clusterd was given no cloud.
    pub(crate) cloud: Option<CloudAccess>,
    pub(crate) keyring: Arc<Keyring>,
    /// Notified when another key begins to seal, so that stored secrets are re-encrypted at once.
    pub(crate) rotated: Notify,
    pub(crate) secrets: ClusterSecrets,
    pub(crate) member_configs: MemberConfigs,
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
        self.queue.wake(ResourceRef::Cluster(cluster));
    }

    /// Schedules a turn of this VM now.
    pub fn wake_vm(&self, vm: VmUuid) {
        self.queue.wake(ResourceRef::Vm(vm));
    }

    /// Schedules a turn of this snapshot now.
    pub fn wake_snapshot(&self, snapshot: SnapshotUuid) {
        self.queue.wake(ResourceRef::Snapshot(snapshot));
    }
}

impl ConductorContext {
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
