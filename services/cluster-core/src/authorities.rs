//! A cluster's authorities, and how they are exchanged while it is in use.
//!
//! A revision is what all machines are to hold; a rotation is four of them, each begun once every machine holds the one before. So a number
//! is all that has to be kept, and after a crash the next turn knows where it is. Kubernetes calls the procedure "Manual Rotation of CA
//! Certificates".

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{Cluster, ClusterSpec, Desire, GroupRole, MachineRef, NodeGroup, Refusal, Seen};

/// So many revisions a rotation has.
const STEPS: u32 = 4;

/// Which authorities a cluster has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authorities {
    /// What its machines are to hold.
    pub revision: u32,
    /// The last revision that ended a rotation; the same as `revision` where none is under way.
    pub settled: u32,
}

/// What a revision is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotationStep {
    /// The new authorities are trusted besides the old ones, which still sign.
    TrustBoth,
    /// The new ones sign: the control plane gets its certificates from them.
    NewSigns,
    /// So do the kubelets.
    KubeletsAsk,
    /// The old ones are trusted no more.
    TrustNew,
}

/// What was seen of a rotation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthoritiesSeen {
    /// The revision that each machine said it holds.
    pub held: BTreeMap<MachineRef, u32>,
    /// What runs in the cluster has been started again since all machines hold the revision.
    pub renewed: Option<u32>,
    /// Why it has not, where somebody knows.
    pub trouble: Option<String>,
}

impl Authorities {
    /// Whether no rotation is under way.
    pub fn is_settled(self) -> bool {
        self.revision == self.settled
    }

    /// What the revision is for; the last one stays when its rotation is over.
    pub fn step(self) -> RotationStep {
        match self.revision % STEPS {
            1 => RotationStep::TrustBoth,
            2 => RotationStep::NewSigns,
            3 => RotationStep::KubeletsAsk,
            _ => RotationStep::TrustNew,
        }
    }

    /// The number of the authorities that sign, counted from 0, and of those that are trusted besides.
    pub fn generations(self) -> (u32, Option<u32>) {
        let old = self.revision / STEPS;
        match self.step() {
            RotationStep::TrustBoth => (old, Some(old + 1)),
            RotationStep::NewSigns | RotationStep::KubeletsAsk => (old + 1, Some(old)),
            RotationStep::TrustNew => (old, None),
        }
    }

    /// Authorities that no machine has yet are exchanged at once.
    pub fn replaced(self) -> Authorities {
        let revision = self.revision + STEPS;
        Authorities { revision, settled: revision }
    }

    /// What is to be held next, given what was seen.
    pub(crate) fn next(self, spec: &ClusterSpec<'_>, seen: &Seen) -> Authorities {
        let is_done = !self.is_settled() && waiting(spec, seen).is_empty() && self.is_renewed(seen);
        match (is_done, self.step()) {
            (false, _) => self,
            (true, RotationStep::TrustNew) => Authorities { settled: self.revision, ..self },
            (true, _) => Authorities { revision: self.revision + 1, ..self },
        }
    }

    /// Whether what runs in the cluster knows whom to trust from now on, which it reads once.
    pub(crate) fn is_renewed(self, seen: &Seen) -> bool {
        !self.has_to_renew() || seen.authorities.renewed == Some(self.revision)
    }

    /// Whether this step changes whom pods trust.
    pub fn has_to_renew(self) -> bool {
        matches!(self.step(), RotationStep::TrustBoth | RotationStep::TrustNew)
    }
}

impl RotationStep {
    /// One word.
    pub fn as_str(self) -> &'static str {
        match self {
            RotationStep::TrustBoth => "TrustBoth",
            RotationStep::NewSigns => "NewSigns",
            RotationStep::KubeletsAsk => "KubeletsAsk",
            RotationStep::TrustNew => "TrustNew",
        }
    }

    /// The same for people.
    pub fn describe(self) -> &'static str {
        match self {
            RotationStep::TrustBoth => "the new authorities are made known beside the old",
            RotationStep::NewSigns => "the control plane gets certificates of the new authorities",
            RotationStep::KubeletsAsk => "kubelets get certificates of the new authorities",
            RotationStep::TrustNew => "the old authorities are trusted no more",
        }
    }
}

/// The machines that do not hold the revision yet. One that is gone for good is not among them, nor one that is still to be made: it
/// waits for the end, and begins with what is held then.
pub fn waiting(spec: &ClusterSpec<'_>, seen: &Seen) -> Vec<MachineRef> {
    let holds = |machine: &MachineRef| {
        seen.authorities.held.get(machine) == Some(&spec.cluster.authorities.revision)
    };
    members(spec.cluster, spec.groups).filter(|machine| !holds(machine)).collect()
}

/// Whether a machine that holds another revision may take this one now: machines of the control plane do it one after the other.
pub fn may_take(
    cluster: &Cluster,
    groups: &[NodeGroup],
    machine: &MachineRef,
    held: &BTreeMap<MachineRef, u32>,
) -> bool {
    let masters: Vec<MachineRef> = groups
        .iter()
        .filter(|group| group.role == GroupRole::Master)
        .flat_map(NodeGroup::refs)
        .filter(|machine| cluster.nodes.contains(machine))
        .collect();
    if !masters.contains(machine) {
        return true;
    }
    let before = masters.iter().take_while(|other| *other != machine);
    before.into_iter().all(|other| held.get(other) == Some(&cluster.authorities.revision))
}

/// The cluster with other authorities asked for, where that can be done now. `has_machines` says whether anything was made of it, and
/// `drained` which of its machines drains of hosts take out.
pub fn rotate(
    cluster: &Cluster,
    groups: &[NodeGroup],
    held: &BTreeMap<MachineRef, u32>,
    drained: &BTreeSet<MachineRef>,
    has_machines: bool,
) -> Result<Authorities, Refusal> {
    if cluster.desire == Desire::Gone {
        return Err(Refusal::Going { name: cluster.name.to_string() });
    }
    let now = cluster.authorities;
    if !has_machines {
        return Ok(now.replaced());
    }
    let busy = |why: String| Err(Refusal::Busy { why });
    if !now.is_settled() {
        return busy(format!(
            "the authorities of cluster {} are being rotated already: {}",
            cluster.name,
            now.step().describe()
        ));
    }
    if let Some(machine) = drained.first() {
        return busy(format!(
            "machine {machine} is on a host that is drained, and may be switched off; try again when that is over"
        ));
    }
    let is_new = |machine: &MachineRef| !cluster.nodes.contains(machine);
    if let Some(machine) = groups.iter().flat_map(NodeGroup::refs).find(is_new) {
        return busy(format!("machine {machine} is still to become a node; try again then"));
    }
    let is_deaf = |machine: &MachineRef| held.get(machine) != Some(&now.revision);
    if let Some(machine) = groups.iter().flat_map(NodeGroup::refs).find(is_deaf) {
        return busy(format!(
            "machine {machine} has not asked which authorities it should hold: it has just begun, or was given its config inline, a \
             config of its own, or one by an older clusterd; try again in a minute, or have it replaced"
        ));
    }
    Ok(Authorities { revision: now.revision + 1, ..now })
}

/// The machines that are nodes and stay.
fn members<'a>(
    cluster: &'a Cluster,
    groups: &'a [NodeGroup],
) -> impl Iterator<Item = MachineRef> + 'a {
    groups.iter().flat_map(NodeGroup::refs).filter(|machine| cluster.nodes.contains(machine))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;
    use crate::sample::Sample;

    fn begun() -> (Sample, Seen) {
        let mut sample = Sample::highly_available();
        let mut seen = sample.complete();
        let all: Vec<MachineRef> = sample.groups.iter().flat_map(NodeGroup::refs).collect();
        sample.cluster.nodes = all.iter().cloned().collect();
        seen.authorities.held = all.into_iter().map(|machine| (machine, 0)).collect();
        let held = &seen.authorities.held;
        sample.cluster.authorities =
            rotate(&sample.cluster, &sample.groups, held, &BTreeSet::new(), true).unwrap();
        (sample, seen)
    }

    fn hold(seen: &mut Seen, revision: u32) {
        seen.authorities.held.values_mut().for_each(|it| *it = revision);
    }

    #[test]
    fn a_step_begins_when_all_machines_hold_the_one_before() {
        let (mut sample, mut seen) = begun();
        let mut told = Vec::new();
        for _ in 0..9 {
            let now = sample.cluster.authorities;
            told.push(format!("{} {:?}", now.step().as_str(), now.generations()));
            assert_eq!(now.next(&sample.spec(), &seen), now, "nobody holds it yet");
            hold(&mut seen, now.revision);
            let last = seen.authorities.held.keys().last().cloned().unwrap();
            seen.authorities.held.insert(last.clone(), now.revision - 1);
            assert_eq!(waiting(&sample.spec(), &seen), [last]);
            assert_eq!(now.next(&sample.spec(), &seen), now, "one does not");
            hold(&mut seen, now.revision);
            if now.has_to_renew() {
                assert_eq!(now.next(&sample.spec(), &seen), now, "pods trust the old alone");
                seen.authorities.renewed = Some(now.revision);
            }
            sample.cluster.authorities = now.next(&sample.spec(), &seen);
            if sample.cluster.authorities.is_settled() {
                break;
            }
        }
        assert_eq!(
            told,
            [
                "TrustBoth (0, Some(1))",
                "NewSigns (1, Some(0))",
                "KubeletsAsk (1, Some(0))",
                "TrustNew (1, None)"
            ]
        );
        assert_eq!(sample.cluster.authorities, Authorities::default().replaced());
    }

    #[test]
    fn no_server_is_asked_for_meanwhile() {
        let (mut sample, mut seen) = begun();
        let added = Key::Server(sample.groups[1].add_machine());
        sample.settle(&mut seen);
        assert!(!seen.objects.contains_key(&added));
        sample.cluster.authorities = Authorities::default().replaced();
        sample.settle(&mut seen);
        assert!(seen.objects.contains_key(&added));
    }

    #[test]
    fn the_control_plane_takes_a_step_one_machine_after_the_other() {
        let (sample, mut seen) = begun();
        let machines: Vec<MachineRef> = seen.authorities.held.keys().cloned().collect();
        let may = |seen: &Seen| -> Vec<String> {
            let may = |machine: &&MachineRef| {
                may_take(&sample.cluster, &sample.groups, machine, &seen.authorities.held)
            };
            machines.iter().filter(may).map(ToString::to_string).collect()
        };
        let (masters, workers): (Vec<_>, Vec<_>) = machines
            .iter()
            .map(ToString::to_string)
            .partition(|machine| machine.starts_with("default-master"));
        let with = |count: usize| [masters[..count].to_vec(), workers.clone()].concat();
        let sorted = |mut of: Vec<String>| {
            of.sort();
            of
        };
        assert_eq!(sorted(may(&seen)), sorted(with(1)));
        let first = masters[0].parse().unwrap();
        seen.authorities.held.insert(first, 1);
        assert_eq!(sorted(may(&seen)), sorted(with(2)));
    }

    #[test]
    fn a_machine_that_is_lost_is_not_waited_for() {
        let (mut sample, mut seen) = begun();
        hold(&mut seen, 1);
        let lost: MachineRef = sample.groups[1].refs().next().unwrap();
        seen.authorities.held.insert(lost.clone(), 0);
        assert_eq!(waiting(&sample.spec(), &seen), std::slice::from_ref(&lost));
        sample.groups[1].replace_machine(lost.number);
        assert_eq!(waiting(&sample.spec(), &seen), []);
    }

    #[test]
    fn one_rotation_runs_at_a_time_and_only_where_all_machines_ask() {
        let (mut sample, mut seen) = begun();
        let refusal = |sample: &Sample, seen: &Seen| {
            let held = &seen.authorities.held;
            rotate(&sample.cluster, &sample.groups, held, &BTreeSet::new(), true)
                .unwrap_err()
                .to_string()
        };
        let said = refusal(&sample, &seen);
        assert!(said.contains("are being rotated already"), "{said}");
        sample.cluster.authorities = Authorities::default();
        let deaf = seen.authorities.held.keys().next().cloned().unwrap();
        seen.authorities.held.remove(&deaf);
        let said = refusal(&sample, &seen);
        assert!(said.starts_with(&format!("machine {deaf} has not asked")), "{said}");
        sample.cluster.nodes.remove(&deaf);
        let said = refusal(&sample, &seen);
        assert!(said.contains("is still to become a node"), "{said}");
    }
}
