//! The objects of a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use rcgen::{CertificateSigningRequestParams, Issuer, KeyPair};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::controllers;
use super::members::Members;
use super::pairs;
use crate::world::{new_id, stamp};

/// A cluster: its objects, and which machines serve its API.
#[derive(Debug, Default)]
pub(super) struct Cluster {
    objects: Mutex<Objects>,
    servers: watch::Sender<BTreeSet<String>>,
    changes: watch::Sender<u64>,
}

impl Cluster {
    /// A cluster whose objects are there already; no machine serves its API yet.
    pub(super) fn of(objects: Objects) -> Cluster {
        Cluster { objects: Mutex::new(objects), ..Cluster::default() }
    }

    /// Looks at the objects, or changes them; what follows from a change has happened afterwards.
    pub(super) fn with<T>(&self, look: impl FnOnce(&mut Objects) -> T) -> T {
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let before = objects.version;
        let seen = look(&mut objects);
        if objects.version != before {
            controllers::settle(&mut objects);
            self.changes.send_replace(objects.version);
        }
        seen
    }

    /// Is told of every change.
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

    /// Waits until a machine serves the API.
    pub(super) async fn wait_for_server(&self) {
        // The sender lives as long as we do.
        let _ = self.servers.subscribe().wait_for(|servers| !servers.is_empty()).await;
    }

    /// Waits until `look` finds something, looking whenever something has changed.
    pub(super) async fn wait_until<T>(&self, mut look: impl FnMut(&mut Objects) -> Option<T>) -> T {
        let mut changes = self.changes();
        loop {
            if let Some(found) = self.with(&mut look) {
                return found;
            }
            // The sender lives as long as we do.
            let _ = changes.changed().await;
        }
    }
}

/// Where an object lies: API group and version, resource, namespace (empty for none), name.
pub(super) type Place = (String, String, String, String);

/// All objects by their places, and what the programs of the control plane know besides.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Objects {
    #[serde(with = "pairs")]
    all: BTreeMap<Place, Arc<Value>>,
    version: u64,
    authority: Option<(String, String)>,
    /// What each manager applied last, by place.
    #[serde(with = "pairs")]
    pub(super) applied: BTreeMap<Place, BTreeMap<String, Value>>,
    /// What the containers of pods printed, by the pods' uids.
    pub(super) logs: BTreeMap<String, String>,
    pub(super) members: Members,
    /// Whether something changed from which something else may follow, since the controllers looked.
    pub(super) is_unsettled: bool,
    /// Whether something came or went since it was looked for what nobody owns.
    pub(super) may_have_garbage: bool,
    /// As `v1.20.2`; empty until the first machine of the control plane runs.
    pub(super) release: String,
}

/// Resources that nothing follows from, as long as they stay and belong to nobody.
const INERT: [&str; 8] = [
    "configmaps",
    "secrets",
    "serviceaccounts",
    "roles",
    "clusterroles",
    "rolebindings",
    "storageclasses",
    "csidrivers",
];

fn node(name: &str) -> Place {
    place("v1", "nodes", "", name)
}

/// A place, in words.
pub(super) fn place(group: &str, resource: &str, namespace: &str, name: &str) -> Place {
    (group.to_owned(), resource.to_owned(), namespace.to_owned(), name.to_owned())
}

impl Objects {
    /// Counts what was written.
    pub(super) fn writes(&self) -> u64 {
        self.version
    }

    pub(super) fn version(&self) -> String {
        self.version.to_string()
    }

    /// The minor version of Kubernetes that it says it is.
    pub(super) fn minor(&self) -> u32 {
        self.release.split('.').nth(1).and_then(|minor| minor.parse().ok()).unwrap_or(20)
    }

    pub(super) fn get(&self, place: &Place) -> Option<&Value> {
        self.all.get(place).map(Arc::as_ref)
    }

    /// An object as it is now, whatever becomes of it.
    pub(super) fn shared(&self, place: &Place) -> Option<Arc<Value>> {
        self.all.get(place).cloned()
    }

    /// All of a resource, in one namespace or all.
    pub(super) fn list(&self, group: &str, resource: &str, namespace: &str) -> Vec<&Value> {
        self.each(group, resource, namespace).map(|(_, object)| object).collect()
    }

    /// They and their places.
    pub(super) fn each(
        &self,
        group: &str,
        resource: &str,
        namespace: &str,
    ) -> impl Iterator<Item = (&Place, &Value)> {
        let from = place(group, resource, namespace, "");
        self.all
            .range(from..)
            .take_while(move |(place, _)| place.1 == *resource && place.0 == *group)
            .filter(move |(place, _)| namespace.is_empty() || place.2 == *namespace)
            .map(|(place, object)| (place, object.as_ref()))
    }

    /// The places of those that are meant.
    pub(super) fn places(
        &self,
        (group, resource, namespace): (&str, &str, &str),
        mut is_meant: impl FnMut(&Value) -> bool,
    ) -> Vec<Place> {
        let all = self.each(group, resource, namespace);
        all.filter(|(_, object)| is_meant(object)).map(|(place, _)| place.clone()).collect()
    }

    /// Every object.
    pub(super) fn every(&self) -> impl Iterator<Item = (&Place, &Value)> {
        self.all.iter().map(|(place, object)| (place, object.as_ref()))
    }

    /// Writes an object: it gets an id when it is new, and the next version if it is another than before.
    pub(super) fn put(&mut self, place: Place, mut object: Value) -> Arc<Value> {
        let before = self.all.get(&place).map(Arc::as_ref);
        let metadata = before.map(|before| before["metadata"].clone()).unwrap_or_default();
        let keep = |key: &str, new: Value| metadata.get(key).cloned().unwrap_or(new);
        let generation = metadata["generation"].as_u64().unwrap_or(0);
        let respecified = before.is_none_or(|before| before["spec"] != object["spec"]);
        let own = &mut object["metadata"];
        own["name"] = json!(place.3);
        if !place.2.is_empty() {
            own["namespace"] = json!(place.2);
        }
        own["uid"] = keep("uid", json!(new_id()));
        own["creationTimestamp"] = keep("creationTimestamp", json!(stamp()));
        own["generation"] = json!(generation + u64::from(respecified));
        own["resourceVersion"] = keep("resourceVersion", json!(""));
        if before == Some(&object) {
            return Arc::new(object);
        }
        let owners = &object["metadata"]["ownerReferences"];
        let has_other_owners = metadata["ownerReferences"] != *owners;
        self.is_unsettled |= owners.is_array() || !INERT.contains(&place.1.as_str());
        self.may_have_garbage |= before.is_none() || has_other_owners || respecified;
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let object = Arc::new(object);
        self.all.insert(place, Arc::clone(&object));
        object
    }

    /// Changes an object that is there.
    pub(super) fn change(&mut self, place: &Place, change: impl FnOnce(&mut Value)) {
        if let Some(mut object) = self.get(place).cloned() {
            change(&mut object);
            self.put(place.clone(), object);
        }
    }

    /// The object is gone at once.
    pub(super) fn remove(&mut self, place: &Place) {
        let Some(gone) = self.all.remove(place) else { return };
        self.applied.remove(place);
        if let Some(uid) = gone["metadata"]["uid"].as_str() {
            self.logs.remove(uid);
        }
        (self.is_unsettled, self.may_have_garbage) = (true, true);
        self.version += 1;
    }

    /// A kubelet makes itself known. A node that is there stays what others made of it.
    pub(super) fn register(&mut self, object: Value) {
        let place = node(object["metadata"]["name"].as_str().unwrap_or_default());
        if self.all.contains_key(&place) {
            self.change(&place, |node| node["status"] = object["status"].clone());
        } else {
            self.put(place, object);
        }
    }

    /// A kubelet reports, or has fallen silent.
    pub(super) fn set_ready(&mut self, name: &str, ready: bool) {
        let condition = if ready {
            json!({"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status", "lastHeartbeatTime": stamp(), "lastTransitionTime": stamp()})
        } else {
            json!({"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status.", "lastHeartbeatTime": stamp(), "lastTransitionTime": stamp()})
        };
        self.change(&node(name), |node| node["status"]["conditions"] = json!([condition]));
    }

    /// A certificate for a request in PEM, by the cluster's authority.
    pub(super) fn sign(&self, request: &str) -> Option<String> {
        let (certificate, key) = self.authority.as_ref()?;
        let issuer = Issuer::from_ca_cert_pem(certificate, KeyPair::from_pem(key).ok()?).ok()?;
        let request = CertificateSigningRequestParams::from_pem(request).ok()?;
        request.signed_by(&issuer).ok().map(|certificate| certificate.pem())
    }
}

/// The text in a field that holds base64.
pub(super) fn decoded(value: &Value) -> Option<String> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(value.as_str()?).ok()?;
    String::from_utf8(bytes).ok()
}
