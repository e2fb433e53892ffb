//! Add-ons, and which of them a cluster is to have.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::document::digest;
use crate::{
    AddOnError, Cloud, Document, Settings, cinder_csi, cloud_controller, flannel, gpu_plugin,
    metrics_server,
};

/// What is applied in a cluster for one purpose.
#[derive(Clone, Debug, PartialEq)]
pub struct AddOn {
    /// Its name, which no other has.
    pub name: &'static str,
    /// Its own version: the tag of its main image.
    pub version: String,
    /// The generation of the cloud's credential in it, where there is one.
    pub credential: Option<u32>,
    /// Its objects, in the order they are applied: what others need comes first.
    pub documents: Vec<Document>,
    /// A SHA-256 of all of them, in hexadecimal: it tells whether what is applied is what is wanted.
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

    /// The images that its pods run: what a mirror has to hold.
    pub fn images(&self) -> BTreeSet<String> {
        self.documents.iter().flat_map(Document::images).map(str::to_owned).collect()
    }
}

/// The add-ons that a cluster is to have, in the order they are applied: pods' network first, for most others' pods need it.
pub fn wanted(settings: &Settings) -> Result<Vec<AddOn>, AddOnError> {
    settings.check()?;
    let cloud = |add_on: &'static str| -> Result<&Cloud, AddOnError> {
        settings.cloud.as_ref().ok_or(AddOnError::NoCloud { add_on })
    };
    let mut add_ons = Vec::new();
    // `check` lets no other driver pass.
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
