//! The conductor as the rest of the program sees it.

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
use reconcile::{Queue, Requeue};
use sealing::{Keyring, SealError};
use secrecy::SecretString;
use tokio::sync::Notify;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use crate::cloud::{Flavors, Lately};
use crate::lending::LendingSettings;
use crate::machines::{Hush, MachineSettings};
use crate::nodes::Clients;
use crate::tenancy::{Premises, Tenancy};
use crate::vm::VmSettings;
use crate::{drain, keys, seals, turn, vm};

/// How the conductor behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name it is listed under.
    pub hostname: String,
    /// How many clusters have a turn at once.
    pub workers: usize,
    /// How often a cluster is looked at where nothing changes.
    pub look_every: Duration,
    /// What makes servers nodes, and where they ask for it.
    pub machines: MachineSettings,
    /// When machines are replaced.
    pub repair: RepairLimits,
    /// What happens at the end of leases.
    pub lending: LendingSettings,
    /// What people may ask for besides clusters.
    pub vms: VmSettings,
    /// What time it is.
    pub clock: fn() -> Timestamp,
}

/// What has turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    /// A cluster.
    Cluster(ClusterUuid),
    /// A person's machine.
    Vm(VmUuid),
    /// A snapshot of one.
    Snapshot(SnapshotUuid),
    /// A host that is taken out.
    Drain(DrainUuid),
}

/// Looks after clusters and people's machines. Clones are the same conductor.
#[derive(Clone)]
pub struct Conductor {
    pub(crate) world: Arc<World>,
    pub(crate) queue: Queue<Subject>,
}

/// What a turn works with.
pub(crate) struct World {
    pub(crate) settings: Settings,
    pub(crate) store: Store,
    /// The cloud that clusters are made in, and as whom.
    pub(crate) cloud: Option<Premises>,
    pub(crate) keys: Arc<Keyring>,
    /// Another key seals from now on.
    pub(crate) rotated: Notify,
    pub(crate) hush: Hush,
    /// Clients of clusters' own APIs.
    pub(crate) clients: Clients,
    /// What turns saw a moment ago.
    pub(crate) lately: Lately,
    /// What the API was told a moment ago of how large machines are.
    pub(crate) flavors: Flavors,
}

/// Why a cluster's keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// They cannot be sealed or opened.
    #[error("the cluster's keys cannot be sealed or opened")]
    Seal(#[from] SealError),
    /// They cannot be read.
    #[error("the cluster's keys cannot be read")]
    Malformed(#[from] serde_json::Error),
    /// They cannot be made.
    #[error("the cluster's keys cannot be made")]
    Make(#[from] PkiError),
    /// A request is not signed.
    #[error("csr: {0}")]
    Sign(SignError),
}

/// How long an authority lasts, and a certificate it signed for a user.
const AUTHORITY_LASTS: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
const CERTIFICATE_LASTS: Duration = Duration::from_secs(365 * 24 * 3600);

impl Conductor {
    /// A conductor that is not at work yet, and makes all clusters in the session's project. Without a cloud it builds nothing, and says
    /// so of each cluster.
    pub fn new(
        settings: Settings,
        store: Store,
        keys: impl Into<Arc<Keyring>>,
        cloud: Option<Session>,
    ) -> Self {
        let cloud = cloud.map(|session| Premises::new(session, Tenancy::Shared));
        Conductor::of(settings, store, keys.into(), cloud)
    }

    /// The same that makes each cluster in the project that asked for it, as the session's user, who has a role there.
    pub fn of_tenants(
        settings: Settings,
        store: Store,
        keys: impl Into<Arc<Keyring>>,
        cloud: Session,
    ) -> Self {
        Conductor::of(settings, store, keys.into(), Some(Premises::new(cloud, Tenancy::Own)))
    }

    fn of(settings: Settings, store: Store, keys: Arc<Keyring>, cloud: Option<Premises>) -> Self {
        let world = World {
            settings,
            store,
            cloud,
            keys,
            rotated: Notify::new(),
            clients: Clients::default(),
            hush: Hush::default(),
            lately: Lately::default(),
            flavors: Flavors::default(),
        };
        Conductor { world: Arc::new(world), queue: Queue::default() }
    }

    /// Looks after all clusters until `stop` is cancelled.
    ///
    /// # Errors
    ///
    /// When a turn panicked.
    pub async fn run(self, stop: CancellationToken) -> Result<(), JoinError> {
        match self.world.subjects().await {
            Ok(all) => all.into_iter().for_each(|it| self.queue.wake(it)),
            Err(error) => tracing::error!("cannot read what there is to look after: {error}"),
        }
        self.note_reports().await;
        let alive = tokio::spawn(turn::stay_alive(self.world.clone(), stop.clone()));
        let sealing = tokio::spawn(seals::run(self.world.clone(), stop.clone()));
        let (world, workers) = (self.world.clone(), self.world.settings.workers);
        let queue = self.queue.clone();
        let ended = reconcile::run(self.queue, workers, stop, move |subject| {
            let (world, queue) = (world.clone(), queue.clone());
            async move {
                let turn = match subject {
                    Subject::Cluster(id) => turn::turn(&world, id).await,
                    Subject::Vm(id) => Box::pin(vm::turn(&world, &queue, id)).await,
                    Subject::Drain(id) => Box::pin(drain::turn(&world, id)).await,
                    Subject::Snapshot(id) => Box::pin(vm::snapshot_turn(&world, &queue, id)).await,
                };
                turn.unwrap_or_else(|error| {
                    tracing::warn!("the turn of {subject:?} failed: {error}");
                    Requeue::After(world.settings.look_every)
                })
            }
        });
        ended.await?;
        sealing.await?;
        alive.await
    }

    /// A turn for this cluster, soon.
    pub fn wake(&self, cluster: ClusterUuid) {
        self.queue.wake(Subject::Cluster(cluster));
    }

    /// A turn for this machine, soon.
    pub fn wake_vm(&self, vm: VmUuid) {
        self.queue.wake(Subject::Vm(vm));
    }

    /// A turn for this snapshot, soon.
    pub fn wake_snapshot(&self, snapshot: SnapshotUuid) {
        self.queue.wake(Subject::Snapshot(snapshot));
    }

    /// The certificate of the cluster's authority, in PEM; while authorities are exchanged those of both, the one that signs first. The
    /// authority is made if there is none yet.
    pub async fn authority(&self, cluster: &Cluster) -> Result<String, KeysError> {
        Ok(self.world.pki(cluster).await?.cluster.certificate)
    }

    /// Has the cluster's authority sign a request in PEM, and notes for whom.
    pub async fn sign(
        &self,
        cluster: &Cluster,
        request: &str,
        user: &str,
    ) -> Result<String, KeysError> {
        let pki = self.world.pki(cluster).await?;
        let now = (self.world.settings.clock)();
        let validity = Validity { now, lifetime: CERTIFICATE_LASTS };
        let certificate =
            cluster_pki::sign(&pki.cluster, request, validity).map_err(KeysError::Sign)?;
        self.note_certificate(cluster, "as requested", user, now).await?;
        Ok(certificate)
    }

    /// An administrator's kubeconfig, noted as given to `user`; `None` as long as nobody knows where the cluster's API is.
    pub async fn kubeconfig(
        &self,
        cluster: &Cluster,
        user: &str,
    ) -> Result<Option<String>, KeysError> {
        let Some(endpoint) = cluster.api_address.as_deref().and_then(endpoint) else {
            return Ok(None);
        };
        let pki = self.world.pki(cluster).await?;
        let now = (self.world.settings.clock)();
        let validity = Validity { now, lifetime: CERTIFICATE_LASTS };
        let config = cluster_pki::admin(&label(cluster), &endpoint, &pki.cluster, validity)?;
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
        self.world.store.insert_certificate(&line).await
    }
}

impl World {
    /// All that has turns.
    async fn subjects(&self) -> Result<Vec<Subject>, StoreError> {
        let clusters = self.store.cluster_ids().await?.into_iter().map(Subject::Cluster);
        let vms = self.store.vm_ids().await?.into_iter().map(Subject::Vm);
        let snapshots = self.store.snapshot_ids().await?.into_iter().map(Subject::Snapshot);
        let drains = self.store.drain_ids().await?.into_iter().map(Subject::Drain);
        Ok(clusters.chain(vms).chain(snapshots).chain(drains).collect())
    }

    /// The cluster of this id.
    pub(crate) async fn cluster(&self, id: ClusterUuid) -> Result<Option<Cluster>, KeysError> {
        let ident = Ident::Id(id.into_untyped_uuid());
        Ok(self.store.find_clusters(&ident, &Scope::All).await?.into_iter().next())
    }

    /// The cluster's authorities as they are trusted now: with their own keys, and behind their own certificates those of others that
    /// are trusted besides.
    pub(crate) async fn pki(&self, cluster: &Cluster) -> Result<Pki, KeysError> {
        let (signs, also) = self.authorities(cluster).await?;
        Ok(also.map_or_else(|| signs.clone(), |also| signs.trusting(&also)))
    }

    /// The authorities that sign now, and those that are trusted besides.
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

    /// The authorities of this number, made on first use.
    async fn generation(&self, cluster: &Cluster, generation: u32) -> Result<Pki, KeysError> {
        let name = keys::name(generation);
        let place = format!("{}/{name}", cluster.id);
        let sealed = match self.store.find_secret(cluster.id, &name).await? {
            Some(sealed) => sealed,
            None => {
                let validity = Validity { now: (self.settings.clock)(), lifetime: AUTHORITY_LASTS };
                let pki = cluster_pki::seed(&label(cluster), generation, validity)?;
                let sealed = self.keys.seal(&place, &Zeroizing::new(keys::write(&pki)?))?;
                // Two that make them at once both get those that were written first.
                self.store.keep_secret(cluster.id, &name, &sealed).await?
            }
        };
        let mut pki = keys::read(&self.keys.open_sealed(&place, &sealed)?)?;
        if generation > 0 {
            // Tokens of service accounts go on being good: their key is not an authority's.
            pki.service_account = Box::pin(self.generation(cluster, 0)).await?.service_account;
        }
        Ok(pki)
    }

    /// The secret of the cluster's own credential in the cloud, made and kept on first use.
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

/// The cluster's name as the bootstrap knows it.
pub(crate) fn label(cluster: &Cluster) -> Name {
    Name::try_from(cluster.name.label(63)).expect("a name in the letters of a label is a label")
}

/// Host and port of `https://HOST:PORT`.
pub(crate) fn endpoint(address: &str) -> Option<Endpoint> {
    let (host, port) = address.strip_prefix("https://")?.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    Some(Endpoint { host, port: port.parse().ok()? })
}
