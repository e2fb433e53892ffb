//! Stories about Cinder.

use std::collections::BTreeMap;

use openstack::block_storage::volumes::{self, NewVolume, Source, Volume, VolumeStatus};
use openstack::block_storage::{limits, snapshots};
use openstack::{Service, Session};

use crate::given;

async fn available(session: &Session, id: &str) -> Volume {
    given::until("an available volume", || async {
        let volume = volumes::show(session, id).await?.expect("it is there");
        assert_ne!(volume.status, VolumeStatus::Error);
        Ok((volume.status == VolumeStatus::Available).then_some(volume))
    })
    .await
}

#[tokio::test]
async fn a_volume_is_made_kept_as_a_snapshot_and_deleted() {
    let Some(alice) = given::with("alice", Service::BlockStorage).await else { return };
    let (name, _tidy) = given::named("alice");
    let new = NewVolume {
        name: name.clone(),
        size: 1,
        metadata: BTreeMap::from([("cluster".to_owned(), "1".to_owned())]),
        ..NewVolume::default()
    };
    let id = volumes::create(&alice, &new).await.unwrap().id;
    assert_eq!(volumes::find(&alice, &name).await.unwrap()[0].id, id);
    let made = available(&alice, &id).await;
    assert_eq!((made.size, made.metadata), (1, new.metadata.clone()));
    assert!(volumes::list(&alice).await.unwrap().iter().any(|volume| volume.id == id));
    let limits = limits::show(&alice).await.unwrap();
    assert!(limits.volumes.used >= 1 && limits.gigabytes.used >= 1, "{limits:?}");

    let snapshot = snapshots::create(&alice, &id, &name).await.unwrap();
    assert_eq!(snapshots::find(&alice, &name).await.unwrap()[0].id, snapshot.id);
    given::until("an available snapshot", || async {
        let it = snapshots::show(&alice, &snapshot.id).await?;
        Ok(it.filter(|it| it.status == VolumeStatus::Available))
    })
    .await;
    let source = Source::Snapshot { id: snapshot.id.clone() };
    let copy = NewVolume { name: format!("{name}-copy"), source, ..new };
    let copy = volumes::create(&alice, &copy).await.unwrap().id;
    available(&alice, &copy).await;
    let used = volumes::delete(&alice, &id).await.unwrap_err();
    assert!(!used.is_transient() && used.refusal().is_some(), "a volume with snapshots: {used:?}");

    volumes::delete(&alice, &copy).await.unwrap();
    given::until_gone("the copy", || volumes::show(&alice, &copy)).await;
    snapshots::delete(&alice, &snapshot.id).await.unwrap();
    given::until_gone("the snapshot", || snapshots::show(&alice, &snapshot.id)).await;
    volumes::delete(&alice, &id).await.unwrap();
    given::until_gone("the volume", || volumes::show(&alice, &id)).await;
    volumes::delete(&alice, &id).await.unwrap();
    snapshots::delete(&alice, &snapshot.id).await.unwrap();
}
