//! Objects that Kubernetes creates in the cloud: they are deleted with their cluster, and those of other clusters stay.

use std::collections::BTreeMap;

use cluster_core::ClusterUuid;
use openstack::block_storage::volumes::{self, NewVolume, Source};
use openstack::load_balancer::load_balancers::{self, NewLoadBalancer};
use openstack_emulator::{Cloud, Kind};

use crate::given::{ClusterFixture, PATIENCE, session};

impl ClusterFixture {
    /// Creates a load balancer and a volume as the Kubernetes of a cluster would, in the subnet of this cluster.
    pub(crate) async fn make_inside(&self, of: ClusterUuid) {
        let session = session(&self.cloud);
        let subnet = self.of_kind(Kind::Subnet).swap_remove(0).id;
        let balancer = NewLoadBalancer {
            name: format!("kube_service_{of}_default_web"),
            vip_subnet_id: Some(subnet),
            ..NewLoadBalancer::default()
        };
        load_balancers::create(&session, &balancer).await.unwrap();
        let cluster = ("cinder.csi.openstack.org/cluster".to_owned(), of.to_string());
        let volume = NewVolume {
            name: format!("pvc-{of}"),
            size: 1,
            kind: None,
            availability_zone: None,
            source: Source::Empty,
            metadata: BTreeMap::from([cluster]),
        };
        volumes::create(&session, &volume).await.unwrap();
        let is_done = |cloud: &Cloud| {
            let all = cloud.objects(Kind::LoadBalancer);
            all.iter().all(|it| it.text("provisioning_status") == "ACTIVE").then_some(())
        };
        self.cloud.wait_until(is_done).await;
    }
}

/// Returns the id of the object of a kind whose name contains the id of the cluster.
fn made(cloud: &Cloud, kind: Kind, of: ClusterUuid) -> Option<String> {
    let named =
        cloud.objects(kind).into_iter().find(|it| it.text("name").contains(&of.to_string()));
    named.map(|it| it.id)
}

#[tokio::test]
async fn a_deleted_cluster_takes_its_load_balancers_and_volumes_along_and_no_others() {
    let (given, _working) = ClusterFixture::complete(1, 1).await;
    let other = ClusterUuid::new_v4();
    given.make_inside(given.id).await;
    given.make_inside(other).await;
    given.delete().await;
    let is_left = |cloud: &Cloud| {
        [Kind::LoadBalancer, Kind::Volume].map(|kind| made(cloud, kind, given.id)) != [None, None]
    };
    let looking = given.cloud.wait_until(|cloud| (!is_left(cloud)).then_some(()));
    tokio::time::timeout(PATIENCE, looking).await.unwrap();
    // The conductor did not touch these objects: the requests would fail.
    let session = session(&given.cloud);
    let balancer = made(&given.cloud, Kind::LoadBalancer, other).unwrap();
    load_balancers::delete(&session, &balancer).await.unwrap();
    let volume = made(&given.cloud, Kind::Volume, other).unwrap();
    volumes::delete(&session, &volume).await.unwrap();
    given.until_gone().await;
}
