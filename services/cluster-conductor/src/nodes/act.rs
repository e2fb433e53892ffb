//! What is asked of a cluster's Kubernetes.

use cluster_core::{MachineRef, MachineSeen, NodeHealth, Seen, machine_name};

use super::{Answers, Nodes};
use crate::cloud::Trouble;

/// A machine, and how it is now.
type Said = Result<(MachineRef, MachineSeen), Trouble>;

impl Nodes<'_> {
    fn answers(&self) -> Result<&Answers, Trouble> {
        self.answers.as_ref().ok_or(Trouble::Silent)
    }

    /// Moves a machine's pods away: one pass, which may leave some for the next turn.
    pub(crate) async fn drain(&self, machine: &MachineRef, seen: &Seen) -> Said {
        let _ = (self.answers()?, machine, seen);
        Err(Trouble::Silent)
    }

    /// Has a machine leave etcd.
    pub(crate) async fn leave_etcd(&self, machine: &MachineRef, seen: &Seen) -> Said {
        let _ = (self.answers()?, machine, seen);
        Err(Trouble::Silent)
    }

    /// Has Kubernetes forget a machine's node.
    pub(crate) async fn forget(&self, machine: &MachineRef, seen: &Seen) -> Said {
        let name = machine_name(self.spec.cluster, machine);
        kubernetes::nodes::delete(&self.answers()?.client, &name).await?;
        let said = seen.machines.get(machine).cloned().unwrap_or_default();
        Ok((machine.clone(), MachineSeen { node: NodeHealth::Absent, ..said }))
    }
}
