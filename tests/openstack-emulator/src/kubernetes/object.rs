//! Create, read, change and delete objects and lists of objects.

use serde_json::{Value, json};

use super::discovery::Resource;
use super::reply::{ParsedRequest, Reply, failure};
use super::state::{ObjectKey, Objects, place};
use super::{apply, controllers, patch, protobuf, requests, selector, table};
use crate::world::{short_id, stamp};

const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// Answers `GET`, `POST` and `DELETE` of a list.
pub(super) fn collection(
    objects: &mut Objects,
    asked: &ParsedRequest<'_>,
    resource: &Resource,
    namespace: &str,
) -> Reply {
    match asked.method {
        "GET" if ["true", "1"].contains(&asked.parameter("watch").as_str()) => {
            failure(405, "MethodNotAllowed", "the emulated API server does not watch")
        }
        "GET" => list(objects, asked, resource, namespace),
        "POST" => create(objects, asked, resource, namespace),
        "DELETE" => match selected(objects, asked, resource, namespace) {
            Ok(all) => {
                for at in all {
                    controllers::delete(objects, &at, None);
                }
                (200, success())
            }
            Err(reply) => reply,
        },
        _ => not_allowed(),
    }
}

/// The places of the objects that the query selects.
fn selected(
    objects: &Objects,
    asked: &ParsedRequest<'_>,
    resource: &Resource,
    namespace: &str,
) -> Result<Vec<ObjectKey>, Reply> {
    let (labels, fields) = (asked.parameter("labelSelector"), asked.parameter("fieldSelector"));
    let mut all = Vec::new();
    for (at, object) in objects.each(&resource.group, &resource.name, namespace) {
        let by_fields = selector::by_fields(&resource.name, object, &fields);
        if by_fields.map_err(|why| failure(400, "BadRequest", &why))?
            && selector::by_labels(object, &labels)
        {
            all.push(at.clone());
        }
    }
    Ok(all)
}

fn list(
    objects: &Objects,
    asked: &ParsedRequest<'_>,
    resource: &Resource,
    namespace: &str,
) -> Reply {
    let places = match selected(objects, asked, resource, namespace) {
        Ok(places) => places,
        Err(reply) => return reply,
    };
    // The token for the next page is the number of objects before it.
    let number = |name: &str| asked.parameter(name).parse::<usize>().ok();
    let (from, limit) = (number("continue").unwrap_or(0), number("limit").filter(|it| *it > 0));
    let to = limit.map_or(places.len(), |limit| places.len().min(from.saturating_add(limit)));
    let all: Vec<&Value> =
        places.get(from..to).into_iter().flatten().filter_map(|at| objects.get(at)).collect();
    let mut metadata = json!({"resourceVersion": objects.version()});
    if to < places.len() {
        metadata["continue"] = json!(to.to_string());
        metadata["remainingItemCount"] = json!(places.len() - to);
    }
    if asked.accept.contains("as=Table") {
        let mut table = table::table(&resource.name, &all, &objects.version());
        table["metadata"] = metadata;
        return (200, table);
    }
    (
        200,
        json!({"kind": format!("{}List", resource.kind), "apiVersion": resource.group, "metadata": metadata, "items": all}),
    )
}

fn create(
    objects: &mut Objects,
    asked: &ParsedRequest<'_>,
    resource: &Resource,
    namespace: &str,
) -> Reply {
    let Some(given) = patch::yaml(asked.body) else {
        return failure(400, "BadRequest", "the body cannot be read");
    };
    let name = given["metadata"]["name"].as_str().map(str::to_owned).or_else(|| {
        let prefix = given["metadata"]["generateName"].as_str()?;
        Some(format!("{prefix}{}", &short_id()[..5]))
    });
    let Some(name) = name else {
        return failure(422, "Invalid", "name or generateName is required");
    };
    let at = place(&resource.group, &resource.name, namespace, &name);
    if objects.get(&at).is_some() {
        let message = format!("{} {name:?} already exists", resource.name);
        return failure(409, "AlreadyExists", &message);
    }
    match admitted(objects, asked, &at, given) {
        Ok(object) => (201, Value::clone(&objects.put(at, object))),
        Err(reply) => reply,
    }
}

/// A new object in the form in which it is stored, or the error answer.
fn admitted(
    objects: &Objects,
    asked: &ParsedRequest<'_>,
    at: &ObjectKey,
    mut object: Value,
) -> Result<Value, Reply> {
    if !at.2.is_empty() {
        let Some(home) = objects.get(&place("v1", "namespaces", "", &at.2)) else {
            return Err(failure(404, "NotFound", &format!("namespaces {:?} not found", at.2)));
        };
        if home["metadata"]["deletionTimestamp"].is_string() {
            let message = format!(
                "unable to create new content in namespace {} because it is being terminated",
                at.2
            );
            return Err(failure(403, "Forbidden", &message));
        }
    }
    match at.1.as_str() {
        "pods" => object["status"] = json!({"phase": "Pending"}),
        "namespaces" => object["status"] = json!({"phase": "Active"}),
        "certificatesigningrequests" => {
            return requests::asked(object, &asked.user)
                .map_err(|why| failure(422, "Invalid", &why));
        }
        "services" => {
            let ports = object.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
            for port in ports.into_iter().flatten() {
                if port["protocol"].is_null() {
                    port["protocol"] = json!("TCP");
                }
            }
            if object["spec"]["type"].is_null() {
                object["spec"]["type"] = json!("ClusterIP");
            }
        }
        "secrets" => stored(&mut object),
        "customresourcedefinitions" => {
            let names = object["spec"]["names"].clone();
            object["status"] = json!({"acceptedNames": names, "conditions": [{"type": "Established", "status": "True", "lastTransitionTime": stamp()}]});
        }
        _ => {}
    }
    Ok(object)
}

/// Moves the texts of a Secret's `stringData` to `data`, in base64.
fn stored(secret: &mut Value) {
    use base64::Engine;
    let texts = secret["stringData"].take();
    if let Some(map) = secret.as_object_mut() {
        map.remove("stringData");
    }
    for (key, value) in texts.as_object().into_iter().flatten() {
        let text = value.as_str().unwrap_or_default();
        secret["data"][key] = json!(base64::engine::general_purpose::STANDARD.encode(text));
    }
}

/// Answers requests for one object or one of its subresources.
pub(super) fn object(
    objects: &mut Objects,
    asked: &ParsedRequest<'_>,
    at: &ObjectKey,
    below: &[&str],
) -> Reply {
    let here = objects.get(at).cloned();
    let applies = asked.kind.starts_with("application/apply-patch");
    let Some(before) = here else {
        if asked.method == "PATCH" && below.is_empty() && applies {
            return apply_patch(objects, asked, at, None);
        }
        return failure(404, "NotFound", &format!("{} \"{}\" not found", at.1, at.3));
    };
    match (asked.method, below) {
        ("GET", [] | ["status"]) if asked.accept.contains("as=Table") => {
            (200, table::table(&at.1, &[&before], &objects.version()))
        }
        ("GET", [] | ["status"]) => (200, before),
        ("GET", ["log"]) if at.1 == "pods" => {
            let uid = before["metadata"]["uid"].as_str().unwrap_or_default();
            if before["status"]["phase"] == "Pending" {
                return failure(400, "BadRequest", "container is waiting to start");
            }
            (200, Value::String(objects.logs.get(uid).cloned().unwrap_or_default()))
        }
        ("POST", ["eviction"]) if at.1 == "pods" => evict(objects, asked, at, &before),
        ("DELETE", []) => delete(objects, asked, at, &before),
        ("PUT", [] | ["status" | "approval"]) => {
            let protobuf = asked.kind.contains("protobuf");
            let given = match protobuf.then(|| protobuf::conditions(asked.body)) {
                Some(Some(conditions)) if below == ["approval"] => {
                    let mut after = before.clone();
                    after["status"]["conditions"] = conditions;
                    Some(after)
                }
                Some(_) => None,
                None => patch::yaml(asked.body),
            };
            match given {
                Some(given) => write(objects, at, &before, given, below),
                None => failure(415, "UnsupportedMediaType", "the body cannot be read: send JSON"),
            }
        }
        ("PATCH", []) if applies => apply_patch(objects, asked, at, Some(before)),
        ("PATCH", [] | ["status" | "approval"]) => {
            match patch::patched(&before, asked.kind, asked.body) {
                Some(after) => write(objects, at, &before, after, below),
                None => {
                    failure(415, "UnsupportedMediaType", "the patch cannot be read or does not fit")
                }
            }
        }
        _ => not_allowed(),
    }
}

/// Replaces an object, or the part of it at the path `below`. Fails if the object has changed since the client read it.
fn write(
    objects: &mut Objects,
    at: &ObjectKey,
    before: &Value,
    given: Value,
    below: &[&str],
) -> Reply {
    let version = &given["metadata"]["resourceVersion"];
    if version.is_string() && *version != before["metadata"]["resourceVersion"] {
        let message = format!("Operation cannot be fulfilled on {} {:?}: {MODIFIED}", at.1, at.3);
        return failure(409, "Conflict", &message);
    }
    let after = match below {
        ["approval"] => {
            let mut after = before.clone();
            after["status"]["conditions"] = given["status"]["conditions"].clone();
            after
        }
        ["status"] => {
            let mut after = before.clone();
            after["status"] = given["status"].clone();
            after
        }
        _ => given,
    };
    (200, Value::clone(&objects.put(at.clone(), kept(at, after))))
}

/// An object in the form in which it is stored.
fn kept(at: &ObjectKey, mut object: Value) -> Value {
    if at.1 == "secrets" {
        stored(&mut object);
    }
    object
}

fn apply_patch(
    objects: &mut Objects,
    asked: &ParsedRequest<'_>,
    at: &ObjectKey,
    before: Option<Value>,
) -> Reply {
    let manager = asked.parameter("fieldManager");
    if manager.is_empty() {
        return failure(
            400,
            "BadRequest",
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
        );
    }
    let Some(mut config) = patch::yaml(asked.body).filter(Value::is_object) else {
        return failure(400, "BadRequest", "the body cannot be read");
    };
    if config["kind"].is_null() || config["apiVersion"].is_null() {
        return failure(400, "BadRequest", "Object 'Kind' is missing");
    }
    if config["metadata"]["name"] != at.3.as_str() {
        return failure(400, "BadRequest", "the name of the object does not match the URL");
    }
    config["apiVersion"] = json!(at.0);
    let known = objects.applied.get(at).cloned().unwrap_or_default();
    let others: Vec<&Value> =
        known.iter().filter(|(name, _)| **name != manager).map(|(_, it)| it).collect();
    let live = before.clone().unwrap_or_else(|| json!({}));
    let clashes = apply::conflicts(&live, &config, &others);
    if !clashes.is_empty() && asked.parameter("force") != "true" {
        let message =
            format!("Apply failed with {} conflicts: {}", clashes.len(), clashes.join(", "));
        return failure(409, "Conflict", &message);
    }
    let last = known.get(&manager).cloned().unwrap_or_default();
    let after = apply::applied(live, &last, &config, &others);
    let after = match &before {
        Some(_) => Ok(after),
        None => admitted(objects, asked, at, after),
    };
    match after {
        Ok(after) => {
            let code = if before.is_some() { 200 } else { 201 };
            let written = objects.put(at.clone(), kept(at, after));
            objects.applied.entry(at.clone()).or_default().insert(manager, config);
            (code, Value::clone(&written))
        }
        Err(reply) => reply,
    }
}

/// `DeleteOptions`, from the body or the query.
struct Options {
    uid: Option<String>,
    grace: Option<u64>,
}

impl Options {
    fn read(asked: &ParsedRequest<'_>, options: &Value) -> Options {
        let uid = options["preconditions"]["uid"].as_str().map(str::to_owned);
        let said = asked.parameter("gracePeriodSeconds").parse().ok();
        Options { uid, grace: said.or_else(|| options["gracePeriodSeconds"].as_u64()) }
    }

    /// The error answer if the uid in the precondition is not the object's.
    fn objection(&self, at: &ObjectKey, object: &Value) -> Option<Reply> {
        let uid = self.uid.as_ref()?;
        let other = object["metadata"]["uid"] != *uid;
        let message = format!(
            "Operation cannot be fulfilled on {} {:?}: the UID in the precondition ({uid}) does not match the UID in record",
            at.1, at.3
        );
        other.then(|| failure(409, "Conflict", &message))
    }
}

fn delete(
    objects: &mut Objects,
    asked: &ParsedRequest<'_>,
    at: &ObjectKey,
    object: &Value,
) -> Reply {
    let body = patch::yaml(asked.body).unwrap_or_default();
    let options = Options::read(asked, &body);
    if let Some(reply) = options.objection(at, object) {
        return reply;
    }
    controllers::delete(objects, at, options.grace);
    match objects.get(at) {
        // The deletion takes time: the object still exists.
        Some(object) => (200, object.clone()),
        None => {
            let mut body = success();
            body["details"] = json!({"name": at.3, "kind": at.1});
            (200, body)
        }
    }
}

fn evict(objects: &mut Objects, asked: &ParsedRequest<'_>, at: &ObjectKey, pod: &Value) -> Reply {
    let body = patch::yaml(asked.body).unwrap_or_default();
    let offered: &[&str] = match objects.minor() {
        0..=21 => &["policy/v1beta1"],
        22..=24 => &["policy/v1", "policy/v1beta1"],
        _ => &["policy/v1"],
    };
    let version = body["apiVersion"].as_str().unwrap_or_default();
    if body["kind"] != "Eviction" || !offered.contains(&version) {
        let message = format!("no kind \"Eviction\" is registered for version {version:?}");
        return failure(400, "BadRequest", &message);
    }
    let options = Options::read(asked, &body["deleteOptions"]);
    if let Some(reply) = options.objection(at, pod) {
        return reply;
    }
    match controllers::evict(objects, at, options.grace) {
        Ok(()) => (201, success()),
        Err(why) => {
            let message = "Cannot evict pod as it would violate the pod's disruption budget.";
            let (code, mut body) = failure(429, "TooManyRequests", message);
            body["details"] = json!({"causes": [{"reason": "DisruptionBudget", "message": why}]});
            (code, body)
        }
    }
}

fn success() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})
}

fn not_allowed() -> Reply {
    failure(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    )
}
