//! An add-on: the Kubernetes objects that are applied together for one purpose.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::Document;
use crate::document::digest;

/// A set of Kubernetes objects that are applied together for one purpose, for example flannel.
#[derive(Clone, Debug, PartialEq)]
pub struct AddOn {
    /// Unique among add-ons.
    pub name: &'static str,
    /// The tag of the add-on's main image.
    pub version: String,
    /// The generation of the cloud credential that the documents contain; `None` if they contain no credential.
    pub credential: Option<u32>,
    /// The objects in the order in which they are applied: an object follows the objects that it needs.
    pub documents: Vec<Document>,
    /// SHA-256 of all documents, in hexadecimal. A receipt with the same digest means that the add-on needs no change.
    pub digest: String,
}

impl AddOn {
    pub(crate) fn new(
        name: &'static str,
        version: String,
        credential: Option<u32>,
        documents: Vec<Value>,
    ) -> AddOn {
        let mut documents: Vec<Document> = documents.into_iter().map(Document::new).collect();
        documents.sort_by_key(Document::rank);
        let digest = digest(documents.iter().map(Document::as_value));
        AddOn { name, version, credential, documents, digest }
    }

    /// The images of the add-on's pods: a mirror has to hold all of them.
    pub fn images(&self) -> BTreeSet<String> {
        self.documents.iter().flat_map(Document::images).map(str::to_owned).collect()
    }
}
