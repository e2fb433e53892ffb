//! The front door: makes a conductor, and runs the turns of all resources.

use std::sync::Arc;

use cluster_store::{Store, StoreError};
use openstack::Session;
use reconcile::{Queue, Watch, requeue};
use sealing::Keyring;
use tokio::sync::Notify;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

use crate::cloud::{Flavors, ObservationCache};
use crate::cluster_secrets::ClusterSecrets;
use crate::context::{Conductor, ConductorContext, ResourceRef};
use crate::member_configs::MemberConfigs;
use crate::nodes::Clients;
use crate::settings::Settings;
use crate::tenancy::{CloudAccess, Tenancy};
use crate::{drain, seals, turn, vm};

impl Conductor {
    /// Makes a conductor that creates all clusters in the session's project; `run` starts it. Without a cloud it creates nothing, and each
    /// cluster's conditions say so.
    pub fn new(
        settings: Settings,
        store: Store,
        keys: impl Into<Arc<Keyring>>,
        cloud: Option<Session>,
    ) -> Self {
        let cloud = cloud.map(|session| CloudAccess::new(session, Tenancy::Shared));
        Conductor::of(settings, store, keys.into(), cloud)
    }

    /// Makes a conductor that creates each cluster in the project that requested it. The session's user needs a role in each project.
    pub fn of_tenants(
        settings: Settings,
        store: Store,
        keys: impl Into<Arc<Keyring>>,
        cloud: Session,
    ) -> Self {
        Conductor::of(settings, store, keys.into(), Some(CloudAccess::new(cloud, Tenancy::Own)))
    }

    fn of(
        settings: Settings,
        store: Store,
        keyring: Arc<Keyring>,
        cloud: Option<CloudAccess>,
    ) -> Self {
        let clock = settings.clock;
        let secrets = ClusterSecrets { store: store.clone(), keyring: keyring.clone(), clock };
        let context = ConductorContext {
            member_configs: MemberConfigs::new(settings.machines.clone(), secrets.clone()),
            clients: Clients::new(secrets.clone()),
            watch: Watch::begin(clock()),
            settings,
            store,
            cloud,
            keyring,
            rotated: Notify::new(),
            secrets,
            observation_cache: ObservationCache::default(),
            flavors: Flavors::default(),
        };
        Conductor { context: Arc::new(context), queue: Queue::default() }
    }

    /// Runs turns of all resources until `stop` is cancelled.
    ///
    /// # Errors
    ///
    /// When a turn panicked.
    pub async fn run(self, stop: CancellationToken) -> Result<(), JoinError> {
        self.note_reports().await;
        let catching_up =
            tokio::spawn(catch_up(self.context.clone(), self.queue.clone(), stop.clone()));
        let alive = tokio::spawn(turn::stay_alive(self.context.clone(), stop.clone()));
        let sealing = tokio::spawn(seals::run(self.context.clone(), stop.clone()));
        let (context, workers) = (self.context.clone(), self.context.settings.workers);
        let queue = self.queue.clone();
        let ended = reconcile::run(self.queue, workers, stop, move |subject| {
            let (context, queue) = (context.clone(), queue.clone());
            async move {
                let ended = match subject {
                    ResourceRef::Cluster(id) => turn::turn(&context, id).await,
                    ResourceRef::Vm(id) => Box::pin(vm::turn(&context, &queue, id)).await,
                    ResourceRef::Drain(id) => Box::pin(drain::turn(&context, id)).await,
                    ResourceRef::Snapshot(id) => {
                        Box::pin(vm::snapshot_turn(&context, &queue, id)).await
                    }
                };
                let pauses = context.settings.retry_pauses();
                requeue(ended, format_args!("{subject:?}"), &context.watch, pauses)
            }
        });
        ended.await?;
        sealing.await?;
        catching_up.await?;
        alive.await
    }
}

/// Wakes all that rests, again and again until `stop` is cancelled. A request that was recorded may never have woken what it asked for: the
/// answer of the database was lost, or the client hung up before.
async fn catch_up(
    context: Arc<ConductorContext>,
    queue: Queue<ResourceRef>,
    stop: CancellationToken,
) {
    loop {
        match context.subjects().await {
            Ok(all) => all.into_iter().for_each(|it| queue.wake_resting(it)),
            Err(error) => tracing::warn!("cannot read the list of clusters and VMs: {error}"),
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(context.settings.look_every) => {}
        }
    }
}

impl ConductorContext {
    /// Returns everything that has turns.
    async fn subjects(&self) -> Result<Vec<ResourceRef>, StoreError> {
        let clusters = self.store.cluster_ids().await?.into_iter().map(ResourceRef::Cluster);
        let vms = self.store.vm_ids().await?.into_iter().map(ResourceRef::Vm);
        let snapshots = self.store.snapshot_ids().await?.into_iter().map(ResourceRef::Snapshot);
        let drains = self.store.drain_ids().await?.into_iter().map(ResourceRef::Drain);
        Ok(clusters.chain(vms).chain(snapshots).chain(drains).collect())
    }
}
