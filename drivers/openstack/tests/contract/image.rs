//! Stories about Glance.

use std::collections::BTreeMap;
use std::convert::Infallible;

use bytes::Bytes;
use futures::{TryStreamExt, stream};
use openstack::Service;
use openstack::image::download::download;
use openstack::image::images::{self, ImageStatus, NewImage};
use openstack::image::upload;
use uuid::Uuid;

use crate::given;

#[tokio::test]
async fn an_image_is_made_sent_described_found_and_deleted() {
    let Some(alice) = given::with("alice", Service::Image).await else { return };
    let (name, _tidy) = given::named("alice");
    let new = NewImage {
        id: Uuid::new_v4(),
        name,
        disk_format: "raw".to_owned(),
        min_disk: 1,
        tags: vec!["contract".to_owned()],
        properties: BTreeMap::from([("os_distro".to_owned(), "fedora-coreos".to_owned())]),
    };
    let id = new.id.to_string();
    let made = images::create(&alice, &new).await.unwrap();
    assert_eq!((made.status, made.id.as_str()), (ImageStatus::Queued, id.as_str()));
    let again = images::create(&alice, &new).await.unwrap();
    assert_eq!(again.id, id, "a repeated create finds the first one");

    assert!(download(&alice, &id).await.unwrap().is_none(), "it has no data yet");
    let chunks = (0..64).map(|n| Ok::<_, Infallible>(Bytes::from(vec![n; 16384])));
    upload::upload(&alice, &id, stream::iter(chunks)).await.unwrap();
    let sent = given::until("an active image", || async {
        Ok(images::show(&alice, &id).await?.filter(|image| image.status == ImageStatus::Active))
    })
    .await;
    assert_eq!((sent.size, sent.min_disk), (Some(1 << 20), 1));
    assert_eq!(sent.os_hash_algo.as_deref(), Some("sha512"));
    assert_eq!(sent.os_hash_value.map(|digest| digest.len()), Some(128));
    assert_eq!(sent.properties["os_distro"], "fedora-coreos");
    assert_eq!(sent.tags, ["contract"]);

    let arriving = download(&alice, &id).await.unwrap().unwrap();
    assert_eq!(arriving.length(), Some(1 << 20));
    let arrived: Vec<Bytes> = arriving.into_stream().try_collect().await.unwrap();
    assert_eq!(arrived.concat(), (0..64).flat_map(|n| [n; 16384]).collect::<Vec<u8>>());
    assert!(download(&alice, &Uuid::nil().to_string()).await.unwrap().is_none());

    let changes = BTreeMap::from([
        ("os_distro".to_owned(), None),
        ("not_there".to_owned(), None),
        ("os/version".to_owned(), Some("42".to_owned())),
    ]);
    let changed = images::set_properties(&alice, &id, &changes).await.unwrap();
    assert_eq!(changed.properties.get("os_distro"), None);
    assert_eq!(changed.properties["os/version"], "42");

    let found = images::find(&alice, &new.name).await.unwrap();
    assert_eq!(found.iter().map(|image| image.id.as_str()).collect::<Vec<_>>(), [id.as_str()]);
    assert!(images::list(&alice).await.unwrap().iter().any(|image| image.id == id));
    if let Some(bob) = given::session("bob") {
        assert_eq!(images::show(&bob, &id).await.unwrap(), None, "it is alice's alone");
    }
    images::delete(&alice, &id).await.unwrap();
    images::delete(&alice, &id).await.unwrap();
    assert_eq!(images::show(&alice, &id).await.unwrap(), None);
}
