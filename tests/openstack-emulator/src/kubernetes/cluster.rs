//! A cluster: its objects, and the servers that serve its API.

use std::collections::BTreeSet;
use std::sync::Mutex;

use tokio::sync::watch;

use super::controllers;
use super::state::Objects;
use crate::locks::lock;

/// A cluster: its objects, and the servers that serve its API.
#[derive(Debug, Default)]
pub(super) struct Cluster {
    objects: Mutex<Objects>,
    servers: watch::Sender<BTreeSet<String>>,
    changes: watch::Sender<u64>,
}

impl Cluster {
    /// A cluster with stored objects. No server serves its API yet.
    pub(super) fn of(objects: Objects) -> Cluster {
        Cluster { objects: Mutex::new(objects), ..Cluster::default() }
    }

    /// Reads or changes the objects under their lock. After a change, the controllers run before the function returns.
    pub(super) fn with<T>(&self, look: impl FnOnce(&mut Objects) -> T) -> T {
        let mut objects = lock(&self.objects);
        let before = objects.version;
        let seen = look(&mut objects);
        if objects.version != before {
            controllers::settle(&mut objects);
            self.changes.send_replace(objects.version);
        }
        seen
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(super) fn adopt(&self, certificate: &str, key: &str) {
        self.with(|objects| objects.authority = Some((certificate.to_owned(), key.to_owned())));
    }

    pub(super) fn server_up(&self, server: &str) {
        self.servers.send_modify(|servers| {
            servers.insert(server.to_owned());
        });
    }

    pub(super) fn server_down(&self, server: &str) {
        self.servers.send_modify(|servers| {
            servers.remove(server);
        });
    }

    /// Replaces all objects by those of a snapshot, unless a server of the cluster runs already from the same snapshot.
    pub(super) fn restore(&self, snapshot: Objects) {
        if self.servers.borrow().is_empty() {
            self.with(|objects| {
                let version = objects.version.max(snapshot.version);
                *objects = snapshot;
                objects.begin_again(version);
            });
        }
    }

    /// Waits until a server serves the API.
    pub(super) async fn wait_for_server(&self) {
        // An error is impossible: the sender lives as long as the cluster.
        let _ = self.servers.subscribe().wait_for(|servers| !servers.is_empty()).await;
    }

    /// Waits until `look` returns a value. `look` runs again after every change.
    pub(super) async fn wait_until<T>(&self, mut look: impl FnMut(&mut Objects) -> Option<T>) -> T {
        let mut changes = self.changes();
        loop {
            if let Some(found) = self.with(&mut look) {
                return found;
            }
            // An error is impossible: the sender lives as long as the cluster.
            let _ = changes.changed().await;
        }
    }
}
