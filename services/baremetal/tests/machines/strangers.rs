//! The answers to a machine that nobody has enrolled.

use std::net::Ipv4Addr;

use agent_protocol::KernelParameters;
use baremetal_store::PagePart;
use serde_json::{Value, json};

use crate::machine::{Machine, Speaker, mac};
use crate::site::{LOOPBACK, TestService};

async fn machine(site: &TestService, n: u8) -> Machine {
    Machine::new(site.dhcp, Ipv4Addr::LOCALHOST, mac(n)).await
}

#[tokio::test]
async fn an_unknown_machine_gets_everything_that_its_discovery_needs() {
    let site = TestService::start(LOOPBACK, "discover", &[]).await;
    let stranger = machine(&site, 1).await;
    assert_eq!(stranger.is_offered(Speaker::System).await, None, "it did not boot from here");
    let address = stranger.is_offered(Speaker::Firmware).await.unwrap();
    let answer = stranger.boots(Speaker::Ipxe).await.unwrap();
    assert_eq!(answer.address, address);

    let script = site.http.get(&answer.boot_file).send().await.unwrap().text().await.unwrap();
    let line = script.lines().find_map(|line| line.strip_prefix("kernel ")).unwrap();
    let reported = KernelParameters::parse(line);
    let base = format!("http://{}", site.provisioning);
    assert_eq!(reported.api_url.as_deref(), Some(&*base), "an agent ends without it: {script}");
    assert_eq!(reported.boot_interface.unwrap(), mac(1));
    assert_eq!(reported.agent_token, None, "a stranger is given nothing to command it by");

    // The ramdisk sends a DHCP request like any other operating system.
    let ramdisk = stranger.boots(Speaker::System).await.unwrap();
    assert_eq!((ramdisk.address, &*ramdisk.boot_file), (address, ""));

    let callback = reported.inspection_callback_url.unwrap();
    let inventory = json!({"inventory": {
        "interfaces": [], "disks": [], "memory": {"total": 1, "physical_mb": 1},
        "cpu": {"model_name": "c", "frequency": "1", "count": 1, "architecture": "x86_64", "flags": []},
        "system_vendor": {"product_name": "p", "serial_number": "SN1", "manufacturer": "m"},
        "boot": {"current_boot_mode": "bios", "pxe_interface": null}, "hostname": "h",
    }});
    let posted = site.http.post(callback).json(&inventory).send().await.unwrap();
    assert_eq!(posted.status(), 202);
    let found = site
        .store
        .list_discoveries_part(1000, PagePart::whole())
        .await
        .unwrap()
        .found
        .pop()
        .unwrap();
    assert_eq!(found.mac(), Some(mac(1)));
    let serial =
        found.data.as_ref().and_then(|it| it.pointer("/inventory/system_vendor/serial_number"));
    assert_eq!(serial, Some(&Value::from("SN1")), "{found:?}");
    assert!(found.first_seen_at < found.last_seen_at, "{found:?}");
}

#[tokio::test]
async fn an_unknown_machine_is_refused_and_recorded() {
    let site = TestService::start(LOOPBACK, "refuse", &[]).await;
    let stranger = machine(&site, 1).await;
    for speaker in [Speaker::System, Speaker::Firmware, Speaker::Ipxe] {
        assert_eq!(stranger.is_offered(speaker).await, None);
    }
    assert!(!site.store.has_lease(mac(1)).await.unwrap());
    let noted = site.store.list_discoveries_part(1000, PagePart::whole()).await.unwrap().found;
    assert_eq!((noted.len(), &noted[0].data), (1, &None));
}
