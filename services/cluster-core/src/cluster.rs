//! Clusters.

use std::collections::BTreeMap;
use std::net::IpAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    Blueprint, ClusterUuid, Condition, KubernetesVersion, Labels, MachineRef, Name, TemplateUuid,
};

/// A cluster as it was asked for, and what was last concluded of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    /// Its id.
    pub id: ClusterUuid,
    /// Counts its changes.
    pub version: i64,
    /// Whose it is.
    pub project: String,
    /// Who asked for it.
    pub user: String,
    /// Its name.
    pub name: Name,
    /// The template it was made of.
    pub template: TemplateUuid,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When it was changed.
    pub updated_at: Option<Timestamp>,
    /// What it is to be.
    pub blueprint: Blueprint,
    /// Which Kubernetes.
    pub kubernetes: KubernetesVersion,
    /// How its labels differ from its template's.
    pub labels_compared: LabelsCompared,
    /// After how many minutes its creation counts as failed; never, where it is `None`.
    pub create_timeout: Option<u32>,
    /// Whether it is to be.
    pub desire: Desire,
    /// When all of it was there for the first time.
    pub completed_at: Option<Timestamp>,
    /// When something was last asked of it.
    pub asked_at: Timestamp,
    /// Where its API answers, once that is known: `https://ADDRESS:PORT`.
    pub api_address: Option<String>,
    /// Where its machines are, once that is known.
    pub machine_addresses: BTreeMap<MachineRef, IpAddr>,
    /// The generation of its credential in the cloud; a higher one is another credential.
    #[serde(default)]
    pub credential: u32,
    /// What was concluded of it last.
    pub conditions: Vec<Condition>,
}

/// Whether a cluster is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Desire {
    /// It is.
    Exist,
    /// It is to be deleted.
    Gone,
}

/// How labels differ from those they are based on, as Magnum tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelsCompared {
    /// The base's, where the value is another.
    pub overridden: BTreeMap<String, String>,
    /// Those the base does not have.
    pub added: BTreeMap<String, String>,
    /// The base's that were left out.
    pub skipped: BTreeMap<String, String>,
}

impl LabelsCompared {
    /// How `labels` differ from `base`.
    pub fn new(base: &Labels, labels: &Labels) -> Self {
        let mut compared = LabelsCompared::default();
        for (name, value) in base.raw() {
            let (name, value) = (name.clone(), value.clone());
            match labels.raw().get(&name) {
                None => compared.skipped.insert(name, value),
                Some(other) if *other != value => compared.overridden.insert(name, value),
                Some(_) => None,
            };
        }
        let added = labels.raw().iter().filter(|(name, _)| !base.raw().contains_key(*name));
        compared.added = added.map(|(name, value)| (name.clone(), value.clone())).collect();
        compared
    }
}
