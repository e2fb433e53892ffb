//! The resources of one machine: their paths and documents.

use std::hash::{DefaultHasher, Hash, Hasher};

use http::Method;
use serde_json::{Value, json};

use crate::profile::{IfMatch, Row};
use crate::redfish::face::RedfishFace;
use crate::redfish::values::{items, value};
use crate::template::{Item, Source, fill};

#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) path: String,
    pub(crate) row: &'static Row,
    /// The position of the resource in its list.
    pub(crate) index: usize,
    /// The values of the item that the resource is. Empty if the resource is not in a list.
    item: Item,
}

impl Resource {
    /// The resource at `path`, with or without a slash at the end (DSP0266 §6.4).
    pub(crate) fn find(path: &str, face: &RedfishFace) -> Option<Resource> {
        let path = path.strip_suffix('/').unwrap_or(path);
        let may_match = |row: &&Row| {
            let fixed = row.path.split('{').next().unwrap_or_default();
            path.starts_with(fixed.trim_end_matches('/'))
        };
        let rows = face.profile.tree.iter().filter(may_match);
        rows.flat_map(|row| Resource::of(row, face))
            .find(|resource| resource.path.trim_end_matches('/') == path)
    }

    /// The document with its entity tag. `None` if the resource is an action.
    pub(crate) fn document(&self, face: &RedfishFace) -> Option<Value> {
        if self.row.document.is_empty() {
            return None;
        }
        let template = Value::Object(self.row.document.clone());
        let mut document = filled(&template, &self.item, face);
        if document.get("@odata.type").is_some() {
            document["@odata.id"] = json!(self.path);
        }
        if let Some(tag) = self.new_tag(face, &document) {
            document["@odata.etag"] = json!(tag);
        }
        Some(document)
    }

    /// DSP0266 §13.3.1: whether a request needs no authentication.
    pub(crate) fn is_public(&self, method: &Method) -> bool {
        self.row.public && (self.row.post.is_none() || *method == Method::POST)
    }

    /// The number in the path of a session, task or subscription.
    pub(crate) fn id(&self) -> Option<u32> {
        self.item.get("id")?.as_str()?.parse().ok()
    }

    pub(crate) fn of(row: &'static Row, face: &RedfishFace) -> Vec<Resource> {
        let items = match &row.each {
            None => vec![Item::new()],
            Some(list) => items(face, list).unwrap_or_default(),
        };
        let resource = |(index, item): (usize, Item)| {
            let path = filled(&json!(row.path), &item, face);
            Resource { path: path.as_str().unwrap_or_default().to_owned(), row, index, item }
        };
        items.into_iter().enumerate().map(resource).collect()
    }

    /// The entity tag of a document that can be changed. `None` if the profile has no tags (DSP0266 §6.5).
    fn new_tag(&self, face: &RedfishFace, document: &Value) -> Option<String> {
        if face.profile.if_match == IfMatch::Ignored || self.row.patch.is_none() {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        // The tag of a manager does not change with each second.
        let lasting =
            document.as_object().into_iter().flatten().filter(|(name, _)| *name != "DateTime");
        lasting.for_each(|(name, value)| (name, value.to_string()).hash(&mut hasher));
        Some(format!("\"{:016x}\"", hasher.finish()))
    }
}

pub(crate) fn tag_of(document: &Value) -> Option<&str> {
    document.get("@odata.etag")?.as_str()
}

fn filled(template: &Value, item: &Item, face: &RedfishFace) -> Value {
    let source = Source { value: &|name| value(face, name), items: &|list| items(face, list) };
    fill(template, item, &source)
}
