//! What labels of Magnum's say of a cluster, where all of them mean something.

mod read;
mod table;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::settings::Settings;
use read::flag;
use table::Meaning::{OnlyOff, Refused, Sets};

pub use table::{LABELS, Meaning};

/// Labels that all mean something.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, String>", into = "BTreeMap<String, String>")]
pub struct Labels {
    raw: BTreeMap<String, String>,
    settings: Settings,
}

/// Why labels cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelsError {
    /// Nobody knows that label.
    #[error("labels/{label}: there is no such label")]
    Unknown {
        /// Its name, cut to a length fit for a message.
        label: String,
    },
    /// It cannot have that value.
    #[error("labels/{label}: {why}")]
    Refused {
        /// Its name.
        label: &'static str,
        /// Why not.
        why: String,
    },
    /// Two labels contradict each other.
    #[error("labels/{one}: its addresses overlap those of {other}")]
    Overlap {
        /// The one.
        one: &'static str,
        /// The other.
        other: &'static str,
    },
}

impl Labels {
    /// As they were given.
    pub fn raw(&self) -> &BTreeMap<String, String> {
        &self.raw
    }

    /// What they say.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// These labels, and `others` in place of those of the same name.
    pub fn merged(&self, others: &Labels) -> Result<Labels, LabelsError> {
        let mut raw = self.raw.clone();
        raw.extend(others.raw.clone());
        raw.try_into()
    }
}

impl TryFrom<BTreeMap<String, String>> for Labels {
    type Error = LabelsError;

    fn try_from(raw: BTreeMap<String, String>) -> Result<Self, LabelsError> {
        let mut settings = Settings::default();
        for (name, value) in &raw {
            let at = LABELS.binary_search_by(|(known, _)| (*known).cmp(name));
            let (label, meaning) = at
                .map(|at| LABELS[at])
                .map_err(|_| LabelsError::Unknown { label: name.chars().take(64).collect() })?;
            let refused = |why: String| LabelsError::Refused { label, why };
            match meaning {
                Sets(set) => set(&mut settings, value).map_err(refused)?,
                OnlyOff(why) => match flag(value) {
                    Ok(false) => {}
                    Ok(true) => return Err(refused(why.to_owned())),
                    Err(problem) => return Err(refused(problem)),
                },
                Refused(why) => return Err(refused(why.to_owned())),
            }
        }
        check(&raw, &settings)?;
        Ok(Labels { raw, settings })
    }
}

impl From<Labels> for BTreeMap<String, String> {
    fn from(labels: Labels) -> BTreeMap<String, String> {
        labels.raw
    }
}

/// What no label alone can tell.
fn check(raw: &BTreeMap<String, String>, settings: &Settings) -> Result<(), LabelsError> {
    for (label, volume) in
        [("boot_volume_size", &settings.boot_volume), ("etcd_volume_size", &settings.etcd_volume)]
    {
        if volume.as_ref().is_some_and(|volume| volume.size == 0) {
            let why = "a type was given and no size".to_owned();
            return Err(LabelsError::Refused { label, why });
        }
    }
    if let (Some(one), Some(other)) = (raw.get("calico_ipv4pool"), raw.get("flannel_network_cidr"))
        && one != other
    {
        let why =
            "flannel_network_cidr says otherwise, and there is one network of pods".to_owned();
        return Err(LabelsError::Refused { label: "calico_ipv4pool", why });
    }
    let (pods, services, nodes) = (settings.pod_cidr, settings.service_cidr, settings.node_cidr);
    for (one, other, overlap) in [
        ("service_cluster_ip_range", "pods", services.overlaps(&pods)),
        ("fixed_subnet_cidr", "pods", nodes.overlaps(&pods)),
        ("fixed_subnet_cidr", "Services", nodes.overlaps(&services)),
    ] {
        if overlap {
            return Err(LabelsError::Overlap { one, other });
        }
    }
    let (least, most) = settings.node_count_bounds;
    if let (Some(least), Some(most)) = (least, most)
        && least > most
    {
        let why = format!("{least} is more than max_node_count, {most}");
        return Err(LabelsError::Refused { label: "min_node_count", why });
    }
    if settings.node_records && settings.dns_zone.is_none() {
        let why = "dns_zone names no zone for them".to_owned();
        return Err(LabelsError::Refused { label: "dns_node_records_enabled", why });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
