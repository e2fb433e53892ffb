//! Add-ons, and the choice of the add-ons that a cluster gets.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::document::digest;
use crate::{
    AddOnError, Cloud, Document, Settings, cinder_csi, cloud_controller, flannel, gpu_plugin,
    metrics_server,
};

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

/// Returns the add-ons that `settings` ask for, in the order in which they are applied.
/// The pod network comes first, because the pods of most other add-ons need the network.
pub fn wanted(settings: &Settings) -> Result<Vec<AddOn>, AddOnError> {
    settings.check()?;
    let cloud = |add_on: &'static str| -> Result<&Cloud, AddOnError> {
        settings.cloud.as_ref().ok_or(AddOnError::NoCloud { add_on })
    };
    let mut add_ons = Vec::new();
    // `Settings::check` refuses every network driver but flannel.
    if settings.network.is_some() {
        add_ons.push(flannel::add_on(settings));
    }
    if let Some(balancing) = &settings.cloud_controller {
        let cloud = cloud("the cloud controller manager")?;
        add_ons.push(cloud_controller::add_on(settings, cloud, balancing));
    }
    if let Some(volumes) = &settings.volumes {
        add_ons.push(cinder_csi::add_on(settings, cloud("Cinder's CSI driver")?, volumes));
    }
    add_ons.extend(settings.gpus.iter().map(|vendor| gpu_plugin::add_on(settings, *vendor)));
    if let Some(kubelets) = settings.metrics {
        add_ons.push(metrics_server::add_on(settings, kubelets));
    }
    Ok(add_ons)
}
