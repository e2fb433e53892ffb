//! Machines with 64-bit ARM beside machines with x86.

use std::net::Ipv4Addr;

use baremetal_core::Verb;

use crate::machine::{Machine, Speaker, mac};
use crate::site::{LOOPBACK, TestService, awaited};

#[tokio::test]
async fn a_machine_with_arm_boots_its_own_loader_kernel_and_ramdisk() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, format!("{name} of ARM")).unwrap();
        path
    };
    let files = format!(
        "[provisioning.aarch64]\nkernel = {:?}\nramdisk = {:?}\nloader = {:?}\n",
        file("kernel"),
        file("ramdisk"),
        file("loader"),
    );
    let nodes = [awaited("r1u1", mac(1), Verb::Inspect), awaited("r1u2", mac(2), Verb::Inspect)];
    let site = TestService::start_with(LOOPBACK, "refuse", &nodes, &files).await;
    let get = async |url: &str| site.http.get(url).send().await.unwrap().text().await.unwrap();
    let base = format!("http://{}", site.provisioning);

    let arm = Machine::new(site.dhcp, Ipv4Addr::LOCALHOST, mac(1)).await;
    let loader = arm.boots(Speaker::ArmFirmware).await.unwrap().boot_file;
    assert_eq!(loader, "ipxe-arm64.efi");
    assert_eq!(get(&format!("{base}/ipxe/{loader}")).await, "loader of ARM");
    let script = arm.boots(Speaker::ArmIpxe).await.unwrap().boot_file;
    let script = get(&script).await;
    for name in ["kernel", "ramdisk"] {
        let url = format!("{base}/ramdisk/aarch64/{name}");
        assert!(script.contains(&format!(" {url} ")), "no {url} in {script}");
        assert_eq!(get(&url).await, format!("{name} of ARM"));
    }

    let x86 = Machine::new(site.dhcp, Ipv4Addr::LOCALHOST, mac(2)).await;
    assert_eq!(x86.boots(Speaker::Firmware).await.unwrap().boot_file, "undionly.kpxe");
    let script = x86.boots(Speaker::Ipxe).await.unwrap().boot_file;
    assert!(get(&script).await.contains(&format!(" {base}/ramdisk/kernel ")));
}

#[tokio::test]
async fn a_machine_with_arm_boots_nothing_without_its_files() {
    let node = awaited("r1u1", mac(1), Verb::Inspect);
    let site = TestService::start(LOOPBACK, "refuse", &[node]).await;
    let arm = Machine::new(site.dhcp, Ipv4Addr::LOCALHOST, mac(1)).await;
    for speaker in [Speaker::ArmFirmware, Speaker::ArmIpxe] {
        assert_eq!(arm.boots(speaker).await.unwrap().boot_file, "");
    }
}
