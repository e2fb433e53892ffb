//! What labels of Magnum's say of a cluster, where all of them mean something.

mod read;
mod table;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::settings::{Algorithm, Provider, Settings};
use crate::{Cidr, KubernetesVersion, ProxyValue};
use read::flag;
use table::Meaning::{OnlyOff, Refused, Sets};

pub use table::{LABELS, Meaning};

/// Labels that all mean something.
///
/// Labels that are asked for are refused where one means nothing (`try_from`). Labels that are read back from a record are kept, so that a
/// rule which is new does not make an old record unreadable: [`Labels::unread`] tells what they say that is not understood.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Record", into = "BTreeMap<String, String>")]
pub struct Labels {
    raw: BTreeMap<String, String>,
    settings: Settings,
    unread: Option<LabelsError>,
}

/// Labels as a record holds them.
#[derive(Deserialize)]
#[serde(transparent)]
struct Record(BTreeMap<String, String>);

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

    /// The first label of a record that means nothing today; a machine made without it would not be what was asked for.
    pub fn unread(&self) -> Option<&LabelsError> {
        self.unread.as_ref()
    }

    /// Whether something new may be made with them: what a record holds may have been taken under older rules.
    pub fn check(&self) -> Result<(), LabelsError> {
        Labels::try_from(self.raw.clone()).map(|_| ())
    }

    /// These labels, and `others` in place of those of the same name.
    pub fn merged(&self, others: &Labels) -> Result<Labels, LabelsError> {
        let mut raw = self.raw.clone();
        raw.extend(others.raw.clone());
        raw.try_into()
    }

    /// Reads each label that means something. The first that means nothing is told as `unread`.
    fn read(raw: BTreeMap<String, String>) -> Labels {
        let (mut settings, mut unread) = (Settings::default(), None);
        for (name, value) in &raw {
            if let Err(problem) = read_one(&mut settings, name, value) {
                unread.get_or_insert(problem);
            }
        }
        if settings.provider == Some(Provider::Ovn) && !raw.contains_key("octavia_lb_algorithm") {
            settings.algorithm = Algorithm::SourceIpPort;
        }
        Labels { raw, settings, unread }
    }
}

/// What one label says.
fn read_one(settings: &mut Settings, name: &str, value: &str) -> Result<(), LabelsError> {
    let at = LABELS.binary_search_by(|(known, _)| (*known).cmp(name));
    let (label, meaning) = at
        .map(|at| LABELS[at])
        .map_err(|_| LabelsError::Unknown { label: name.chars().take(64).collect() })?;
    let refused = |why: String| LabelsError::Refused { label, why };
    match meaning {
        Sets(set) => set(settings, value).map_err(refused),
        OnlyOff(why) => match flag(value) {
            Ok(false) => Ok(()),
            Ok(true) => Err(refused(why.to_owned())),
            Err(problem) => Err(refused(problem)),
        },
        Refused(why) => Err(refused(why.to_owned())),
    }
}

impl TryFrom<BTreeMap<String, String>> for Labels {
    type Error = LabelsError;

    fn try_from(raw: BTreeMap<String, String>) -> Result<Self, LabelsError> {
        let labels = Labels::read(raw);
        match labels.unread {
            Some(problem) => Err(problem),
            None => check(&labels.raw, &labels.settings).map(|()| labels),
        }
    }
}

impl From<Record> for Labels {
    fn from(Record(raw): Record) -> Self {
        Labels::read(raw)
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
    let of_pods = match raw.contains_key("flannel_network_cidr") {
        true => "flannel_network_cidr",
        false => "calico_ipv4pool",
    };
    check_sizes(&[
        // Each machine has a /24 (or /64) of the pods' range, and Kubernetes divides by 2^16 at most.
        (of_pods, pods, (8, 22), (48, 60)),
        // kubernetes, cmd/kubeadm/app/constants: MaximumBitsForServiceSubnet.
        ("service_cluster_ip_range", services, (12, 24), (108, 112)),
        ("fixed_subnet_cidr", nodes, (8, 28), (48, 64)),
    ])?;
    if pods.is_v4() != services.is_v4() {
        let why = "it must be of the same version of IP as the range of pods".to_owned();
        return Err(LabelsError::Refused { label: "service_cluster_ip_range", why });
    }
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
    if settings.dns_zone.as_ref().is_some_and(|zone| zone.len() > LONGEST_ZONE) {
        let why = format!("names of machines in it would be too long: {LONGEST_ZONE} letters");
        return Err(LabelsError::Refused { label: "dns_zone", why: why + " at most" });
    }
    let by_port = settings.algorithm == Algorithm::SourceIpPort;
    let why = match settings.provider {
        Some(Provider::Ovn) if !by_port => "the provider ovn knows SOURCE_IP_PORT only",
        Some(Provider::Amphora) if by_port => "only the provider ovn knows SOURCE_IP_PORT",
        Some(_) | None => return check_versions(settings),
    };
    Err(LabelsError::Refused { label: "octavia_lb_algorithm", why: why.to_owned() })
}

/// The longest zone in which `GROUP-NUMBER.CLUSTER.ZONE` is a name: 253 letters at most, with 20, 10 and 63 of its parts.
const LONGEST_ZONE: usize = 150;

/// A label, its range, and the shortest and longest prefixes of both versions of IP.
type Size = (&'static str, Cidr, (u8, u8), (u8, u8));

/// Whether each range is as large as Kubernetes and the cloud need it.
fn check_sizes(sizes: &[Size]) -> Result<(), LabelsError> {
    for (label, range, four, six) in sizes {
        let (least, most) = if range.is_v4() { *four } else { *six };
        if !(least..=most).contains(&range.prefix()) {
            let why = format!("its prefix must have {least} to {most} bits");
            return Err(LabelsError::Refused { label, why });
        }
    }
    Ok(())
}

/// Whether the cluster's Kubernetes has what is asked for.
fn check_versions(settings: &Settings) -> Result<(), LabelsError> {
    let version = settings.kubernetes.unwrap_or(KubernetesVersion::DEFAULT);
    if settings.metrics_server && version.minor < 21 {
        let why = format!("Kubernetes {version} cannot have it applied; choose v1.21 or later");
        return Err(LabelsError::Refused { label: "metrics_server_enabled", why });
    }
    let nftables = ProxyValue::Text("nftables".to_owned());
    if version.minor < 31 && settings.kube_proxy.iter().any(|field| field.value == nftables) {
        let why = format!("kube-proxy {version} has no mode nftables; choose v1.31 or later");
        return Err(LabelsError::Refused { label: "kubeproxy_options", why });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
