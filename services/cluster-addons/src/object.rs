//! Builds the Kubernetes objects of add-ons from parts that all of them share.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::document::digest;

/// The label that marks an object as part of an add-on and names the add-on.
pub(crate) const ADD_ON: &str = "bedplate/addon";
/// The label by which a workload selects its pods.
const APP: &str = "app.kubernetes.io/name";
/// The pod annotation with the digest of the configuration: a changed configuration replaces the pods.
const CONFIGURATION: &str = "bedplate/configuration";

/// Makes the objects of one add-on, which share a label and a namespace.
#[derive(Clone, Copy)]
pub(crate) struct AddOnObjects {
    pub(crate) add_on: &'static str,
    pub(crate) namespace: &'static str,
}

impl AddOnObjects {
    /// An object in the add-on's namespace. `body` has all fields except `apiVersion`, `kind` and `metadata`.
    pub(crate) fn object(self, api: &str, kind: &str, name: &str, body: Value) -> Value {
        let mut object = self.cluster_wide(api, kind, name, body);
        object["metadata"]["namespace"] = json!(self.namespace);
        object
    }

    /// An object without a namespace.
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

    /// A service account whose token is mounted only in pods that ask for the token.
    pub(crate) fn service_account(self, name: &str) -> Value {
        let body = json!({"automountServiceAccountToken": false});
        self.object("v1", "ServiceAccount", name, body)
    }

    /// A ClusterRole and its binding to `account`.
    pub(crate) fn cluster_access(self, name: &str, account: &str, rules: Value) -> [Value; 2] {
        let role = self.cluster_wide(RBAC, "ClusterRole", name, json!({"rules": rules}));
        let body = self.binding_body("ClusterRole", name, account);
        [role, self.cluster_wide(RBAC, "ClusterRoleBinding", name, body)]
    }

    /// A Role in the add-on's namespace and its binding to `account`.
    pub(crate) fn access(self, name: &str, account: &str, rules: Value) -> [Value; 2] {
        let role = self.object(RBAC, "Role", name, json!({"rules": rules}));
        let body = self.binding_body("Role", name, account);
        [role, self.object(RBAC, "RoleBinding", name, body)]
    }

    /// Lets `account` read the API server's certificate authorities for client certificates, which every extension API server needs to
    /// verify callers. The role is Kubernetes' own.
    pub(crate) fn reads_authentication(self, name: &str, account: &str) -> Value {
        let body = self.binding_body("Role", "extension-apiserver-authentication-reader", account);
        self.object(RBAC, "RoleBinding", name, body)
    }

    pub(crate) fn binding_body(self, kind: &str, role: &str, account: &str) -> Value {
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

    /// A DaemonSet. `configuration` lists the objects that its pods read only when they start.
    pub(crate) fn daemon_set(self, name: &str, configuration: &[&Value], pod: Value) -> Value {
        let spec = json!({
            "selector": {"matchLabels": {APP: name}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "template": self.template(name, configuration, pod),
        });
        self.object("apps/v1", "DaemonSet", name, json!({"spec": spec}))
    }

    /// A Deployment of one pod. An update stops the old pod before the new pod starts.
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

    /// The selector of a workload's pods.
    pub(crate) fn selector(self, name: &str) -> Value {
        json!({APP: name})
    }
}

const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// An RBAC rule that permits `verbs` on `resources`.
pub(crate) fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

/// A container with resource requests in thousandths of a processor and in MiB, and without limits: a limit would kill a pod that the
/// cluster depends on when its use peaks.
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

/// The security context of a container that needs no privileges.
pub(crate) fn confined() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "capabilities": {"drop": ["ALL"]},
    })
}

/// Tolerations of the control plane's taint under its names before and since Kubernetes 1.24.
pub(crate) fn control_plane_tolerations() -> Vec<Value> {
    let keys = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];
    keys.into_iter().map(tolerates).collect()
}

/// A toleration of the taint `key` with the effect `NoSchedule`.
pub(crate) fn tolerates(key: &str) -> Value {
    json!({"key": key, "operator": "Exists", "effect": "NoSchedule"})
}

/// The node selector of the control plane, by the label that kubeadm sets from 1.20 on.
pub(crate) fn control_plane_nodes() -> Value {
    json!({"kubernetes.io/os": "linux", "node-role.kubernetes.io/control-plane": ""})
}

/// A volume that is a file or folder of the node.
pub(crate) fn host_path(name: &str, path: &str, kind: &str) -> Value {
    json!({"name": name, "hostPath": {"path": path, "type": kind}})
}

pub(crate) fn mount(name: &str, path: &str) -> Value {
    json!({"name": name, "mountPath": path})
}

/// A read-only mount of a volume.
pub(crate) fn mount_to_read(name: &str, path: &str) -> Value {
    json!({"name": name, "mountPath": path, "readOnly": true})
}
