//! Clusters.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::lending::rest_after;
use crate::setback::setbacks;
use crate::{
    Authorities, Blueprint, Bootstrap, ClusterSpec, ClusterUuid, Condition, Key, KubernetesVersion,
    Labels, Lending, MachineRef, MachineSeen, Name, NodeGroup, NodeHealth, Owner, Rest, Seen,
    Setback, TemplateUuid, Truth, api_address, conditions, machine_addresses, shape,
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
    /// The id of the request that did: what is done of the cluster since is done on behalf of it.
    #[serde(default)]
    pub asked_by: Option<String>,
    /// Where its API answers, once that is known: `https://ADDRESS:PORT`.
    pub api_address: Option<String>,
    /// Where its machines are, once that is known.
    pub machine_addresses: BTreeMap<MachineRef, IpAddr>,
    /// Its machines that have become nodes, those too that are gone and not yet forgotten.
    #[serde(default)]
    pub nodes: BTreeSet<MachineRef>,
    /// Those of them that were not ready when it was last looked at, or of which nobody knows.
    #[serde(default)]
    pub unready: BTreeSet<MachineRef>,
    /// The generation of its credential in the cloud; a higher one is another credential.
    #[serde(default)]
    pub credential: u32,
    /// Where the numbers of machines of a further node group begin: beyond those of groups that are gone, so that no machine is taken for
    /// one that had its name before.
    #[serde(default)]
    pub first_machine: u32,
    /// Which authorities its machines hold.
    #[serde(default)]
    pub authorities: Authorities,
    /// What the cloud failed at.
    #[serde(default)]
    pub setbacks: BTreeMap<Key, Setback>,
    /// The id of the cloud's project that it is made in, which stays the same whatever is configured later; not known before its first
    /// turn.
    #[serde(default)]
    pub cloud_project: Option<String>,
    /// Until when it is lent; without it, without end.
    #[serde(default)]
    pub lending: Option<Lending>,
    /// Why its machines are not as they would be.
    #[serde(default)]
    pub rest: Option<Rest>,
    /// What was concluded of it last.
    pub conditions: Vec<Condition>,
}

impl Cluster {
    /// A cluster that was just asked for, with the labels of its template. However long its creation takes, it has not failed.
    pub fn new(
        id: ClusterUuid,
        owner: Owner,
        name: Name,
        (template, blueprint): (TemplateUuid, Blueprint),
        now: Timestamp,
    ) -> Self {
        let kubernetes = blueprint.labels.settings().kubernetes;
        Cluster {
            id,
            version: 1,
            project: owner.project,
            user: owner.user,
            name,
            template,
            created_at: now,
            updated_at: None,
            blueprint,
            kubernetes: kubernetes.unwrap_or(KubernetesVersion::DEFAULT),
            labels_compared: LabelsCompared::default(),
            create_timeout: None,
            desire: Desire::Exist,
            completed_at: None,
            asked_at: now,
            asked_by: None,
            api_address: None,
            machine_addresses: BTreeMap::new(),
            nodes: BTreeSet::new(),
            unready: BTreeSet::new(),
            credential: 1,
            first_machine: 0,
            authorities: Authorities::default(),
            setbacks: BTreeMap::new(),
            cloud_project: None,
            lending: None,
            rest: None,
            conditions: Vec::new(),
        }
    }

    /// The cluster with what was concluded of what was seen of it; complete, if all is true and nothing was asked for since.
    pub fn concluded(&self, groups: &[NodeGroup], seen: &Seen, now: Timestamp) -> Cluster {
        let spec = ClusterSpec { cluster: self, groups };
        let conditions = conditions(&spec, seen, now);
        let all_is_well = conditions.iter().all(|it| it.status == Truth::True);
        let is_complete = self.desire == Desire::Exist
            && all_is_well
            && self.completed_at.is_none_or(|done| done < self.asked_at);
        let mut concluded = self.clone();
        concluded.conditions = conditions;
        if seen.at.is_none() {
            return concluded;
        }
        concluded.api_address = api_address(&spec, seen).or(concluded.api_address);
        concluded.machine_addresses = machine_addresses(&spec, seen);
        concluded.nodes = nodes(&spec, seen);
        concluded.unready =
            concluded.nodes.iter().filter(|it| !is_ready(it, seen)).cloned().collect();
        concluded.setbacks = setbacks(self, &shape(&spec), seen, now);
        concluded.authorities = self.authorities.next(&spec, seen);
        concluded.rest = rest_after(self, all_is_well, now);
        if is_complete {
            concluded.completed_at = Some(now);
        }
        concluded
    }
}

fn is_ready(machine: &MachineRef, seen: &Seen) -> bool {
    seen.machines.get(machine).is_some_and(|said| said.node == NodeHealth::Ready)
}

/// The machines that are nodes, or that Kubernetes or etcd still have to forget.
fn nodes(spec: &ClusterSpec<'_>, seen: &Seen) -> BTreeSet<MachineRef> {
    let is_wanted = |machine: &MachineRef| {
        spec.groups
            .iter()
            .any(|group| group.name == machine.group && group.machines.contains(&machine.number))
    };
    let stays = |machine: &MachineRef, said: &MachineSeen| {
        let is_there = seen.objects.contains_key(&Key::Server(machine.clone()));
        let is_known = said.node != NodeHealth::Absent || said.is_etcd_member;
        said.bootstrap == Bootstrap::Done && (is_wanted(machine) || is_there || is_known)
    };
    let all = seen.machines.iter().filter(|(machine, said)| stays(machine, said));
    all.map(|(machine, _)| machine.clone()).collect()
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
