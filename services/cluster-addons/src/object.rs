//! The parts that documents are made of.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::document::digest;

/// The label by which what is applied is told from what others made, and one add-on from another.
pub(crate) const ADD_ON: &str = "bedplate/addon";
/// A label of every workload, by which it knows its pods.
const APP: &str = "app.kubernetes.io/name";
/// An annotation of pods: what they were configured with, so that they are replaced when that changes.
const CONFIGURATION: &str = "bedplate/configuration";

/// One add-on's objects: they share a label and a namespace.
#[derive(Clone, Copy)]
pub(crate) struct Kit {
    pub(crate) add_on: &'static str,
    pub(crate) namespace: &'static str,
}

impl Kit {
    /// An object in the add-on's namespace; `body` has all fields but the first three.
    pub(crate) fn object(self, api: &str, kind: &str, name: &str, body: Value) -> Value {
        let mut object = self.cluster_wide(api, kind, name, body);
        object["metadata"]["namespace"] = json!(self.namespace);
        object
    }

    /// An object in no namespace.
    pub(crate) fn cluster_wide(self, api: &str, kind: &str, name: &str, body: Value) -> Value {
        let mut object = json!({
            "apiVersion": api,
            "kind": kind,
            "metadata": {
                "name": name,
                "labels": {"app.kubernetes.io/managed-by": "bedplate", ADD_ON: self.add_on},
            },
        });
        if let (Value::Object(object), Value::Object(body)) = (&mut object, body) {
            object.extend(body);
        }
        object
    }

    /// Pods mount its token only where they ask for it.
    pub(crate) fn service_account(self, name: &str) -> Value {
        let body = json!({"automountServiceAccountToken": false});
        self.object("v1", "ServiceAccount", name, body)
    }

    /// A role for the whole cluster, and the account that has it.
    pub(crate) fn cluster_access(self, name: &str, account: &str, rules: Value) -> [Value; 2] {
        let role = self.cluster_wide(RBAC, "ClusterRole", name, json!({"rules": rules}));
        let body = self.bound("ClusterRole", name, account);
        [role, self.cluster_wide(RBAC, "ClusterRoleBinding", name, body)]
    }

    /// A role in the add-on's namespace, and the account that has it.
    pub(crate) fn access(self, name: &str, account: &str, rules: Value) -> [Value; 2] {
        let role = self.object(RBAC, "Role", name, json!({"rules": rules}));
        let body = self.bound("Role", name, account);
        [role, self.object(RBAC, "RoleBinding", name, body)]
    }

    /// Lets an account read whom the API server trusts, as everyone has to who asks it about callers. The role is Kubernetes' own.
    pub(crate) fn reads_authentication(self, name: &str, account: &str) -> Value {
        let body = self.bound("Role", "extension-apiserver-authentication-reader", account);
        self.object(RBAC, "RoleBinding", name, body)
    }

    pub(crate) fn bound(self, kind: &str, role: &str, account: &str) -> Value {
        json!({
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": self.namespace}],
        })
    }

    pub(crate) fn secret(self, name: &str, files: &[(&str, &str)]) -> Value {
        let encoded = files.iter().map(|(file, text)| ((*file).to_owned(), STANDARD.encode(text)));
        let data: Map<String, Value> = encoded.map(|(file, text)| (file, text.into())).collect();
        self.object("v1", "Secret", name, json!({"type": "Opaque", "data": data}))
    }

    /// A pod on every node that it fits. `configuration` is what its pods read once.
    pub(crate) fn daemon_set(self, name: &str, configuration: &[&Value], pod: Value) -> Value {
        let spec = json!({
            "selector": {"matchLabels": {APP: name}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "template": self.template(name, configuration, pod),
        });
        self.object("apps/v1", "DaemonSet", name, json!({"spec": spec}))
    }

    /// One pod, somewhere. The old one is gone before there is a new one.
    pub(crate) fn deployment(self, name: &str, configuration: &[&Value], pod: Value) -> Value {
        let spec = json!({
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {APP: name}},
            "template": self.template(name, configuration, pod),
        });
        self.object("apps/v1", "Deployment", name, json!({"spec": spec}))
    }

    fn template(self, name: &str, configuration: &[&Value], pod: Value) -> Value {
        let mut metadata = json!({"labels": {APP: name, ADD_ON: self.add_on}});
        if !configuration.is_empty() {
            let digest = digest(configuration.iter().copied());
            metadata["annotations"] = json!({CONFIGURATION: digest});
        }
        json!({"metadata": metadata, "spec": pod})
    }

    /// What selects a workload's pods.
    pub(crate) fn selector(self, name: &str) -> Value {
        json!({APP: name})
    }
}

const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// Leave to do `verbs` with `resources`.
pub(crate) fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

/// A container. It reserves what it needs, in thousandths of a processor and in MiB, and has no limit: what a cluster cannot do without
/// is not killed for a peak.
pub(crate) fn container(name: &str, image: String, args: &[&str], needs: (u32, u32)) -> Value {
    let (cpu, memory) = needs;
    json!({
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": args,
        "resources": {"requests": {"cpu": format!("{cpu}m"), "memory": format!("{memory}Mi")}},
        "securityContext": confined(),
    })
}

/// A container's privileges, where it needs none.
pub(crate) fn confined() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "capabilities": {"drop": ["ALL"]},
    })
}

/// What a pod on the control plane bears, by its names before and since 1.24.
pub(crate) fn control_plane_tolerations() -> Vec<Value> {
    let keys = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];
    keys.into_iter().map(tolerates).collect()
}

/// Bears nodes that let no new pods in because of `key`.
pub(crate) fn tolerates(key: &str) -> Value {
    json!({"key": key, "operator": "Exists", "effect": "NoSchedule"})
}

/// Which nodes are the control plane: kubeadm labels them so from 1.20 on.
pub(crate) fn control_plane_nodes() -> Value {
    json!({"kubernetes.io/os": "linux", "node-role.kubernetes.io/control-plane": ""})
}

/// A folder or file of the node's.
pub(crate) fn host_path(name: &str, path: &str, kind: &str) -> Value {
    json!({"name": name, "hostPath": {"path": path, "type": kind}})
}

/// Where a volume is seen.
pub(crate) fn mount(name: &str, path: &str) -> Value {
    json!({"name": name, "mountPath": path})
}

/// Where a volume is seen, and not written.
pub(crate) fn mount_to_read(name: &str, path: &str) -> Value {
    json!({"name": name, "mountPath": path, "readOnly": true})
}
