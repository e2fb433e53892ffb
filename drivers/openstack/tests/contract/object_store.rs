//! Stories about Swift.

use std::io;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use openstack::object_store::{containers, objects};
use openstack::{Service, Session};

use crate::given;

/// An object whose name has a slash, as a path.
const OBJECT: &str = "folder/object";

async fn text(session: &Session, container: &str) -> Option<String> {
    let download = objects::read(session, container, OBJECT).await.unwrap()?;
    let parts: Vec<Bytes> = download.into_stream().try_collect().await.unwrap();
    Some(String::from_utf8(parts.concat()).unwrap())
}

#[tokio::test]
async fn an_object_is_written_replaced_read_and_deleted() {
    let Some(alice) = given::with("alice", Service::ObjectStore).await else { return };
    let (container, _tidy) = given::named("alice");
    assert!(text(&alice, &container).await.is_none(), "there is no container yet");
    for _ in 0..2 {
        containers::create(&alice, &container).await.unwrap();
    }
    assert!(text(&alice, &container).await.is_none());

    // More than any buffer on the way.
    let parts = (0..300).map(|_| Ok::<_, io::Error>(Bytes::from("a".repeat(10_000))));
    objects::write(&alice, &container, OBJECT, stream::iter(parts)).await.unwrap();
    let length = objects::read(&alice, &container, OBJECT).await.unwrap().unwrap().length();
    assert_eq!(length, Some(3_000_000));
    assert_eq!(text(&alice, &container).await.map(|text| text.len()), Some(3_000_000));

    let broken = [Ok(Bytes::from("half")), Err(io::Error::other("the disk is gone"))];
    // The part arrives before the end of the stream.
    let broken = stream::iter(broken).then(|part| async move {
        tokio::task::yield_now().await;
        part
    });
    objects::write(&alice, &container, OBJECT, broken).await.unwrap_err();
    assert_eq!(text(&alice, &container).await.map(|text| text.len()), Some(3_000_000));

    let short = stream::iter([Ok::<_, io::Error>(Bytes::from("short"))]);
    objects::write(&alice, &container, OBJECT, short).await.unwrap();
    assert_eq!(text(&alice, &container).await.as_deref(), Some("short"));

    let refused = containers::delete(&alice, &container).await.unwrap_err();
    assert!(refused.is_conflict(), "{refused}");
    for _ in 0..2 {
        objects::delete(&alice, &container, OBJECT).await.unwrap();
    }
    given::until_free("an empty container", || containers::delete(&alice, &container)).await;
    assert!(text(&alice, &container).await.is_none());
}

#[tokio::test]
async fn an_account_is_of_one_project() {
    let Some(alice) = given::with("alice", Service::ObjectStore).await else { return };
    let Some(bob) = given::session("bob") else { return };
    let (container, _tidy) = given::named("alice");
    containers::create(&alice, &container).await.unwrap();
    let part = stream::iter([Ok::<_, io::Error>(Bytes::from("hers"))]);
    objects::write(&alice, &container, OBJECT, part).await.unwrap();
    assert!(text(&bob, &container).await.is_none());
    objects::delete(&alice, &container, OBJECT).await.unwrap();
    given::until_free("an empty container", || containers::delete(&alice, &container)).await;
}
