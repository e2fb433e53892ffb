//! Firmware that loads iPXE by HTTPS.

use std::net::Ipv4Addr;

use baremetal_core::Verb;
use rcgen::{CertificateParams, KeyPair};
use reqwest::{Certificate, Client};

use crate::machine::{Machine, Speaker, mac};
use crate::site::{LOOPBACK, TestService, awaited};

#[tokio::test]
async fn firmware_loads_ipxe_by_https_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let key = KeyPair::generate().unwrap();
    let made = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap().self_signed(&key).unwrap();
    std::fs::write(at("c.pem"), made.pem()).unwrap();
    std::fs::write(at("k.pem"), key.serialize_pem()).unwrap();
    let https = format!(
        "[provisioning.https]\nlisten = '127.0.0.1:0'\ncertificate = {:?}\nkey = {:?}\n",
        at("c.pem"),
        at("k.pem"),
    );
    let node = awaited("r1u1", mac(1), Verb::Inspect);
    let site = TestService::start_with(LOOPBACK, "refuse", &[node], &https).await;
    let machine = Machine::new(site.dhcp, Ipv4Addr::LOCALHOST, mac(1)).await;
    let base = format!("https://{}", site.https.unwrap());
    let loader = machine.boots(Speaker::HttpFirmware).await.unwrap().boot_file;
    assert_eq!(loader, format!("{base}/ipxe/snponly.efi"));
    let script = machine.boots(Speaker::Ipxe).await.unwrap().boot_file;
    assert!(script.starts_with(&format!("http://{}/boot/", site.provisioning)), "{script}");

    let authority = Certificate::from_pem(made.pem().as_bytes()).unwrap();
    let client = Client::builder().no_proxy().tls_certs_only([authority]).build().unwrap();
    let status = async |url: String| client.get(url).send().await.unwrap().status().as_u16();
    let is_there = std::path::Path::new("/usr/lib/ipxe/snponly.efi").exists();
    assert_eq!(status(loader).await, if is_there { 200 } else { 404 });
    let script = script.replace(&format!("http://{}", site.provisioning), &base);
    for other in [script, format!("{base}/"), format!("{base}/ramdisk/kernel")] {
        assert_eq!(status(other.clone()).await, 404, "{other}");
    }
}
