//! The objects of a cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use rcgen::{CertificateSigningRequestParams, Issuer, KeyPair};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::members::Members;
use crate::object::ReadFields;
use crate::world::{new_id, stamp};

/// The release of a cluster whose first server has no release in its files.
pub(super) const DEFAULT_RELEASE: &str = "v1.20.2";

/// How much the revision grows in a restoration.
const REVISION_BUMP: u64 = 1_000_000;

/// The key of an object: API group and version, resource, namespace (empty for none), name.
pub(super) type ObjectKey = (String, String, String, String);

/// All objects by their keys, and further state of the control plane.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Objects {
    #[serde(with = "pairs")]
    all: BTreeMap<ObjectKey, Arc<Value>>,
    pub(super) version: u64,
    pub(super) authority: Option<(String, String)>,
    /// The last applied config of each field manager, by object.
    #[serde(with = "pairs")]
    pub(super) applied: BTreeMap<ObjectKey, BTreeMap<String, Value>>,
    /// The output of containers, by the uids of their pods.
    pub(super) logs: BTreeMap<String, String>,
    pub(super) members: Members,
    /// Whether something has changed since the controllers last ran.
    pub(super) is_unsettled: bool,
    /// Whether an object was created or deleted since the last garbage collection.
    pub(super) may_have_garbage: bool,
    /// The release, such as `v1.20.2`. Empty until the first control-plane member runs.
    pub(super) release: String,
}

/// Resources that trigger no controller unless they have an owner or are deleted.
#[rustfmt::skip]
const INERT: [&str; 8] =
    ["configmaps", "secrets", "serviceaccounts", "roles", "clusterroles", "rolebindings", "storageclasses", "csidrivers"];

fn node(name: &str) -> ObjectKey {
    place("v1", "nodes", "", name)
}

pub(super) fn place(group: &str, resource: &str, namespace: &str, name: &str) -> ObjectKey {
    (group.to_owned(), resource.to_owned(), namespace.to_owned(), name.to_owned())
}

impl Objects {
    pub(super) fn version(&self) -> String {
        self.version.to_string()
    }

    /// The minor version of the release. 20 if the release cannot be parsed.
    pub(super) fn minor(&self) -> u32 {
        self.release.split('.').nth(1).and_then(|minor| minor.parse().ok()).unwrap_or(20)
    }

    pub(super) fn get(&self, place: &ObjectKey) -> Option<&Value> {
        self.all.get(place).map(Arc::as_ref)
    }

    /// A shared copy of an object, which later changes do not affect.
    pub(super) fn shared(&self, place: &ObjectKey) -> Option<Arc<Value>> {
        self.all.get(place).cloned()
    }

    /// All objects of a resource, in one namespace or, if `namespace` is empty, in all.
    pub(super) fn list(&self, group: &str, resource: &str, namespace: &str) -> Vec<&Value> {
        self.each(group, resource, namespace).map(|(_, object)| object).collect()
    }

    /// The objects of a resource with their keys.
    pub(super) fn each(
        &self,
        group: &str,
        resource: &str,
        namespace: &str,
    ) -> impl Iterator<Item = (&ObjectKey, &Value)> {
        let from = place(group, resource, namespace, "");
        self.all
            .range(from..)
            .take_while(move |(place, _)| place.1 == *resource && place.0 == *group)
            .filter(move |(place, _)| namespace.is_empty() || place.2 == *namespace)
            .map(|(place, object)| (place, object.as_ref()))
    }

    /// A copy of all objects of a resource with their keys.
    pub(super) fn all(&self, group: &str, resource: &str) -> Vec<(ObjectKey, Arc<Value>)> {
        let all = self.each(group, resource, "");
        all.filter_map(|(place, _)| Some((place.clone(), self.shared(place)?))).collect()
    }

    /// The keys of the objects that `is_meant` accepts.
    pub(super) fn places(
        &self,
        (group, resource, namespace): (&str, &str, &str),
        mut is_meant: impl FnMut(&Value) -> bool,
    ) -> Vec<ObjectKey> {
        let all = self.each(group, resource, namespace);
        all.filter(|(_, object)| is_meant(object)).map(|(place, _)| place.clone()).collect()
    }

    pub(super) fn every(&self) -> impl Iterator<Item = (&ObjectKey, &Value)> {
        self.all.iter().map(|(place, object)| (place, object.as_ref()))
    }

    /// Stores an object. A new object gets a uid. The resource version grows if the object differs from the stored one.
    pub(super) fn put(&mut self, place: ObjectKey, mut object: Value) -> Arc<Value> {
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

    /// Changes an object, if it exists.
    pub(super) fn change(&mut self, place: &ObjectKey, change: impl FnOnce(&mut Value)) {
        if let Some(mut object) = self.get(place).cloned() {
            change(&mut object);
            self.put(place.clone(), object);
        }
    }

    /// Removes an object at once.
    pub(super) fn remove(&mut self, place: &ObjectKey) {
        let Some(gone) = self.all.remove(place) else { return };
        self.applied.remove(place);
        if let Some(uid) = gone["metadata"]["uid"].as_str() {
            self.logs.remove(uid);
        }
        (self.is_unsettled, self.may_have_garbage) = (true, true);
        self.version += 1;
    }

    /// Begins again from a snapshot, as `etcdutl snapshot restore` does: with a revision after `version`, which clients may have seen, and
    /// without the old members of etcd. The kubelets of the old control plane report no more.
    pub(super) fn begin_again(&mut self, version: u64) {
        self.version = version + REVISION_BUMP;
        self.members = Members::default();
        let role = "node-role.kubernetes.io/control-plane";
        let is_master = |node: &Value| node["metadata"]["labels"].get(role).is_some();
        for place in self.places(("v1", "nodes", ""), is_master) {
            self.set_ready(&place.3, false);
        }
    }

    /// Removes a Kubernetes node, whose kubelet then registers it anew.
    pub(super) fn remove_node(&mut self, name: &str) {
        self.remove(&node(name));
    }

    /// Registers a Kubernetes node. An existing node only gets a new status and keeps changes of other clients.
    pub(super) fn register(&mut self, object: Value) {
        let place = node(object["metadata"].text("name"));
        if self.all.contains_key(&place) {
            self.change(&place, |node| node["status"] = object["status"].clone());
        } else {
            self.put(place, object);
        }
    }

    /// Sets the condition Ready, as after a report of the kubelet or after a missed one.
    pub(super) fn set_ready(&mut self, name: &str, ready: bool) {
        let (status, reason, message) = match ready {
            true => ("True", "KubeletReady", "kubelet is posting ready status"),
            false => ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status."),
        };
        let condition = json!({"type": "Ready", "status": status, "reason": reason, "message": message, "lastHeartbeatTime": stamp(), "lastTransitionTime": stamp()});
        self.change(&node(name), |node| node["status"]["conditions"] = json!([condition]));
    }

    /// Signs a certificate request (PEM) with the cluster's CA.
    pub(super) fn sign(&self, request: &str) -> Option<String> {
        let (certificate, key) = self.authority.as_ref()?;
        let issuer = Issuer::from_ca_cert_pem(certificate, KeyPair::from_pem(key).ok()?).ok()?;
        let request = CertificateSigningRequestParams::from_pem(request).ok()?;
        request.signed_by(&issuer).ok().map(|certificate| certificate.pem())
    }
}

/// The text in a base64 field.
pub(super) fn decoded(value: &Value) -> Option<String> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(value.as_str()?).ok()?;
    String::from_utf8(bytes).ok()
}

/// Serializes maps whose keys are not strings, as lists of pairs.
mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<K: Serialize, V: Serialize, S: Serializer>(
        map: &BTreeMap<K, V>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(map)
    }

    pub(super) fn deserialize<'de, K, V, D>(from: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        K: Deserialize<'de> + Ord,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        Ok(Vec::<(K, V)>::deserialize(from)?.into_iter().collect())
    }
}
