//! The rotation that replaces the certificate authorities of a cluster while the cluster is in use.
//!
//! Each revision begins when every member holds the one before. So the record keeps only a number, and after a crash the next turn
//! continues from it.

use std::collections::{BTreeMap, BTreeSet};

use crate::request::check_not_restoring;
use crate::{
    CaRevision, Cluster, ClusterObservation, ClusterSpec, DesiredState, GroupRole, MemberName,
    NodeGroup, Refusal, RotationStep,
};

impl CaRevision {
    /// Returns the CAs after an observation: the next revision once every member holds the current one and pods were restarted.
    pub(crate) fn next(self, spec: &ClusterSpec<'_>, seen: &ClusterObservation) -> CaRevision {
        let is_done = !self.is_settled()
            && members_without_revision(spec, seen).is_empty()
            && self.is_renewed(seen);
        match (is_done, self.step()) {
            (false, _) => self,
            (true, RotationStep::TrustNew) => CaRevision { settled: self.revision, ..self },
            (true, _) => CaRevision { revision: self.revision + 1, ..self },
        }
    }

    /// Whether the pods in kube-system were restarted, if the step requires a restart: they read the trusted CAs at their start.
    pub(crate) fn is_renewed(self, seen: &ClusterObservation) -> bool {
        !self.has_to_renew() || seen.authorities.renewed == Some(self.revision)
    }
}

/// Returns the members that do not hold the current revision yet.
///
/// Deleted members do not count. Members without a server yet do not count either: they are created after the rotation and start with its
/// result.
pub fn members_without_revision(
    spec: &ClusterSpec<'_>,
    seen: &ClusterObservation,
) -> Vec<MemberName> {
    let holds = |machine: &MemberName| {
        seen.authorities.held.get(machine) == Some(&spec.cluster.authorities.revision)
    };
    members(spec.cluster, spec.groups).filter(|machine| !holds(machine)).collect()
}

/// Whether a member that holds another revision may take the current one now. Control-plane members take it one after the other, so that
/// the API stays available.
pub fn may_take_revision(
    cluster: &Cluster,
    groups: &[NodeGroup],
    machine: &MemberName,
    held: &BTreeMap<MemberName, u32>,
) -> bool {
    let masters: Vec<MemberName> = groups
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

/// Returns the CAs with a rotation started, or the reason why none can start now.
///
/// `has_machines` says whether anything of the cluster was created; without servers the CAs are replaced at once. `drained` are the
/// members that drains of hosts take out.
pub fn start_rotation(
    cluster: &Cluster,
    groups: &[NodeGroup],
    held: &BTreeMap<MemberName, u32>,
    drained: &BTreeSet<MemberName>,
    has_machines: bool,
) -> Result<CaRevision, Refusal> {
    if cluster.desire == DesiredState::Gone {
        return Err(Refusal::Deleting { name: cluster.name.to_string() });
    }
    let now = cluster.authorities;
    if !has_machines {
        return Ok(now.replaced());
    }
    let busy = |why: String| Err(Refusal::Busy { why });
    if !now.is_settled() {
        return busy(format!(
            "a CA rotation of cluster {} is already in progress: {}",
            cluster.name,
            now.step().describe()
        ));
    }
    check_not_restoring(cluster)?;
    if cluster.roll.is_some() {
        return busy(format!(
            "an upgrade of cluster {} is in progress; try again afterwards",
            cluster.name
        ));
    }
    if let Some(machine) = drained.first() {
        return busy(format!(
            "member {machine} is on a host that is being drained and may be switched off; try again after the drain"
        ));
    }
    if let Some(reboot) = &cluster.reboot {
        return busy(format!("member {} reboots; try again in some minutes", reboot.machine));
    }
    let is_renewing = |machine: &MemberName| cluster.is_renewing(machine);
    if let Some(machine) = groups.iter().flat_map(NodeGroup::refs).find(is_renewing) {
        return busy(format!("member {machine} renews its certificates; try again in a minute"));
    }
    let is_new = |machine: &MemberName| !cluster.nodes.contains(machine);
    if let Some(machine) = groups.iter().flat_map(NodeGroup::refs).find(is_new) {
        return busy(format!(
            "member {machine} is not a Kubernetes node yet; try again when it is"
        ));
    }
    let is_deaf = |machine: &MemberName| held.get(machine) != Some(&now.revision);
    if let Some(machine) = groups.iter().flat_map(NodeGroup::refs).find(is_deaf) {
        return busy(format!(
            "member {machine} has not reported which revision of the certificate authorities it has: it has just \
             started, or it got its config inline, a config of its own, or one from an older clusterd; try again in a \
             minute, or replace the member"
        ));
    }
    Ok(CaRevision { revision: now.revision + 1, ..now })
}

/// Returns the desired members that are Kubernetes nodes.
fn members<'a>(
    cluster: &'a Cluster,
    groups: &'a [NodeGroup],
) -> impl Iterator<Item = MemberName> + 'a {
    groups.iter().flat_map(NodeGroup::refs).filter(|machine| cluster.nodes.contains(machine))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Sample, at};
    use crate::{Key, LeafCertificate, MemberCertificates};

    fn begun() -> (Sample, ClusterObservation) {
        let mut sample = Sample::highly_available();
        let mut seen = sample.complete();
        let all: Vec<MemberName> = sample.groups.iter().flat_map(NodeGroup::refs).collect();
        sample.cluster.nodes = all.iter().cloned().collect();
        seen.authorities.held = all.into_iter().map(|machine| (machine, 0)).collect();
        let held = &seen.authorities.held;
        sample.cluster.authorities =
            start_rotation(&sample.cluster, &sample.groups, held, &BTreeSet::new(), true).unwrap();
        (sample, seen)
    }

    fn hold(seen: &mut ClusterObservation, revision: u32) {
        seen.authorities.held.values_mut().for_each(|it| *it = revision);
    }

    #[test]
    fn a_step_begins_when_all_members_hold_the_one_before() {
        let (mut sample, mut seen) = begun();
        let mut reported = Vec::new();
        for _ in 0..9 {
            let now = sample.cluster.authorities;
            reported.push(format!("{} {:?}", now.step().as_str(), now.generations()));
            assert_eq!(now.next(&sample.spec(), &seen), now, "nobody holds it yet");
            hold(&mut seen, now.revision);
            let last = seen.authorities.held.keys().last().cloned().unwrap();
            seen.authorities.held.insert(last.clone(), now.revision - 1);
            assert_eq!(members_without_revision(&sample.spec(), &seen), [last]);
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
            reported,
            [
                "TrustBoth (0, Some(1))",
                "NewSigns (1, Some(0))",
                "KubeletsAsk (1, Some(0))",
                "TrustNew (1, None)"
            ]
        );
        assert_eq!(sample.cluster.authorities, CaRevision::default().replaced());
    }

    #[test]
    fn no_server_is_created_during_a_rotation() {
        let (mut sample, mut seen) = begun();
        let machine = sample.groups[1].add_machine();
        let added = Key::Server(machine.clone());
        sample.settle(&mut seen);
        assert!(!seen.objects.contains_key(&added));
        assert!(seen.objects.contains_key(&Key::Port(machine)), "other objects are created");
        sample.cluster.authorities = CaRevision::default().replaced();
        sample.settle(&mut seen);
        assert!(seen.objects.contains_key(&added));
    }

    #[test]
    fn control_plane_members_take_a_step_one_after_the_other() {
        let (sample, mut seen) = begun();
        let machines: Vec<MemberName> = seen.authorities.held.keys().cloned().collect();
        let may = |seen: &ClusterObservation| -> Vec<String> {
            let may = |machine: &&MemberName| {
                may_take_revision(&sample.cluster, &sample.groups, machine, &seen.authorities.held)
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
    fn a_rotation_does_not_wait_for_a_replaced_member() {
        let (mut sample, mut seen) = begun();
        hold(&mut seen, 1);
        let lost: MemberName = sample.groups[1].refs().next().unwrap();
        seen.authorities.held.insert(lost.clone(), 0);
        assert_eq!(members_without_revision(&sample.spec(), &seen), std::slice::from_ref(&lost));
        sample.groups[1].replace_machine(lost.number);
        assert_eq!(members_without_revision(&sample.spec(), &seen), []);
    }

    #[test]
    fn one_rotation_runs_at_a_time_and_only_when_all_members_report() {
        let (mut sample, mut seen) = begun();
        let refusal = |sample: &Sample, seen: &ClusterObservation| {
            let held = &seen.authorities.held;
            start_rotation(&sample.cluster, &sample.groups, held, &BTreeSet::new(), true)
                .unwrap_err()
                .to_string()
        };
        let said = refusal(&sample, &seen);
        assert!(said.contains("is already in progress"), "{said}");
        sample.cluster.authorities = CaRevision::default();
        sample.cluster.restore = Some(crate::sample::restore());
        let said = refusal(&sample, &seen);
        assert!(said.ends_with("is being restored; try again afterwards"), "{said}");
        sample.cluster.restore = None;
        let deaf = seen.authorities.held.keys().next().cloned().unwrap();
        seen.authorities.held.remove(&deaf);
        let said = refusal(&sample, &seen);
        assert!(said.starts_with(&format!("member {deaf} has not reported")), "{said}");
        sample.cluster.nodes.remove(&deaf);
        let said = refusal(&sample, &seen);
        assert!(said.contains("is not a Kubernetes node yet"), "{said}");
        let first = LeafCertificate::new("apiserver".to_owned(), at(0), at(0), at(100));
        let held = MemberCertificates { first, renewing_since: Some(at(40)), renewed_at: None };
        sample.cluster.certificates.insert(deaf.clone(), held);
        let said = refusal(&sample, &seen);
        assert_eq!(said, format!("member {deaf} renews its certificates; try again in a minute"));
    }
}
