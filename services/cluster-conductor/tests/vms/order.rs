//! The images, flavors and networks that a VM request may name.

use cluster_conductor::{ObjectUser, VmError, VmRequestObjects};
use cluster_core::SnapshotState;
use cluster_store::VmScope;
use openstack::image::images::{self, NewImage};
use openstack::image::upload::upload;

use crate::given::{FLAVOR, VmFixture, session};

fn order<'a>(project: &'a str, image: &'a str, flavor: &'a str) -> VmRequestObjects<'a> {
    let who = ObjectUser { project, is_admin: false };
    let snapshots = &VmScope::All;
    VmRequestObjects {
        who,
        snapshots,
        image,
        flavor,
        network: None,
        is_public: false,
        root_volume: None,
    }
}

#[tokio::test]
async fn only_offered_images_are_booted_and_only_on_large_enough_flavors() {
    let given = VmFixture::cloud().await;
    let conductor = given.idle_conductor();
    let found = conductor.resolve_vm(order(&given.project, "cirros", FLAVOR)).await.unwrap();
    assert_eq!((found.image.min_disk_gib, found.public), (5, None));
    let offered = conductor.offered_images(&given.project).await.unwrap();
    assert_eq!(offered.as_slice(), std::slice::from_ref(&found.image));
    let by_id = order(&given.project, &found.image.id, FLAVOR);
    assert_eq!(conductor.resolve_vm(by_id).await.unwrap().image, found.image);

    let refused = conductor.resolve_vm(order(&given.project, "fedora-coreos", FLAVOR)).await;
    assert!(matches!(refused, Err(VmError::NotOffered { .. })), "{refused:?}");
    let refused = conductor.resolve_vm(order(&given.project, "cirros", "m1.nano")).await;
    assert!(matches!(refused, Err(VmError::TooSmall(_))), "{refused:?}");
    let on_volume =
        VmRequestObjects { root_volume: Some(3), ..order(&given.project, "cirros", FLAVOR) };
    assert!(matches!(conductor.resolve_vm(on_volume).await, Err(VmError::TooSmall(_))));
    let refused = conductor.resolve_vm(order(&given.project, "cirros", "m9")).await;
    assert!(refused.unwrap_err().is_caller_error());
}

#[tokio::test]
async fn a_strangers_image_of_the_same_name_is_not_offered() {
    let given = VmFixture::cloud().await;
    let conductor = given.idle_conductor();
    let offered = conductor.offered_images(&given.project).await.unwrap().remove(0);
    // Bob's image is newer, and usable by everybody who names its id.
    let clouds = given.cloud.clouds_yaml();
    let config = openstack::CloudConfig::from_clouds_yaml(&clouds, Some("bob")).unwrap();
    let bob = openstack::Session::new(config).unwrap();
    let new = NewImage {
        id: uuid::Uuid::new_v4(),
        name: "cirros".to_owned(),
        disk_format: "raw".to_owned(),
        min_disk: 0,
        tags: vec![],
        properties: [("visibility".to_owned(), "community".to_owned())].into(),
    };
    let theirs = images::create(&bob, &new).await.unwrap();
    let bytes = futures::stream::iter([Ok::<_, std::io::Error>(vec![0_u8; 8])]);
    upload(&bob, &theirs.id, bytes).await.unwrap();
    assert!(images::show(&session(&given.cloud), &theirs.id).await.unwrap().is_some());
    let found = conductor.resolve_vm(order(&given.project, "cirros", FLAVOR)).await.unwrap();
    assert_eq!(found.image.id, offered.id);
    let named = conductor.resolve_vm(order(&given.project, &theirs.id, FLAVOR)).await;
    assert!(matches!(named, Err(VmError::NotOffered { .. })), "{named:?}");
}

#[tokio::test]
async fn a_snapshot_is_booted_only_by_callers_who_may_see_it() {
    let given = VmFixture::vm(|vm| vm).await;
    let working = given.process();
    given.until_whole().await;
    let id = given.snapshot("mine").await;
    given.until_snapshot(id, Some(SnapshotState::Active)).await;
    working.kill().await;
    let conductor = given.idle_conductor();
    let person =
        |user: &str| VmScope::Person { project: given.project.clone(), user: user.to_owned() };
    let (id, image) = (id.to_string(), given.new_images().remove(0).id);
    let (own, other) = (person("u"), person("eve"));
    let all_of_it = VmScope::Project(given.project.clone());
    for named in ["mine", &id] {
        for may in [&own, &all_of_it] {
            let order = VmRequestObjects { snapshots: may, ..order(&given.project, named, FLAVOR) };
            assert_eq!(conductor.resolve_vm(order).await.unwrap().image.id, image, "{may:?}");
        }
        let order = VmRequestObjects { snapshots: &other, ..order(&given.project, named, FLAVOR) };
        let refused = conductor.resolve_vm(order).await;
        assert!(matches!(refused, Err(VmError::NotOffered { .. })), "{refused:?}");
    }
    // The id of the image in the cloud does not help either.
    let by_image = VmRequestObjects { snapshots: &other, ..order(&given.project, &image, FLAVOR) };
    assert!(matches!(conductor.resolve_vm(by_image).await, Err(VmError::NotOffered { .. })));
    // Another project cannot boot the snapshot, with any user.
    let elsewhere = crate::given::project(&given.cloud, "tenant-b");
    let elsewhere = conductor.resolve_vm(order(&elsewhere, &id, FLAVOR)).await;
    assert!(elsewhere.is_err(), "{elsewhere:?}");
}
