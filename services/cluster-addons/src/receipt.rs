//! What is applied already: a ConfigMap for each add-on, in the cluster itself, says so.
//!
//! It is written before the first object of an add-on, naming all of them and no digest, and again after the last one, with the digest. So
//! whoever was killed in between leaves a trace, and what is not wanted any more is found although nobody remembers it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::object::{ADD_ON, Kit};
use crate::{AddOn, Document, ObjectRef};

/// The label by which receipts are listed, `bedplate/receipt=true`.
pub const RECEIPT_LABEL: &str = "bedplate/receipt";
/// Where they are.
pub const RECEIPT_NAMESPACE: &str = "kube-system";

/// An add-on that was applied, or begun to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Its name.
    pub name: String,
    /// The digest of what was applied; none while that was not finished.
    pub digest: Option<String>,
    /// The generation of the cloud's credential in it, where there is one.
    pub credential: Option<u32>,
    /// Its objects.
    pub objects: Vec<ObjectRef>,
}

/// What is to be done for a cluster to have what is wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes<'w> {
    /// Add-ons to apply, in this order.
    pub apply: Vec<&'w AddOn>,
    /// Objects to delete after that, in this order; an object that is not there is fine.
    pub remove: Vec<ObjectRef>,
}

/// The ConfigMap is no receipt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the ConfigMap {name} does not say what was applied: {what}; delete it, and all is applied again"
)]
pub struct InvalidReceipt {
    /// Its name.
    pub name: String,
    /// What it lacks.
    pub what: &'static str,
}

impl AddOn {
    /// To be applied before anything else of it: names what there will be, and what there was `before`.
    pub fn opening(&self, before: Option<&Applied>) -> Document {
        let earlier = before.into_iter().flat_map(|it| it.objects.iter().cloned());
        let all: BTreeSet<ObjectRef> = self.references().chain(earlier).collect();
        self.receipt(all.into_iter().collect(), None)
    }

    /// To be applied last, once `remove` is done too: says that all of it is there.
    pub fn closing(&self) -> Document {
        self.receipt(self.references().collect(), Some(&self.digest))
    }

    fn references(&self) -> impl Iterator<Item = ObjectRef> {
        self.documents.iter().map(Document::reference)
    }

    fn receipt(&self, objects: Vec<ObjectRef>, digest: Option<&str>) -> Document {
        let kit = Kit { add_on: self.name, namespace: RECEIPT_NAMESPACE };
        let mut data = json!({"version": self.version, "objects": json!(objects).to_string()});
        if let Some(digest) = digest {
            data["digest"] = json!(digest);
        }
        if let Some(generation) = self.credential {
            data["credential"] = json!(generation.to_string());
        }
        let name = format!("bedplate-addon-{}", self.name);
        let mut object = kit.object("v1", "ConfigMap", &name, json!({"data": data}));
        object["metadata"]["labels"][RECEIPT_LABEL] = json!("true");
        Document::new(object)
    }
}

impl Applied {
    /// Reads a receipt as the API server shows it.
    pub fn read(config_map: &Value) -> Result<Applied, InvalidReceipt> {
        let text = |pointer: &str| config_map.pointer(pointer).and_then(Value::as_str);
        let name = text("/metadata/name").unwrap_or_default();
        let invalid = |what| InvalidReceipt { name: name.to_owned(), what };
        let label = format!("/metadata/labels/{}", ADD_ON.replace('/', "~1"));
        let add_on = text(&label).ok_or_else(|| invalid("it has no label of an add-on"))?;
        let objects = text("/data/objects").ok_or_else(|| invalid("it names no objects"))?;
        let objects = serde_json::from_str(objects)
            .map_err(|_| invalid("its objects are no list of references"))?;
        Ok(Applied {
            name: add_on.to_owned(),
            digest: text("/data/digest").map(str::to_owned),
            credential: text("/data/credential").and_then(|it| it.parse().ok()),
            objects,
        })
    }

    fn reference(&self) -> ObjectRef {
        ObjectRef {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespace: Some(RECEIPT_NAMESPACE.to_owned()),
            name: format!("bedplate-addon-{}", self.name),
        }
    }
}

/// What is to be done where these were applied. An object that anything wanted has is never removed; the receipt of what goes is the last.
pub fn changes<'w>(wanted: &'w [AddOn], applied: &[Applied]) -> Changes<'w> {
    let is_applied = |add_on: &AddOn| {
        applied
            .iter()
            .any(|it| it.name == add_on.name && it.digest.as_ref() == Some(&add_on.digest))
    };
    let apply = wanted.iter().filter(|add_on| !is_applied(add_on)).collect();
    let kept: BTreeSet<ObjectRef> = wanted.iter().flat_map(AddOn::references).collect();
    let remove = applied.iter().rev().flat_map(|it| {
        let gone = it.objects.iter().rev().filter(|object| !kept.contains(object)).cloned();
        let is_wanted = wanted.iter().any(|add_on| add_on.name == it.name);
        gone.chain((!is_wanted).then(|| it.reference())).collect::<Vec<_>>()
    });
    Changes { apply, remove: remove.collect() }
}
