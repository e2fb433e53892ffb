//! What each label of Magnum's means here: a setting, or a sentence that says why not.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::options::options;
use crate::settings::{Algorithm, Delivery, PodNetwork, Provider, Settings, Volume};
use crate::{Cidr, KubernetesVersion};

/// What a label means.
#[derive(Clone, Copy)]
pub enum Meaning {
    /// It changes a setting.
    Sets(fn(&mut Settings, &str) -> Result<(), String>),
    /// What it would switch on does not exist here: it may only be false.
    OnlyOff(&'static str),
    /// It has no meaning here.
    Refused(&'static str),
}

use Meaning::{OnlyOff, Refused, Sets};

/// Why a component's own version cannot be chosen.
const WITH_KUBERNETES: &str = "its version comes with the one that kube_tag names; remove it";
/// Why an add-on cannot be switched on.
const NOT_INSTALLED: &str =
    "it is not installed by clusterd; install it in the cluster and remove the label";
/// Why a setting of an add-on that is not there means nothing.
const OF_NOTHING: &str = "what it configures is not installed by clusterd; remove it";
/// Why Heat's and Podman's settings mean nothing.
const NO_AGENT: &str =
    "nodes run no Heat agent, no Podman and no OSTree upgrades of clusterd's; remove it";

/// Every label that is known, by name.
#[rustfmt::skip]
pub const LABELS: &[(&str, Meaning)] = &[
    ("admission_control_list", Sets(|s, v| { s.admission_plugins = words(v, ',', |c| c.is_ascii_alphanumeric())?; Ok(()) })),
    ("api_audit_log_enabled", OnlyOff("audit logs are set by kubeapi_options")),
    ("auto_healing_controller", Refused("clusterd repairs nodes itself; auto_healing_enabled switches that on or off")),
    ("auto_healing_enabled", Sets(|s, v| { s.repair = flag(v)?; Ok(()) })),
    ("auto_scaling_enabled", OnlyOff("run cluster-autoscaler in the cluster; min_node_count and max_node_count bound it")),
    ("autoscaler_tag", Refused(OF_NOTHING)),
    ("availability_zone", Sets(|s, v| { s.availability_zone = Some(word(v)?); Ok(()) })),
    ("boot_volume_size", Sets(|s, v| { size(&mut s.boot_volume, v) })),
    ("boot_volume_type", Sets(|s, v| { kind(&mut s.boot_volume, v) })),
    ("calico_ipv4pool", Sets(|s, v| { s.pod_cidr = cidr(v)?; Ok(()) })),
    ("calico_ipv4pool_ipip", Refused(OF_NOTHING)),
    ("calico_tag", Refused("Calico is not installed by clusterd; give flannel as network_driver, or pod_network=routes")),
    ("cert_manager_api", OnlyOff("certificates are signed by POST /v1/certificates and by the cluster's own API")),
    ("cgroup_driver", Sets(|_, v| { if v == "systemd" { Ok(()) } else { Err("only systemd is offered".to_owned()) } })),
    ("cinder_csi_enabled", Sets(|s, v| { s.cinder_csi = flag(v)?; Ok(()) })),
    ("cinder_csi_plugin_tag", Sets(|s, v| { s.image_tags.insert("cinder-csi-plugin", tag(v)?); Ok(()) })),
    ("cloud_provider_enabled", Sets(|s, v| { s.cloud_provider = flag(v)?; Ok(()) })),
    ("cloud_provider_tag", Sets(|s, v| { s.image_tags.insert("openstack-cloud-controller-manager", tag(v)?); Ok(()) })),
    ("cluster_basic_auth_secret", Refused("Kubernetes knows no passwords")),
    ("container_infra_prefix", Sets(|s, v| { s.registry = Some(registry(v)?); Ok(()) })),
    ("container_runtime", Sets(|_, v| { if v == "containerd" { Ok(()) } else { Err("only containerd is offered".to_owned()) } })),
    ("containerd_tarball_sha256", Refused(WITH_KUBERNETES)),
    ("containerd_tarball_url", Refused(WITH_KUBERNETES)),
    ("containerd_version", Refused(WITH_KUBERNETES)),
    ("coredns_tag", Refused(WITH_KUBERNETES)),
    ("csi_attacher_tag", Sets(|s, v| { s.image_tags.insert("csi-attacher", tag(v)?); Ok(()) })),
    ("csi_liveness_probe_tag", Sets(|s, v| { s.image_tags.insert("livenessprobe", tag(v)?); Ok(()) })),
    ("csi_node_driver_registrar_tag", Sets(|s, v| { s.image_tags.insert("csi-node-driver-registrar", tag(v)?); Ok(()) })),
    ("csi_provisioner_tag", Sets(|s, v| { s.image_tags.insert("csi-provisioner", tag(v)?); Ok(()) })),
    ("csi_resizer_tag", Sets(|s, v| { s.image_tags.insert("csi-resizer", tag(v)?); Ok(()) })),
    ("csi_snapshotter_tag", Sets(|s, v| { s.image_tags.insert("csi-snapshotter", tag(v)?); Ok(()) })),
    ("dns_cluster_domain", Sets(|s, v| { s.cluster_domain = domain(v)?; Ok(()) })),
    ("dns_node_records_enabled", Sets(|s, v| { s.node_records = flag(v)?; Ok(()) })),
    ("dns_zone", Sets(|s, v| { s.dns_zone = Some(domain(v)? + "."); Ok(()) })),
    ("docker_volume_type", Sets(|s, v| { s.container_volume_type = Some(word(v)?); Ok(()) })),
    ("draino_tag", Refused(OF_NOTHING)),
    ("etcd_tag", Refused(WITH_KUBERNETES)),
    ("etcd_volume_size", Sets(|s, v| { size(&mut s.etcd_volume, v) })),
    ("etcd_volume_type", Sets(|s, v| { kind(&mut s.etcd_volume, v) })),
    ("extra_network", Refused("machines have one network, which fixed_network chooses")),
    ("extra_subnet", Refused("machines have one network, which fixed_network chooses")),
    ("fixed_network_name", Refused("give the network as fixed_network and its subnet as fixed_subnet")),
    ("fixed_subnet_cidr", Sets(|s, v| { s.node_cidr = cidr(v)?; Ok(()) })),
    ("flannel_backend", Sets(|_, v| { if v == "vxlan" { Ok(()) } else { Err("only vxlan is offered".to_owned()) } })),
    ("flannel_cni_tag", Sets(|s, v| { s.image_tags.insert("flannel-cni-plugin", tag(v)?); Ok(()) })),
    ("flannel_network_cidr", Sets(|s, v| { s.pod_cidr = cidr(v)?; Ok(()) })),
    ("flannel_network_subnetlen", Sets(|_, v| { if v == "24" { Ok(()) } else { Err("each node has a /24 of pods".to_owned()) } })),
    ("flannel_tag", Sets(|s, v| { s.image_tags.insert("flannel", tag(v)?); Ok(()) })),
    ("gpu_plugin_enabled", Sets(|s, v| { s.gpu_plugin = flag(v)?; Ok(()) })),
    ("grafana_admin_passwd", Refused(OF_NOTHING)),
    ("grafana_tag", Refused(OF_NOTHING)),
    ("heat_container_agent_tag", Refused(NO_AGENT)),
    ("helm_client_sha256", Refused(OF_NOTHING)),
    ("helm_client_tag", Refused(OF_NOTHING)),
    ("helm_client_url", Refused(OF_NOTHING)),
    ("hyperkube_prefix", Refused("give the registry as container_infra_prefix")),
    ("influx_grafana_dashboard_enabled", OnlyOff(NOT_INSTALLED)),
    ("ingress_balancer_enabled", Sets(|s, v| { s.ingress_balancer = flag(v)?; Ok(()) })),
    ("ingress_controller", Refused("install one in the cluster; ingress_balancer_enabled=true makes a load balancer for ports 80 and 443")),
    ("ingress_controller_role", Refused(OF_NOTHING)),
    ("k8s_keystone_auth_tag", Refused(OF_NOTHING)),
    ("keystone_auth_default_policy", Refused(OF_NOTHING)),
    ("keystone_auth_enabled", OnlyOff("access is by certificates; POST /v1/certificates signs them")),
    ("kube_dashboard_enabled", OnlyOff(NOT_INSTALLED)),
    ("kube_dashboard_version", Refused(OF_NOTHING)),
    ("kube_tag", Sets(|s, v| { s.kubernetes = Some(v.parse::<KubernetesVersion>().map_err(|why| why.to_string())?); Ok(()) })),
    ("kube_version", Refused("the version is named by kube_tag")),
    ("kubeapi_options", Sets(|s, v| { s.arguments.insert("kube-apiserver", options(v)?); Ok(()) })),
    ("kubecontroller_options", Sets(|s, v| { s.arguments.insert("kube-controller-manager", options(v)?); Ok(()) })),
    ("kubelet_options", Sets(|s, v| { s.arguments.insert("kubelet", options(v)?); Ok(()) })),
    ("kubeproxy_options", Sets(|s, v| { s.arguments.insert("kube-proxy", options(v)?); Ok(()) })),
    ("kubescheduler_options", Sets(|s, v| { s.arguments.insert("kube-scheduler", options(v)?); Ok(()) })),
    ("magnum_auto_healer_tag", Refused("clusterd repairs nodes itself; remove it")),
    ("master_lb_allowed_cidrs", Sets(|s, v| { s.api_allowed_cidrs = v.split(',').map(|one| cidr(one.trim())).collect::<Result<_, _>>()?; Ok(()) })),
    ("master_lb_floating_ip_enabled", Sets(|s, v| { s.balancer_floating_ip = Some(flag(v)?); Ok(()) })),
    ("max_node_count", Sets(|s, v| { s.node_count_bounds.1 = Some(number(v)?); Ok(()) })),
    ("metrics_scraper_tag", Refused(OF_NOTHING)),
    ("metrics_server_chart_tag", Refused(OF_NOTHING)),
    ("metrics_server_enabled", Sets(|s, v| { s.metrics_server = flag(v)?; Ok(()) })),
    ("min_node_count", Sets(|s, v| { s.node_count_bounds.0 = Some(number(v)?); Ok(()) })),
    ("monitoring_enabled", OnlyOff(NOT_INSTALLED)),
    ("monitoring_ingress_enabled", OnlyOff(NOT_INSTALLED)),
    ("monitoring_interval_seconds", Refused(OF_NOTHING)),
    ("monitoring_retention_days", Refused(OF_NOTHING)),
    ("monitoring_retention_size", Refused(OF_NOTHING)),
    ("monitoring_storage_class_name", Refused(OF_NOTHING)),
    ("nginx_ingress_controller_chart_tag", Refused(OF_NOTHING)),
    ("nginx_ingress_controller_tag", Refused(OF_NOTHING)),
    ("node_problem_detector_tag", Refused(OF_NOTHING)),
    ("npd_enabled", OnlyOff(NOT_INSTALLED)),
    ("octavia_ingress_controller_tag", Refused(OF_NOTHING)),
    ("octavia_lb_algorithm", Sets(|s, v| { s.algorithm = algorithm(v)?; Ok(()) })),
    ("octavia_lb_healthcheck", Sets(|_, v| { if flag(v)? { Ok(()) } else { Err("members are always checked".to_owned()) } })),
    ("octavia_provider", Sets(|s, v| { s.provider = Some(provider(v)?); Ok(()) })),
    ("ostree_commit", Refused(NO_AGENT)),
    ("ostree_remote", Refused(NO_AGENT)),
    ("pod_network", Sets(|s, v| { s.pod_network = pod_network(v)?; Ok(()) })),
    ("post_install_manifest_url", Refused("apply manifests with kubectl once the cluster is there")),
    ("prometheus_adapter_enabled", OnlyOff(NOT_INSTALLED)),
    ("prometheus_monitoring", OnlyOff(NOT_INSTALLED)),
    ("prometheus_operator_chart_tag", Refused(OF_NOTHING)),
    ("prometheus_tag", Refused(OF_NOTHING)),
    ("selinux_mode", Sets(|_, v| { if v == "permissive" { Ok(()) } else { Err("only permissive is offered".to_owned()) } })),
    ("server_group_policies", Sets(|s, v| { s.strict_anti_affinity = affinity(v)?; Ok(()) })),
    ("service_cluster_ip_range", Sets(|s, v| { s.service_cidr = cidr(v)?; Ok(()) })),
    ("tiller_enabled", OnlyOff(NOT_INSTALLED)),
    ("tiller_namespace", Refused(OF_NOTHING)),
    ("tiller_tag", Refused(OF_NOTHING)),
    ("traefik_ingress_controller_tag", Refused(OF_NOTHING)),
    ("use_podman", OnlyOff(NO_AGENT)),
    ("user_data_delivery", Sets(|s, v| { s.delivery = delivery(v)?; Ok(()) })),
];

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

fn flag(raw: &str) -> Result<bool, String> {
    match raw.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err("it must be true or false".to_owned()),
    }
}

fn number(raw: &str) -> Result<u32, String> {
    raw.parse().map_err(|_| "it must be a whole number".to_owned())
}

fn cidr(raw: &str) -> Result<Cidr, String> {
    raw.parse::<Cidr>().map_err(|why| why.to_string())
}

fn size(volume: &mut Option<Volume>, raw: &str) -> Result<(), String> {
    let size = number(raw)?;
    match volume {
        // Magnum's own default for "no volume".
        None if size == 0 => {}
        None => *volume = Some(Volume { size, kind: None }),
        Some(volume) => volume.size = size,
    }
    Ok(())
}

fn kind(volume: &mut Option<Volume>, raw: &str) -> Result<(), String> {
    let kind = Some(word(raw)?);
    match volume {
        None => *volume = Some(Volume { size: 0, kind }),
        Some(volume) => volume.kind = kind,
    }
    Ok(())
}

fn word(raw: &str) -> Result<String, String> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "-._:/@ ".contains(c);
    if raw.is_empty() || raw.len() > 255 || !raw.chars().all(legal) {
        return Err("it must have 1 to 255 letters, digits and -._:/@".to_owned());
    }
    Ok(raw.to_owned())
}

fn words(raw: &str, by: char, legal: impl Fn(char) -> bool) -> Result<Vec<String>, String> {
    let words: Vec<String> = raw.split(by).map(|word| word.trim().to_owned()).collect();
    match words.iter().all(|word| !word.is_empty() && word.chars().all(&legal)) {
        true => Ok(words),
        false => Err(format!("it must be names with {by:?} between them")),
    }
}

fn registry(raw: &str) -> Result<String, String> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "-._:/[]".contains(c);
    match raw.is_empty() || raw.contains("//") || !raw.chars().all(legal) {
        true => Err("it must be a registry such as registry.example/kubernetes/".to_owned()),
        false => Ok(raw.trim_end_matches('/').to_owned()),
    }
}

fn domain(raw: &str) -> Result<String, String> {
    let raw = raw.strip_suffix('.').unwrap_or(raw);
    let label = |label: &str| {
        let legal =
            label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        (1..=63).contains(&label.len()) && legal && !label.starts_with('-') && !label.ends_with('-')
    };
    match raw.len() <= 180 && raw.split('.').all(label) {
        true => Ok(raw.to_owned()),
        false => Err("it must be a domain name in lower case, of at most 180 letters".to_owned()),
    }
}

fn provider(raw: &str) -> Result<Provider, String> {
    Ok(match raw {
        "amphora" | "octavia" => Provider::Amphora,
        "ovn" => Provider::Ovn,
        other => Provider::Other(word(other)?),
    })
}

fn algorithm(raw: &str) -> Result<Algorithm, String> {
    match raw {
        "ROUND_ROBIN" => Ok(Algorithm::RoundRobin),
        "LEAST_CONNECTIONS" => Ok(Algorithm::LeastConnections),
        "SOURCE_IP" => Ok(Algorithm::SourceIp),
        "SOURCE_IP_PORT" => Ok(Algorithm::SourceIpPort),
        _ => {
            Err("it must be ROUND_ROBIN, LEAST_CONNECTIONS, SOURCE_IP or SOURCE_IP_PORT".to_owned())
        }
    }
}

fn affinity(raw: &str) -> Result<bool, String> {
    match raw {
        "soft-anti-affinity" => Ok(false),
        "anti-affinity" => Ok(true),
        _ => Err("it must be soft-anti-affinity or anti-affinity".to_owned()),
    }
}

fn pod_network(raw: &str) -> Result<PodNetwork, String> {
    match raw {
        "driver" => Ok(PodNetwork::Driver),
        "routes" => Ok(PodNetwork::Routes),
        _ => Err("it must be driver or routes".to_owned()),
    }
}

/// distribution/reference: a tag's grammar. What moves under its name is no version.
fn tag(raw: &str) -> Result<String, String> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if raw.is_empty() || raw.len() > 128 || raw.starts_with(['.', '-']) || !raw.chars().all(legal) {
        return Err("it must be an image's tag such as v1.34.1".to_owned());
    }
    if raw == "latest" {
        return Err("it must name one version, and latest is another one each time".to_owned());
    }
    Ok(raw.to_owned())
}

fn delivery(raw: &str) -> Result<Delivery, String> {
    match raw {
        "claim" => Ok(Delivery::Claim),
        "inline" => Ok(Delivery::Inline),
        _ => Err("it must be claim or inline".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Result<Labels, LabelsError> {
        let raw = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        raw.collect::<BTreeMap<_, _>>().try_into()
    }

    #[track_caller]
    fn refuses(pairs: &[(&str, &str)], want: &str) {
        assert_eq!(labels(pairs).unwrap_err().to_string(), want);
    }

    #[test]
    fn the_table_is_in_order_and_says_each_once() {
        assert!(LABELS.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn what_users_of_magnum_set_is_understood() {
        let read = labels(&[
            ("kube_tag", "v1.32.1"),
            ("master_lb_floating_ip_enabled", "true"),
            ("master_lb_allowed_cidrs", "192.0.2.0/24, 198.51.100.7/32"),
            ("boot_volume_size", "20"),
            ("boot_volume_type", "ssd"),
            ("etcd_volume_size", "0"),
            ("calico_ipv4pool", "10.200.0.0/16"),
            ("auto_healing_enabled", "False"),
            ("octavia_provider", "ovn"),
            ("octavia_lb_algorithm", "SOURCE_IP_PORT"),
            ("kubelet_options", "--max-pods=200"),
            ("kube_dashboard_enabled", "false"),
            ("dns_zone", "k8s.example"),
        ])
        .unwrap();
        let settings = read.settings();
        assert_eq!(settings.boot_volume, Some(Volume { size: 20, kind: Some("ssd".to_owned()) }));
        assert_eq!((&settings.etcd_volume, settings.repair), (&None, false));
        assert_eq!(settings.provider, Some(Provider::Ovn));
        assert_eq!(settings.api_allowed_cidrs.len(), 2);
        assert_eq!(settings.dns_zone.as_deref(), Some("k8s.example."));
        assert_eq!(settings.arguments["kubelet"], [("max-pods".to_owned(), "200".to_owned())]);
    }

    #[test]
    fn what_is_not_is_refused_by_name() {
        refuses(&[("colour", "red")], "labels/colour: there is no such label");
        refuses(
            &[("coredns_tag", "1.9.4")],
            "labels/coredns_tag: its version comes with the one that kube_tag names; remove it",
        );
        refuses(
            &[("monitoring_enabled", "true")],
            "labels/monitoring_enabled: it is not installed by clusterd; install it in the cluster and remove the label",
        );
        refuses(
            &[("kube_tag", "latest")],
            "labels/kube_tag: \"latest\" is not a version of Kubernetes such as v1.34.1",
        );
        refuses(
            &[("boot_volume_size", "-1")],
            "labels/boot_volume_size: it must be a whole number",
        );
        refuses(
            &[("kubelet_options", "--v=2\nExecStartPre=/bin/x")],
            "labels/kubelet_options: \"ExecStartPre=/bin/x\" is not --NAME=VALUE",
        );
    }

    #[test]
    fn add_ons_are_chosen_by_labels() {
        let read = labels(&[
            ("cloud_provider_tag", "v1.34.0"),
            ("flannel_tag", "v0.27.2"),
            ("metrics_server_enabled", "true"),
            ("gpu_plugin_enabled", "false"),
            ("pod_network", "routes"),
        ])
        .unwrap();
        let settings = read.settings();
        assert_eq!(settings.image_tags["openstack-cloud-controller-manager"], "v1.34.0");
        assert_eq!(settings.image_tags["flannel"], "v0.27.2");
        assert!(settings.metrics_server && !settings.gpu_plugin);
        assert_eq!(settings.pod_network, PodNetwork::Routes);
        refuses(&[("pod_network", "cilium")], "labels/pod_network: it must be driver or routes");
        refuses(&[("flannel_backend", "host-gw")], "labels/flannel_backend: only vxlan is offered");
        refuses(
            &[("cinder_csi_plugin_tag", "latest")],
            "labels/cinder_csi_plugin_tag: it must name one version, and latest is another one each time",
        );
        refuses(
            &[("csi_attacher_tag", "v4@sha256:0")],
            "labels/csi_attacher_tag: it must be an image's tag such as v1.34.1",
        );
    }

    #[test]
    fn labels_that_contradict_each_other_are_refused() {
        refuses(
            &[("fixed_subnet_cidr", "10.100.1.0/24")],
            "labels/fixed_subnet_cidr: its addresses overlap those of pods",
        );
        refuses(
            &[("boot_volume_type", "ssd")],
            "labels/boot_volume_size: a type was given and no size",
        );
        refuses(
            &[("min_node_count", "5"), ("max_node_count", "3")],
            "labels/min_node_count: 5 is more than max_node_count, 3",
        );
    }

    #[test]
    fn labels_are_kept_as_they_were_given() {
        let read = labels(&[("kube_tag", "v1.32.1"), ("auto_healing_enabled", "TRUE")]).unwrap();
        let text = serde_json::to_string(&read).unwrap();
        assert_eq!(text, r#"{"auto_healing_enabled":"TRUE","kube_tag":"v1.32.1"}"#);
        assert_eq!(serde_json::from_str::<Labels>(&text).unwrap(), read);
    }

    proptest! {
        #[test]
        fn no_value_panics(at in 0..LABELS.len(), value in ".{0,20}|[0-9./,=-]{0,20}") {
            let _ = labels(&[(LABELS[at].0, &value)]);
        }
    }
}
