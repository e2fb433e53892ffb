//! Tests of images in Glance, with an emulated OpenStack.

use baremetal_core::{Driver, start_next_task};
use bytes::Bytes;
use futures::{TryStreamExt, stream};
use jiff::Timestamp;
use openstack::image::images::NewImage;
use openstack::image::upload::upload;
use openstack_emulator::{Emulator, Settings};
use serde_json::{Value, json};

use super::*;
use crate::samples::{conductor, session_of_admin, settings, writing_node};

#[track_caller]
fn check(change: Value, want: Result<(), &str>) {
    let mut image = json!({
        "id": "i", "status": "active", "disk_format": "qcow2", "os_hash_algo": "sha512", "os_hash_value": "A".repeat(128),
    });
    for (key, value) in change.as_object().unwrap() {
        image[key] = value.clone();
    }
    let image: Image = serde_json::from_value(image).unwrap();
    let got = installable(&image).map(drop);
    assert_eq!(got, want.map_err(str::to_owned), "{change}");
}

#[test]
fn only_an_active_disk_with_a_checksum_is_installed() {
    check(json!({}), Ok(()));
    check(
        json!({"disk_format": "raw", "os_hash_algo": "sha256", "os_hash_value": "0".repeat(64)}),
        Ok(()),
    );
    check(json!({"status": "deactivated"}), Err("it is not active"));
    check(json!({"disk_format": "iso"}), Err("its disk_format is iso"));
    check(json!({"os_hash_algo": "md5"}), Err("its os_hash_algo is md5"));
    check(json!({"os_hash_algo": null}), Err("its os_hash_algo is unknown"));
    for value in [json!(null), json!("0".repeat(64)), json!("x".repeat(128))] {
        check(json!({"os_hash_value": value}), Err("it has no valid os_hash_value"));
    }
}

/// A conductor with a cloud, and an image in its Glance.
async fn with_image(emulator: &Emulator) -> (Conductor, Uuid) {
    let session = session_of_admin(&emulator.cloud);
    let id = Uuid::new_v4();
    let new = NewImage {
        id,
        name: "debian".to_owned(),
        disk_format: "raw".to_owned(),
        min_disk: 0,
        tags: Vec::new(),
        properties: [].into(),
    };
    images::create(&session, &new).await.unwrap();
    let bytes = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"a disk"))]);
    upload(&session, &id.to_string(), bytes).await.unwrap();
    (conductor(crate::Settings { cloud: Some(session), ..settings() }).await, id)
}

#[tokio::test]
async fn a_machine_reads_its_image_only_while_it_is_to_be_written() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let emulator = Emulator::start(Settings::default()).await.unwrap();
    let (conductor, image) = with_image(&emulator).await;
    let context = &conductor.context;
    let node = writing_node(&image.to_string());
    let work = node.work.as_ref().unwrap().id;
    context.store.insert_node(&node).await.unwrap();
    context.await_foreign_boot(&node).await.unwrap();

    let told = context.image_of_glance(&node, image).await.unwrap();
    assert_eq!((told.disk_format, told.os_hash_algo), (DiskFormat::Raw, ChecksumAlgorithm::Sha512));
    assert_eq!(told.os_hash_value.len(), 128);
    let prefix = format!("http://10.0.0.1:8080/glance/{}/{work}/{image}/", node.id);
    let capability = told.urls[0].strip_prefix(&prefix).unwrap().to_owned();
    assert!(
        told.image_hosts.check("10.0.0.1").is_ok() && told.image_hosts.check("10.0.0.2").is_err()
    );

    let read = async |work, image, capability: &str| {
        let opened = conductor.glance_image(node.id, work, image, capability).await;
        opened.map_err(|error| error.to_string())
    };
    let sent = read(work, image, &capability).await.unwrap();
    assert_eq!(sent.length(), Some(6));
    let sent: Vec<Bytes> = sent.into_stream().try_collect().await.unwrap();
    assert_eq!(sent.concat(), b"a disk");

    let forbidden = "the token is not valid for this boot";
    let refused = read(work, image, &"0".repeat(64)).await.map(drop);
    assert_eq!(refused, Err(forbidden.to_owned()));
    let refused = read(work, Uuid::new_v4(), &capability).await.map(drop);
    assert_eq!(refused, Err(forbidden.to_owned()), "of another image");
    let missing = Err("an image to be written not found".to_owned());
    assert_eq!(read(WorkUuid::new_v4(), image, &capability).await.map(drop), missing);
    let (next, _) = start_next_task(&node, Timestamp::now()).unwrap();
    context.store.update_node(&next, &[]).await.unwrap();
    assert_eq!(read(work, image, &capability).await.map(drop), missing, "it is written already");
}

#[tokio::test]
async fn a_project_names_images_that_it_sees() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let emulator = Emulator::start(Settings::default()).await.unwrap();
    let (conductor, image) = with_image(&emulator).await;
    let session = conductor.context.settings.cloud.clone().unwrap();
    let owner = images::show(&session, &image.to_string()).await.unwrap().unwrap().owner.unwrap();
    let node = writing_node(&image.to_string());
    assert_eq!(conductor.check_glance_access(&node, &owner).await, Ok(()));
    let missing = Err(GlanceError::Missing { id: image });
    assert_eq!(conductor.check_glance_access(&node, "another").await, missing);
    let public = [("visibility".to_owned(), Some("public".to_owned()))].into();
    images::set_properties(&session, &image.to_string(), &public).await.unwrap();
    assert_eq!(conductor.check_glance_access(&node, "another").await, Ok(()));
    assert_eq!(conductor.check_glance_image(&node).await, Ok(()));

    let unknown = writing_node(&Uuid::nil().to_string());
    let missing = Err(GlanceError::Missing { id: Uuid::nil() });
    assert_eq!(conductor.check_glance_image(&unknown).await, missing);
    let mut fake = unknown;
    fake.driver = Driver::FakeHardware;
    assert_eq!(conductor.check_glance_image(&fake).await, Ok(()), "it writes no image");
}

#[tokio::test]
async fn without_a_cloud_no_node_is_deployed_with_an_image_of_glance() {
    let conductor = conductor(settings()).await;
    let why =
        conductor.check_deploy(&writing_node(&Uuid::nil().to_string())).unwrap_err().to_string();
    let want = "instance_info.image_source: an image in Glance needs a cloud; set [cloud] in the configuration of the service";
    assert_eq!(why, want);
}
