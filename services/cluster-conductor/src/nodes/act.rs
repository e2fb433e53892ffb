//! What is asked of a cluster's Kubernetes for machines that go.

use cluster_core::{MachineRef, MachineSeen, NodeGroup, NodeHealth, Seen, machine_name};
use kubernetes::drain::drain;
use kubernetes::etcd::{self, Progress};

use super::{Answers, Nodes};
use crate::cloud::Trouble;

/// A machine, and how it is now.
type Said = Result<(MachineRef, MachineSeen), Trouble>;

impl Nodes<'_> {
    fn answers(&self) -> Result<&Answers, Trouble> {
        self.answers.as_ref().ok_or(Trouble::Silent)
    }

    /// Moves a machine's pods away: one pass, which may leave some for the next turn.
    ///
    /// Of a node that is not ready no pod says that it has gone; they are told to go, and that is all.
    pub(crate) async fn drain(&self, machine: &MachineRef, seen: &Seen) -> Said {
        let name = machine_name(self.spec.cluster, machine);
        let left = drain(&self.answers()?.client, &name).await?;
        let said = seen.machines.get(machine).cloned().unwrap_or_default();
        if let Some(held) = left.held.first() {
            return Err(Trouble::Held {
                machine: machine.clone(),
                pod: held.pod.to_string(),
                why: held.reason.clone(),
                more: left.held.len() - 1,
            });
        }
        let is_drained = left.is_nothing() || said.node != NodeHealth::Ready;
        Ok((machine.clone(), MachineSeen { is_drained, ..said }))
    }

    /// Has a machine leave etcd, by the word of another one. It takes some turns.
    pub(crate) async fn leave_etcd(&self, machine: &MachineRef, seen: &Seen) -> Said {
        let client = &self.answers()?.client;
        let name = machine_name(self.spec.cluster, machine);
        let said = seen.machines.get(machine).cloned().unwrap_or_default();
        let other = self.other_master(machine, seen).ok_or(Trouble::Silent)?;
        let waits = Ok((machine.clone(), said.clone()));
        let Progress::Done(members) = etcd::members(client, &other).await? else { return waits };
        if let Some(member) = members.iter().find(|member| member.name == name)
            && etcd::remove(client, &other, member.id).await? == Progress::Pending
        {
            return waits;
        }
        Ok((machine.clone(), MachineSeen { is_etcd_member: false, ..said }))
    }

    /// The node of a machine of the control plane that is ready, stays, and is not this one.
    fn other_master(&self, machine: &MachineRef, seen: &Seen) -> Option<String> {
        let masters = self.spec.groups.iter().filter(|group| self.is_control_plane(group));
        let mut others = masters.flat_map(NodeGroup::refs).filter(|other| other != machine);
        let is_ready = |other: &MachineRef| {
            seen.machines.get(other).is_some_and(|said| said.node == NodeHealth::Ready)
        };
        others.find(is_ready).map(|other| machine_name(self.spec.cluster, &other))
    }

    /// Has Kubernetes forget a machine's node.
    pub(crate) async fn forget(&self, machine: &MachineRef, seen: &Seen) -> Said {
        let name = machine_name(self.spec.cluster, machine);
        kubernetes::nodes::delete(&self.answers()?.client, &name).await?;
        let said = seen.machines.get(machine).cloned().unwrap_or_default();
        Ok((machine.clone(), MachineSeen { node: NodeHealth::Absent, ..said }))
    }
}
