//! Observes the reports of members, and the state of their Kubernetes nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use cluster_core::{
    Bootstrap, ClusterObservation, GroupRole, Key, MemberName, MemberObservation, NodeGroup,
    NodeHealth, machine_name,
};
use cluster_store::{MachineReport, StoreError};
use jiff::Timestamp;
use kubernetes::bootstrap::{self, Token};
use kubernetes::certificates::{self, ClusterMember};
use kubernetes::nodes::{Node, Readiness};

use super::{Answers, Nodes};
use crate::cloud::Result;
use crate::member_configs;

impl Nodes<'_> {
    /// Adds the members to the observation.
    ///
    /// `asked_at` returns when the server of a member was requested.
    pub(crate) async fn observe(
        &self,
        seen: &mut ClusterObservation,
        asked_at: impl Fn(&MemberName) -> Option<Timestamp>,
    ) -> Result<(), StoreError> {
        let reports = self.store.machines_of(self.spec.cluster.id).await?;
        let reports: BTreeMap<MemberName, MachineReport> =
            reports.into_iter().map(|report| (report.machine.clone(), report)).collect();
        for machine in self.all(seen) {
            let server = seen.objects.get(&Key::Server(machine.clone())).map(|it| it.id.as_str());
            let said = self.said(&machine, reports.get(&machine), server);
            let said = MemberObservation { asked_at: asked_at(&machine), ..said };
            seen.machines.insert(machine, said);
        }
        let held = reports.into_values().filter_map(|it| Some((it.machine, it.authorities?)));
        seen.authorities.held = held.collect();
        seen.api_silence.clone_from(&self.silence);
        self.renew_trust(seen).await;
        if self.spec.cluster.roll.is_some() {
            self.observe_control_plane(seen).await;
        }
        Ok(())
    }

    /// Returns every member that should exist, exists, or is still known to Kubernetes.
    fn all(&self, seen: &ClusterObservation) -> BTreeSet<MemberName> {
        let wanted = self.spec.groups.iter().flat_map(NodeGroup::refs);
        let there = seen.objects.keys().filter_map(Key::member).cloned();
        let known = self.spec.cluster.nodes.iter().cloned();
        wanted.chain(there).chain(known).collect()
    }

    fn said(
        &self,
        machine: &MemberName,
        report: Option<&MachineReport>,
        server: Option<&str>,
    ) -> MemberObservation {
        let node = match &self.answers {
            None => NodeHealth::Unknown,
            Some(answers) => {
                let name = machine_name(self.spec.cluster, machine);
                let node = answers.nodes.iter().find(|node| node.name == name);
                health(node.filter(|node| !self.is_of_backup(machine, node, server)))
            }
        };
        let was_node = self.spec.cluster.nodes.contains(machine);
        let is_node = matches!(node, NodeHealth::Ready | NodeHealth::NotReady { .. });
        let is_configured = report.is_some_and(|report| report.redeemed_at.is_some());
        let bootstrap = match report.and_then(|report| report.said.as_ref()) {
            Some(_) | None if was_node || is_node => Bootstrap::Done,
            Some(said) if said.failed => {
                Bootstrap::Failed(format!("{}: {}", said.step, said.message))
            }
            Some(said) => Bootstrap::At(said.step.clone()),
            None if is_configured => Bootstrap::At("configured".to_owned()),
            None => Bootstrap::Silent,
        };
        // Every control-plane node was an etcd member once, and one that is removed while it joins may have been added. Whether it has left
        // is not recorded; a second removal is harmless.
        let is_wanted = self.shape.contains_key(&Key::Server(machine.clone()));
        let may_be_added = is_configured && self.spec.cluster.completed_at.is_some() && !is_wanted;
        let is_member = bootstrap == Bootstrap::Done || may_be_added;
        let is_etcd_member = is_member && self.is_master(machine);
        // A member that was never a node has nothing to lose, so it need not wait for the API to answer.
        let node = match node {
            NodeHealth::Unknown if bootstrap != Bootstrap::Done && self.is_new() => {
                NodeHealth::Absent
            }
            NodeHealth::Unknown
            | NodeHealth::Absent
            | NodeHealth::Ready
            | NodeHealth::NotReady { .. } => node,
        };
        MemberObservation { bootstrap, node, is_etcd_member, is_drained: false, asked_at: None }
    }

    /// Whether a restoration is in progress and this is the node of a lost control-plane server, as the backup has it. The member that takes the
    /// place of the server replaces the node.
    fn is_of_backup(&self, machine: &MemberName, node: &Node, server: Option<&str>) -> bool {
        let cluster = self.spec.cluster;
        let Some(id) = cluster.starts_from().filter(|_| self.is_master(machine)) else {
            return false;
        };
        if let Some(provider_id) = &node.provider_id {
            // `openstack:///UUID`, or with a region.
            return provider_id.rsplit('/').next() != server;
        }
        // Without a cloud provider only the times tell. clusterd's clock may differ from the members' clocks by less than the age of the backup.
        let backup = cluster.backups.iter().find(|backup| backup.id == id);
        let stored_at = backup.and_then(|it| it.contents.as_ref()).map(|it| it.stored_at);
        // Times of Kubernetes have whole seconds.
        let is_older = |stored_at: Timestamp| {
            node.created.is_none_or(|created| created.as_second() < stored_at.as_second())
        };
        stored_at.is_some_and(is_older)
    }

    /// Whether no member has become a node yet.
    fn is_new(&self) -> bool {
        self.spec.cluster.nodes.is_empty()
    }

    pub(super) fn is_master(&self, machine: &MemberName) -> bool {
        let group = self.spec.groups.iter().find(|group| group.name == machine.group);
        group.is_some_and(|group| self.is_control_plane(group))
    }

    pub(super) fn is_control_plane(&self, group: &NodeGroup) -> bool {
        group.role == GroupRole::Master
    }

    /// Approves the certificate requests of kubelets that belong to members, and no others. Returns the first failure of its two steps.
    pub(crate) async fn admit(&self, seen: &ClusterObservation) -> Result<()> {
        let Some(answers) = &self.answers else { return Ok(()) };
        let answer = self.keep_token(answers, seen).await;
        if let Err(error) = &answer {
            tracing::warn!("cannot register the bootstrap token in the cluster: {error}");
        }
        let machines: Vec<ClusterMember> =
            seen.machines.keys().map(|machine| self.machine(machine, answers, seen)).collect();
        match certificates::decide_pending(&answers.client, &machines).await {
            Ok(settled) => {
                for (name, machine) in settled.approved {
                    tracing::info!("approved certificate request {name} of member {machine}");
                }
                for (name, objection) in settled.denied {
                    tracing::warn!("denied certificate request {name}: {objection}");
                }
                for (name, why) in settled.left {
                    tracing::debug!("left certificate request {name} to an administrator: {why}");
                }
                answer
            }
            Err(error) => {
                tracing::warn!("cannot admit members: {error}");
                Err(error.into())
            }
        }
    }

    /// Registers the bootstrap token of the newest servers in the cluster. The first founding member registers the first token.
    async fn keep_token(&self, answers: &Answers, seen: &ClusterObservation) -> Result<()> {
        let cluster = self.spec.cluster;
        let Some(done) = cluster.completed_at else { return Ok(()) };
        let waits = |machine: &MemberName| !cluster.nodes.contains(machine);
        if !seen.machines.keys().any(waits) {
            return Ok(());
        }
        let join = member_configs::join_token(self.secrets, self.spec, seen).await?;
        let Some((id, secret)) = join.token.expose().split_once('.') else { return Ok(()) };
        if join.made_at < done {
            return Ok(());
        }
        let token = Token {
            id: id.to_owned(),
            secret: secret.to_owned().into(),
            expires: join.expires_at,
            description: "for members that join later".to_owned(),
        };
        Ok(bootstrap::put_token(&answers.client, &token).await?)
    }

    fn machine(
        &self,
        machine: &MemberName,
        answers: &Answers,
        seen: &ClusterObservation,
    ) -> ClusterMember {
        let name = machine_name(self.spec.cluster, machine);
        let address = |key: Key| seen.objects.get(&key).and_then(|found| found.address);
        let addresses: Vec<IpAddr> =
            [Key::Port(machine.clone()), Key::MachineAddress(machine.clone())]
                .into_iter()
                .filter_map(address)
                .collect();
        let is_wanted = self.shape.contains_key(&Key::Server(machine.clone()));
        let is_node = answers.nodes.iter().any(|node| node.name == name);
        ClusterMember {
            names: vec![name.clone()],
            name,
            addresses,
            may_join: is_wanted && !is_node,
        }
    }
}

fn health(node: Option<&Node>) -> NodeHealth {
    match node.map(|node| &node.readiness) {
        None => NodeHealth::Absent,
        Some(Readiness::Ready { .. }) => NodeHealth::Ready,
        Some(Readiness::NotReady { since, .. }) => {
            NodeHealth::NotReady { since: since.unwrap_or_default() }
        }
    }
}
