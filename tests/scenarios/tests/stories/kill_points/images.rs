//! Deployments that boot a live ISO image, read a file of checksums or read an image of an OCI registry, while baremetald is killed.

use bmc_emulator::PowerRequest::{ForceOff, On};
use lab::{Lab, Machine};
use machine_emulator::{BootSource, Stage};
use serde_json::json;

use super::{DEPLOYMENT, ERASES, UNDEPLOYMENT, WRITES, anywhere, outlived, part, settings};
use crate::oci::{choose, written};
use crate::oci_registry::{OciRegistry, bootable};

/// Serves an ISO image with a live system, and returns its URL.
pub(crate) fn live_iso(lab: &Lab, name: &str) -> String {
    let mut iso = vec![0; 64 << 10];
    iso[32 << 10..][..7].copy_from_slice(b"\x01CD001\x01");
    lab.images().put(name, "raw", iso).url
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_iso_survives_kills() {
    let blueprints = [
        (Machine::redfish("r1u1").without_tls(), BootSource::Network),
        (Machine::redfish("r1u2").without_tls().boot("redfish-virtual-media"), BootSource::Cd),
    ];
    for (blueprint, source) in blueprints {
        let lab = Lab::with_mortal(settings()).await;
        let machine = lab.rack(blueprint).await;
        let node = lab.available(&machine).await;
        let iso = live_iso(&lab, "live.iso");
        lab.set(node, "/deploy_interface", json!("ramdisk")).await;
        lab.set(node, "/instance_info", json!({"boot_iso": iso})).await;
        let is_live = |stage: &Stage| matches!(stage, Stage::Live(from, _) if *from == source);
        let mut kills = 0;
        for part in [
            part("active", &["deploying", "active"], &[On], &[]),
            part("rebuild", &["deploying", "active"], &[ForceOff, On], &[]),
        ] {
            kills += outlived(&lab, node, &machine, &part, anywhere()).await.len();
            machine.stage().wait_for(is_live).await.expect("the machine lives");
        }
        let undeployment = part("deleted", UNDEPLOYMENT, &[ForceOff, On, ForceOff], ERASES);
        kills += outlived(&lab, node, &machine, &undeployment, anywhere()).await.len();
        assert!(kills >= 10, "it was killed {kills} times only");
        assert_eq!(machine.chassis().media(), None);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_of_checksums_is_read_again_after_kills() {
    let lab = Lab::with_mortal(settings()).await;
    let machine = lab.rack(Machine::redfish("r1u3").without_tls()).await;
    let node = lab.available(&machine).await;
    let image = lab.image();
    let sums = format!("{}  system.raw\n", image.checksum);
    let sums = lab.images().put("SHA256SUMS", "raw", sums.into_bytes());
    let info = json!({"image_source": image.url, "image_checksum": sums.url});
    lab.set(node, "/instance_info", info).await;
    let deployment = part("active", DEPLOYMENT, &[On, ForceOff, On], WRITES);
    let spares = |point: &str| !point.contains("image: checksum");
    let points = outlived(&lab, node, &machine, &deployment, (1, spares)).await;
    assert_eq!(points.len(), 2, "before the file is fetched, and after: {points:#?}");
}

/// The tag names another image at each request, so an image that is written in two parts, or checked against another one, would fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_of_an_oci_registry_is_written_whole_while_its_tag_moves() {
    let lab = Lab::with_mortal(settings()).await;
    let registry = OciRegistry::start().await;
    let machine = lab.rack(Machine::redfish("r1u4").without_tls()).await;
    let node = lab.available(&machine).await;
    let disks = [1, 2].map(|seed| registry.push_untagged(Some("raw"), &bootable(seed)));
    registry.move_tag("12", &[&disks[0], &disks[1]]);
    choose(&lab, node, &registry.instance_info(":12")).await;
    let is_one = |checksum: String| disks.iter().any(|disk| disk.checksum == checksum);

    let deployment = part("active", DEPLOYMENT, &[On, ForceOff, On], WRITES);
    let points = outlived(&lab, node, &machine, &deployment, anywhere()).await;
    assert!(points.len() >= 5, "{points:#?}");
    assert!(is_one(written(&lab, &machine)));

    let rebuild = part("rebuild", DEPLOYMENT, &[ForceOff, On, ForceOff, On], WRITES);
    let spares =
        |point: &str| !["image: registry", "agent: command"].iter().any(|it| point.contains(it));
    let points = outlived(&lab, node, &machine, &rebuild, (1, spares)).await;
    let resolved = points.iter().filter(|point| point.contains("image: registry")).count();
    assert_eq!(resolved, 2, "before the image is resolved, and after: {points:#?}");
    assert!(points.len() >= 2 + 2 * WRITES.len(), "around each command: {points:#?}");
    assert!(is_one(written(&lab, &machine)));
}
