//! The table of all labels: the setting that each label changes, or the reason why it is refused.

use super::read::{
    affinity, algorithm, api_names, argument, arguments, cidr, cipher_suites, delivery, domain,
    flag, kind, number, oidc, pod_network, provider, registry, size, tag, word, words, zone,
};
use lease::{Length, MailAddress};

use crate::KubernetesVersion;
use crate::kube_proxy;
use crate::options::options;
use crate::settings::Settings;

/// The effect of a label.
#[derive(Clone, Copy)]
pub enum Meaning {
    /// Changes a setting; the error is a sentence that follows the name of the label.
    Sets(fn(&mut Settings, &str) -> Result<(), String>),
    /// The feature does not exist here, so the label may only be false. The text says what to do instead.
    OnlyOff(&'static str),
    /// The label has no effect here. The text says why, or what to do instead.
    Refused(&'static str),
}

use Meaning::{OnlyOff, Refused, Sets};

/// The refusal of labels that choose the version of a component of Kubernetes.
const VERSION_FOLLOWS_KUBERNETES: &str = "its version is set by kube_tag; remove it";
/// The refusal of labels that switch on an add-on which clusterd does not install.
const NOT_INSTALLED: &str =
    "clusterd does not install it; install it in the cluster and remove the label";
/// The refusal of labels that configure an add-on which clusterd does not install.
const ADD_ON_NOT_INSTALLED: &str =
    "it configures an add-on that clusterd does not install; remove it";
/// The refusal of labels that configure Heat's agent, Podman or OSTree.
const NO_AGENT: &str =
    "clusterd installs no Heat agent, no Podman and no OSTree upgrades on members; remove it";

/// Every known label, sorted by name: the look-up is a binary search.
#[rustfmt::skip]
pub const LABELS: &[(&str, Meaning)] = &[
    ("admission_control_list", Sets(|s, v| { s.admission_plugins = words(v, ',', |c| c.is_ascii_alphanumeric())?; Ok(()) })),
    ("api_audit_log_enabled", OnlyOff("set audit logs with kubeapi_options")),
    ("api_server_cert_sans", Sets(|s, v| { s.api_names = api_names(v)?; Ok(()) })),
    ("api_server_tls_cipher_suites", Sets(|s, v| { argument(s, "kube-apiserver", "tls-cipher-suites", cipher_suites(v)?) })),
    ("audit_log_enabled", OnlyOff("set audit logs with kubeapi_options")),
    ("audit_log_maxage", Refused("set audit logs with kubeapi_options; remove it")),
    ("audit_log_maxbackup", Refused("set audit logs with kubeapi_options; remove it")),
    ("audit_log_maxsize", Refused("set audit logs with kubeapi_options; remove it")),
    ("auto_healing_controller", Refused("clusterd repairs members itself; switch the repair on or off with auto_healing_enabled")),
    ("auto_healing_enabled", Sets(|s, v| { s.repair = flag(v)?; Ok(()) })),
    ("auto_scaling_enabled", OnlyOff("run cluster-autoscaler in the cluster; min_node_count and max_node_count limit it")),
    ("autoscaler_tag", Refused(ADD_ON_NOT_INSTALLED)),
    ("availability_zone", Sets(|s, v| { s.availability_zone = Some(zone(v)?); Ok(()) })),
    ("boot_volume_availability_zone", Refused("a volume is created in the zone of its server, which availability_zone chooses")),
    ("boot_volume_size", Sets(|s, v| { size(&mut s.boot_volume, v) })),
    ("boot_volume_type", Sets(|s, v| { kind(&mut s.boot_volume, v) })),
    ("calico_ipv4pool", Sets(|s, v| { s.pod_cidr = cidr(v)?; Ok(()) })),
    ("calico_ipv4pool_ipip", Refused(ADD_ON_NOT_INSTALLED)),
    ("calico_tag", Refused("clusterd does not install Calico; set network_driver to flannel, or the label pod_network=routes")),
    ("cert_manager_api", OnlyOff("sign certificates with POST /v1/certificates or with the cluster's own API")),
    ("cgroup_driver", Sets(|_, v| { if v == "systemd" { Ok(()) } else { Err("only systemd is supported".to_owned()) } })),
    ("cilium_hubble_ui_enabled", OnlyOff(NOT_INSTALLED)),
    ("cinder_csi_enabled", Sets(|s, v| { s.cinder_csi = flag(v)?; Ok(()) })),
    ("cinder_csi_plugin_tag", Sets(|s, v| { s.image_tags.insert("cinder-csi-plugin", tag(v)?); Ok(()) })),
    ("cloud_provider_enabled", Sets(|s, v| { s.cloud_provider = flag(v)?; Ok(()) })),
    ("cloud_provider_tag", Sets(|s, v| { s.image_tags.insert("openstack-cloud-controller-manager", tag(v)?); Ok(()) })),
    ("cluster_basic_auth_secret", Refused("Kubernetes has no password authentication; remove it")),
    ("container_infra_prefix", Sets(|s, v| { s.registry = Some(registry(v)?); Ok(()) })),
    ("container_runtime", Sets(|_, v| { if v == "containerd" { Ok(()) } else { Err("only containerd is supported".to_owned()) } })),
    ("containerd_tarball_sha256", Refused(VERSION_FOLLOWS_KUBERNETES)),
    ("containerd_tarball_url", Refused(VERSION_FOLLOWS_KUBERNETES)),
    ("containerd_version", Refused(VERSION_FOLLOWS_KUBERNETES)),
    ("coredns_tag", Refused(VERSION_FOLLOWS_KUBERNETES)),
    ("csi_attacher_tag", Sets(|s, v| { s.image_tags.insert("csi-attacher", tag(v)?); Ok(()) })),
    ("csi_liveness_probe_tag", Sets(|s, v| { s.image_tags.insert("livenessprobe", tag(v)?); Ok(()) })),
    ("csi_node_driver_registrar_tag", Sets(|s, v| { s.image_tags.insert("csi-node-driver-registrar", tag(v)?); Ok(()) })),
    ("csi_provisioner_tag", Sets(|s, v| { s.image_tags.insert("csi-provisioner", tag(v)?); Ok(()) })),
    ("csi_resizer_tag", Sets(|s, v| { s.image_tags.insert("csi-resizer", tag(v)?); Ok(()) })),
    ("csi_snapshotter_tag", Sets(|s, v| { s.image_tags.insert("csi-snapshotter", tag(v)?); Ok(()) })),
    ("different_failure_domain", OnlyOff("choose a zone with availability_zone, and different hosts with server_group_policies=anti-affinity")),
    ("dns_cluster_domain", Sets(|s, v| { s.cluster_domain = domain(v)?; Ok(()) })),
    ("dns_node_records_enabled", Sets(|s, v| { s.node_records = flag(v)?; Ok(()) })),
    ("dns_zone", Sets(|s, v| { s.dns_zone = Some(domain(v)? + "."); Ok(()) })),
    ("docker_volume_type", Sets(|s, v| { s.container_volume_type = Some(word(v)?); Ok(()) })),
    ("draino_tag", Refused(ADD_ON_NOT_INSTALLED)),
    ("etcd_tag", Refused(VERSION_FOLLOWS_KUBERNETES)),
    ("etcd_volume_size", Sets(|s, v| { size(&mut s.etcd_volume, v) })),
    ("etcd_volume_type", Sets(|s, v| { kind(&mut s.etcd_volume, v) })),
    ("extra_network", Refused("members have one network, which fixed_network chooses")),
    ("extra_subnet", Refused("members have one network, which fixed_network chooses")),
    ("fixed_network_name", Refused("set fixed_network to the network and fixed_subnet to its subnet")),
    ("fixed_subnet_cidr", Sets(|s, v| { s.node_cidr = cidr(v)?; Ok(()) })),
    ("flannel_backend", Sets(|_, v| { if v == "vxlan" { Ok(()) } else { Err("only vxlan is supported".to_owned()) } })),
    ("flannel_cni_tag", Sets(|s, v| { s.image_tags.insert("flannel-cni-plugin", tag(v)?); Ok(()) })),
    ("flannel_network_cidr", Sets(|s, v| { s.pod_cidr = cidr(v)?; Ok(()) })),
    ("flannel_network_subnetlen", Sets(|_, v| { if v == "24" { Ok(()) } else { Err("each member has a /24 for its pods".to_owned()) } })),
    ("flannel_tag", Sets(|s, v| { s.image_tags.insert("flannel", tag(v)?); Ok(()) })),
    ("gpu_plugin_enabled", Sets(|s, v| { s.gpu_plugin = flag(v)?; Ok(()) })),
    ("grafana_admin_passwd", Refused(ADD_ON_NOT_INSTALLED)),
    ("grafana_tag", Refused(ADD_ON_NOT_INSTALLED)),
    ("heapster_enabled", OnlyOff("Kubernetes has replaced Heapster; set metrics_server_enabled")),
    ("heat_container_agent_tag", Refused(NO_AGENT)),
    ("helm_client_sha256", Refused(ADD_ON_NOT_INSTALLED)),
    ("helm_client_tag", Refused(ADD_ON_NOT_INSTALLED)),
    ("helm_client_url", Refused(ADD_ON_NOT_INSTALLED)),
    ("hyperkube_prefix", Refused("set container_infra_prefix to the registry")),
    ("influx_grafana_dashboard_enabled", OnlyOff(NOT_INSTALLED)),
    ("ingress_balancer_enabled", Sets(|s, v| { s.ingress_balancer = flag(v)?; Ok(()) })),
    ("ingress_controller", Refused("install an ingress controller in the cluster; ingress_balancer_enabled=true creates a load balancer for ports 80 and 443")),
    ("ingress_controller_role", Refused(ADD_ON_NOT_INSTALLED)),
    ("k8s_keystone_auth_tag", Refused(ADD_ON_NOT_INSTALLED)),
    ("keystone_auth_default_policy", Refused(ADD_ON_NOT_INSTALLED)),
    ("keystone_auth_enabled", OnlyOff("users authenticate with certificates; sign them with POST /v1/certificates")),
    ("kube_dashboard_enabled", OnlyOff(NOT_INSTALLED)),
    ("kube_dashboard_version", Refused(ADD_ON_NOT_INSTALLED)),
    ("kube_tag", Sets(|s, v| { s.kubernetes = Some(v.parse::<KubernetesVersion>().map_err(|why| why.to_string())?); Ok(()) })),
    ("kube_version", Refused("set the version with kube_tag")),
    ("kubeapi_options", Sets(|s, v| { arguments(s, "kube-apiserver", options(v)?) })),
    ("kubecontroller_options", Sets(|s, v| { arguments(s, "kube-controller-manager", options(v)?) })),
    ("kubelet_options", Sets(|s, v| { arguments(s, "kubelet", options(v)?) })),
    ("kubelet_tls_cipher_suites", Sets(|s, v| { argument(s, "kubelet", "tls-cipher-suites", cipher_suites(v)?) })),
    ("kubeproxy_options", Sets(|s, v| { s.kube_proxy = kube_proxy::fields(v)?; Ok(()) })),
    ("kubescheduler_options", Sets(|s, v| { arguments(s, "kube-scheduler", options(v)?) })),
    ("lease", Sets(|s, v| { s.lease = Some(v.parse::<Length>().map_err(|why| why.to_string())?); Ok(()) })),
    ("lease_contact", Sets(|s, v| { s.lease_contact = Some(v.parse::<MailAddress>().map_err(|why| why.to_string())?); Ok(()) })),
    ("magnum_auto_healer_tag", Refused("clusterd repairs members itself; remove it")),
    ("manila_csi_enabled", OnlyOff(NOT_INSTALLED)),
    ("manila_csi_plugin_tag", Refused(ADD_ON_NOT_INSTALLED)),
    ("manila_csi_share_network_id", Refused(ADD_ON_NOT_INSTALLED)),
    ("master_lb_allowed_cidrs", Sets(|s, v| { s.api_allowed_cidrs = v.split(',').map(|one| cidr(one.trim())).collect::<Result<_, _>>()?; Ok(()) })),
    ("master_lb_floating_ip_enabled", Sets(|s, v| { s.balancer_floating_ip = Some(flag(v)?); Ok(()) })),
    ("max_node_count", Sets(|s, v| { s.node_count_bounds.1 = Some(number(v)?); Ok(()) })),
    ("metrics_scraper_tag", Refused(ADD_ON_NOT_INSTALLED)),
    ("metrics_server_chart_tag", Refused(ADD_ON_NOT_INSTALLED)),
    ("metrics_server_enabled", Sets(|s, v| { s.metrics_server = flag(v)?; Ok(()) })),
    ("min_node_count", Sets(|s, v| { s.node_count_bounds.0 = Some(number(v)?); Ok(()) })),
    ("monitoring_enabled", OnlyOff(NOT_INSTALLED)),
    ("monitoring_ingress_enabled", OnlyOff(NOT_INSTALLED)),
    ("monitoring_interval_seconds", Refused(ADD_ON_NOT_INSTALLED)),
    ("monitoring_retention_days", Refused(ADD_ON_NOT_INSTALLED)),
    ("monitoring_retention_size", Refused(ADD_ON_NOT_INSTALLED)),
    ("monitoring_storage_class_name", Refused(ADD_ON_NOT_INSTALLED)),
    ("nginx_ingress_controller_chart_tag", Refused(ADD_ON_NOT_INSTALLED)),
    ("nginx_ingress_controller_tag", Refused(ADD_ON_NOT_INSTALLED)),
    ("node_problem_detector_tag", Refused(ADD_ON_NOT_INSTALLED)),
    ("npd_enabled", OnlyOff(NOT_INSTALLED)),
    ("octavia_ingress_controller_tag", Refused(ADD_ON_NOT_INSTALLED)),
    ("octavia_lb_algorithm", Sets(|s, v| { s.algorithm = algorithm(v)?; Ok(()) })),
    ("octavia_lb_healthcheck", Sets(|_, v| { if flag(v)? { Ok(()) } else { Err("load balancers always check their members; remove it".to_owned()) } })),
    ("octavia_provider", Sets(|s, v| { s.provider = Some(provider(v)?); Ok(()) })),
    ("oidc_client_id", Sets(|s, v| { oidc(s, "oidc-client-id", v) })),
    ("oidc_groups_claim", Sets(|s, v| { oidc(s, "oidc-groups-claim", v) })),
    ("oidc_groups_prefix", Sets(|s, v| { oidc(s, "oidc-groups-prefix", v) })),
    ("oidc_issuer_url", Sets(|s, v| { oidc(s, "oidc-issuer-url", v) })),
    ("oidc_username_claim", Sets(|s, v| { oidc(s, "oidc-username-claim", v) })),
    ("oidc_username_prefix", Sets(|s, v| { oidc(s, "oidc-username-prefix", v) })),
    ("os_updates_enabled", Sets(|s, v| { s.os_updates = flag(v)?; Ok(()) })),
    ("ostree_commit", Refused(NO_AGENT)),
    ("ostree_remote", Refused(NO_AGENT)),
    ("pod_network", Sets(|s, v| { s.pod_network = pod_network(v)?; Ok(()) })),
    ("post_install_manifest_url", Refused("apply manifests with kubectl when the cluster is complete; remove it")),
    ("prometheus_adapter_chart_tag", Refused(ADD_ON_NOT_INSTALLED)),
    ("prometheus_adapter_configmap", Refused(ADD_ON_NOT_INSTALLED)),
    ("prometheus_adapter_enabled", OnlyOff(NOT_INSTALLED)),
    ("prometheus_monitoring", OnlyOff(NOT_INSTALLED)),
    ("prometheus_operator_chart_tag", Refused(ADD_ON_NOT_INSTALLED)),
    ("prometheus_tag", Refused(ADD_ON_NOT_INSTALLED)),
    ("selinux_mode", Sets(|_, v| { if v == "permissive" { Ok(()) } else { Err("only permissive is supported".to_owned()) } })),
    ("server_group_policies", Sets(|s, v| { s.strict_anti_affinity = affinity(v)?; Ok(()) })),
    ("service_cluster_ip_range", Sets(|s, v| { s.service_cidr = cidr(v)?; Ok(()) })),
    ("tiller_enabled", OnlyOff(NOT_INSTALLED)),
    ("tiller_namespace", Refused(ADD_ON_NOT_INSTALLED)),
    ("tiller_tag", Refused(ADD_ON_NOT_INSTALLED)),
    ("traefik_ingress_controller_tag", Refused(ADD_ON_NOT_INSTALLED)),
    ("use_podman", OnlyOff(NO_AGENT)),
    ("user_data_delivery", Sets(|s, v| { s.delivery = delivery(v)?; Ok(()) })),
];
