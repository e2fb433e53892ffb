//! Machines that become nodes of a Kubernetes cluster, and the API of that cluster.
//!
//! Nothing of Kubernetes runs. A machine whose config has kubeadm's layout of files (`…/pki/ca.crt` and `ca.key`, a kubeadm configuration)
//! answers on its port 6443 as an API server does, signed by that authority; one that has only the authority, or `kubeadm join`'s pin of it,
//! joins as a worker.

mod api;
mod discovery;
mod layout;
mod patch;
mod protobuf;
mod state;
mod table;
mod tls;

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::net::TcpListener;

use crate::guest::{Guest, GuestMachine, Progress};
use layout::Layout;
use state::Cluster;

/// The port of an API server.
const PORT: u16 = 6443;
/// How long a new node is NotReady.
const SETTLES: Duration = Duration::from_millis(20);

/// The default guest: a node of the cluster whose authority its config has. One without any is joined as soon as it runs.
#[derive(Debug, Default)]
pub struct Nodes {
    /// Clusters by the pins of their authorities.
    clusters: Mutex<HashMap<String, Arc<Cluster>>>,
    /// The cluster and node name of each server.
    homes: Mutex<HashMap<String, (Arc<Cluster>, String)>>,
}

impl Nodes {
    fn cluster(&self, pin: &str) -> Arc<Cluster> {
        let mut clusters = self.clusters.lock().unwrap_or_else(PoisonError::into_inner);
        clusters.entry(pin.to_owned()).or_default().clone()
    }
}

#[async_trait]
impl Guest for Nodes {
    async fn run(&self, machine: GuestMachine, config: Value) {
        let layout = match Layout::read(&machine, &config) {
            Ok(Some(layout)) => layout,
            Ok(None) => return machine.report(Progress::Joined),
            Err(why) => return machine.report(Progress::Failed(why)),
        };
        let cluster = self.cluster(&layout.pin);
        {
            let mut homes = self.homes.lock().unwrap_or_else(PoisonError::into_inner);
            homes.insert(machine.id.clone(), (cluster.clone(), layout.name.clone()));
        }
        let Some(key) = &layout.authority_key else {
            cluster.wait_for_server().await;
            return join(&cluster, &layout, &machine).await;
        };
        let acceptor = match tls::acceptor(&layout, key) {
            Ok(acceptor) => acceptor,
            Err(error) => {
                return machine.report(Progress::Failed(format!(
                    "the authority of the cluster cannot be used: {error}"
                )));
            }
        };
        let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await else {
            return machine.report(Progress::Failed("no port is free on this host".into()));
        };
        let Ok(at) = listener.local_addr() else { return };
        cluster.adopt(&layout.authority, key);
        machine.cloud.offer(&machine.id, PORT, at);
        cluster.server_up(&machine.id);
        join(&cluster, &layout, &machine).await;
        api::serve(listener, acceptor, cluster).await;
    }

    fn halted(&self, server: &str) {
        let home = self.homes.lock().unwrap_or_else(PoisonError::into_inner).remove(server);
        if let Some((cluster, node)) = home {
            cluster.server_down(server);
            cluster.with(|objects| objects.set_ready(&node, false));
        }
    }
}

async fn join(cluster: &Cluster, layout: &Layout, machine: &GuestMachine) {
    cluster.with(|objects| objects.put_node(layout.node(machine)));
    tokio::time::sleep(SETTLES).await;
    cluster.with(|objects| objects.set_ready(&layout.name, true));
    machine.report(Progress::Joined);
}
