//! The parts of a cluster's life, and when each of them ends.

use std::collections::BTreeSet;
use std::time::Duration;

use cluster_core::{GroupRole, Key, LedgerState};
use openstack_emulator::{Kind, Object};

use crate::given::ClusterFixture;
use crate::life::workers;

/// A part of the life of a cluster with three control-plane members and one or two workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Create,
    /// The cluster gets another worker.
    Grow,
    /// A worker is removed, and a control-plane member is replaced.
    Shrink,
    /// Every member is replaced by one of a newer version.
    Upgrade,
    Delete,
}

/// The kinds of objects that must be in the ledger as soon as the cloud has them.
const OURS: [Kind; 11] = [
    Kind::ApplicationCredential,
    Kind::FloatingIp,
    Kind::LoadBalancer,
    Kind::Network,
    Kind::Port,
    Kind::Recordset,
    Kind::Router,
    Kind::SecurityGroup,
    Kind::Server,
    Kind::ServerGroup,
    Kind::Subnet,
];

impl Part {
    /// All parts in their order.
    pub(crate) const ALL: [Part; 5] =
        [Part::Create, Part::Grow, Part::Shrink, Part::Upgrade, Part::Delete];
    /// The number of control-plane members.
    pub(crate) const MASTERS: u32 = 3;

    pub(crate) async fn ask(self, given: &ClusterFixture) {
        match self {
            Part::Create => {}
            Part::Grow => {
                let more = |group: &mut cluster_core::NodeGroup| {
                    group.add_machine();
                };
                given.ask(|_, group| more(group), workers()).await;
            }
            Part::Shrink => {
                given
                    .ask(
                        |_, group| {
                            group.machines.remove(&0);
                        },
                        workers(),
                    )
                    .await;
                given.ask(|_, group| assert!(group.replace_machine(1)), GroupRole::Master).await;
            }
            Part::Upgrade => given.upgrade().await,
            Part::Delete => given.delete().await,
        }
    }

    pub(crate) async fn ends(self, given: &ClusterFixture) {
        match self {
            Part::Create | Part::Grow | Part::Shrink | Part::Upgrade => {
                given.until_complete().await;
                given.until_complete_again().await;
            }
            Part::Delete => given.until_gone().await,
        }
    }

    /// Asserts that every object exists once and is in the ledger, and that the ledger has nothing else. Waits first until no duplicate can
    /// appear any more.
    pub(crate) async fn assert_whole(self, given: &ClusterFixture) {
        let workers = match self {
            Part::Create | Part::Shrink | Part::Upgrade => 1,
            Part::Grow => 2,
            Part::Delete => return,
        };
        let is_twin = |kind: &str| matches!(kind.parse(), Ok(Key::Twin(_)));
        let settles = async {
            while given.store.ledger_of(given.id).await.unwrap().iter().any(|it| is_twin(&it.kind))
            {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), settles).await.unwrap();
        given.assert_once(Part::MASTERS as usize, workers);
        given.assert_ledger_agrees().await;
    }
}

impl ClusterFixture {
    /// Returns the objects that must be in the ledger. Ports that Neutron creates itself, and a zone's own records, need not be.
    fn ours(&self) -> Vec<Object> {
        let all = OURS.into_iter().flat_map(|kind| self.of_kind(kind));
        let ours = all.filter(|it| {
            !it.text("device_owner").starts_with("network:")
                && !["SOA", "NS"].contains(&it.text("type"))
        });
        ours.collect()
    }

    /// Asserts that the name of every object was recorded before the object was created.
    pub(crate) async fn assert_all_is_named(&self) {
        // The objects are read before the ledger, so that an object cannot appear in between.
        let ours = self.ours();
        let lines = self.store.ledger_of(self.id).await.unwrap();
        let is_named = |it: &Object| {
            lines
                .iter()
                .any(|line| [it.text("name"), it.text("description")].contains(&line.name.as_str()))
        };
        let unnamed: Vec<_> = ours.iter().filter(|it| !is_named(it)).collect();
        assert!(unnamed.is_empty(), "{unnamed:?} {lines:?}");
    }

    /// Asserts that every object has an entry in the ledger, and every entry an object.
    pub(crate) async fn assert_ledger_agrees(&self) {
        let mut written = BTreeSet::new();
        for line in self.store.ledger_of(self.id).await.unwrap() {
            assert_eq!(line.state, LedgerState::Present, "{line:?}");
            if line.kind.parse::<Key>().unwrap() != Key::RouterInterface {
                written.insert(line.cloud_id.clone().unwrap());
            }
        }
        let mut ours = self.ours();
        let missing: Vec<_> =
            written.iter().filter(|id| !ours.iter().any(|it| it.id == **id)).collect();
        ours.retain(|it| !written.contains(&it.id));
        assert!(ours.is_empty() && missing.is_empty(), "unwritten: {ours:?}; gone: {missing:?}");
    }
}
