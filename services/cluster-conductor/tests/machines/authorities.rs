//! The answers to members that ask which CA revision they should hold.

use cluster_conductor::{Answer, AuthorityKind, CaHandout};
use cluster_core::{CaRevision, Cluster, MemberName, NodeGroup};
use cluster_store::ClusterChange;

use crate::given::{ClusterFixture, file, machine};

const MACHINES: [(&str, &str); 5] = [
    ("default-master-0", "10.0.0.10"),
    ("default-master-1", "10.0.0.11"),
    ("default-master-2", "10.0.0.12"),
    ("default-worker-0", "10.0.0.20"),
    ("default-worker-1", "10.0.0.21"),
];

/// A member's credentials: its claim, and the report token from its config.
pub(crate) struct Asks {
    pub(crate) claim: String,
    pub(crate) token: String,
}

impl Asks {
    async fn ask(&self, given: &ClusterFixture, holds: u32) -> CaHandout {
        given.conductor.authorities_for(&self.claim, &self.token, holds).await
    }
}

/// Makes a cluster whose members have all started, and returns their credentials.
pub(crate) async fn begun() -> (ClusterFixture, Vec<Asks>) {
    let mut given = ClusterFixture::labelled(&[]).await;
    let mut all = Vec::new();
    for (name, from) in MACHINES {
        let claim = given.claim(name).await.0;
        let config = given.config(name, from).await;
        let curl = file(&config, "/etc/bedplate/authorities.curl").unwrap();
        assert!(curl.contains(&format!("/v1/authorities/{claim}\"")), "{curl}");
        let token = curl.split("Bearer ").nth(1).unwrap().split('"').next().unwrap().to_owned();
        let holds = file(&config, "/var/lib/bedplate/authorities/revision").unwrap();
        assert_eq!(holds, "0\n");
        all.push(Asks { claim, token });
    }
    let nodes = given.groups.iter().flat_map(NodeGroup::refs).collect();
    let cluster = Cluster { nodes, ..given.cluster.clone() };
    given.cluster = given.store.change_cluster(&ClusterChange::of(cluster)).await.unwrap();
    (given, all)
}

/// Sets the CA revision of the cluster.
async fn revision(given: &mut ClusterFixture, revision: u32, settled: u32) {
    let authorities = CaRevision { revision, settled };
    let cluster = Cluster { authorities, ..given.cluster.clone() };
    given.cluster = given.store.change_cluster(&ClusterChange::of(cluster)).await.unwrap();
}

/// Returns the certificates of the cluster's CA for users.
async fn shown_to_users(given: &ClusterFixture) -> String {
    given.conductor.authority_of(&given.cluster, AuthorityKind::Kubernetes).await.unwrap()
}

fn taken(reported: CaHandout) -> String {
    let CaHandout::Take(archive) = reported else { panic!("there is nothing to take") };
    String::from_utf8(archive).unwrap()
}

fn keys(archive: &str) -> usize {
    archive.matches("PRIVATE KEY-----\n").count() / 2
}

#[tokio::test]
async fn members_take_a_revision_in_their_order_and_workers_get_no_key() {
    let (mut given, all) = begun().await;
    for asks in &all {
        assert!(asks.ask(&given, 0).await == CaHandout::Held);
    }
    revision(&mut given, 1, 0).await;
    let first = taken(all[0].ask(&given, 0).await);
    assert!(first.contains("trust-both\n") && keys(&first) == 3, "{}", keys(&first));
    assert!(all[1].ask(&given, 0).await == CaHandout::Soon, "the first is not done");
    let worker = taken(all[3].ask(&given, 0).await);
    assert_eq!((keys(&worker), worker.matches("BEGIN CERTIFICATE").count()), (0, 2));

    // After a restart the conductor continues the rotation with the same CAs.
    given.restart();
    assert_eq!(taken(all[0].ask(&given, 0).await), first);
    assert!(all[0].ask(&given, 1).await == CaHandout::Soon, "others are not done");
    assert!(taken(all[1].ask(&given, 0).await).contains("trust-both\n"));
    let held = given.store.machines_of(given.cluster.id).await.unwrap();
    let held: Vec<(MemberName, u32)> =
        held.into_iter().map(|it| (it.machine, it.authorities.unwrap())).collect();
    assert_eq!(held[0], (machine("default-master-0"), 1));
    assert!(held[1..].iter().all(|(_, revision)| *revision == 0), "{held:?}");

    revision(&mut given, 4, 4).await;
    assert!(all[4].ask(&given, 4).await == CaHandout::Held);
}

#[tokio::test]
async fn no_member_starts_during_a_rotation_and_later_ones_get_the_new_authority() {
    let mut given = ClusterFixture::labelled(&[]).await;
    let claim = given.claim("default-master-0").await;
    revision(&mut given, 2, 0).await;
    assert_eq!(given.redeem(&claim, "10.0.0.10").await, Answer::Later);
    revision(&mut given, 4, 4).await;
    let config = given.config("default-master-0", "10.0.0.10").await;
    assert_eq!(file(&config, "/var/lib/bedplate/authorities/revision").unwrap(), "4\n");
    let authority = file(&config, "/etc/kubernetes/pki/ca.crt").unwrap();
    assert_eq!(authority.matches("BEGIN CERTIFICATE").count(), 1);
    assert_eq!(authority, shown_to_users(&given).await);
}

#[tokio::test]
async fn users_get_all_trusted_authorities_and_the_signing_one_first() {
    let mut given = ClusterFixture::labelled(&[]).await;
    let mut shown = Vec::new();
    for now in 0..=4 {
        revision(&mut given, now, if now < 4 { 0 } else { 4 }).await;
        shown.push(shown_to_users(&given).await);
    }
    let (old, new) = (shown[0].clone(), shown[4].clone());
    assert_ne!(old, new);
    let (old_first, new_first) = (format!("{old}{new}"), format!("{new}{old}"));
    assert_eq!(shown, [old, old_first, new_first.clone(), new_first, new]);
}

#[tokio::test]
async fn a_wrong_report_token_gets_no_answer() {
    let (mut given, all) = begun().await;
    revision(&mut given, 1, 0).await;
    let mixed = Asks { claim: all[0].claim.clone(), token: all[3].token.clone() };
    assert!(mixed.ask(&given, 0).await == CaHandout::Nothing);
    let unknown = Asks { claim: "x".to_owned(), token: all[0].token.clone() };
    assert!(unknown.ask(&given, 0).await == CaHandout::Nothing);
    let held = given.store.machines_of(given.cluster.id).await.unwrap();
    assert!(held.iter().all(|it| it.authorities.is_none()), "{held:?}");
}
