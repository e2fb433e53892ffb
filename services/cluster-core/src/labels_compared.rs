//! How the labels of a resource differ from those of its base.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Labels;

/// How the labels of a resource differ from the labels they are based on, as Magnum's API reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelsCompared {
    /// Labels that have another value here, with the value of the base.
    pub overridden: BTreeMap<String, String>,
    /// Labels that the base does not have.
    pub added: BTreeMap<String, String>,
    /// Labels of the base that are missing here.
    pub skipped: BTreeMap<String, String>,
}

impl LabelsCompared {
    /// Compares `labels` with `base`.
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
