//! Installs the add-ons of a cluster, and removes those that it should not have.

use std::collections::{BTreeMap, BTreeSet};

use cluster_addons::{
    AddOn, Changes, Cloud, ClusterContext, Credential, GpuNode, ObjectRef, RECEIPT_LABEL,
    RECEIPT_NAMESPACE, Receipt, changes, desired_add_ons, gpu_node, settings,
};
use cluster_core::{
    AddOnsObservation, CloudObjectState, ClusterObservation, Key, NodeGroup, NodeTaint,
    TaintEffect, label_changes, machine_name,
};
use kubernetes::apply::{self, Document};
use kubernetes::config_maps;
use kubernetes::nodes::{self, Node, Taint};
use openstack::{Session, Tls};

use super::{Answers, Nodes};
use crate::cloud::{CloudLookups, CloudWorkError, Result};

impl Nodes<'_> {
    /// Installs missing add-ons and returns the state of all. `None` when the cluster's API does not answer.
    pub(crate) async fn apply_add_ons(
        &self,
        site: &CloudLookups<'_>,
        seen: &ClusterObservation,
    ) -> Result<Option<AddOnsObservation>> {
        let Some(answers) = &self.answers else { return Ok(None) };
        let around = self.surroundings(site, seen).await?;
        let wanted = match desired_add_ons(&settings(self.spec.cluster, around)) {
            Ok(wanted) => wanted,
            Err(error) => return Err(CloudWorkError::AddOn(error.to_string())),
        };
        let applied = applied(answers).await?;
        let Changes { apply, remove } = changes(&wanted, &applied);
        let mut missing = BTreeMap::new();
        for add_on in &apply {
            let before = applied.iter().find(|it| it.name == add_on.name);
            if let Err(error) = install(answers, add_on, before).await {
                missing.insert(add_on.name.to_owned(), error.to_string());
            }
        }
        if missing.is_empty() {
            let gone: Vec<Document> = remove.iter().filter_map(reference).collect();
            apply::delete(&answers.client, &gone).await?;
            for add_on in &apply {
                apply::apply(&answers.client, &documents([add_on.finished_receipt()])?).await?;
                tracing::info!("applied add-on {} {}", add_on.name, add_on.version);
            }
        }
        let generation = self.spec.cluster.credential;
        let uses_old = |add_on: &AddOn| add_on.credential.is_some_and(|it| it != generation);
        let in_use = missing.is_empty() && !wanted.iter().any(uses_old);
        Ok(Some(AddOnsObservation { missing, credential: in_use.then_some(generation) }))
    }

    /// Labels new nodes with GPUs, and taints them so that pods without need of a GPU stay away. The label is set last and shows that both
    /// were done.
    pub(crate) async fn mark_gpu_nodes(&self, site: &CloudLookups<'_>) -> Result<()> {
        let Some(answers) = &self.answers else { return Ok(()) };
        for group in self.spec.groups {
            let gpus = gpus_of(site, group).await?;
            let is_marked =
                |node: &Node| gpus.labels.keys().all(|key| node.labels.contains_key(key));
            for machine in group.refs() {
                let name = machine_name(self.spec.cluster, &machine);
                let node = answers.nodes.iter().find(|node| node.name == name);
                let Some(node) = node.filter(|node| !is_marked(node)) else { continue };
                let taints: Vec<Taint> = gpus.taints.iter().map(taint).collect();
                nodes::taint(&answers.client, node, &taints).await?;
                let labels: BTreeMap<String, Option<String>> = gpus
                    .labels
                    .iter()
                    .map(|(key, value)| (key.clone(), Some(value.clone())))
                    .collect();
                nodes::label(&answers.client, &name, &labels).await?;
            }
        }
        Ok(())
    }

    /// Gives nodes the labels and taints of their groups, and removes those that requests removed: a request may come after the nodes were
    /// made. A node that changed meanwhile is left to the next turn.
    pub(crate) async fn mark_nodes_of_groups(&self) -> Result<()> {
        let Some(answers) = &self.answers else { return Ok(()) };
        for group in self.spec.groups {
            let wanted: Vec<Taint> = group.node_taints.iter().map(taint).collect();
            let unwanted: Vec<Taint> = group.removed_taints.iter().map(taint).collect();
            for machine in group.refs() {
                let name = machine_name(self.spec.cluster, &machine);
                let Some(node) = answers.nodes.iter().find(|node| node.name == name) else {
                    continue;
                };
                match nodes::change_taints(&answers.client, node, &wanted, &unwanted).await {
                    Err(error) if error.is_changed() => continue,
                    done => done?,
                }
                let labels = label_changes(group, &node.labels);
                if !labels.is_empty() {
                    nodes::label(&answers.client, &name, &labels).await?;
                }
            }
        }
        Ok(())
    }

    async fn surroundings(
        &self,
        site: &CloudLookups<'_>,
        seen: &ClusterObservation,
    ) -> Result<ClusterContext> {
        let cluster = self.spec.cluster;
        let credential = seen.objects.get(&Key::Credential(cluster.credential));
        let cloud = match credential.filter(|found| found.state == CloudObjectState::Ready) {
            Some(found) => {
                let secret = self.secrets.credential(cluster, cluster.credential).await?;
                let (generation, id) = (cluster.credential, found.id.clone());
                Some(cloud(site.session, Credential { generation, id, secret }).await?)
            }
            None => None,
        };
        let floating_network = match &cluster.blueprint.external_network {
            Some(given) => Some(site.external_network(given).await?.to_owned()),
            None => None,
        };
        let subnet = seen.objects.get(&Key::Subnet).map(|found| found.id.clone());
        let mut gpus = BTreeSet::new();
        for group in self.spec.groups {
            gpus.extend(gpus_of(site, group).await?.vendors);
        }
        let images = self.images.clone();
        Ok(ClusterContext { cloud, floating_network, subnet, gpus, images })
    }
}

/// Returns the labels and taints of a group's nodes for the GPUs of its flavor.
async fn gpus_of(site: &CloudLookups<'_>, group: &NodeGroup) -> Result<GpuNode> {
    let Some(flavor) = &group.flavor else { return Ok(GpuNode::default()) };
    Ok(gpu_node(&site.flavor(flavor).await?.extra_specs, &BTreeMap::new()))
}

/// Returns the cloud settings that the add-ons need.
async fn cloud(session: &Session, credential: Credential) -> Result<Cloud> {
    let config = session.config();
    let authorities =
        match &config.tls {
            Tls::Verified { authorities: Some(file) } => {
                let read = tokio::fs::read_to_string(file).await;
                Some(read.map_err(|error| {
                    CloudWorkError::AddOn(format!("{}: {error}", file.display()))
                })?)
            }
            Tls::Verified { authorities: None } | Tls::Unverified => None,
        };
    Ok(Cloud {
        auth_url: config.auth_url.to_string(),
        region: config.region.clone().unwrap_or_default(),
        credential,
        authorities,
    })
}

/// Returns the add-ons that the receipts in the cluster record. A receipt that cannot be read is ignored, so its add-on is installed again.
async fn applied(answers: &Answers) -> Result<Vec<Receipt>> {
    let listed = config_maps::labelled(&answers.client, RECEIPT_NAMESPACE, RECEIPT_LABEL).await?;
    let read = |receipt| {
        let read = Receipt::read(receipt);
        read.map_err(|error| tracing::warn!("{error}")).ok()
    };
    Ok(listed.iter().filter_map(read).collect())
}

/// Installs everything of an add-on except its final receipt.
async fn install(answers: &Answers, add_on: &AddOn, before: Option<&Receipt>) -> Result<()> {
    apply::apply(&answers.client, &documents([add_on.unfinished_receipt(before)])?).await?;
    apply::apply(&answers.client, &documents(add_on.documents.iter().cloned())?).await?;
    Ok(())
}

fn documents(of: impl IntoIterator<Item = cluster_addons::Document>) -> Result<Vec<Document>> {
    let read = |document: cluster_addons::Document| {
        Document::try_from(document.into_value())
            .map_err(|missing| CloudWorkError::AddOn(missing.to_string()))
    };
    of.into_iter().map(read).collect()
}

fn reference(object: &ObjectRef) -> Option<Document> {
    let ObjectRef { api_version, kind, namespace, name } = object;
    let mut body =
        serde_json::json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    if let Some(namespace) = namespace {
        body["metadata"]["namespace"] = serde_json::json!(namespace);
    }
    Document::try_from(body).ok()
}

fn taint(of: &NodeTaint) -> Taint {
    let effect = match of.effect {
        TaintEffect::NoSchedule => "NoSchedule",
        TaintEffect::PreferNoSchedule => "PreferNoSchedule",
        TaintEffect::NoExecute => "NoExecute",
    };
    Taint::new(
        &of.key,
        Some(&of.value).filter(|value| !value.is_empty()).map(String::as_str),
        effect,
    )
}
