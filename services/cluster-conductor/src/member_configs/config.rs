//! Makes the Ignition config of a member from the cluster's labels, the administrator's settings and the facts of the member.

use std::collections::BTreeMap;

use cluster_bootstrap as bootstrap;
use cluster_bootstrap::{
    Archives, Artifact, BootstrapToken, ClusterSettings, Endpoint, InvalidName, Member, Name,
    NodeConfig, Overrides, Pki, Proxies, Source, Taint, Volume, Worker, with_volumes,
};
use cluster_core::{
    ClusterSpec, KubernetesVersion, MemberName, NodeGroup, NodeTaint, PodNetwork, ProxyField,
    ProxyValue, Settings, TaintEffect,
};
use ignition::Config;
use ignition::build::authorized_keys;
use serde_json::{Map, Value, json};

use super::bootstrap_data::{JoinToken, TOKEN_HOURS};
use super::facts::{BootstrapRole, MemberFacts, NamedAddress, group_of};
use super::{MemberConfigError, Result};
use crate::cluster_secrets::{ClusterSecrets, dns_label};
use crate::settings::KubernetesSettings;
use crate::vm_user_data::IGNITION_USER;

/// Returns the whole config of a member, including its keys.
pub(crate) async fn render(
    (kubernetes, secrets): (&KubernetesSettings, &ClusterSecrets),
    spec: &ClusterSpec<'_>,
    machine: &MemberName,
    facts: (&MemberFacts, &[String]),
    token: JoinToken,
) -> Result<NodeConfig> {
    let pki = secrets.pki(spec.cluster).await?;
    compose(kubernetes, spec, machine, facts, (token.token, pki))
}

/// As [`render`], for given keys and token.
pub(super) fn compose(
    kubernetes: &KubernetesSettings,
    spec: &ClusterSpec<'_>,
    machine: &MemberName,
    (facts, outside): (&MemberFacts, &[String]),
    (token, pki): (BootstrapToken, Pki),
) -> Result<NodeConfig> {
    let group = group_of(spec, machine)?;
    for labels in [&spec.cluster.blueprint.labels, &group.labels] {
        if let Some(unread) = labels.refused_label() {
            return Err(unread.clone().into());
        }
    }
    let asked = spec.cluster.blueprint.labels.settings();
    let version = spec.version_of(group);
    let cluster = ClusterSettings {
        name: dns_label(spec.cluster),
        version: version.to_string().as_str().try_into()?,
        pods: asked.pod_cidr.into(),
        services: asked.service_cidr.into(),
        domain: asked.cluster_domain.clone(),
        endpoint: Endpoint {
            host: facts.endpoint.clone(),
            port: spec.cluster.blueprint.api_port(),
        },
        also_known_as: outside.iter().chain(&asked.api_names).cloned().collect(),
        control_plane: facts.control_plane.iter().map(placed).collect::<Result<_, _>>()?,
        pod_network: match asked.pod_network {
            PodNetwork::Routes => bootstrap::PodNetwork::HostRoutes,
            PodNetwork::Driver => bootstrap::PodNetwork::AddOn,
        },
        dns: kubernetes.dns,
        source: source(kubernetes, spec, version)?,
        token,
        token_hours: TOKEN_HOURS,
        pki,
        cgroups: kubernetes.cgroups,
        approval: kubernetes.approval,
        external_cloud_provider: asked.cloud_provider,
        overrides: overrides(&kubernetes.overrides, asked, group.labels.settings()),
        extra: extra(spec, facts)?,
    };
    let own = placed(&facts.own)?;
    let node = match facts.part {
        BootstrapRole::Founds if facts.starts_from.is_some() => {
            bootstrap::restored_control_plane(&cluster, &own.name)?
        }
        BootstrapRole::Founds => bootstrap::control_plane(&cluster, &own.name)?,
        BootstrapRole::JoinsControlPlane if facts.upgrades => {
            bootstrap::upgrading_control_plane(&cluster, &own)?
        }
        BootstrapRole::JoinsControlPlane => bootstrap::joining_control_plane(&cluster, &own)?,
        BootstrapRole::Works => bootstrap::worker(&cluster, &worker(own, group))?,
    };
    let volumes: Vec<Volume> = facts.volumes.iter().filter_map(|it| Volume::tagged(it)).collect();
    Ok(with_volumes(&node, &volumes))
}

fn placed(of: &NamedAddress) -> Result<Member, InvalidName> {
    Ok(Member { name: Name::try_from(of.name.as_str())?, address: of.address })
}

/// Returns the source of programs and images for a version. The cluster's own registry replaces the one of the images.
fn source(
    kubernetes: &KubernetesSettings,
    spec: &ClusterSpec<'_>,
    version: KubernetesVersion,
) -> Result<Source> {
    let versions = &kubernetes.versions;
    let mut source = versions.get(&version).cloned().ok_or_else(|| {
        let known: Vec<String> = versions.keys().map(ToString::to_string).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        MemberConfigError::NoVersion { version, known }
    })?;
    if let Some(registry) = &spec.cluster.blueprint.labels.settings().registry {
        source.images.repository = registry.clone();
    }
    for other in versions_in_use(spec).filter_map(|it| versions.get(&it)) {
        add_archives(&mut source.images.archives, &other.images.archives.every_machine);
    }
    Ok(source)
}

/// Returns the versions that a cluster has or is being upgraded to.
fn versions_in_use(spec: &ClusterSpec<'_>) -> impl Iterator<Item = KubernetesVersion> {
    let roll = spec.cluster.roll.as_ref().map(|it| it.kubernetes);
    let groups = spec.groups.iter().filter_map(|it| it.kubernetes);
    [spec.cluster.kubernetes].into_iter().chain(roll).chain(groups)
}

/// Adds the archives of another version that the cluster has. Every machine runs the kube-proxy of the cluster, which may be of that version.
fn add_archives(to: &mut Archives, of_other: &[Artifact]) {
    for archive in of_other {
        // A file that two versions name must not be fetched twice.
        let is_same = |it: &Artifact| it.sha256 == archive.sha256;
        if !to.every_machine.iter().any(is_same) {
            to.control_plane.retain(|it| !is_same(it));
            to.every_machine.push(archive.clone());
        }
    }
}

/// Returns the administrator's settings for all clusters, with those of the cluster's labels added.
fn overrides(base: &Overrides, asked: &Settings, of_group: &Settings) -> Overrides {
    let label = |settings: &Settings, component: &str| {
        let arguments = settings.arguments.get(component).cloned().unwrap_or_default();
        arguments.into_iter().collect::<BTreeMap<_, _>>()
    };
    let mut all = base.clone();
    asked.kube_proxy.iter().for_each(|field| set(&mut all.kube_proxy, field));
    all.api_server.extend(label(asked, "kube-apiserver"));
    all.controller_manager.extend(label(asked, "kube-controller-manager"));
    all.scheduler.extend(label(asked, "kube-scheduler"));
    all.kubelet_arguments.extend(label(of_group, "kubelet"));
    if !asked.admission_plugins.is_empty() {
        // kubeadm enables this plugin by default, and an explicit list replaces the default.
        let own = ["NodeRestriction".to_owned()];
        let others = asked.admission_plugins.iter().filter(|it| *it != "NodeRestriction");
        let plugins: Vec<&str> = own.iter().chain(others).map(String::as_str).collect();
        all.api_server.insert("enable-admission-plugins".to_owned(), plugins.join(","));
    }
    all
}

/// Sets a field of kube-proxy's configuration. Other fields of the same object stay.
fn set(configuration: &mut Map<String, Value>, field: &ProxyField) {
    let value = match &field.value {
        ProxyValue::Text(text) => json!(text),
        ProxyValue::Flag(flag) => json!(flag),
        ProxyValue::Number(number) => json!(number),
        ProxyValue::List(list) => json!(list),
        ProxyValue::Gates(gates) => gates.iter().map(|(name, on)| (name.clone(), *on)).collect(),
    };
    let (first, rest) = field.path.split_first().expect("a field has a path");
    let top = configuration.entry(*first).or_insert(Value::Null);
    if !rest.is_empty() && !top.is_object() {
        *top = json!({});
    }
    *rest.iter().fold(top, |at, name| &mut at[*name]) = value;
}

/// Returns what is merged into the config of each member: the proxy settings, and the SSH key of the cluster's owner.
fn extra(spec: &ClusterSpec<'_>, facts: &MemberFacts) -> Result<Option<Config>> {
    let mut extra = proxies(spec, facts)?;
    if let Some(key) = &spec.cluster.ssh_key {
        let config = extra.get_or_insert_default();
        authorized_keys(config, IGNITION_USER, std::slice::from_ref(key));
    }
    Ok(extra)
}

/// Returns the proxy settings of the members. Addresses and names within the cluster bypass the proxies.
fn proxies(spec: &ClusterSpec<'_>, facts: &MemberFacts) -> Result<Option<Config>> {
    let blueprint = &spec.cluster.blueprint;
    let asked = blueprint.labels.settings();
    let url = |field, raw: &Option<String>| {
        let read = raw.as_deref().filter(|it| !it.is_empty()).map(str::parse).transpose();
        read.map_err(|_| MemberConfigError::Field { field, why: "it is not a URL".to_owned() })
    };
    let given = blueprint.no_proxy.as_deref().unwrap_or_default().split(',').map(str::trim);
    let given = given.filter(|it| !it.is_empty()).map(str::to_owned);
    let ranges = [asked.pod_cidr, asked.service_cidr, asked.node_cidr];
    let own = ["localhost".to_owned(), "127.0.0.1".to_owned(), ".svc".to_owned()];
    let own = own.into_iter().chain([format!(".{}", asked.cluster_domain), facts.endpoint.clone()]);
    let machines = facts.control_plane.iter().map(|it| it.address.to_string());
    let except = given.chain(own).chain(ranges.iter().map(ToString::to_string)).chain(machines);
    let proxies = Proxies {
        http: url("http_proxy", &blueprint.http_proxy)?,
        https: url("https_proxy", &blueprint.https_proxy)?,
        except: except.collect(),
    };
    Ok(proxies.config().map_err(bootstrap::BootstrapError::Settings)?)
}

fn worker(machine: Member, group: &NodeGroup) -> Worker {
    // Node labels of Magnum, by which its users select nodes.
    let own = [
        ("magnum.openstack.org/nodegroup", group.name.label(63)),
        ("magnum.openstack.org/role", group.role.as_str().to_owned()),
    ];
    let own = own.into_iter().map(|(key, value)| (key.to_owned(), value));
    let labels = own.chain(group.node_labels.clone()).collect();
    Worker { machine, labels, taints: group.node_taints.iter().map(taint).collect() }
}

fn taint(of: &NodeTaint) -> Taint {
    let effect = match of.effect {
        TaintEffect::NoSchedule => bootstrap::TaintEffect::NoSchedule,
        TaintEffect::PreferNoSchedule => bootstrap::TaintEffect::PreferNoSchedule,
        TaintEffect::NoExecute => bootstrap::TaintEffect::NoExecute,
    };
    Taint { key: of.key.clone(), value: of.value.clone(), effect }
}
