//! The objects of a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use base64::Engine;
use rcgen::{CertificateSigningRequestParams, Issuer, KeyPair};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::world::{new_id, stamp};

/// A cluster: its objects, and which machines serve its API.
#[derive(Debug, Default)]
pub(super) struct Cluster {
    objects: Mutex<Objects>,
    servers: watch::Sender<BTreeSet<String>>,
    authority: Mutex<Option<(String, String)>>,
}

impl Cluster {
    pub(super) fn with<T>(&self, look: impl FnOnce(&mut Objects) -> T) -> T {
        look(&mut self.objects.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn adopt(&self, certificate: &str, key: &str) {
        let pair = (certificate.to_owned(), key.to_owned());
        *self.authority.lock().unwrap_or_else(PoisonError::into_inner) = Some(pair);
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

    /// Waits until a machine serves the API.
    pub(super) async fn wait_for_server(&self) {
        // The sender lives as long as we do.
        let _ = self.servers.subscribe().wait_for(|servers| !servers.is_empty()).await;
    }

    /// A certificate for a request in PEM, by the cluster's authority.
    pub(super) fn sign(&self, request: &str) -> Option<String> {
        let authority = self.authority.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let issuer =
            Issuer::from_ca_cert_pem(&authority.0, KeyPair::from_pem(&authority.1).ok()?).ok()?;
        let request = CertificateSigningRequestParams::from_pem(request).ok()?;
        request.signed_by(&issuer).ok().map(|certificate| certificate.pem())
    }
}

/// Where an object lies: API group and version, resource, namespace (empty for none), name.
pub(super) type Place = (String, String, String, String);

/// All objects by their places.
#[derive(Debug, Default)]
pub(super) struct Objects {
    all: BTreeMap<Place, Value>,
    version: u64,
}

fn node(name: &str) -> Place {
    ("v1".into(), "nodes".into(), String::new(), name.to_owned())
}

impl Objects {
    pub(super) fn version(&self) -> String {
        self.version.to_string()
    }

    pub(super) fn get(&self, place: &Place) -> Option<&Value> {
        self.all.get(place)
    }

    /// All of a resource, in one namespace or all.
    pub(super) fn list(&self, group: &str, resource: &str, namespace: &str) -> Vec<&Value> {
        let of = |place: &Place| {
            place.0 == group
                && place.1 == resource
                && (namespace.is_empty() || place.2 == namespace)
        };
        self.all.iter().filter(|(place, _)| of(place)).map(|(_, object)| object).collect()
    }

    /// Writes an object: it gets an id when it is new, and the next version.
    pub(super) fn put(&mut self, place: Place, mut object: Value) -> Value {
        self.version += 1;
        let before =
            self.all.get(&place).map(|before| before["metadata"].clone()).unwrap_or_default();
        let metadata = &mut object["metadata"];
        metadata["name"] = json!(place.3);
        if !place.2.is_empty() {
            metadata["namespace"] = json!(place.2);
        }
        metadata["uid"] = before.get("uid").cloned().unwrap_or_else(|| json!(new_id()));
        metadata["creationTimestamp"] =
            before.get("creationTimestamp").cloned().unwrap_or_else(|| json!(stamp()));
        metadata["resourceVersion"] = json!(self.version.to_string());
        self.all.insert(place, object.clone());
        object
    }

    pub(super) fn remove(&mut self, place: &Place) -> Option<Value> {
        let gone = self.all.remove(place)?;
        self.version += 1;
        Some(gone)
    }

    pub(super) fn put_node(&mut self, object: Value) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        self.put(node(&name), object);
    }

    /// A kubelet reports, or has fallen silent.
    pub(super) fn set_ready(&mut self, name: &str, ready: bool) {
        let Some(mut object) = self.all.get(&node(name)).cloned() else { return };
        let condition = if ready {
            json!({"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status", "lastHeartbeatTime": stamp(), "lastTransitionTime": stamp()})
        } else {
            json!({"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status.", "lastHeartbeatTime": stamp(), "lastTransitionTime": stamp()})
        };
        object["status"]["conditions"] = json!([condition]);
        self.put(node(name), object);
    }
}

/// The text in a field that holds base64.
pub(super) fn decoded(value: &Value) -> Option<String> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(value.as_str()?).ok()?;
    String::from_utf8(bytes).ok()
}
