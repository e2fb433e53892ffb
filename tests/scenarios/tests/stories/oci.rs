//! A machine is installed with an image of an OCI registry: the service reads the image with the login of the node, and passes it on to the
//! machine.

use std::fs::File;
use std::io::Read;

use lab::{Lab, Machine, Node, RackedMachine, Settings};
use machine_emulator::{Content, Stage};
use reqwest::Method;
use serde_json::{Value, json};

use crate::oci_registry::{OciRegistry, RegistryFault, bootable, manifest_of};

/// Sets what the node is installed with.
pub(crate) async fn choose(lab: &Lab, node: Node, info: &Value) {
    lab.set(node, "/instance_info", info.clone()).await;
}

async fn started(machine: Machine) -> (OciRegistry, Lab, RackedMachine, Node) {
    let lab = Lab::start().await;
    let registry = OciRegistry::start().await;
    let machine = lab.rack(machine).await;
    let node = lab.available(&machine).await;
    (registry, lab, machine, node)
}

/// The checksum of the image on the disk, as the emulated agent got it from the service.
pub(crate) fn written(lab: &Lab, machine: &RackedMachine) -> String {
    let disks = machine.disks();
    let [Content::Image { name, checksum, .. }] = &disks[..] else {
        panic!("the disk holds {disks:?}");
    };
    let own = lab.provisioning().join("oci/").expect("it is a path");
    assert!(name.starts_with(own.as_str()), "{name} is not at the service");
    checksum.clone()
}

/// The first bytes of the disk that our agent wrote.
pub(crate) fn content(machine: &RackedMachine, length: usize) -> Vec<u8> {
    let disks = machine.disks();
    let [Content::Image { name, .. }] = &disks[..] else { panic!("the disk holds {disks:?}") };
    let mut bytes = Vec::new();
    let disk = File::open(name).expect("a disk is a file");
    disk.take(length as u64).read_to_end(&mut bytes).expect("the disk can be read");
    bytes
}

async fn booted(machine: &RackedMachine) {
    machine.stage().wait_for(|stage| *stage == Stage::Installed).await.expect("it boots its disk");
}

/// Requests a change of provision state, and returns the status and the body of the answer.
async fn request(lab: &Lab, node: Node, target: &str) -> (u16, String) {
    let path = format!("{}/states/provision", node.path());
    let answer = lab.api().send(Method::PUT, &path, Some(&Node::target(target))).await;
    (answer.status, answer.body.to_string())
}

#[tokio::test]
async fn a_machine_is_installed_by_tag_and_rebuilt_by_digest() {
    let (registry, lab, machine, node) = started(Machine::redfish("r1u1").without_tls()).await;
    let first = registry.push("12", Some("raw"), &bootable(1));
    choose(&lab, node, &registry.instance_info(":12")).await;
    lab.provision(node, "active").await.reaches("active").await;
    booted(&machine).await;
    assert_eq!(written(&lab, &machine), first.checksum);
    let shown = lab.node(node).await;
    assert_eq!(shown.instance_info["image_pull_secret"], "******", "{shown:#?}");

    // Nobody names a disk type or a format for this image.
    let second = registry.push("12", None, &bootable(2));
    lab.provision(node, "rebuild").await.reaches("active").await;
    assert_eq!(written(&lab, &machine), second.checksum, "the tag has moved");
    choose(&lab, node, &registry.instance_info(&format!("@{}", first.digest))).await;
    lab.provision(node, "rebuild").await.reaches("active").await;
    assert_eq!(written(&lab, &machine), first.checksum);
}

#[tokio::test]
async fn a_person_reserves_a_machine_with_an_image_of_a_registry() {
    let more = "[reservations]\nnodes_per_project = 1\n".to_owned();
    let lab = Lab::start_with(Settings { more, ..Settings::default() }).await;
    let registry = OciRegistry::start().await;
    let machine = lab.rack(Machine::redfish("r1u8").without_tls()).await;
    let node = lab.available(&machine).await;
    let class = json!([{"op": "add", "path": "/resource_class", "value": "gpu"}]);
    let path = format!("/v1/nodes/{}", node.0);
    lab.api().send(Method::PATCH, &path, Some(&class)).await.expect("a resource class");
    let pushed = registry.push("12", Some("raw"), &bootable(1));
    let info = registry.instance_info(&format!("@{}", pushed.digest));
    let mut wish = json!({
        "name": "mine", "resource_class": "gpu", "lease": "1d",
        "ssh_keys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2 ann@desk"],
        "image": {"url": info["image_source"], "pull_secret": "somebody:else", "ca": info["image_ca"]},
    });
    let reserve = async |wish: &Value| {
        lab.api().send(Method::POST, "/bedplate/v1/reservations", Some(wish)).await
    };
    let refused = reserve(&wish).await;
    assert_eq!(
        refused.status, 400,
        "the registry is asked before a node is taken: {:?}",
        refused.body
    );
    wish["image"]["pull_secret"] = info["image_pull_secret"].clone();
    reserve(&wish).await.expect("a reservation");
    lab.reaches(node, "active").await;
    booted(&machine).await;
    assert_eq!(written(&lab, &machine), pushed.checksum);
}

#[tokio::test]
async fn our_agent_installs_the_disk_of_an_index_for_the_architecture_of_the_machine() {
    let (registry, lab, machine, node) = started(Machine::redfish("r1u2").with_our_agent()).await;
    let (disk, other) = (bootable(3), bootable(4));
    let wanted = registry.push_untagged(None, &qcow2(&disk));
    let other = registry.push_untagged(None, &other);
    registry.push_index("12", &[(&other, "arm64", "raw"), (&wanted, "amd64", "qcow2")]);
    choose(&lab, node, &registry.instance_info(":12")).await;
    lab.set(node, "/properties/cpu_arch", json!("x86_64")).await;
    lab.provision(node, "active").await.reaches("active").await;
    booted(&machine).await;
    assert!(content(&machine, disk.len()) == disk, "the disk is not the image");
}

/// Makes a qcow2 image (version 3) of a disk of 1 MiB, in clusters of 64 KiB.
pub(crate) fn qcow2(disk: &[u8]) -> Vec<u8> {
    const CLUSTER: usize = 1 << 16;
    /// The bit of an entry whose cluster belongs to this image alone.
    const COPIED: u64 = 1 << 63;
    let place = |cluster: usize| (cluster * CLUSTER) as u64;
    let mut image = b"QFI\xfb".to_vec();
    image.extend(3_u32.to_be_bytes());
    // No backing file.
    image.extend([0; 12]);
    image.extend(16_u32.to_be_bytes());
    image.extend((disk.len() as u64).to_be_bytes());
    // No encryption; one entry in the first-level table, at the second cluster; references at the third.
    image.extend(0_u32.to_be_bytes());
    image.extend(1_u32.to_be_bytes());
    image.extend(place(1).to_be_bytes());
    image.extend(place(2).to_be_bytes());
    image.extend(1_u32.to_be_bytes());
    // No snapshots and no features; reference counts of 16 bits; the length of the header.
    image.extend([0; 12 + 24]);
    image.extend(4_u32.to_be_bytes());
    image.extend(104_u32.to_be_bytes());
    image.resize(CLUSTER, 0);
    image.extend((place(3) | COPIED).to_be_bytes());
    image.resize(3 * CLUSTER, 0);
    for cluster in 0..disk.len() / CLUSTER {
        image.extend((place(4 + cluster) | COPIED).to_be_bytes());
    }
    image.resize(4 * CLUSTER, 0);
    image.extend(disk);
    image
}

#[tokio::test]
async fn an_image_that_the_registry_does_not_give_is_refused_before_the_machine_is_touched() {
    let (registry, lab, machine, node) = started(Machine::redfish("r1u3").without_tls()).await;
    let disk = registry.push("12", Some("raw"), &bootable(5));
    let mut container = manifest_of(&bootable(5), None);
    container["artifactType"] = json!(null);
    container["config"]["mediaType"] = json!("application/vnd.oci.image.config.v1+json");
    registry.push_document("container", &container);
    let right = registry.instance_info(":12");
    let mut wrong_secret = right.clone();
    wrong_secret["image_pull_secret"] = json!("somebody:else");
    let mut no_secret = right.clone();
    no_secret["image_pull_secret"] = json!(null);
    let mut no_ca = right.clone();
    no_ca["image_ca"] = json!(null);
    let by_digest = registry.instance_info(&format!("@{}", disk.digest));
    let requests = machine.chassis().log().len();
    for (info, fault, status, words) in [
        (&wrong_secret, RegistryFault::None, 400, "refused instance_info.image_pull_secret"),
        (&no_secret, RegistryFault::None, 400, "wants a login"),
        (&no_ca, RegistryFault::None, 400, "is not trusted; set instance_info.image_ca"),
        (
            &registry.instance_info(":11"),
            RegistryFault::None,
            400,
            "has no images/debian/manifests/11",
        ),
        (
            &registry.instance_info(":container"),
            RegistryFault::None,
            400,
            "a container image, such as bootc",
        ),
        (&right, RegistryFault::LargeManifest, 400, "more than 4194304 bytes"),
        (&by_digest, RegistryFault::OtherManifest, 400, "another digest than sha256:"),
        (
            &right,
            RegistryFault::Redirect("https://10.0.0.1/blob"),
            400,
            "10.0.0.1 is not in the list",
        ),
        (&right, RegistryFault::Redirect("http://127.0.0.1:1/blob"), 400, "redirects to a URL"),
        (&right, RegistryFault::Down, 503, "answered 503"),
    ] {
        choose(&lab, node, info).await;
        registry.misbehave(fault);
        let (answered, why) = request(&lab, node, "active").await;
        assert!(answered == status && why.contains(words), "{words}: {answered} {why}");
        assert!(why.contains("instance_info.image_source"), "{why}");
    }
    let elsewhere = json!([{"op": "replace", "path": "/instance_info/image_source", "value": "oci://10.0.0.1:5000/a:1"}]);
    let answer = lab.api().send(Method::PATCH, &node.path(), Some(&elsewhere)).await;
    let why = answer.body.to_string();
    assert!(answer.status == 400 && why.contains("10.0.0.1 is not in the list"), "{why}");
    assert_eq!(lab.node(node).await.state(), "available", "nothing has begun");
    let touched = machine.chassis().log().split_off(requests);
    assert!(touched.is_empty(), "the machine was touched: {touched:#?}");

    registry.misbehave(RegistryFault::None);
    choose(&lab, node, &right).await;
    lab.provision(node, "active").await.reaches("active").await;
    booted(&machine).await;
    assert_eq!(written(&lab, &machine), disk.checksum);
}

#[tokio::test]
async fn a_blob_with_a_wrong_byte_never_boots() {
    let (registry, lab, machine, node) = started(Machine::redfish("r1u4").without_tls()).await;
    let disk = registry.push("12", Some("raw"), &bootable(6));
    choose(&lab, node, &registry.instance_info(":12")).await;
    registry.misbehave(RegistryFault::WrongBlob);
    let failed = lab.provision(node, "active").await.fails("deploy failed").await;
    assert!(failed.contains("checksum") && failed.contains(&disk.checksum), "{failed}");
    assert!(!machine.disks().iter().any(Content::is_bootable), "{:?}", machine.disks());
    registry.misbehave(RegistryFault::None);
    lab.provision(node, "active").await.reaches("active").await;
    booted(&machine).await;
    assert_eq!(written(&lab, &machine), disk.checksum);
}

#[tokio::test]
async fn a_node_is_valid_only_with_a_well_formed_reference() {
    let (registry, lab, _machine, node) = started(Machine::redfish("r1u5").without_tls()).await;
    let validated = async |info: Value| {
        choose(&lab, node, &info).await;
        lab.validate(node, "deploy").await
    };
    // The registry is not asked: the image need not exist.
    let deploy = validated(registry.instance_info(":missing")).await;
    assert!(deploy.result, "{deploy:?}");
    for (version, words) in [
        ("@sha256:0", "a digest is sha256: with 64"),
        (":", "a tag has 1 to 128"),
        ("/../x:1", "a repository has at most"),
    ] {
        let deploy = validated(registry.instance_info(version)).await;
        let says = deploy.reason.as_ref().is_some_and(|why| why.contains(words));
        assert!(!deploy.result && says, "{version}: {deploy:?}");
    }
    let mut wrong = registry.instance_info(":12");
    wrong["image_source"] = json!("oci://127.0.0.1");
    let deploy = validated(wrong).await;
    assert!(!deploy.result, "{deploy:?}");
}
