//! Finds mistakes across documents that an API server would accept.

use std::collections::BTreeSet;

use cluster_addons::{AddOn, ObjectRef};
use serde_json::Value;

/// Roles that every cluster has (kubernetes, plugin/pkg/auth/authorizer/rbac/bootstrappolicy).
const OWN_ROLES: [&str; 2] = ["system:auth-delegator", "extension-apiserver-authentication-reader"];
/// Programs without a health check.
const NOT_ASKED: [&str; 2] = ["nvidia-device-plugin", "amd-device-plugin"];

/// Describes every mistake in the documents of all add-ons.
pub(crate) fn problems(add_ons: &[AddOn]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    let mut namespaces = BTreeSet::from(["kube-system".to_owned()]);
    let whole = AllDocuments { add_ons };
    for add_on in add_ons {
        for document in &add_on.documents {
            let (object, at) = (document.as_value(), document.reference());
            let mut say = |what: String| problems.push(format!("{at}: {what}"));
            if !seen.insert((at.kind.clone(), at.namespace.clone(), at.name.clone())) {
                say("there are two".to_owned());
            }
            if at.kind == "Namespace" {
                namespaces.insert(at.name.clone());
            }
            if let Some(namespace) = at.namespace.as_ref().filter(|it| !namespaces.contains(*it)) {
                say(format!("there is no namespace {namespace} yet"));
            }
            if object["metadata"]["labels"]["bedplate/addon"] != add_on.name {
                say("it is not labelled".to_owned());
            }
            whole.check_access(object, &at, &mut say);
            if !object["spec"]["template"].is_null() {
                whole.check_workload(object, &at, &mut say);
            }
            if at.kind == "Service" && whole.pods_of(&object["spec"]["selector"]).count() != 1 {
                say("it selects no pods, or those of two workloads".to_owned());
            }
            if at.kind == "APIService" {
                let service = &object["spec"]["service"];
                let (name, namespace) = (text(&service["name"]), text(&service["namespace"]));
                if !whole.has("Service", Some(namespace), name) {
                    say(format!("there is no Service {name}"));
                }
            }
        }
    }
    problems
}

struct AllDocuments<'a> {
    add_ons: &'a [AddOn],
}

impl AllDocuments<'_> {
    fn objects(&self) -> impl Iterator<Item = &Value> {
        self.add_ons.iter().flat_map(|it| &it.documents).map(|it| it.as_value())
    }

    fn has(&self, kind: &str, namespace: Option<&str>, name: &str) -> bool {
        self.objects().any(|it| {
            it["kind"] == kind
                && it["metadata"]["name"] == name
                && it["metadata"]["namespace"].as_str() == namespace
        })
    }

    fn pods_of<'a>(&'a self, selector: &'a Value) -> impl Iterator<Item = &'a Value> {
        self.objects().filter(|it| {
            let labels = &it["spec"]["template"]["metadata"]["labels"];
            labels.is_object() && matches(selector, labels)
        })
    }

    fn check_access(&self, object: &Value, at: &ObjectRef, say: &mut impl FnMut(String)) {
        for rule in items(&object["rules"]) {
            for list in ["apiGroups", "resources", "verbs"] {
                if items(&rule[list]).next().is_none() || items(&rule[list]).any(|it| it == "*") {
                    say(format!("a rule allows all or no {list}"));
                }
            }
            let secret = ["secrets", "serviceaccounts/token", "pods/exec", "roles", "clusterroles"];
            if items(&rule["resources"]).any(|it| secret.contains(&text(it))) {
                say("a rule gives away the cluster".to_owned());
            }
        }
        if !at.kind.ends_with("Binding") {
            return;
        }
        let (kind, role) = (text(&object["roleRef"]["kind"]), text(&object["roleRef"]["name"]));
        let namespace = at.namespace.as_deref().filter(|_| kind == "Role");
        if !OWN_ROLES.contains(&role) && !self.has(kind, namespace, role) {
            say(format!("there is no {kind} {role}"));
        }
        for subject in items(&object["subjects"]) {
            let namespace = subject["namespace"].as_str();
            if !self.has("ServiceAccount", namespace, text(&subject["name"])) {
                say(format!("there is no subject {subject}"));
            }
        }
    }

    fn check_workload(&self, object: &Value, at: &ObjectRef, say: &mut impl FnMut(String)) {
        let (spec, pod) = (&object["spec"], &object["spec"]["template"]["spec"]);
        let namespace = at.namespace.as_deref();
        let selector = &spec["selector"]["matchLabels"];
        if !matches(selector, &spec["template"]["metadata"]["labels"]) {
            say("its selector does not match its pods".to_owned());
        }
        if self.pods_of(selector).count() != 1 {
            say("its selector matches others' pods".to_owned());
        }
        if !self.has("ServiceAccount", namespace, text(&pod["serviceAccountName"])) {
            say("its account is not there".to_owned());
        }
        if !text(&pod["priorityClassName"]).starts_with("system-") {
            say("its priority is nobody's".to_owned());
        }
        let volumes: BTreeSet<&str> =
            items(&pod["volumes"]).map(|volume| text(&volume["name"])).collect();
        for volume in items(&pod["volumes"]) {
            let secret = text(&volume["secret"]["secretName"]);
            if !secret.is_empty() && !self.has("Secret", namespace, secret) {
                say(format!("there is no Secret {secret}"));
            }
            let config = text(&volume["configMap"]["name"]);
            if !config.is_empty() && !self.has("ConfigMap", namespace, config) {
                say(format!("there is no ConfigMap {config}"));
            }
        }
        let containers: Vec<&Value> =
            items(&pod["initContainers"]).chain(items(&pod["containers"])).collect();
        let mounts = containers.iter().flat_map(|it| items(&it["volumeMounts"]));
        let mounted: BTreeSet<&str> = mounts.map(|it| text(&it["name"])).collect();
        if volumes != mounted {
            say(format!("volumes are {volumes:?}, mounted are {mounted:?}"));
        }
        let asked = containers.iter().any(|it| it["livenessProbe"].is_object());
        if !asked && !NOT_ASKED.contains(&at.name.as_str()) {
            say("nothing asks whether it is well".to_owned());
        }
        let mut names = BTreeSet::new();
        for container in containers {
            let name = text(&container["name"]);
            let mut say = |what: &str| say(format!("container {name}: {what}"));
            if !names.insert(name) {
                say("there are two");
            }
            let image = text(&container["image"]);
            let tag = image.rsplit('/').next().and_then(|last| last.split_once(':'));
            if tag.is_none_or(|(_, tag)| tag.is_empty() || tag.starts_with("latest")) {
                say("its image has no version");
            }
            let needs = &container["resources"]["requests"];
            if needs["cpu"].is_null() || needs["memory"].is_null() {
                say("it reserves nothing");
            }
            let context = &container["securityContext"];
            let confined = context["allowPrivilegeEscalation"] == false
                && context["capabilities"]["drop"][0] == "ALL";
            if !confined && name != "cinder-csi-plugin" {
                say("it is not confined");
            }
            if items(&container["ports"]).any(|port| port["protocol"].is_null()) {
                say("a port has no protocol, which is part of its identity");
            }
        }
    }
}

fn matches(selector: &Value, labels: &Value) -> bool {
    let wanted = selector.as_object().into_iter().flatten();
    !selector.is_null() && wanted.into_iter().all(|(key, value)| labels[key] == *value)
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
