//! The front door: makes a conductor, and runs the turns of all resources.

use std::sync::Arc;

use cluster_store::{Store, StoreError};
use openstack::Session;
use reconcile::{Queue, Requeue, Watch, requeue};
use replicas::{LeasePassed, LeaseRefused, Membership, ShareKey};
use sealing::Keyring;
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::backup_store::BackupStore;
use crate::cloud::{Flavors, ObservationCache};
use crate::cluster_secrets::ClusterSecrets;
use crate::context::{Conductor, ConductorContext, GROUP, ResourceRef};
use crate::member_configs::MemberConfigs;
use crate::nodes::Clients;
use crate::settings::Settings;
use crate::tenancy::{CloudAccess, Tenancy};
use crate::turn_error::TurnError;
use crate::{drain, replica, seals, turn, vm};

/// Why the conductor stopped working.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("a turn panicked")]
    Turn(#[source] JoinError),
    #[error(transparent)]
    Lease(LeaseRefused),
}

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
        let membership = match store.conductors().is_shared() {
            true => Membership::shared(&settings.hostname),
            false => Membership::alone(&settings.hostname),
        };
        let own = cloud.as_ref().map(CloudAccess::own);
        let backups = settings.backups.as_ref();
        let context = ConductorContext {
            member_configs: MemberConfigs::new(settings.machines.clone(), secrets.clone()),
            backup_store: backups.and_then(|it| BackupStore::new(&it.place, own)),
            clients: Clients::new(secrets.clone()),
            watch: Watch::begin(clock()),
            queue: Queue::measured(settings.metrics.turns.clone(), ResourceRef::kind),
            settings,
            membership,
            store,
            cloud,
            keyring,
            rotated: Notify::new(),
            secrets,
            observation_cache: ObservationCache::default(),
            flavors: Flavors::default(),
        };
        Conductor { context: Arc::new(context) }
    }

    /// Runs turns of the resources of this conductor until `stop` is cancelled.
    ///
    /// # Errors
    ///
    /// When a turn panicked, or when this conductor must not work on its database.
    pub async fn run(self, stop: CancellationToken) -> Result<(), RunError> {
        self.note_reports().await;
        // A part that fails ends the others, and not the caller of this conductor.
        let stop = stop.child_token();
        let (mut tasks, context) = (JoinSet::new(), self.context);
        let (queue, workers) = (context.queue.clone(), context.settings.workers);
        let of_turns = context.clone();
        let turns = reconcile::run(queue, workers, stop.clone(), move |subject| {
            let context = of_turns.clone();
            async move { context.turn(subject).await }
        });
        let replica = replica::run(context.clone(), stop.clone());
        tasks.spawn(async move { replica.await.map_err(RunError::Lease) });
        tasks.spawn(beside(catch_up(context.clone(), stop.clone())));
        tasks.spawn(beside(seals::run(context, stop.clone())));
        let noted = |ended: Result<(), RunError>| ended.inspect_err(|_| stop.cancel());
        let turns = async { noted(turns.await.map_err(RunError::Turn)) };
        let others = async {
            let mut outcome = Ok(());
            while let Some(ended) = tasks.join_next().await {
                outcome = outcome.and(noted(ended.map_err(RunError::Turn).flatten()));
            }
            outcome
        };
        let (turns, others) = tokio::join!(turns, others);
        turns.and(others)
    }
}

/// Runs a task beside the turns, which ends only when the conductor stops.
async fn beside(work: impl Future<Output = ()>) -> Result<(), RunError> {
    work.await;
    Ok(())
}

/// Wakes all that rests, again and again until `stop` is cancelled. A request that was recorded may never have woken what it asked for: the
/// answer of the database was lost, the client hung up before, or the resource belonged to another conductor.
async fn catch_up(context: Arc<ConductorContext>, stop: CancellationToken) {
    loop {
        context.uncount_others();
        match context.subjects().await {
            Ok(all) => {
                let own = all.into_iter().filter(|it| context.membership.has(it, GROUP));
                own.for_each(|it| context.queue.wake_resting(it));
            }
            Err(error) => warn!("cannot read the list of clusters and VMs: {error}"),
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = context.membership.share_changed() => {}
            () = tokio::time::sleep(context.settings.look_every) => {}
        }
    }
}

impl ConductorContext {
    /// Runs one turn of a resource that belongs to this conductor, as long as the lease of this conductor lasts.
    async fn turn(&self, subject: ResourceRef) -> Requeue {
        let running = self.membership.begin_turn(subject);
        if !self.membership.admits(subject, GROUP) {
            self.let_go(subject);
            return Requeue::OnChange;
        }
        let turn = self.membership.fence().permit(Box::pin(self.permitted_turn(subject)));
        let ended = tokio::select! {
            biased;
            () = running.has_to_end() => Err(LeasePassed),
            ended = turn => ended,
        };
        let Ok(ended) = ended else {
            debug!("the turn of {subject} ended, because another conductor may work on it");
            self.let_go(subject);
            return Requeue::After(self.settings.soon());
        };
        let pauses = self.settings.retry_pauses();
        requeue(ended, format_args!("{subject}"), &self.watch, pauses)
    }

    async fn permitted_turn(&self, subject: ResourceRef) -> Result<Requeue, TurnError> {
        match subject {
            ResourceRef::Cluster(id) => turn::turn(self, id).await,
            ResourceRef::Vm(id) => Box::pin(vm::turn(self, id)).await,
            ResourceRef::Drain(id) => Box::pin(drain::turn(self, id)).await,
            ResourceRef::Snapshot(id) => Box::pin(vm::snapshot_turn(self, id)).await,
        }
    }

    /// Drops what the turns of a resource remember that belongs to another conductor now.
    fn let_go(&self, subject: ResourceRef) {
        if let ResourceRef::Cluster(id) = subject {
            self.observation_cache.forget(id);
            self.uncount_conditions(id);
        }
    }

    /// Returns everything that has turns.
    async fn subjects(&self) -> Result<Vec<ResourceRef>, StoreError> {
        let clusters = self.store.cluster_ids().await?.into_iter().map(ResourceRef::Cluster);
        let vms = self.store.vm_ids().await?.into_iter().map(ResourceRef::Vm);
        let snapshots = self.store.snapshot_ids().await?.into_iter().map(ResourceRef::Snapshot);
        let drains = self.store.drain_ids().await?.into_iter().map(ResourceRef::Drain);
        Ok(clusters.chain(vms).chain(snapshots).chain(drains).collect())
    }
}
