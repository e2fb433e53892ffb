//! Certificate signing requests: creation, approval, signing.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::auth::User;
use super::state::{Objects, decoded, place};
use crate::object::ReadFields;
use crate::world::stamp;

const GROUP: &str = "certificates.k8s.io/v1";
const RESOURCE: &str = "certificatesigningrequests";
const RBAC: &str = "rbac.authorization.k8s.io/v1";
const CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// The signers of this cluster. Requests to other signers stay pending.
const SIGNERS: [&str; 3] =
    [CLIENT, "kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client"];

/// A new request. The server records the caller and ignores what the body says about it.
pub(super) fn asked(mut object: Value, by: &User) -> Result<Value, String> {
    if decoded(&object["spec"]["request"]).is_none_or(|pem| !pem.contains("CERTIFICATE REQUEST")) {
        return Err(
            "spec.request: Invalid value: PEM block type must be CERTIFICATE REQUEST".into()
        );
    }
    object["spec"]["username"] = json!(by.name);
    object["spec"]["groups"] = json!(by.groups);
    object["status"] = json!({});
    Ok(object)
}

/// Creates a request as a kubelet does.
pub(super) fn ask(objects: &mut Objects, name: &str, spec: Value, by: &User) {
    let object = json!({"apiVersion": GROUP, "kind": "CertificateSigningRequest", "metadata": {"name": name}, "spec": spec});
    if let Ok(object) = asked(object, by) {
        objects.put(place(GROUP, RESOURCE, "", name), object);
    }
}

/// The certificate of a request, or `Err` if the request was denied. `None` if it is pending.
pub(super) fn outcome(objects: &Objects, name: &str) -> Option<Result<String, ()>> {
    let object = objects.get(&place(GROUP, RESOURCE, "", name))?;
    if has(object, "Denied") {
        return Some(Err(()));
    }
    decoded(&object["status"]["certificate"]).map(Ok)
}

/// Acts as kube-controller-manager: approves requests that role bindings allow, and signs approved ones.
pub(super) fn decide(objects: &mut Objects) {
    let is_signed = |it: &Value| it["status"]["certificate"].is_string();
    let open = objects.places((GROUP, RESOURCE, ""), |it| !is_signed(it));
    for at in open {
        let Some(request) = objects.shared(&at) else { continue };
        let undecided = !has(&request, "Approved") && !has(&request, "Denied");
        if undecided && is_approved_by_binding(objects, &request) {
            let condition = json!({"type": "Approved", "status": "True", "reason": "AutoApproved", "message": "Auto approving kubelet client certificate after SubjectAccessReview.", "lastUpdateTime": stamp()});
            objects.change(&at, |request| request["status"]["conditions"] = json!([condition]));
        }
        let Some(request) = objects.shared(&at) else { continue };
        let ours = SIGNERS.iter().any(|it| request["spec"]["signerName"] == *it);
        if !ours || !has(&request, "Approved") {
            continue;
        }
        let pem = decoded(&request["spec"]["request"]);
        if let Some(certificate) = pem.and_then(|pem| objects.sign(&pem)) {
            let certificate = STANDARD.encode(certificate);
            objects.change(&at, |it| it["status"]["certificate"] = json!(certificate));
        }
    }
}

/// Whether a role binding approves client certificates for the caller; a node only for itself.
fn is_approved_by_binding(objects: &Objects, request: &Value) -> bool {
    if request["spec"]["signerName"] != CLIENT {
        return false;
    }
    let user = request["spec"].text("username");
    let role = if user.starts_with("system:node:") { "selfnodeclient" } else { "nodeclient" };
    let role = format!("system:certificates.k8s.io:certificatesigningrequests:{role}");
    let groups = request["spec"]["groups"].as_array();
    objects.list(RBAC, "clusterrolebindings", "").iter().any(|binding| {
        let subjects = binding.list("subjects").iter();
        let meant = |subject: &Value| match subject["kind"].as_str() {
            Some("Group") => groups.is_some_and(|groups| groups.contains(&subject["name"])),
            _ => subject["name"] == user,
        };
        binding["roleRef"]["name"] == role && subjects.into_iter().any(meant)
    })
}

fn has(request: &Value, kind: &str) -> bool {
    let conditions = request["status"].list("conditions").iter();
    conditions.into_iter().any(|condition| condition["type"] == kind)
}
