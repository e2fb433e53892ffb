//! The conductor's interface for the API and the daemon: start, wake, and a cluster's certificates.

use std::sync::Arc;
use std::time::Duration;

use cluster_bootstrap::{Endpoint, Name, Pki};
use cluster_core::{
    CertificateUuid, Cluster, ClusterUuid, DrainUuid, Ident, RepairLimits, SnapshotUuid, VmUuid,
};
use cluster_pki::{PkiError, SignError, Validity};
use cluster_store::{Certificate, Scope, Store, StoreError};
use jiff::{SignedDuration, Timestamp};
use newtype_uuid::GenericUuid;
use openstack::Session;
use reconcile::{Queue, Requeue, Watch};
use sealing::{Keyring, SealError};
use secrecy::SecretString;
use tokio::sync::Notify;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use crate::cloud::{Flavors, ObservationCache, PAUSE};
use crate::lending::LendingSettings;
use crate::member_configs::{EventLimiter, MachineSettings};
use crate::nodes::Clients;
use crate::tenancy::{CloudAccess, Tenancy};
use crate::vm::VmSettings;
use crate::{drain, keys, seals, turn, vm};

/// The settings of the conductor.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name of this process in the list of services.
    pub hostname: String,
    /// How many turns run at once.
    pub workers: usize,
    /// How often a cluster is observed when nothing changes.
    pub look_every: Duration,
    /// The bootstrap of servers to Kubernetes nodes, and the listener where they fetch their configs.
    pub machines: MachineSettings,
    /// When members are replaced.
    pub repair: RepairLimits,
    /// The stages at the end of clusters' leases, and the receivers of notices.
    pub lending: LendingSettings,
    /// The settings of VMs.
    pub vms: VmSettings,
    pub clock: fn() -> Timestamp,
}

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
    pub(crate) keys: Arc<Keyring>,
    /// Notified when another key begins to seal, so that stored secrets are re-encrypted at once.
    pub(crate) rotated: Notify,
    pub(crate) hush: EventLimiter,
    pub(crate) clients: Clients,
    /// The observations of the last seconds.
    pub(crate) observation_cache: ObservationCache,
    /// The flavors of the last seconds, for requests to the API.
    pub(crate) flavors: Flavors,
    /// Machines are late from its beginning at the earliest, because what they said before may have been missed.
    pub(crate) watch: Watch,
}

/// Why the keys of a cluster cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot seal or unseal the cluster's keys")]
    Seal(#[from] SealError),
    #[error("cannot read the cluster's keys")]
    Malformed(#[from] serde_json::Error),
    #[error("cannot make the cluster's keys")]
    Make(#[from] PkiError),
    /// The certificate request is refused.
    #[error("csr: {0}")]
    Sign(SignError),
}

/// The lifetime of a certificate authority, and below of a certificate that it signs for a user.
const AUTHORITY_LIFETIME: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
const CERTIFICATE_LASTS: Duration = Duration::from_secs(365 * 24 * 3600);

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
        keys: Arc<Keyring>,
        cloud: Option<CloudAccess>,
    ) -> Self {
        let watch = Watch::begin((settings.clock)());
        let context = ConductorContext {
            settings,
            store,
            cloud,
            keys,
            rotated: Notify::new(),
            clients: Clients::default(),
            hush: EventLimiter::default(),
            observation_cache: ObservationCache::default(),
            flavors: Flavors::default(),
            watch,
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
                let turn = match subject {
                    ResourceRef::Cluster(id) => turn::turn(&context, id).await,
                    ResourceRef::Vm(id) => Box::pin(vm::turn(&context, &queue, id)).await,
                    ResourceRef::Drain(id) => Box::pin(drain::turn(&context, id)).await,
                    ResourceRef::Snapshot(id) => {
                        Box::pin(vm::snapshot_turn(&context, &queue, id)).await
                    }
                };
                match turn {
                    Ok(next) => next,
                    Err(KeysError::Store(error)) if error.is_transient() => {
                        context.watch.failed();
                        tracing::warn!("the turn of {subject:?} waits for the database: {error}");
                        Requeue::After(PAUSE.min(context.settings.look_every))
                    }
                    Err(error) => {
                        tracing::warn!("the turn of {subject:?} failed: {error}");
                        Requeue::After(context.settings.look_every)
                    }
                }
            }
        });
        ended.await?;
        sealing.await?;
        catching_up.await?;
        alive.await
    }

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

    /// Returns the certificate of the cluster's certificate authority in PEM; the authority is made on first use. During a CA rotation both
    /// authorities are returned, the signing one first.
    pub async fn authority(&self, cluster: &Cluster) -> Result<String, KeysError> {
        Ok(self.context.pki(cluster).await?.cluster.certificate)
    }

    /// Signs a certificate request in PEM with the cluster's certificate authority, and records for whom.
    pub async fn sign(
        &self,
        cluster: &Cluster,
        request: &str,
        user: &str,
    ) -> Result<String, KeysError> {
        let pki = self.context.pki(cluster).await?;
        let now = (self.context.settings.clock)();
        let validity = Validity { now, lifetime: CERTIFICATE_LASTS };
        let certificate =
            cluster_pki::sign(&pki.cluster, request, validity).map_err(KeysError::Sign)?;
        self.note_certificate(cluster, "as requested", user, now).await?;
        Ok(certificate)
    }

    /// Makes a kubeconfig for an administrator, and records that `user` got it. `None` while the address of the cluster's API is unknown.
    pub async fn kubeconfig(
        &self,
        cluster: &Cluster,
        user: &str,
    ) -> Result<Option<String>, KeysError> {
        let Some(endpoint) = cluster.api_address.as_deref().and_then(endpoint) else {
            return Ok(None);
        };
        let pki = self.context.pki(cluster).await?;
        let now = (self.context.settings.clock)();
        let validity = Validity { now, lifetime: CERTIFICATE_LASTS };
        let config =
            cluster_pki::admin_kubeconfig(&dns_label(cluster), &endpoint, &pki.cluster, validity)?;
        self.note_certificate(cluster, "O=system:masters, CN=bedplate-admin", user, now).await?;
        Ok(Some(config.expose().to_owned()))
    }

    async fn note_certificate(
        &self,
        cluster: &Cluster,
        subject: &str,
        user: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let lasts = SignedDuration::try_from(CERTIFICATE_LASTS).unwrap_or(SignedDuration::MAX);
        let line = Certificate {
            id: CertificateUuid::new_v4(),
            cluster: cluster.id,
            subject: subject.to_owned(),
            issued_to: user.to_owned(),
            created_at: now,
            not_after: now.saturating_add(lasts).unwrap_or(Timestamp::MAX),
        };
        self.context.store.insert_certificate(&line).await
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

    /// Returns the cluster with this id.
    pub(crate) async fn cluster(&self, id: ClusterUuid) -> Result<Option<Cluster>, KeysError> {
        let ident = Ident::Id(id.into_untyped_uuid());
        Ok(self.store.find_clusters(&ident, &Scope::All).await?.into_iter().next())
    }

    /// Returns the cluster's certificate authorities with their keys. During a CA rotation each certificate is followed by the one that is
    /// trusted besides.
    pub(crate) async fn pki(&self, cluster: &Cluster) -> Result<Pki, KeysError> {
        let (signs, also) = self.authorities(cluster).await?;
        Ok(also.map_or_else(|| signs.clone(), |also| signs.with_trusted(&also)))
    }

    /// Returns the certificate authorities that sign now, and those that are trusted besides.
    pub(crate) async fn authorities(
        &self,
        cluster: &Cluster,
    ) -> Result<(Pki, Option<Pki>), KeysError> {
        let (signs, also) = cluster.authorities.generations();
        let signs = self.generation(cluster, signs).await?;
        match also {
            Some(also) => Ok((signs, Some(self.generation(cluster, also).await?))),
            None => Ok((signs, None)),
        }
    }

    /// Returns the certificate authorities of a generation, which are made on first use.
    async fn generation(&self, cluster: &Cluster, generation: u32) -> Result<Pki, KeysError> {
        let name = keys::name(generation);
        let place = format!("{}/{name}", cluster.id);
        let sealed = match self.store.find_secret(cluster.id, &name).await? {
            Some(sealed) => sealed,
            None => {
                let validity =
                    Validity { now: (self.settings.clock)(), lifetime: AUTHORITY_LIFETIME };
                let pki = cluster_pki::make_pki(&dns_label(cluster), generation, validity)?;
                let sealed = self.keys.seal(&place, &Zeroizing::new(keys::write(&pki)?))?;
                // Concurrent callers all get the authorities that were written first.
                self.store.keep_secret(cluster.id, &name, &sealed).await?
            }
        };
        let mut pki = keys::read(&self.keys.open_sealed(&place, &sealed)?)?;
        if generation > 0 {
            // The key of service accounts is the same in all generations, so that existing tokens stay valid.
            pki.service_account = Box::pin(self.generation(cluster, 0)).await?.service_account;
        }
        Ok(pki)
    }

    /// Returns the secret of the cluster's application credential, which is made on first use.
    pub(crate) async fn credential(
        &self,
        cluster: &Cluster,
        generation: u32,
    ) -> Result<SecretString, KeysError> {
        let name = format!("credential/{generation}");
        let place = format!("{}/{name}", cluster.id);
        let sealed = match self.store.find_secret(cluster.id, &name).await? {
            Some(sealed) => sealed,
            None => {
                let sealed = self.keys.seal(&place, sealing::random()?.as_bytes())?;
                self.store.keep_secret(cluster.id, &name, &sealed).await?
            }
        };
        Ok(self.keys.open_sealed(&place, &sealed)?.text()?.into())
    }
}

/// Returns the cluster's name as a DNS label.
pub(crate) fn dns_label(cluster: &Cluster) -> Name {
    Name::try_from(cluster.name.label(63)).expect("a name in the letters of a label is a label")
}

/// Splits `https://HOST:PORT` into host and port.
pub(crate) fn endpoint(address: &str) -> Option<Endpoint> {
    let (host, port) = address.strip_prefix("https://")?.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    Some(Endpoint { host, port: port.parse().ok()? })
}
