//! The form of clusters and of the disks of members in the file of a kept cloud.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::authorities::MemberCas;
use super::certificates::MemberLeaves;
use super::cluster::Cluster;
use super::nodes::Nodes;
use super::state::Objects;
use crate::locks::lock;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredKubernetes {
    clusters: Vec<One>,
    known: HashSet<String>,
    disks: HashMap<String, MemberCas>,
    #[serde(default)]
    leaves: HashMap<String, MemberLeaves>,
}

/// A cluster, with the pins of all its CAs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct One {
    pins: Vec<String>,
    objects: Objects,
}

impl Nodes {
    /// Every cluster once, with its pins.
    fn all(&self) -> Vec<(Vec<String>, Arc<Cluster>)> {
        let clusters = lock(&self.clusters);
        let mut all: Vec<(Vec<String>, Arc<Cluster>)> = Vec::new();
        for (pin, cluster) in clusters.iter() {
            match all.iter_mut().find(|(_, other)| Arc::ptr_eq(cluster, other)) {
                Some((pins, _)) => pins.push(pin.clone()),
                None => all.push((vec![pin.clone()], cluster.clone())),
            }
        }
        all
    }

    /// Counts the writes to all clusters. The disks of members only change together with their clusters.
    pub(super) fn writes(&self) -> u64 {
        let clusters = lock(&self.clusters);
        clusters.values().map(|cluster| cluster.with(|objects| objects.version)).sum()
    }

    pub(super) fn to_value(&self) -> Value {
        let cluster = |(pins, cluster): (Vec<String>, Arc<Cluster>)| json!({"pins": pins, "objects": cluster.with(|objects| json!(objects))});
        let clusters: Vec<Value> = self.all().into_iter().map(cluster).collect();
        let known = lock(&self.known).clone();
        let (disks, leaves) = (self.disks.all(), self.leaves.all());
        json!({"clusters": clusters, "known": known, "disks": disks, "leaves": leaves})
    }

    pub(super) fn take_up_value(&self, kept: Value) -> serde_json::Result<()> {
        let kept: StoredKubernetes = serde_json::from_value(kept)?;
        let mut clusters = lock(&self.clusters);
        for One { pins, objects } in kept.clusters {
            let cluster = Arc::new(Cluster::of(objects));
            clusters.extend(pins.into_iter().map(|pin| (pin, cluster.clone())));
        }
        *lock(&self.known) = kept.known;
        self.disks.take_up(kept.disks);
        self.leaves.take_up(kept.leaves);
        Ok(())
    }
}
