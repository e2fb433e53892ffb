//! Receipts: a ConfigMap in the cluster for each add-on records the objects that were applied.
//!
//! A receipt is written twice: before the first object of an add-on, with all objects and no digest, and after the last object, with the
//! digest. If clusterd is killed in between, the receipt without a digest tells the next attempt to apply the add-on again. Because the
//! receipt lists the objects, objects that are no longer wanted are found without any other record.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::object::{ADD_ON, AddOnObjects};
use crate::{AddOn, Document, ObjectRef};

/// The label that lists receipts, `bedplate/receipt=true`.
pub const RECEIPT_LABEL: &str = "bedplate/receipt";
/// The namespace of receipts.
pub const RECEIPT_NAMESPACE: &str = "kube-system";

/// A receipt: an add-on that was applied or that an attempt began to apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub name: String,
    /// The digest of the applied documents; `None` until all documents are applied.
    pub digest: Option<String>,
    /// The generation of the cloud credential that was applied; `None` if the add-on contains no credential.
    pub credential: Option<u32>,
    pub objects: Vec<ObjectRef>,
}

/// The difference between the wanted add-ons and the receipts.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes<'w> {
    /// The add-ons to apply, in this order.
    pub apply: Vec<&'w AddOn>,
    /// The objects to delete after the add-ons were applied, in this order. An object that is already gone is no error.
    pub remove: Vec<ObjectRef>,
}

/// Why a ConfigMap cannot be read as a receipt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot read ConfigMap {name} as an add-on receipt: {what}; delete the ConfigMap, and clusterd applies the add-on again"
)]
pub struct InvalidReceipt {
    pub name: String,
    /// The part that is missing or unreadable.
    pub what: &'static str,
}

impl AddOn {
    /// The receipt to apply before the add-on's other documents: lists the objects to be applied and the objects of the earlier receipt
    /// `before`, and has no digest.
    pub fn unfinished_receipt(&self, before: Option<&Receipt>) -> Document {
        let earlier = before.into_iter().flat_map(|it| it.objects.iter().cloned());
        let all: BTreeSet<ObjectRef> = self.references().chain(earlier).collect();
        self.receipt(all.into_iter().collect(), None)
    }

    /// The receipt to apply last, after `Changes::remove` is done: has the digest, so the add-on counts as applied.
    pub fn finished_receipt(&self) -> Document {
        self.receipt(self.references().collect(), Some(&self.digest))
    }

    fn references(&self) -> impl Iterator<Item = ObjectRef> {
        self.documents.iter().map(Document::reference)
    }

    fn receipt(&self, objects: Vec<ObjectRef>, digest: Option<&str>) -> Document {
        let kit = AddOnObjects { add_on: self.name, namespace: RECEIPT_NAMESPACE };
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

impl Receipt {
    /// Reads a receipt from the ConfigMap that the API server returned.
    pub fn read(config_map: &Value) -> Result<Receipt, InvalidReceipt> {
        let text = |pointer: &str| config_map.pointer(pointer).and_then(Value::as_str);
        let name = text("/metadata/name").unwrap_or_default();
        let invalid = |what| InvalidReceipt { name: name.to_owned(), what };
        let label = format!("/metadata/labels/{}", ADD_ON.replace('/', "~1"));
        let add_on = text(&label).ok_or_else(|| invalid("the add-on label is missing"))?;
        let objects =
            text("/data/objects").ok_or_else(|| invalid("the list of objects is missing"))?;
        let objects = serde_json::from_str(objects)
            .map_err(|_| invalid("the list of objects is not valid"))?;
        Ok(Receipt {
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

/// Compares the wanted add-ons with the receipts of the cluster.
///
/// Never removes an object that a wanted add-on contains. The receipt of an unwanted add-on is removed last, so that an interrupted removal
/// is continued later.
pub fn changes<'w>(wanted: &'w [AddOn], applied: &[Receipt]) -> Changes<'w> {
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
