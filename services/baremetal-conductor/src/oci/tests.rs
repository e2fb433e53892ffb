//! Tests of images in OCI registries, with a registry that has a few documents.

use std::collections::HashMap;
use std::net::SocketAddr;

use baremetal_core::{DeployInterface, Driver, NodeIdent, start_next_task};
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::*;
use crate::samples::{TlsServer, conductor, http, settings, writing_node};

const DISK: &[u8] = b"a raw disk";
const QCOW2: &[u8] = b"QFI\xfb and more";

fn digest(of: impl AsRef<[u8]>) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(of)))
}

/// The manifest of a disk, as `oras push` makes it.
fn manifest(disk: &[u8]) -> Value {
    json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": digest("{}"), "size": 2},
        "layers": [{"mediaType": "application/octet-stream", "digest": digest(disk), "size": disk.len()}],
    })
}

/// The manifest of a container.
fn container() -> Value {
    let mut manifest = manifest(DISK);
    manifest["config"]["mediaType"] = json!("application/vnd.oci.image.config.v1+json");
    manifest
}

/// An index of manifests, with the annotation `disktype` of each.
fn index(entries: &[(&Value, &str)]) -> Value {
    let entry = |(manifest, disktype): &(&Value, &str)| {
        json!({
            "mediaType": "application/vnd.oci.image.manifest.v1+json", "size": 1,
            "digest": digest(manifest.to_string()), "annotations": {"disktype": disktype},
        })
    };
    let entries: Vec<Value> = entries.iter().map(entry).collect();
    json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": entries})
}

/// A registry with the repository `images/debian`, whose tag `12` is the document `tagged`. The registry has ranges of blobs.
async fn registry(tagged: &Value, others: &[&Value]) -> TlsServer {
    let path = |kind: &str, name: &str| format!("GET /v2/images/debian/{kind}/{name} ");
    let mut files = HashMap::from([(path("manifests", "12"), tagged.to_string().into_bytes())]);
    for document in others {
        let text = document.to_string();
        files.insert(path("manifests", &digest(&text)), text.into_bytes());
    }
    for blob in [DISK, QCOW2] {
        files.insert(path("blobs", &digest(blob)), blob.to_vec());
    }
    TlsServer::start(move |_, head| {
        let found = files.iter().find(|(path, _)| head.starts_with(*path));
        let Some((_, file)) = found else { return http("404 Not Found", "") };
        match head.to_ascii_lowercase().contains("range: bytes=2-") {
            true => {
                let last = file.len() - 1;
                let range = format!("Content-Range: bytes 2-{last}/{}", file.len());
                http(&format!("206 Partial Content\n{range}"), &file[2..])
            }
            false => http("200 OK", file),
        }
    })
    .await
}

/// A node whose agent is to write the image from this registry.
fn node_of(server: &TlsServer) -> Node {
    let mut node = writing_node(&format!("oci://{}/images/debian:12", server.address));
    node.instance_info.insert("image_ca".to_owned(), server.certificate.clone().into());
    node
}

/// A conductor that may ask registries on this host.
async fn local_conductor() -> Conductor {
    conductor(crate::Settings { image_hosts: AllowedHosts::anywhere(), ..settings() }).await
}

#[tokio::test]
async fn the_login_of_driver_info_goes_to_a_registry_that_the_configuration_names() {
    let pull_secret_registries = vec!["registry.example".to_owned().try_into().unwrap()];
    let conductor = conductor(crate::Settings { pull_secret_registries, ..settings() }).await;
    let stored = async |source: &str| {
        let mut node = writing_node(source);
        node.driver_info.insert(PULL_SECRET.to_owned(), "ann:sesame".into());
        conductor.context.store.insert_node(&node).await.unwrap();
        conductor.context.store.find_node(&NodeIdent::Id(node.id)).await.unwrap().unwrap()
    };
    let user = |node: &Node| {
        let image = conductor.context.oci_image(node).unwrap().unwrap();
        image.secret.map(|secret| (secret.object, secret.user))
    };
    let mut node = stored("oci://registry.example/a:1").await;
    assert_eq!(user(&node), Some(("driver_info", "ann".to_owned())));
    assert_eq!(conductor.check_hosts(None, &node), Ok(()));
    node.instance_info.insert(PULL_SECRET.to_owned(), "bob:own".into());
    assert_eq!(user(&node), Some(("instance_info", "bob".to_owned())));
    assert_eq!(user(&stored("oci://evil.example/a:1").await), None);

    let none = local_conductor().await;
    let refused = none.check_hosts(None, &node).unwrap_err().to_string();
    assert!(refused.starts_with("driver_info.image_pull_secret: no registry may"), "{refused}");
    assert_eq!(none.check_hosts(Some(&node), &node), Ok(()), "it was there before");
}

#[tokio::test]
async fn a_machine_reads_its_blob_only_while_it_is_to_be_written() {
    let server = registry(&manifest(DISK), &[]).await;
    let conductor = local_conductor().await;
    let context = &conductor.context;
    let node = node_of(&server);
    let work = node.work.as_ref().unwrap().id;
    context.store.insert_node(&node).await.unwrap();
    context.await_foreign_boot(&node).await.unwrap();

    let image = oci_image(&node).unwrap().unwrap();
    let told = context.image_of_registry(&node, &image).await.unwrap();
    let blob = digest(DISK);
    assert_eq!(format!("sha256:{}", told.os_hash_value), blob);
    assert_eq!((told.disk_format, told.image_ca), (DiskFormat::Raw, None));
    let prefix = format!("http://10.0.0.1:8080/oci/{}/{work}/{blob}/", node.id);
    let capability = told.urls[0].strip_prefix(&prefix).unwrap().to_owned();
    assert!(told.image_hosts.check("10.0.0.1").is_ok());
    assert!(told.image_hosts.check("127.0.0.1").is_err(), "the registry");

    type Sent = Result<(Vec<u8>, Option<String>), String>;
    let read = async |work, blob: &str, capability: &str, range: Option<&'static str>| -> Sent {
        let range = range.map(HeaderValue::from_static);
        let blob = blob.parse().unwrap();
        let opened = conductor.oci_blob((node.id, work), &blob, capability, range).await;
        let opened = opened.map_err(|error| error.to_string())?;
        let range = opened.range().map(|it| it.to_str().unwrap().to_owned());
        let sent: Vec<Bytes> = opened.into_stream().try_collect().await.unwrap();
        Ok((sent.concat(), range))
    };
    let whole = Ok((DISK.to_vec(), None));
    assert_eq!(read(work, &blob, &capability, None).await, whole);
    let rest = Ok((DISK[2..].to_vec(), Some("bytes 2-9/10".to_owned())));
    assert_eq!(read(work, &blob, &capability, Some("bytes=2-")).await, rest);
    for strange in ["bytes=-5", "bytes=2-3,5-6", "bytes=2", "lines=2-", "bytes=x-"] {
        assert_eq!(read(work, &blob, &capability, Some(strange)).await, whole, "{strange}");
    }

    let forbidden = Err("the token is not valid for this boot".to_owned());
    assert_eq!(read(work, &blob, &"0".repeat(64), None).await, forbidden);
    assert_eq!(read(work, &digest(QCOW2), &capability, None).await, forbidden, "another blob");
    let missing = Err("an image to be written not found".to_owned());
    assert_eq!(read(WorkUuid::new_v4(), &blob, &capability, None).await, missing);
    let (next, _) = start_next_task(&node, Timestamp::now()).unwrap();
    context.store.update_node(&next, &[]).await.unwrap();
    assert_eq!(read(work, &blob, &capability, None).await, missing, "it is written already");
}

#[tokio::test]
async fn a_registry_that_loses_the_blob_is_reported_without_its_name() {
    let server = registry(&manifest(DISK), &[]).await;
    let conductor = local_conductor().await;
    let context = &conductor.context;
    let mut node = node_of(&server);
    let work = node.work.as_ref().unwrap().id;
    context.store.insert_node(&node).await.unwrap();
    context.await_foreign_boot(&node).await.unwrap();
    let image = oci_image(&node).unwrap().unwrap();
    let told = context.image_of_registry(&node, &image).await.unwrap();
    let capability = told.urls[0].rsplit('/').next().unwrap();

    let elsewhere = format!("oci://{}/other:12", server.address);
    node.instance_info.insert("image_source".to_owned(), elsewhere.into());
    let stored = context.store.find_node(&baremetal_core::NodeIdent::Id(node.id)).await;
    let stored = stored.unwrap().unwrap();
    let changed = Node { instance_info: node.instance_info.clone(), ..stored };
    context.store.update_node(&changed, &[]).await.unwrap();
    let blob = digest(DISK).parse().unwrap();
    let lost = conductor.oci_blob((node.id, work), &blob, capability, None).await.unwrap_err();
    assert_eq!(lost.to_string(), "the registry does not send the image");
    let BootError::Registry(cause) = lost else { panic!("{lost:?}") };
    assert!(cause.ends_with(&format!("has no other/blobs/{blob}")), "{cause}");
}

/// Finds the disk in a registry, and returns its digest and its format, or the reason.
async fn found(server: &TlsServer) -> Result<(String, DiskFormat), String> {
    let image = oci_image(&node_of(server)).unwrap().unwrap();
    let found = find_disk(&AllowedHosts::anywhere(), &image).await;
    found.map(|it| (it.digest.to_string(), it.format)).map_err(|why| why.to_string())
}

#[tokio::test]
async fn the_bytes_tell_the_format_of_a_disk_without_an_annotation() {
    let server = registry(&manifest(QCOW2), &[]).await;
    assert_eq!(found(&server).await, Ok((digest(QCOW2), DiskFormat::Qcow2)));
    let server = registry(&manifest(DISK), &[]).await;
    assert_eq!(found(&server).await, Ok((digest(DISK), DiskFormat::Raw)));
}

#[tokio::test]
async fn the_first_disk_of_an_index_that_can_be_installed_is_found() {
    let (raw, qcow2) = (manifest(DISK), manifest(QCOW2));
    let both = index(&[(&qcow2, "qcow2"), (&raw, "raw")]);
    let server = registry(&both, &[&raw, &qcow2]).await;
    assert_eq!(found(&server).await, Ok((digest(DISK), DiskFormat::Raw)));

    let mut packed = manifest(QCOW2);
    packed["layers"][0]["mediaType"] = json!("application/zstd");
    let mixed = index(&[(&container(), ""), (&packed, "qcow2"), (&qcow2, "qemu")]);
    let server = registry(&mixed, &[&container(), &packed, &qcow2]).await;
    assert_eq!(found(&server).await, Ok((digest(QCOW2), DiskFormat::Qcow2)));
    assert_eq!(server.heads().len(), 4, "the index, two manifests and the blob");
}

#[tokio::test]
async fn an_image_that_is_no_disk_is_refused_with_its_name() {
    let mut packed = manifest(QCOW2);
    packed["layers"][0]["mediaType"] = json!("application/zstd");
    let both = index(&[(&container(), ""), (&packed, "qcow2")]);
    let nested = index(&[(&both, "raw")]);
    let lost = index(&[(&manifest(QCOW2), "raw")]);
    for (tagged, others, want) in [
        (container(), vec![], "it is a container image, such as bootc installs".to_owned()),
        (
            both.clone(),
            vec![&both, &packed],
            format!("{} in the index is a compressed qcow2 image", digest(packed.to_string())),
        ),
        (
            nested,
            vec![&both],
            format!("{} in the index is neither a manifest nor", digest(both.to_string())),
        ),
        (index(&[]), vec![], "it is an index without a manifest of a disk".to_owned()),
        (lost, vec![], "has no images/debian/manifests/sha256:".to_owned()),
        (manifest(b"lost"), vec![], "has no images/debian/blobs/sha256:".to_owned()),
    ] {
        let container = container();
        let others: Vec<&Value> = others.into_iter().chain([&container]).collect();
        let server = registry(&tagged, &others).await;
        let why = found(&server).await.unwrap_err();
        let name = format!("oci://{}/images/debian:12", server.address);
        let prefix = format!("instance_info.image_source: {name}: ");
        assert!(why.starts_with(&prefix) && why.contains(&want), "{why}");
    }
}

#[tokio::test]
async fn a_request_to_deploy_is_checked_at_the_registry() {
    let server = registry(&container(), &[]).await;
    let conductor = local_conductor().await;
    let node = node_of(&server);
    let why = conductor.check_oci_image(&node).await.unwrap_err();
    assert!(why.to_string().contains("a container image") && !why.transient, "{why}");

    // Nothing is asked for a node that writes no such image, or that is refused anyway.
    server.heads();
    let mut fake = node.clone();
    fake.driver = Driver::FakeHardware;
    let mut custom = node.clone();
    custom.interfaces.deploy = Some(DeployInterface::CustomAgent);
    let mut malformed = node.clone();
    malformed.instance_info.insert("image_disk_format".to_owned(), json!("vmdk"));
    for other in [fake, custom, malformed, writing_node("http://h/x")] {
        assert_eq!(conductor.check_oci_image(&other).await, Ok(()));
    }
    assert_eq!(server.heads(), [""; 0]);

    let gone = SocketAddr::from(([127, 0, 0, 1], 1));
    let why = conductor.check_oci_image(&writing_node(&format!("oci://{gone}/a:1"))).await;
    assert!(why.unwrap_err().transient);
}
