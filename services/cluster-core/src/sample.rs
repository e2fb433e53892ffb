//! Clusters for the unit tests of this crate, and a cloud that does everything at once.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use newtype_uuid::GenericUuid;
use uuid::Uuid;

use crate::*;

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

/// A cluster with its groups.
pub(crate) struct Sample {
    pub(crate) cluster: Cluster,
    pub(crate) groups: Vec<NodeGroup>,
}

fn id<T: GenericUuid>(last: u128) -> T {
    T::from_untyped_uuid(Uuid::from_u128(0x7c9e_6679_7425_40de_944b_e07f_c1f9_0000 + last))
}

impl Sample {
    /// Makes a cluster of a single member on an existing network.
    pub(crate) fn smallest() -> Sample {
        let mut sample = Sample::highly_available();
        let blueprint = &mut sample.cluster.blueprint;
        blueprint.master_lb_enabled = false;
        blueprint.external_network = None;
        blueprint.fixed_network = Some("net-1".to_owned());
        blueprint.fixed_subnet = Some("subnet-1".to_owned());
        sample.groups.truncate(1);
        sample.groups[0].machines = BTreeSet::from([0]);
        sample
    }

    /// Makes a cluster of three control-plane members and two workers, behind a load balancer with a floating IP.
    pub(crate) fn highly_available() -> Sample {
        let blueprint = ClusterParameters {
            external_network: Some("public".to_owned()),
            flavor: Some("m1.large".to_owned()),
            master_flavor: Some("m1.large".to_owned()),
            master_lb_enabled: true,
            floating_ip_enabled: false,
            labels: labels(&[("master_lb_floating_ip_enabled", "true")]),
            ..ClusterParameters::new("fcos".to_owned())
        };
        let (owner, name) = (Owner::new("p", "u"), "blue".parse().unwrap());
        let asked = Cluster::new(id(0), owner, name, (id(1), blueprint), at(0));
        let cluster = Cluster { create_timeout: Some(60), ..asked };
        let group = |number, name: &str, role, machines: u32| NodeGroup {
            is_default: true,
            labels: Labels::default(),
            ..NodeGroup::new(id(number), &cluster, (name.parse().unwrap(), role), machines, at(0))
        };
        let groups = vec![
            group(2, "default-master", GroupRole::Master, 3),
            group(3, "default-worker", GroupRole::Worker("worker".to_owned()), 2),
        ];
        Sample { cluster, groups }
    }

    /// Makes a roll in which no group is left to begin.
    pub(crate) fn roll(&self) -> Roll {
        Roll {
            began_at: at(0),
            kubernetes: self.cluster.kubernetes,
            at_once: 1,
            max_unavailable: 0,
            is_paused: false,
            waiting: BTreeMap::new(),
            origin: None,
            waits_for: None,
        }
    }

    pub(crate) fn spec(&self) -> ClusterSpec<'_> {
        ClusterSpec { cluster: &self.cluster, groups: &self.groups }
    }

    /// Performs turn after turn until no action is left, and returns the actions of each turn.
    ///
    /// In this cloud every object is ready at once, and every server becomes a Kubernetes node.
    pub(crate) fn settle(&self, seen: &mut ClusterObservation) -> Vec<Vec<String>> {
        seen.at = Some(at(1));
        let credential = Some(self.cluster.credential);
        seen.add_ons = Some(AddOnsObservation { credential, ..AddOnsObservation::default() });
        let mut turns = Vec::new();
        loop {
            let actions = plan(&self.spec(), seen);
            if actions.is_empty() {
                return turns;
            }
            for action in &actions {
                self.perform(action, seen);
            }
            turns.push(actions.iter().map(ToString::to_string).collect());
            assert!(turns.len() < 100, "it never ends: {:?}", turns.last());
        }
    }

    pub(crate) fn perform(&self, action: &Action, seen: &mut ClusterObservation) {
        match action {
            Action::Create(key) => {
                let number = seen.objects.len() as u8;
                let has_address = matches!(key.kind(), Kind::Port | Kind::FloatingIp);
                let facts = match key.kind() {
                    Kind::LoadBalancer | Kind::Record => {
                        CloudObjectDetails::Addresses(BTreeSet::new())
                    }
                    Kind::SecurityGroup => CloudObjectDetails::Rules(BTreeSet::new()),
                    Kind::Network
                    | Kind::Subnet
                    | Kind::Router
                    | Kind::RouterInterface
                    | Kind::ServerGroup
                    | Kind::Port
                    | Kind::FloatingIp
                    | Kind::Credential
                    | Kind::Volume
                    | Kind::RootVolume
                    | Kind::ServiceBalancer
                    | Kind::Server => CloudObjectDetails::None,
                };
                let found = CloudObject {
                    id: key.to_string(),
                    state: CloudObjectState::Ready,
                    address: has_address.then(|| [10, 0, 0, number].into()),
                    facts,
                };
                assert!(seen.objects.insert(key.clone(), found).is_none(), "{key} was there");
                if let Key::Server(machine) = key {
                    let is_etcd_member = machine.group.as_str() == "default-master";
                    let said = MemberObservation {
                        bootstrap: Bootstrap::Done,
                        node: NodeHealth::Ready,
                        is_etcd_member,
                        is_drained: false,
                        asked_at: Some(at(0)),
                    };
                    seen.machines.insert(machine.clone(), said);
                }
            }
            Action::SetRules(key) => {
                let Some(DesiredObject { thing: ResourceSpec::SecurityGroup { rules }, .. }) =
                    desired_objects(&self.spec()).remove(key)
                else {
                    panic!("{key} has no rules")
                };
                seen.objects.get_mut(key).unwrap().facts = CloudObjectDetails::Rules(rules);
            }
            Action::SetAddresses(key, addresses) => {
                seen.objects.get_mut(key).unwrap().facts =
                    CloudObjectDetails::Addresses(addresses.clone());
            }
            Action::Drain(machine) => seen.machines.get_mut(machine).unwrap().is_drained = true,
            Action::LeaveEtcd(machine) => {
                seen.machines.get_mut(machine).unwrap().is_etcd_member = false;
            }
            Action::ForgetNode(machine) => {
                seen.machines.remove(machine);
            }
            Action::Delete(key) => {
                assert!(seen.objects.remove(key).is_some(), "{key} was not there");
                // The node of a deleted server stays in Kubernetes until `ForgetNode`.
            }
        }
    }

    /// Returns the observation of the complete cluster.
    pub(crate) fn complete(&mut self) -> ClusterObservation {
        let mut seen = ClusterObservation::default();
        self.settle(&mut seen);
        self.cluster.completed_at = Some(at(1));
        seen
    }
}

/// A restoration that has just begun.
pub(crate) fn restore() -> Restore {
    let (backup, phase) = (BackupUuid::nil(), RestorePhase::Clearing);
    Restore { backup, requested_at: at(5), phase, since: at(5) }
}

/// The id of a backup.
pub(crate) fn backup_id(number: u128) -> BackupUuid {
    BackupUuid::from_untyped_uuid(Uuid::from_u128(number))
}

/// The contents of a backup that is stored.
pub(crate) fn backup_contents() -> BackupContents {
    BackupContents {
        stored_at: at(9),
        size: 4096,
        sha256: "0a".repeat(32),
        revision: 7,
        etcd: "3.5.16".to_owned(),
        kubernetes: KubernetesVersion::DEFAULT,
        authorities: 0,
    }
}

pub(crate) fn labels(pairs: &[(&str, &str)]) -> Labels {
    let raw = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Labels::try_from(raw.collect::<std::collections::BTreeMap<_, _>>()).unwrap()
}
