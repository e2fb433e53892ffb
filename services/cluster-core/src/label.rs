//! Reads Magnum's labels into the settings of a cluster. A label that Magnum's documents know and clusterd lacks is refused by name; a label
//! that nobody documents has no effect, and warnings say so.

mod read;
mod table;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::settings::{Algorithm, Delivery, Provider, Settings};
use crate::{Cidr, KubernetesVersion, ProxyValue};
use read::flag;
use table::Meaning::{OnlyOff, Refused, Sets};

pub use table::{LABELS, Meaning};

/// Labels of a cluster or template, together with the settings that they mean.
///
/// `try_from` refuses labels of a request when one of them is not supported or invalid. Labels that are read back from a record are always
/// accepted, so that a new rule does not make an old record unreadable: [`Labels::refused_label`] returns the first label that is no longer
/// accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Record", into = "BTreeMap<String, String>")]
pub struct Labels {
    raw: BTreeMap<String, String>,
    settings: Settings,
    unread: Option<LabelsError>,
}

/// Labels as a record in the database holds them.
#[derive(Deserialize)]
#[serde(transparent)]
struct Record(BTreeMap<String, String>);

/// Why labels are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelsError {
    #[error("labels/{label}: {why}")]
    Refused {
        label: &'static str,
        /// A sentence that follows the name of the label in the message.
        why: String,
    },
    #[error("labels/{one}: its addresses overlap those of {other}")]
    Overlap { one: &'static str, other: &'static str },
}

impl Labels {
    /// Returns the labels as they were given.
    pub fn raw(&self) -> &BTreeMap<String, String> {
        &self.raw
    }

    /// Returns the settings that the labels mean.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the names that no document of Magnum knows: users keep notes of their own in labels. They have no effect.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        let is_known =
            |name: &&str| LABELS.binary_search_by(|(known, _)| (*known).cmp(*name)).is_ok();
        self.raw.keys().map(String::as_str).filter(move |name| !is_known(name))
    }

    /// Returns the first label of a record that is no longer accepted. No server may be created then: without the label's setting it
    /// would differ from what the user asked for.
    pub fn refused_label(&self) -> Option<&LabelsError> {
        self.unread.as_ref()
    }

    /// Checks the labels by today's rules, before something new is created with them: a record may have been accepted under older rules.
    pub fn check(&self) -> Result<(), LabelsError> {
        Labels::try_from(self.raw.clone()).map(|_| ())
    }

    /// Returns these labels with `others` added; a label of `others` replaces one of the same name.
    pub fn merged(&self, others: &Labels) -> Result<Labels, LabelsError> {
        let mut raw = self.raw.clone();
        raw.extend(others.raw.clone());
        raw.try_into()
    }

    /// Reads all labels. The first label that is refused is kept in `unread`, and the others still take effect.
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

/// Applies one label to `settings`.
fn read_one(settings: &mut Settings, name: &str, value: &str) -> Result<(), LabelsError> {
    let Ok(at) = LABELS.binary_search_by(|(known, _)| (*known).cmp(name)) else { return Ok(()) };
    let (label, meaning) = LABELS[at];
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

/// Checks rules that involve more than one label, or a label and the default of another.
fn check(raw: &BTreeMap<String, String>, settings: &Settings) -> Result<(), LabelsError> {
    check_volumes(settings)?;
    check_ranges(raw, settings)?;
    check_node_counts(settings)?;
    check_dns(settings)?;
    check_updates(settings)?;
    check_oidc(raw)?;
    check_balancer(settings)?;
    check_versions(settings)
}

fn check_volumes(settings: &Settings) -> Result<(), LabelsError> {
    for (label, volume) in
        [("boot_volume_size", &settings.boot_volume), ("etcd_volume_size", &settings.etcd_volume)]
    {
        if volume.as_ref().is_some_and(|volume| volume.size == 0) {
            let why = "is required with a volume type".to_owned();
            return Err(LabelsError::Refused { label, why });
        }
    }
    Ok(())
}

/// Checks the ranges of pods, Services and nodes: their sizes, and that none overlaps another.
fn check_ranges(raw: &BTreeMap<String, String>, settings: &Settings) -> Result<(), LabelsError> {
    if let (Some(one), Some(other)) = (raw.get("calico_ipv4pool"), raw.get("flannel_network_cidr"))
        && one != other
    {
        let why =
            "differs from flannel_network_cidr, and a cluster has one pod network; remove one of the two labels".to_owned();
        return Err(LabelsError::Refused { label: "calico_ipv4pool", why });
    }
    let (pods, services, nodes) = (settings.pod_cidr, settings.service_cidr, settings.node_cidr);
    let of_pods = match raw.contains_key("flannel_network_cidr") {
        true => "flannel_network_cidr",
        false => "calico_ipv4pool",
    };
    check_sizes(&[
        // Each member has a /24 (or /64) of the pods' range, and Kubernetes divides a range into 2^16 parts at most.
        (of_pods, pods, (8, 22), (48, 60)),
        // kubernetes, cmd/kubeadm/app/constants: MaximumBitsForServiceSubnet.
        ("service_cluster_ip_range", services, (12, 24), (108, 112)),
        ("fixed_subnet_cidr", nodes, (8, 28), (48, 64)),
    ])?;
    if pods.is_v4() != services.is_v4() {
        let why = "must have the same IP version as the range of pods".to_owned();
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
    Ok(())
}

fn check_node_counts(settings: &Settings) -> Result<(), LabelsError> {
    let (least, most) = settings.node_count_bounds;
    if let (Some(least), Some(most)) = (least, most)
        && least > most
    {
        let why = format!("{least} is more than max_node_count, {most}");
        return Err(LabelsError::Refused { label: "min_node_count", why });
    }
    Ok(())
}

fn check_dns(settings: &Settings) -> Result<(), LabelsError> {
    if settings.node_records && settings.dns_zone.is_none() {
        let why = "needs the label dns_zone".to_owned();
        return Err(LabelsError::Refused { label: "dns_node_records_enabled", why });
    }
    if settings.dns_zone.as_ref().is_some_and(|zone| zone.len() > LONGEST_ZONE) {
        let why = format!(
            "the DNS names of members would be too long: use a zone of {LONGEST_ZONE} characters"
        );
        return Err(LabelsError::Refused { label: "dns_zone", why: why + " at most" });
    }
    Ok(())
}

/// Checks that members can ask before they reboot.
fn check_updates(settings: &Settings) -> Result<(), LabelsError> {
    if settings.os_updates && settings.delivery == Delivery::Inline {
        let why =
            "needs user_data_delivery=claim: other members cannot ask whether they may reboot";
        let (label, why) = ("os_updates_enabled", why.to_owned());
        return Err(LabelsError::Refused { label, why });
    }
    Ok(())
}

/// Checks that the settings of OpenID Connect are whole: the API server does not start with a part of them.
fn check_oidc(raw: &BTreeMap<String, String>) -> Result<(), LabelsError> {
    let is_set = |name: &str| raw.get(name).is_some_and(|value| !value.is_empty());
    let refuse = |label, why: &str| Err(LabelsError::Refused { label, why: why.to_owned() });
    if is_set("oidc_issuer_url") {
        return match is_set("oidc_client_id") {
            true => Ok(()),
            false => refuse("oidc_client_id", "is required with oidc_issuer_url"),
        };
    }
    let others = [
        "oidc_client_id",
        "oidc_groups_claim",
        "oidc_groups_prefix",
        "oidc_username_claim",
        "oidc_username_prefix",
    ];
    match others.into_iter().find(|name| is_set(name)) {
        Some(label) => refuse(label, "needs the label oidc_issuer_url"),
        None => Ok(()),
    }
}

/// The most names in a warning.
const MOST_NAMED: usize = 10;

/// Returns a warning about labels that have no effect.
pub fn unknown_labels_warning<'a>(all: impl IntoIterator<Item = &'a Labels>) -> Option<String> {
    let unknown: BTreeSet<&str> = all.into_iter().flat_map(|labels| labels.unknown()).collect();
    let cut = |name: &&str| format!("labels/{}", name.chars().take(64).collect::<String>());
    let named: Vec<String> = unknown.iter().take(MOST_NAMED).map(cut).collect();
    let more = match unknown.len().saturating_sub(named.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let said = "clusterd does not know these labels, so they have no effect";
    (!named.is_empty()).then(|| format!("{said}: {}{more}", named.join(", ")))
}

/// Checks that the provider of load balancers supports the algorithm.
fn check_balancer(settings: &Settings) -> Result<(), LabelsError> {
    let by_port = settings.algorithm == Algorithm::SourceIpPort;
    let why = match settings.provider {
        Some(Provider::Ovn) if !by_port => "the provider ovn supports only SOURCE_IP_PORT",
        Some(Provider::Amphora) if by_port => "only the provider ovn supports SOURCE_IP_PORT",
        Some(_) | None => return Ok(()),
    };
    Err(LabelsError::Refused { label: "octavia_lb_algorithm", why: why.to_owned() })
}

/// The longest DNS zone for which `GROUP-NUMBER.CLUSTER.ZONE` still fits: a name has 253 characters at most, and its parts take up to 20,
/// 10 and 63.
const LONGEST_ZONE: usize = 150;

/// A label, its range, and the shortest and longest allowed prefix for IPv4 and for IPv6.
type Size = (&'static str, Cidr, (u8, u8), (u8, u8));

/// Checks that each range is as large as Kubernetes and the cloud need.
fn check_sizes(sizes: &[Size]) -> Result<(), LabelsError> {
    for (label, range, four, six) in sizes {
        let (least, most) = if range.is_v4() { *four } else { *six };
        if !(least..=most).contains(&range.prefix()) {
            let why = format!("must have a prefix of {least} to {most} bits");
            return Err(LabelsError::Refused { label, why });
        }
    }
    Ok(())
}

/// Checks that the Kubernetes version of the cluster has the features that the labels ask for.
fn check_versions(settings: &Settings) -> Result<(), LabelsError> {
    let version = settings.kubernetes.unwrap_or(KubernetesVersion::DEFAULT);
    if settings.metrics_server && version.minor < 21 {
        let why = format!(
            "metrics-server cannot be installed in Kubernetes {version}; choose v1.21 or later"
        );
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
