//! The resource tree of a profile: the generic documents with the changes of a vendor, ready to be filled in.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::template::{Item, substitute};

/// The documents of a service that follows the specifications, by their paths.
const DOCUMENTS: [&str; 4] = [
    include_str!("../../documents/service.json"),
    include_str!("../../documents/system.json"),
    include_str!("../../documents/manager.json"),
    include_str!("../../documents/chassis.json"),
];

/// A resource, or the resources of all items of a list. Keys that begin with `$` describe behaviour, which a document cannot express.
#[derive(Debug, Deserialize)]
pub(crate) struct Row {
    /// The path, with the placeholders of an item.
    #[serde(skip)]
    pub(crate) path: String,
    /// The list whose items are resources. `None` for a single resource.
    #[serde(rename = "$each")]
    pub(crate) each: Option<String>,
    /// DSP0266 §13.3.1: the few resources that need no authentication. With a POST, only the POST needs none.
    #[serde(rename = "$public", default)]
    pub(crate) public: bool,
    #[serde(rename = "$get")]
    pub(crate) get: Option<Get>,
    #[serde(rename = "$patch")]
    pub(crate) patch: Option<Patch>,
    #[serde(rename = "$post")]
    pub(crate) post: Option<Post>,
    #[serde(rename = "$delete")]
    pub(crate) delete: Option<Delete>,
    /// The type of a collection whose members are the resources right below it.
    #[serde(rename = "$collection")]
    collection: Option<String>,
    /// The document. Empty for an action and for an answer that is not a document.
    #[serde(flatten)]
    pub(crate) document: Map<String, Value>,
}

/// A GET that answers no document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Get {
    Metadata,
    TaskMonitor,
}

/// The properties that a PATCH changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Patch {
    /// The password.
    Account,
    /// The boot override and the identify light.
    System,
    /// The identify light alone, because a settings resource takes the boot override (`@Redfish.Settings`, DSP0266 §7.10).
    Identify,
    /// The clock.
    Manager,
    Media,
    SessionService,
    SecureBoot,
    /// The BIOS attributes of the next start.
    Bios,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Post {
    ClearLog,
    CreateVolume,
    EjectMedia,
    ImportConfiguration,
    InsertMedia,
    OpenSession,
    PushUpdate,
    Reset,
    ResetBios,
    ResetKeys,
    SimpleUpdate,
    Subscribe,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Delete {
    Session,
    Subscription,
    Volume,
}

impl Row {
    pub(crate) fn is_readable(&self) -> bool {
        self.get.is_some() || !self.document.is_empty()
    }

    /// The methods that the resource allows.
    pub(crate) fn methods(&self) -> Vec<&'static str> {
        let all = [
            ("GET", self.is_readable()),
            ("HEAD", self.is_readable()),
            ("PATCH", self.patch.is_some()),
            ("POST", self.post.is_some()),
            ("DELETE", self.delete.is_some()),
        ];
        all.into_iter().filter(|(_, allowed)| *allowed).map(|(method, _)| method).collect()
    }
}

/// All resources of a profile with these `constants` and `changes` (a merge patch, RFC 7386).
pub(crate) fn rows(
    changes: &Value,
    constants: &Item,
    trailing_slash: bool,
) -> Result<Vec<Row>, serde_json::Error> {
    let mut documents = Map::new();
    for source in DOCUMENTS {
        documents.extend(serde_json::from_str::<Map<String, Value>>(source)?);
    }
    let mut documents = Value::Object(documents);
    let generic: Vec<String> = names(&documents).cloned().collect();
    json_patch::merge(&mut documents, changes);
    leave_out(&mut documents, &generic);

    let filled = substitute(&documents, constants);
    let mut rows = Vec::new();
    for (path, document) in filled.as_object().into_iter().flatten() {
        let Value::String(path) = substitute(&json!(path), constants) else { continue };
        let document = if trailing_slash { with_slashes(document) } else { document.clone() };
        let mut row: Row = serde_json::from_value(document)?;
        row.path = if trailing_slash { with_slash(&path) } else { path };
        rows.push(row);
    }
    let members: Vec<(String, Value)> = rows.iter().map(link).collect();
    rows.iter_mut().for_each(|row| fill_collection(row, &members));
    Ok(rows)
}

fn names(documents: &Value) -> impl Iterator<Item = &String> {
    documents.as_object().into_iter().flat_map(Map::keys)
}

/// Leaves out everything below a generic resource that a vendor left out, and the links to it.
fn leave_out(documents: &mut Value, generic: &[String]) {
    let kept: BTreeSet<String> = names(documents).cloned().collect();
    let is_below = |path: &str, above: &str| {
        path.strip_prefix(above).is_some_and(|below| below.is_empty() || below.starts_with('/'))
    };
    let missing: Vec<&String> = generic.iter().filter(|path| !kept.contains(*path)).collect();
    let is_gone = |path: &str| missing.iter().any(|above| is_below(path, above));
    if let Some(documents) = documents.as_object_mut() {
        documents.retain(|path, _| !is_gone(path));
        documents.values_mut().for_each(|document| drop_links(document, &is_gone));
    }
}

/// Drops each property that is a link to a resource that is gone.
fn drop_links(value: &mut Value, is_gone: &dyn Fn(&str) -> bool) {
    if let Value::Object(fields) = value {
        fields.retain(|_, field| !field["@odata.id"].as_str().is_some_and(is_gone));
        fields.values_mut().for_each(|field| drop_links(field, is_gone));
    }
}

/// The link to `row`, and the path of the collection that it is in.
fn link(row: &Row) -> (String, Value) {
    let path = row.path.trim_end_matches('/');
    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent).to_owned();
    let mut link = json!({"@odata.id": row.path});
    if let Some(each) = &row.each {
        link["$each"] = json!(each);
    }
    (parent, link)
}

fn fill_collection(row: &mut Row, links: &[(String, Value)]) {
    let Some(kind) = &row.collection else { return };
    let path = row.path.trim_end_matches('/');
    let members: Vec<&Value> =
        links.iter().filter(|(parent, _)| parent == path).map(|(_, link)| link).collect();
    row.document.extend([
        ("@odata.type".to_owned(), json!(format!("#{kind}.{kind}"))),
        ("Name".to_owned(), json!(kind)),
        ("Members@odata.count".to_owned(), json!("{count}")),
        ("Members".to_owned(), json!(members)),
    ]);
}

fn with_slashes(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(with_slash(text)),
        Value::Array(members) => members.iter().map(with_slashes).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), with_slashes(value))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Ends `text` with a slash, before any fragment, if it is the path of a resource of the service.
fn with_slash(text: &str) -> String {
    let (path, fragment) = text.split_at(text.find('#').unwrap_or(text.len()));
    let is_path = path.starts_with("/redfish/v1/") && !path.contains('$') && !path.ends_with('/');
    if is_path { format!("{path}/{fragment}") } else { text.to_owned() }
}
