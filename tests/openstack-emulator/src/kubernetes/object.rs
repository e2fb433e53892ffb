//! Create, read, change and delete objects and lists of objects.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::discovery::Resource;
use super::reply::{self, ParsedRequest, Reply, ReplyResult};
use super::state::{ObjectKey, Objects, place};
use super::{apply, controllers, patch, protobuf, requests, selector, table};
use crate::object::ReadFields;
use crate::world::{short_id, stamp};

/// The objects of a resource in one namespace or, if the namespace is empty, in all.
pub(super) struct Collection<'r> {
    pub(super) resource: &'r Resource,
    pub(super) namespace: &'r str,
}

impl Collection<'_> {
    pub(super) fn key(&self, name: &str) -> ObjectKey {
        place(&self.resource.group, &self.resource.name, self.namespace, name)
    }
}

/// Answers `GET`, `POST` and `DELETE` of a list.
pub(super) fn collection(
    objects: &mut Objects,
    asked: &ParsedRequest,
    of: &Collection,
) -> ReplyResult {
    match asked.method {
        "GET" if ["true", "1"].contains(&asked.parameter("watch").as_str()) => {
            Err(reply::no_watch())
        }
        "GET" => list(objects, asked, of),
        "POST" => create(objects, asked, of),
        "DELETE" => {
            for at in selected(objects, asked, of)? {
                controllers::delete(objects, &at, None);
            }
            Ok((200, success()))
        }
        _ => Err(reply::not_allowed()),
    }
}

/// The keys of the objects that the query selects.
fn selected(
    objects: &Objects,
    asked: &ParsedRequest,
    of: &Collection,
) -> ReplyResult<Vec<ObjectKey>> {
    let (labels, fields) = (asked.parameter("labelSelector"), asked.parameter("fieldSelector"));
    let (group, name) = (&of.resource.group, &of.resource.name);
    let mut all = Vec::new();
    for (at, object) in objects.each(group, name, of.namespace) {
        let by_fields = selector::by_fields(name, object, &fields).map_err(reply::bad_query)?;
        if by_fields && selector::by_labels(object, &labels) {
            all.push(at.clone());
        }
    }
    Ok(all)
}

fn list(objects: &Objects, asked: &ParsedRequest, of: &Collection) -> ReplyResult {
    let places = selected(objects, asked, of)?;
    // The token for the next page is the number of objects before it.
    let number = |name: &str| asked.parameter(name).parse::<usize>().ok();
    let (from, limit) = (number("continue").unwrap_or(0), number("limit").filter(|it| *it > 0));
    let to = limit.map_or(places.len(), |limit| places.len().min(from.saturating_add(limit)));
    let all = places.get(from..to).into_iter().flatten().filter_map(|at| objects.get(at));
    let all: Vec<&Value> = all.collect();
    let mut metadata = json!({"resourceVersion": objects.version()});
    if to < places.len() {
        metadata["continue"] = json!(to.to_string());
        metadata["remainingItemCount"] = json!(places.len() - to);
    }
    let mut list = match asked.accept.contains("as=Table") {
        true => table::table(&of.resource.name, &all, &objects.version()),
        false => {
            json!({"kind": format!("{}List", of.resource.kind), "apiVersion": of.resource.group, "items": all})
        }
    };
    list["metadata"] = metadata;
    Ok((200, list))
}

fn create(objects: &mut Objects, asked: &ParsedRequest, of: &Collection) -> ReplyResult {
    let given = patch::yaml(asked.body).ok_or_else(reply::bad_body)?;
    let metadata = &given["metadata"];
    let name = metadata["name"].as_str().map(str::to_owned).or_else(|| {
        let prefix = metadata["generateName"].as_str()?;
        Some(format!("{prefix}{}", &short_id()[..5]))
    });
    let at = of.key(&name.ok_or_else(reply::name_needed)?);
    if objects.get(&at).is_some() {
        return Err(reply::exists(&at.1, &at.3));
    }
    let object = admitted(objects, asked, &at, given)?;
    Ok((201, Value::clone(&objects.put(at, object))))
}

/// A new object in the form in which it is stored, or the error answer.
fn admitted(
    objects: &Objects,
    asked: &ParsedRequest,
    at: &ObjectKey,
    mut object: Value,
) -> ReplyResult<Value> {
    if !at.2.is_empty() {
        let home = objects.get(&place("v1", "namespaces", "", &at.2));
        let home = home.ok_or_else(|| reply::not_found("namespaces", &at.2))?;
        if home["metadata"]["deletionTimestamp"].is_string() {
            return Err(reply::terminating(&at.2));
        }
    }
    match at.1.as_str() {
        "pods" => object["status"] = json!({"phase": "Pending"}),
        "namespaces" => object["status"] = json!({"phase": "Active"}),
        "certificatesigningrequests" => {
            return requests::asked(object, &asked.user).map_err(reply::invalid);
        }
        "services" => {
            let ports = object.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
            for port in ports.into_iter().flatten().filter(|port| port["protocol"].is_null()) {
                port["protocol"] = json!("TCP");
            }
            if object["spec"]["type"].is_null() {
                object["spec"]["type"] = json!("ClusterIP");
            }
        }
        "customresourcedefinitions" => {
            let names = object["spec"]["names"].clone();
            object["status"] = json!({"acceptedNames": names, "conditions": [{"type": "Established", "status": "True", "lastTransitionTime": stamp()}]});
        }
        _ => {}
    }
    Ok(kept(at, object))
}

/// Answers requests for one object or one of its subresources.
pub(super) fn object(
    objects: &mut Objects,
    asked: &ParsedRequest,
    at: &ObjectKey,
    below: &[&str],
) -> ReplyResult {
    let applies = asked.kind.starts_with("application/apply-patch");
    let Some(before) = objects.get(at).cloned() else {
        if asked.method == "PATCH" && below.is_empty() && applies {
            return apply_patch(objects, asked, at, None);
        }
        return Err(reply::not_found(&at.1, &at.3));
    };
    match (asked.method, below) {
        ("GET", [] | ["status"]) if asked.accept.contains("as=Table") => {
            Ok((200, table::table(&at.1, &[&before], &objects.version())))
        }
        ("GET", [] | ["status"]) => Ok((200, before)),
        ("GET", ["log"]) if at.1 == "pods" => {
            if before["status"]["phase"] == "Pending" {
                return Err(reply::waiting());
            }
            let log = objects.logs.get(before["metadata"].text("uid"));
            Ok((200, Value::String(log.cloned().unwrap_or_default())))
        }
        ("POST", ["eviction"]) if at.1 == "pods" => evict(objects, asked, at, &before),
        ("DELETE", []) => delete(objects, asked, at, &before),
        ("PUT", [] | ["status" | "approval"]) => {
            let given = match asked.kind.contains("protobuf") {
                false => patch::yaml(asked.body),
                true if below == ["approval"] => {
                    let conditions = protobuf::conditions(asked.body);
                    conditions.map(|it| json!({"status": {"conditions": it}}))
                }
                true => None,
            };
            write(objects, at, &before, given.ok_or_else(reply::send_json)?, below)
        }
        ("PATCH", []) if applies => apply_patch(objects, asked, at, Some(before)),
        ("PATCH", [] | ["status" | "approval"]) => {
            let after = patch::patched(&before, asked.kind, asked.body);
            write(objects, at, &before, after.ok_or_else(reply::bad_patch)?, below)
        }
        _ => Err(reply::not_allowed()),
    }
}

/// Replaces an object, or the part of it at the path `below`. Fails if the object has changed since the client read it.
fn write(
    objects: &mut Objects,
    at: &ObjectKey,
    before: &Value,
    given: Value,
    below: &[&str],
) -> ReplyResult {
    let version = &given["metadata"]["resourceVersion"];
    if version.is_string() && *version != before["metadata"]["resourceVersion"] {
        return Err(reply::modified(&at.1, &at.3));
    }
    let mut after = before.clone();
    match below {
        ["approval"] => after["status"]["conditions"] = given["status"]["conditions"].clone(),
        ["status"] => after["status"] = given["status"].clone(),
        _ => after = given,
    }
    Ok((200, Value::clone(&objects.put(at.clone(), kept(at, after)))))
}

/// An object in the form in which it is stored: the texts of a Secret's `stringData` are moved to `data`, in base64.
fn kept(at: &ObjectKey, mut object: Value) -> Value {
    if at.1 == "secrets" {
        let texts = object.as_object_mut().and_then(|secret| secret.remove("stringData"));
        for (key, value) in texts.as_ref().and_then(Value::as_object).into_iter().flatten() {
            object["data"][key] = json!(STANDARD.encode(value.as_str().unwrap_or_default()));
        }
    }
    object
}

fn apply_patch(
    objects: &mut Objects,
    asked: &ParsedRequest,
    at: &ObjectKey,
    before: Option<Value>,
) -> ReplyResult {
    let manager = asked.parameter("fieldManager");
    if manager.is_empty() {
        return Err(reply::manager_needed());
    }
    let config = patch::yaml(asked.body).filter(Value::is_object);
    let mut config = config.ok_or_else(reply::bad_body)?;
    if config["kind"].is_null() || config["apiVersion"].is_null() {
        return Err(reply::kind_needed());
    }
    if config["metadata"]["name"] != at.3.as_str() {
        return Err(reply::other_name());
    }
    config["apiVersion"] = json!(at.0);
    let known = objects.applied.get(at).cloned().unwrap_or_default();
    let others = known.iter().filter(|(name, _)| **name != manager).map(|(_, it)| it);
    let others: Vec<&Value> = others.collect();
    let live = before.clone().unwrap_or_else(|| json!({}));
    let clashes = apply::conflicts(&live, &config, &others);
    if !clashes.is_empty() && asked.parameter("force") != "true" {
        return Err(reply::conflicts(clashes.len(), clashes.join(", ")));
    }
    let last = known.get(&manager).cloned().unwrap_or_default();
    let after = apply::applied(live, &last, &config, &others);
    let (code, after) = match &before {
        Some(_) => (200, kept(at, after)),
        None => (201, admitted(objects, asked, at, after)?),
    };
    let written = objects.put(at.clone(), after);
    objects.applied.entry(at.clone()).or_default().insert(manager, config);
    Ok((code, Value::clone(&written)))
}

/// The grace period in `DeleteOptions`, from the body or the query. Fails if the uid in the precondition is not the object's.
fn grace(
    asked: &ParsedRequest,
    options: &Value,
    at: &ObjectKey,
    object: &Value,
) -> ReplyResult<Option<u64>> {
    let uid = options["preconditions"]["uid"].as_str();
    if let Some(uid) = uid.filter(|uid| object["metadata"]["uid"] != *uid) {
        return Err(reply::other_uid(&at.1, &at.3, uid));
    }
    let said = asked.parameter("gracePeriodSeconds").parse().ok();
    Ok(said.or_else(|| options["gracePeriodSeconds"].as_u64()))
}

fn delete(
    objects: &mut Objects,
    asked: &ParsedRequest,
    at: &ObjectKey,
    object: &Value,
) -> ReplyResult {
    let options = patch::yaml(asked.body).unwrap_or_default();
    controllers::delete(objects, at, grace(asked, &options, at, object)?);
    // An object whose deletion takes time still exists.
    if let Some(object) = objects.get(at) {
        return Ok((200, object.clone()));
    }
    let mut body = success();
    body["details"] = json!({"name": at.3, "kind": at.1});
    Ok((200, body))
}

fn evict(objects: &mut Objects, asked: &ParsedRequest, at: &ObjectKey, pod: &Value) -> ReplyResult {
    let body = patch::yaml(asked.body).unwrap_or_default();
    let offered: &[&str] = match objects.minor() {
        0..=21 => &["policy/v1beta1"],
        22..=24 => &["policy/v1", "policy/v1beta1"],
        _ => &["policy/v1"],
    };
    let version = body.text("apiVersion");
    if body["kind"] != "Eviction" || !offered.contains(&version) {
        return Err(reply::no_eviction(version));
    }
    let grace = grace(asked, &body["deleteOptions"], at, pod)?;
    controllers::evict(objects, at, grace).map_err(|why| -> Reply {
        let (code, mut body) = reply::no_disruption();
        body["details"] = json!({"causes": [{"reason": "DisruptionBudget", "message": why}]});
        (code, body)
    })?;
    Ok((201, success()))
}

fn success() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})
}
