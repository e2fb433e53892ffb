//! The later life of a cluster: it grows, shrinks, loses members, and gets a new credential.

use cluster_core::{Cluster, GroupRole, MemberName, NodeGroup};
use cluster_store::{ClusterChange, StoreError};
use jiff::Timestamp;
use kubernetes::apply::documents;
use openstack_emulator::{Kind, Object};

use crate::given::ClusterFixture;

impl ClusterFixture {
    async fn group(&self, role: &GroupRole) -> NodeGroup {
        let groups = self.store.groups_of(self.id).await.unwrap();
        groups.into_iter().find(|group| group.role == *role).unwrap()
    }

    /// Changes the cluster and a node group, as the API does for a request.
    pub(crate) async fn ask(&self, change: impl Fn(&mut Cluster, &mut NodeGroup), role: GroupRole) {
        loop {
            let mut cluster = self.find().await.unwrap();
            let mut group = self.group(&role).await;
            cluster.asked_at = Timestamp::now();
            change(&mut cluster, &mut group);
            let change = ClusterChange { changed: vec![group], ..ClusterChange::of(cluster) };
            match self.store.change_cluster(&change).await {
                Ok(_) => return,
                Err(StoreError::Stale) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn server_names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.of_kind(Kind::Server).iter().map(|it| it.text("name").to_owned()).collect();
        names.sort();
        names
    }
}

pub(crate) fn workers() -> GroupRole {
    GroupRole::Worker("worker".to_owned())
}

#[tokio::test]
async fn a_cluster_grows_and_shrinks() {
    let (given, _working) = ClusterFixture::complete(1, 1).await;
    given
        .ask(
            |_, group| {
                for _ in 0..2 {
                    group.add_machine();
                }
            },
            workers(),
        )
        .await;
    given.until_complete().await;
    given.assert_once(1, 3);
    given
        .ask(
            |_, group| {
                group.machines.remove(&0);
                group.machines.remove(&2);
            },
            workers(),
        )
        .await;
    given.until_complete().await;
    given.assert_once(1, 1);
    assert!(given.server_names()[1].ends_with("-default-worker-1"), "{:?}", given.server_names());
    given.deleted().await;
}

#[tokio::test]
async fn a_worker_whose_server_was_deleted_is_replaced() {
    let (given, _working) = ClusterFixture::complete(1, 2).await;
    let lost = given.of_kind(Kind::Server);
    let lost = lost.iter().find(|it| it.text("name").ends_with("-default-worker-0")).unwrap();
    given.delete_server(&lost.id).await;
    given
        .until_groups(|group| {
            group.role != workers() || group.machines == [1, 2].into_iter().collect()
        })
        .await;
    given.until_complete_again().await;
    given.assert_once(1, 2);
    assert!(given.find().await.unwrap().nodes.contains(&machine("default-worker-2")));
    given.deleted().await;
}

#[tokio::test]
async fn a_lost_control_plane_member_is_replaced_and_removed_from_etcd() {
    let (given, _working) = ClusterFixture::complete(3, 1).await;
    given.lose_the_second_master().await;
    given.until_complete_again().await;
    given.assert_once(3, 1);
    let nodes = given.find().await.unwrap().nodes;
    assert!(!nodes.contains(&machine("default-master-1")), "{nodes:?}");
    given.deleted().await;
}

#[tokio::test]
async fn another_member_is_asked_when_the_first_cannot_run_etcdctl() {
    let (given, _working) = ClusterFixture::complete(3, 1).await;
    let client = given.kubernetes().await;
    let nodes = kubernetes::nodes::list(&client).await.unwrap();
    let first = nodes.iter().find(|node| node.name.ends_with("-default-master-0")).unwrap();
    // Without its pod the first member cannot say which etcdctl to run, and its neighbour must be asked.
    let pod = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: etcd-{}, namespace: kube-system}}",
        first.name
    );
    kubernetes::apply::delete(&client, &documents(&pod).unwrap()).await.unwrap();
    given.lose_the_second_master().await;
    given.until_complete_again().await;
    given.assert_once(3, 1);
}

#[tokio::test]
async fn a_credential_is_replaced_and_the_old_one_deleted() {
    let (given, _working) = ClusterFixture::complete(1, 1).await;
    let old = given.of_kind(Kind::ApplicationCredential)[0].id.clone();
    given.ask(|cluster, _| cluster.credential += 1, workers()).await;
    given.until_complete().await;
    given
        .cloud
        .wait_until(|_| {
            let all = given.of_kind(Kind::ApplicationCredential);
            (all.len() == 1 && all[0].id != old).then_some(())
        })
        .await;
    given.deleted().await;
}

#[tokio::test]
async fn a_control_plane_of_five_outlives_the_loss_of_one_and_of_two() {
    let (given, _working) = ClusterFixture::complete(5, 1).await;
    given.assert_once(5, 1);
    for lost in [vec!["-default-master-1"], vec!["-default-master-0", "-default-master-4"]] {
        for name in &lost {
            let servers = given.of_kind(Kind::Server);
            let server = servers.iter().find(|it| it.text("name").ends_with(name)).unwrap();
            given.delete_server(&server.id).await;
        }
        let stays = |machine: &u32| !lost.iter().any(|name| name.ends_with(&format!("-{machine}")));
        given
            .until_groups(|group| {
                let all = &group.machines;
                group.role != GroupRole::Master || (all.len() == 5 && all.iter().all(stays))
            })
            .await;
        given.until_complete_again().await;
        given.assert_once(5, 1);
        given.assert_ledger_agrees().await;
        let nodes = kubernetes::nodes::list(&given.kubernetes().await).await.unwrap();
        assert_eq!(nodes.len(), 6, "{lost:?}");
    }
    given.deleted().await;
}

impl ClusterFixture {
    /// Deletes a control-plane server, and waits until a new member replaces it.
    async fn lose_the_second_master(&self) {
        let servers = self.of_kind(Kind::Server);
        let is_second = |it: &&Object| it.text("name").ends_with("-default-master-1");
        self.delete_server(&servers.iter().find(is_second).unwrap().id).await;
        let others = [0, 2, 3].into_iter().collect();
        self.until_groups(|group| group.role != GroupRole::Master || group.machines == others)
            .await;
    }
}

fn machine(raw: &str) -> MemberName {
    raw.parse().unwrap()
}
