//! The default guest: servers that become members of Kubernetes clusters.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::authorities::{Disks, MemberCas};
use super::certificates::{LeafDisks, Reporter};
use super::cluster::Cluster;
use super::layout::{self, Layout};
use super::state::DEFAULT_RELEASE;
use super::{api, kubeadm, kubelet, tls};
use crate::guest::{Guest, GuestMachine, Progress};
use crate::locks::lock;
use crate::settings::millis;

/// The port of an API server.
const PORT: u16 = 6443;

/// The default guest: a server whose config has a cluster CA becomes a member of that cluster. Any other server counts as joined as soon as
/// it runs.
#[derive(Debug, Default)]
pub struct Nodes {
    /// The clusters, by the pins of their CAs.
    pub(super) clusters: Mutex<HashMap<String, Arc<Cluster>>>,
    /// The cluster and node name of each server.
    pub(super) homes: Mutex<HashMap<String, (Arc<Cluster>, String)>>,
    /// The servers whose disk has a kubelet certificate.
    pub(super) known: Mutex<HashSet<String>>,
    /// The CAs that members received in CA rotations.
    pub(super) disks: Disks,
    /// The certificates of members.
    pub(super) leaves: LeafDisks,
}

impl Nodes {
    fn cluster(&self, pin: &str) -> Arc<Cluster> {
        let mut clusters = lock(&self.clusters);
        clusters.entry(pin.to_owned()).or_default().clone()
    }

    /// The members of the etcd of each cluster by the names of their servers, and whether each runs. A cluster that had several CAs is there
    /// for each of them, and a cluster without servers too.
    pub fn etcds(&self) -> Vec<BTreeMap<String, bool>> {
        let clusters = lock(&self.clusters);
        clusters.values().map(|it| it.with(|objects| objects.members.running())).collect()
    }
}

#[async_trait]
impl Guest for Nodes {
    async fn run(&self, machine: GuestMachine, config: Value) {
        let mut layout = match Layout::read(&machine, &config) {
            Ok(Some(layout)) => layout,
            Ok(None) => return machine.report(Progress::Joined),
            Err(why) => return machine.report(Progress::Failed(why)),
        };
        let cluster = self.cluster(&layout.pin);
        {
            let mut homes = lock(&self.homes);
            homes.insert(machine.id.clone(), (cluster.clone(), layout.name.clone()));
        }
        if let Some(held) = self.disks.held(&machine.id) {
            (layout.authority, layout.authority_key) = (held.authority, held.key);
        }
        let Some(key) = &layout.authority_key else {
            cluster.wait_for_server().await;
            if !self.is_known(&cluster, &layout, &machine).await {
                return;
            }
            let works = async {
                join(&cluster, &layout, &machine).await;
                kubelet::run_pods(&cluster, &layout.name).await;
            };
            tokio::join!(
                works,
                self.keep_authorities(&cluster, &layout, &machine, None),
                keep_backups(&cluster, &layout, &machine),
            );
            return;
        };
        let acceptor = match tls::acceptor(&layout, key) {
            Ok(acceptor) => acceptor,
            Err(error) => {
                return machine.report(Progress::Failed(format!(
                    "the authority of the cluster cannot be used: {error}"
                )));
            }
        };
        if layout.token.is_some() {
            // This server joins an existing control plane.
            cluster.wait_for_server().await;
            if !self.is_known(&cluster, &layout, &machine).await {
                return;
            }
        }
        let is_restored = self.starts_from_backup(&cluster, &layout, &machine).await;
        let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await else {
            return machine.report(Progress::Failed("no port is free on this host".into()));
        };
        let Ok(at) = listener.local_addr() else { return };
        cluster.adopt(&layout.authority, key);
        cluster.with(|objects| {
            let release = layout.version.as_deref().unwrap_or(DEFAULT_RELEASE);
            kubeadm::initialise(objects, release, &layout.init, &layout.cluster);
        });
        machine.cloud.offer(&machine.id, PORT, at);
        cluster.server_up(&machine.id);
        let node = async {
            if is_restored {
                // The node of the snapshot is the one of the lost server.
                cluster.with(|objects| objects.remove_node(&layout.name));
            }
            join(&cluster, &layout, &machine).await;
            kubelet::run_pods(&cluster, &layout.name).await;
        };
        let (serves, served) = watch::channel(acceptor);
        tokio::join!(
            node,
            api::serve(listener, served, cluster.clone(), machine.cloud.clone()),
            self.keep_authorities(&cluster, &layout, &machine, Some(serves)),
            keep_backups(&cluster, &layout, &machine),
        );
    }

    fn changes(&self) -> u64 {
        self.writes()
    }

    fn kept(&self) -> Value {
        self.to_value()
    }

    fn take_up(&self, kept: Value) -> serde_json::Result<()> {
        self.take_up_value(kept)
    }

    fn halted(&self, server: &str) {
        let home = lock(&self.homes).remove(server);
        if let Some((cluster, node)) = home {
            cluster.server_down(server);
            cluster.with(|objects| {
                objects.members.down(&node);
                objects.set_ready(&node, false);
            });
        }
    }
}

impl Nodes {
    /// Polls for CA rotations, and reports certificates. A control-plane member then serves a certificate of the new CA, through `serves`.
    async fn keep_authorities(
        &self,
        cluster: &Arc<Cluster>,
        layout: &Layout,
        machine: &GuestMachine,
        serves: Option<watch::Sender<TlsAcceptor>>,
    ) {
        let Some(asks) = &layout.asks else { return };
        let taken = |held: &MemberCas| {
            let (Some(serves), Some(key)) = (&serves, &held.key) else { return };
            let mut with = layout.clone();
            with.authority.clone_from(&held.authority);
            if let Ok(acceptor) = tls::acceptor(&with, key) {
                cluster.adopt(&held.authority, key);
                // Later members know the cluster by the pin of the CA that signs now.
                if let Some(pin) = layout::pin(&held.authority) {
                    let mut all = lock(&self.clusters);
                    all.insert(pin, cluster.clone());
                }
                serves.send_replace(acceptor);
            }
        };
        let (every, lifetime) = machine
            .cloud
            .shared
            .with(|world| (world.settings.times.guest_asks, world.settings.certificate_seconds));
        let reporter = layout.reports.as_ref().map(|settings| Reporter {
            settings,
            disks: &self.leaves,
            cluster,
            server: &machine.id,
            node: &layout.name,
            address: machine.addresses.first().map_or("127.0.0.1", String::as_str),
            is_control_plane: layout.authority_key.is_some(),
            lifetime: Duration::from_secs(lifetime.into()),
            every: millis(every),
        });
        asks.keep((&machine.id, millis(every)), &self.disks, taken, reporter.as_ref()).await;
    }

    /// Restores the snapshot that the member's etcd starts from, once in the life of its disk. Returns whether it did.
    async fn starts_from_backup(
        &self,
        cluster: &Cluster,
        layout: &Layout,
        machine: &GuestMachine,
    ) -> bool {
        let Some(backups) = &layout.backups else { return false };
        let Some(backup) = &backups.starts_from else { return false };
        if lock(&self.known).contains(&machine.id) {
            return false;
        }
        let every = machine.cloud.shared.with(|world| world.settings.times.guest_asks);
        let found = backups.first_snapshot(backup, millis(every) / 15).await;
        let Some(snapshot) = found else { return false };
        cluster.restore(snapshot);
        lock(&self.known).insert(machine.id.clone())
    }

    /// Whether the kubelet has a certificate. Requests one with the bootstrap token if necessary.
    async fn is_known(&self, cluster: &Cluster, layout: &Layout, machine: &GuestMachine) -> bool {
        let known = || lock(&self.known);
        let Some(token) = layout.token.as_ref().filter(|_| !known().contains(&machine.id)) else {
            return true;
        };
        match kubelet::bootstrap(cluster, &layout.name, token).await {
            Ok(()) => known().insert(machine.id.clone()),
            Err(why) => {
                machine.report(Progress::Failed(why));
                false
            }
        }
    }
}

/// Polls for work on backups of etcd.
async fn keep_backups(cluster: &Arc<Cluster>, layout: &Layout, machine: &GuestMachine) {
    let Some(backups) = &layout.backups else { return };
    let every = machine.cloud.shared.with(|world| world.settings.times.guest_asks);
    let mut restores = backups.restores.clone();
    loop {
        restores = backups.until_refresh(millis(every), cluster, &restores).await;
        // The kubelet starts again, and registers its node.
        kubelet::register(cluster, layout, machine).await;
    }
}

async fn join(cluster: &Cluster, layout: &Layout, machine: &GuestMachine) {
    kubelet::register(cluster, layout, machine).await;
    machine.report(Progress::Joined);
}
