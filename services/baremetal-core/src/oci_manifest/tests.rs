//! Tests of the choice of a disk, with documents as registries send them.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const ARTIFACT: &str = "application/vnd.unknown.artifact.v1";
const EMPTY: &str = "application/vnd.oci.empty.v1+json";

fn digest(of: char) -> String {
    format!("sha256:{}", of.to_string().repeat(64))
}

fn parse(document: &Value) -> Result<OciDocument, OciRefused> {
    OciDocument::parse(document.to_string().as_bytes())
}

/// The manifest of an artifact with one layer, as `oras push` makes it.
fn artifact() -> Value {
    json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": ARTIFACT,
        "config": {"mediaType": EMPTY, "digest": digest('0'), "size": 2, "data": "e30="},
        "layers": [{
            "mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": digest('a'), "size": 5,
            "annotations": {"org.opencontainers.image.title": "disk.raw"},
        }],
    })
}

/// The manifest of a container with one layer.
fn container() -> Value {
    let mut container = artifact();
    container.as_object_mut().unwrap().remove("artifactType");
    container["config"]["mediaType"] = json!(CONTAINER_CONFIGS[0]);
    container
}

fn with(mut document: Value, change: impl FnOnce(&mut Value)) -> Value {
    change(&mut document);
    document
}

#[track_caller]
fn disk(document: &Value) -> Result<OciDisk, OciRefused> {
    match parse(document)? {
        OciDocument::Manifest(manifest) => manifest.disk(None),
        OciDocument::Index(_) => panic!("it is an index"),
    }
}

/// The digests of the entries to try, by their letters.
#[track_caller]
fn order(entries: Value, architecture: Option<&str>) -> Result<String, OciRefused> {
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries});
    let OciDocument::Index(index) = parse(&index)? else { panic!("it is a manifest") };
    let candidates = index.candidates(architecture)?;
    Ok(candidates.iter().map(|it| &it.digest.hex()[..1]).collect())
}

fn entry(of: char, disktype: Option<&str>, architecture: Option<&str>) -> Value {
    let mut entry = json!({"mediaType": MANIFEST, "digest": digest(of), "size": 7});
    if let Some(disktype) = disktype {
        entry["annotations"] = json!({"disktype": disktype});
    }
    if let Some(architecture) = architecture {
        entry["platform"] = json!({"architecture": architecture, "os": "linux"});
    }
    entry
}

#[test]
fn the_layer_of_an_artifact_is_the_disk() {
    let found = disk(&artifact()).unwrap();
    assert_eq!(found.digest.to_string(), digest('a'));
    for document in [
        // An empty configuration is enough, and so is one that is no container's.
        with(artifact(), |it| it["artifactType"] = json!("")),
        with(artifact(), |it| it["artifactType"] = json!(null)),
        with(container(), |it| it["config"]["mediaType"] = json!("application/vnd.x.config+json")),
        // `oras push --artifact-platform` gives an artifact the configuration of a container.
        with(container(), |it| it["artifactType"] = json!(ARTIFACT)),
        with(container(), |it| it["annotations"] = json!({"disktype": "qcow2"})),
        with(artifact(), |it| it["mediaType"] = json!(null)),
    ] {
        assert_eq!(disk(&document).map(|it| it.digest), Ok(found.digest.clone()), "{document:#}");
    }
}

#[test]
fn everything_else_is_refused_by_name() {
    for (document, want) in [
        (container(), "a container image, such as bootc installs"),
        (
            json!({"schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json", "layers": []}),
            "a container image, such as bootc installs",
        ),
        (
            json!({"mediaType": DOCKER_INDEX, "manifests": [entry('a', None, None)]}),
            "a container image, such as bootc installs",
        ),
        (with(artifact(), |it| it["layers"] = json!([])), "an artifact with 0 layers"),
        (
            with(artifact(), |it| {
                let layer = it["layers"][0].clone();
                it["layers"] = json!([layer, layer]);
            }),
            "an artifact with 2 layers",
        ),
        (
            with(artifact(), |it| it["annotations"] = json!({"disktype": "vmdk"})),
            "an artifact of disktype \"vmdk\"",
        ),
        (
            with(artifact(), |it| it["layers"][0]["digest"] = json!("md5:00")),
            "an artifact whose layer has no sha256 or sha512 digest",
        ),
        (
            with(artifact(), |it| {
                it["annotations"] = json!({"disktype": "qcow2"});
                it["layers"][0]["mediaType"] = json!("application/zstd");
            }),
            "a compressed qcow2 image",
        ),
        // Docker's first schema, a document of both kinds, and documents of none.
        (json!({"schemaVersion": 1, "fsLayers": []}), "neither a manifest nor an index"),
        (
            with(artifact(), |it| it["manifests"] = json!([entry('b', None, None)])),
            "neither a manifest nor an index",
        ),
        (
            json!({"manifests": [entry('b', None, None)], "config": {"digest": digest('c')}}),
            "neither a manifest nor an index",
        ),
        (with(artifact(), |it| it["mediaType"] = json!(INDEX)), "neither a manifest nor an index"),
        (json!({"mediaType": MANIFEST, "manifests": []}), "neither a manifest nor an index"),
        (json!([]), "neither a manifest nor an index"),
        (json!({"errors": []}), "neither a manifest nor an index"),
        (with(artifact(), |it| it["layers"] = json!({})), "neither a manifest nor an index"),
    ] {
        let why = disk(&document).unwrap_err().to_string();
        assert!(why.starts_with(want), "{why}: {document:#}");
    }
}

#[test]
fn the_annotation_then_the_node_then_the_bytes_tell_the_format() {
    use DiskFormat::{Qcow2, Raw};

    let (qcow2, other) = (&b"QFI\xfb\0\0\0\x03"[..], &b"\xebc\x90"[..]);
    for (annotation, wanted, start, want) in [
        (Some("raw"), Some(Qcow2), qcow2, Raw),
        (Some("applehv"), None, qcow2, Raw),
        (Some("qcow2"), Some(Raw), other, Qcow2),
        (Some("qemu"), None, other, Qcow2),
        (None, Some(Raw), qcow2, Raw),
        (None, Some(Qcow2), other, Qcow2),
        (None, None, qcow2, Qcow2),
        (None, None, other, Raw),
        (None, None, b"", Raw),
    ] {
        let document = with(artifact(), |it| it["annotations"] = json!({"disktype": annotation}));
        let found = disk(&document).unwrap().format(wanted, start);
        assert_eq!(found, Ok(want), "{annotation:?} {wanted:?} {start:?}");
    }
    for kind in ["application/zstd", "application/gzip", "application/x-xz", "a/b+zstd"] {
        let packed = with(artifact(), |it| it["layers"][0]["mediaType"] = json!(kind));
        let packed = disk(&packed).unwrap();
        assert_eq!(packed.format(None, b"\x28\xb5\x2f\xfd"), Ok(Raw));
        assert_eq!(packed.format(Some(Qcow2), b""), Err(OciRefused::CompressedQcow2), "{kind}");
    }
}

#[test]
fn entries_are_tried_in_the_order_of_ironic() {
    let entries = json!([
        entry('1', None, None),
        entry('2', Some("qemu"), Some("amd64")),
        entry('3', Some("qcow2"), None),
        entry('4', Some("wsl"), Some("amd64")),
        entry('5', Some("applehv"), Some("x86_64")),
        entry('6', Some("raw"), Some("arm64")),
        entry('7', Some("raw"), Some("aarch64")),
        entry('8', Some("raw"), Some("amd64")),
        entry('9', Some(""), Some("riscv64")),
    ]);
    for (architecture, want) in [
        (None, "67853219".to_owned()),
        (Some("x86_64"), "85321".to_owned()),
        (Some("amd64"), "85321".to_owned()),
        (Some("arm64"), "6731".to_owned()),
        (Some("aarch64"), "6731".to_owned()),
        (Some("riscv64"), "319".to_owned()),
        (Some("ppc64le"), "31".to_owned()),
    ] {
        assert_eq!(order(entries.clone(), architecture), Ok(want), "{architecture:?}");
    }
}

#[test]
fn an_index_without_a_disk_is_refused_with_the_architecture() {
    let other = json!([entry('1', Some("raw"), Some("arm64"))]);
    let why = order(other, Some("x86_64")).unwrap_err().to_string();
    assert_eq!(why, "an index without a manifest of a disk for x86_64, the cpu_arch of the node");
    let none = "an index without a manifest of a disk";
    for entries in [
        json!([]),
        json!([entry('1', Some("vmdk"), None)]),
        json!([{"mediaType": INDEX, "digest": digest('1')}]),
        json!([{"mediaType": MANIFEST, "digest": "blake3:00"}]),
    ] {
        assert_eq!(order(entries.clone(), None).unwrap_err().to_string(), none, "{entries}");
    }
}

#[test]
fn a_long_index_is_not_read_to_its_end() {
    let mut entries = vec![entry('1', None, None); 100];
    entries.push(entry('2', Some("raw"), None));
    assert_eq!(order(json!(entries), None), Ok(format!("2{}", "1".repeat(MAX_CANDIDATES - 1))));
}

#[test]
fn the_entry_of_an_index_tells_about_its_manifest() {
    let index = json!({"manifests": [
        entry('1', Some("qcow2"), None),
        with(entry('2', None, None), |it| it["artifactType"] = json!(ARTIFACT)),
        entry('3', None, None),
    ]});
    let Ok(OciDocument::Index(index)) = parse(&index) else { panic!("it is an index") };
    let Ok(OciDocument::Manifest(bare)) = parse(&container()) else { panic!("it is a manifest") };
    let candidates = index.candidates(None).unwrap();
    let found: Vec<_> = candidates.iter().map(|entry| bare.disk(Some(entry))).collect();
    let [Ok(qcow2), Ok(unknown), Err(OciRefused::Container)] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(qcow2.format(None, b""), Ok(DiskFormat::Qcow2));
    assert_eq!(unknown.format(None, b""), Ok(DiskFormat::Raw));
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes: Vec<u8>) {
        let _ = OciDocument::parse(&bytes);
    }
}

/// The distribution specification asks registries to accept manifests of at least 4 megabytes.
#[test]
fn a_document_that_every_registry_accepts_is_read() {
    assert_eq!(LARGEST_OCI_DOCUMENT, 4_194_304);
}
