//! Tests with members that appear and disappear, which only the emulated cluster allows.

use kubernetes::certificates::{self, ClusterMember};
use kubernetes::drain::drain;
use kubernetes::nodes::{self, Readiness};
use kubernetes::{Client, bootstrap};
use openstack_emulator::guest::Progress;

use crate::emulated;
use crate::given::until;

fn machine(name: &str) -> ClusterMember {
    ClusterMember { name: name.to_owned(), names: vec![], addresses: vec![], may_join: true }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_becomes_a_node_once_its_request_is_approved() {
    let cluster = emulated::cluster().await;
    let client = Client::new(&cluster.access).unwrap();
    bootstrap::forbid_automatic_approval(&client).await.unwrap();
    let server = cluster.worker("worker-3").await;
    let asked = || async {
        let all = certificates::pending(&client).await?;
        Ok((!all.is_empty()).then_some(all))
    };
    let requests = until("a request", asked).await;
    assert_eq!(requests[0].username, "system:bootstrap:abcdef");
    let settled = certificates::decide_pending(&client, &[machine("worker-4")]).await.unwrap();
    assert_eq!((settled.left.len(), settled.approved.len()), (1, 0), "it is another's");
    assert_eq!(nodes::find(&client, "worker-3").await.unwrap(), None);
    assert_eq!(cluster.progress(&server), Some(Progress::Running));

    let settled = certificates::decide_pending(&client, &[machine("worker-3")]).await.unwrap();
    assert_eq!(settled.approved.len(), 1, "{settled:?}");
    until("the node", || async {
        let node = nodes::find(&client, "worker-3").await?;
        Ok(node.filter(|node| node.readiness.is_ready()))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_node_of_a_deleted_server_is_not_ready_until_it_is_deleted() {
    let cluster = emulated::cluster().await;
    let client = Client::new(&cluster.access).unwrap();
    let server = cluster.worker("worker-3").await;
    until("the node", || async {
        let node = nodes::find(&client, "worker-3").await?;
        Ok(node.filter(|node| node.readiness.is_ready()))
    })
    .await;
    cluster.destroy(&server).await;
    let silent = until("silence", || async {
        let node = nodes::find(&client, "worker-3").await?;
        Ok(node.filter(|node| !node.readiness.is_ready()))
    })
    .await;
    let Readiness::NotReady { since, reason } = silent.readiness else { panic!("it is silent") };
    assert_eq!((since.is_some(), reason.as_str()), (true, "NodeStatusUnknown"));
    assert!(drain(&client, "worker-3").await.unwrap().is_empty());
    nodes::delete(&client, "worker-3").await.unwrap();
    assert_eq!(nodes::find(&client, "worker-3").await.unwrap(), None);
}
