//! The volumes of members: the one that they boot from, and further ones.

use std::collections::BTreeMap;

use cluster_core::{Labels, NodeGroup};
use cluster_store::ClusterChange;
use openstack_emulator::{Kind, Object};
use serde_json::Value;

use crate::given::ClusterFixture;

/// Describes the volumes of a server by their places in the boot order, and their tags.
fn volumes(server: &Object) -> Vec<String> {
    let volumes = server.hidden.get("volumes").and_then(Value::as_array).into_iter().flatten();
    volumes.map(|it| format!("{} {}", it["boot_index"], it["tag"])).collect()
}

#[tokio::test]
async fn members_boot_from_their_volumes_and_have_their_other_disks() {
    let given = ClusterFixture::cluster(1, 1).await;
    let labels = [("boot_volume_size", "30"), ("etcd_volume_size", "8")];
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let labels = Labels::try_from(BTreeMap::from(labels)).unwrap();
    let with_disks =
        |group: NodeGroup| NodeGroup { labels: group.labels.merged(&labels).unwrap(), ..group };
    let groups = given.store.groups_of(given.id).await.unwrap();
    let changed = groups.into_iter().map(with_disks).collect();
    let change = ClusterChange { changed, ..ClusterChange::of(given.find().await.unwrap()) };
    given.store.change_cluster(&change).await.unwrap();

    let _working = given.conductor();
    given.until_complete().await;
    for server in given.of_kind(Kind::Server) {
        let is_master = server.text("name").contains("-master-");
        let etcd = is_master.then(|| "-1 \"etcd\"".to_owned());
        let wanted: Vec<String> = ["0 null".to_owned()].into_iter().chain(etcd).collect();
        assert_eq!(volumes(&server), wanted, "{}", server.text("name"));
    }
    given.deleted().await;
}
