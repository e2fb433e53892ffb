//! The parameters of a virtual CD, and boot scripts.

use std::net::Ipv4Addr;
use std::time::Duration;

use baremetal_core::{BootInterface, DeployInterface, Node, NodeUuid, State};
use baremetal_store::AddressPool;
use hardware::AllowedHosts;
use hardware::CpuArchitecture::{self, Aarch64, X86_64};
use pxe::{Listen, Prober};
use serde_json::json;

use crate::Leases;
use crate::conductor::Conductor;
use crate::samples::{MAC, SampleMachine, conductor, settings};

/// A conductor that adds a kernel parameter to each boot and allows all images.
async fn with_parameter() -> Conductor {
    let kernel_parameters = vec![("console".to_owned(), Some("ttyS0".to_owned()))];
    let image_hosts = AllowedHosts::anywhere();
    conductor(crate::Settings { kernel_parameters, image_hosts, ..settings() }).await
}

/// The path segment with the capability, which is the last but one.
fn capability(url: &url::Url) -> String {
    url.path_segments().unwrap().nth_back(1).unwrap().to_owned()
}

#[tokio::test]
async fn a_boot_script_starts_the_ramdisk_and_the_parameters_of_the_node() {
    let conductor = with_parameter().await;
    let machine = SampleMachine::start().await;
    let script = async |info: serde_json::Value| {
        let (mut node, _) = machine.node();
        node.id = NodeUuid::new_v4();
        node.driver_info.extend(info.as_object().unwrap().clone());
        conductor.context.store.insert_node(&node).await.unwrap();
        let work = node.work.as_ref().unwrap();
        let url = conductor.context.script_url(&node, work, MAC, X86_64).unwrap();
        conductor.boot_script(node.id, work.id, MAC, &capability(&url), X86_64).await
    };
    let usual = script(json!({})).await.unwrap();
    assert!(usual.contains("kernel http://10.0.0.1:8080/ramdisk/kernel "), "{usual}");
    assert!(usual.contains(" console=ttyS0 ipa-api-url="), "{usual}");
    let both = json!({"deploy_kernel": "http://h/k", "deploy_ramdisk": "http://h/r"});
    let own = script(both).await.unwrap();
    assert!(own.contains("kernel http://h/k ") && own.contains("initrd http://h/r "), "{own}");
    let added = script(json!({"kernel_append_params": "%default% nofb a=b"})).await.unwrap();
    assert!(added.contains(" console=ttyS0 nofb a=b ipa-api-url="), "{added}");
    let replaced = script(json!({"kernel_append_params": "nofb"})).await.unwrap();
    assert!(replaced.contains("initrd=initrd nofb ipa-api-url="), "{replaced}");
    let wrong = script(json!({"kernel_append_params": "a=\"b"})).await.unwrap_err().to_string();
    assert_eq!(wrong, "kernel_parameters: the kernel argument a cannot hold '\"'");
    let half = script(json!({"deploy_kernel": "http://h/k"})).await.unwrap_err().to_string();
    assert!(half.starts_with("driver_info.deploy_ramdisk: missing"), "{half}");
}

#[tokio::test]
async fn the_architecture_of_a_node_selects_its_kernel_and_ramdisk() {
    let machine = SampleMachine::start().await;
    let folder = async |architectures: &[CpuArchitecture], property: Option<&str>, firmware| {
        let architectures = architectures.to_vec();
        let conductor = conductor(crate::Settings { architectures, ..settings() }).await;
        let (mut node, _) = machine.node();
        node.properties.extend(property.map(|name| ("cpu_arch".to_owned(), name.into())));
        conductor.context.store.insert_node(&node).await.unwrap();
        let work = node.work.as_ref().unwrap();
        let url = conductor.context.script_url(&node, work, MAC, firmware).unwrap();
        let capability = capability(&url);
        let script = conductor.boot_script(node.id, work.id, MAC, &capability, firmware).await;
        let script = script.unwrap();
        let kernel = script.split_once("kernel http://10.0.0.1:8080/").unwrap().1.to_owned();
        kernel.split_once("/kernel ").unwrap().0.to_owned()
    };
    let both = [X86_64, Aarch64];
    assert_eq!(folder(&both, None, X86_64).await, "ramdisk");
    assert_eq!(folder(&both, None, Aarch64).await, "ramdisk/aarch64");
    assert_eq!(folder(&both, Some("aarch64"), X86_64).await, "ramdisk/aarch64");
    assert_eq!(folder(&both, Some("x86_64"), X86_64).await, "ramdisk");
    assert_eq!(folder(&both, Some("x86_64"), Aarch64).await, "ramdisk/aarch64");
    assert_eq!(folder(&both, Some("ppc64le"), Aarch64).await, "ramdisk/aarch64");
    assert_eq!(folder(&[X86_64], Some("aarch64"), Aarch64).await, "ramdisk");
}

/// Returns the architecture of the virtual CD, if the service has CDs of these architectures and the node has this `cpu_arch`.
async fn medium_of(
    media: &[CpuArchitecture],
    property: Option<&str>,
) -> Result<CpuArchitecture, String> {
    let media = media.to_vec();
    let conductor = conductor(crate::Settings { media, ..settings() }).await;
    let machine = SampleMachine::start().await;
    let (mut node, _) = machine.node();
    node.interfaces.boot = Some(BootInterface::VirtualMedia);
    node.properties.extend(property.map(|name| ("cpu_arch".to_owned(), name.into())));
    conductor.context.store.insert_node(&node).await.unwrap();
    let url = match conductor.context.medium(&node).await {
        Ok(url) => url,
        Err(problem) => return Err(problem.to_string()),
    };
    let work = node.work.as_ref().unwrap().id;
    Ok(conductor.medium(node.id, work, &capability(&url)).await.unwrap().architecture)
}

#[tokio::test]
async fn a_machine_gets_the_virtual_cd_of_its_architecture() {
    let both = [X86_64, Aarch64];
    assert_eq!(medium_of(&both, Some("aarch64")).await, Ok(Aarch64));
    assert_eq!(medium_of(&both, Some("x86_64")).await, Ok(X86_64));
    assert_eq!(medium_of(&both, None).await, Ok(X86_64));
    let missing = medium_of(&[X86_64], Some("aarch64")).await.unwrap_err();
    let words = "the service has no virtual CD for aarch64; set iso of [provisioning.aarch64]";
    assert!(missing.starts_with(words), "{missing}");
    let missing = medium_of(&[], None).await.unwrap_err();
    let words = "the service has no virtual CD for x86_64; set iso of [provisioning]";
    assert!(missing.starts_with(words), "{missing}");
}

#[tokio::test]
async fn a_bmc_reads_the_virtual_cd_at_the_external_url_of_its_node() {
    let conductor = conductor(crate::Settings { media: vec![X86_64], ..settings() }).await;
    let machine = SampleMachine::start().await;
    let (mut node, _) = machine.node();
    node.interfaces.boot = Some(BootInterface::VirtualMedia);
    conductor.context.store.insert_node(&node).await.unwrap();
    for (external, want) in [
        ("", "http://10.0.0.1:8080/media/"),
        ("https://[2001:db8::1]:6183", "https://[2001:db8::1]:6183/media/"),
        ("http://h/at/", "http://h/at/media/"),
    ] {
        node.driver_info.insert("external_http_url".to_owned(), external.into());
        let url = conductor.context.medium(&node).await.unwrap();
        assert!(url.as_str().starts_with(want), "{url}");
    }
}

#[tokio::test]
async fn a_machine_in_use_gets_the_boot_script_of_its_own_image() {
    let conductor = with_parameter().await;
    let machine = SampleMachine::start().await;
    let (mut node, _) = machine.node();
    node.work = None;
    node.provision_state = State::Active;
    node.interfaces.deploy = Some(DeployInterface::Ramdisk);
    let script = async |change: fn(&mut Node)| {
        let mut node = node.clone();
        node.id = NodeUuid::new_v4();
        change(&mut node);
        conductor.context.store.insert_node(&node).await.unwrap();
        let url = conductor.context.own_image_url(&node, MAC).unwrap();
        conductor.own_image_script(node.id, MAC, &capability(&url)).await
    };
    let iso =
        |node: &mut Node| drop(node.instance_info.insert("boot_iso".into(), "http://h/i".into()));
    let boots_iso = script(iso).await.unwrap();
    assert!(boots_iso.contains("sanboot --no-describe http://h/i "), "{boots_iso}");
    let kernel = script(|node| {
        let info = json!({"kernel": "http://h/k", "ramdisk": "http://h/r", "ramdisk_kernel_arguments": "quiet"});
        node.instance_info = info.as_object().unwrap().clone();
    });
    let kernel = kernel.await.unwrap();
    assert!(kernel.contains("http://h/k initrd=initrd console=ttyS0 quiet |"), "{kernel}");
    assert!(!kernel.contains("ipa-"), "no token leaves the service: {kernel}");
    let nothing = script(|_| {}).await.unwrap_err().to_string();
    assert!(nothing.starts_with("instance_info.boot_iso: missing"), "{nothing}");
    let free = script(|node| node.provision_state = State::Available).await.unwrap_err();
    assert_eq!(free.to_string(), "a node that boots an image of its own not found");
    let forged = conductor.own_image_script(node.id, MAC, "forged").await.unwrap_err();
    assert_eq!(forged.to_string(), "the token is not valid for this boot");
}

#[tokio::test]
async fn a_machine_that_boots_by_virtual_cd_is_told_its_leased_address() {
    let first = [127, 9, 0, 1].into();
    let leases = |router: Option<[u8; 4]>| Leases {
        pool: AddressPool {
            first,
            last: first,
            reserved: Vec::new(),
            stranger_lease_time: Duration::from_secs(60),
        },
        prober: Prober::new(&Listen::Socket { address: Ipv4Addr::LOCALHOST, port: 0 }),
        prefix: 24,
        router: router.map(Into::into),
        dns: Vec::new(),
    };
    for (leases, want) in [
        (None, None),
        (Some(leases(None)), Some("127.9.0.1/24")),
        (Some(leases(Some([127, 9, 0, 254]))), Some("127.9.0.1/24,127.9.0.254")),
    ] {
        let conductor = conductor(crate::Settings { leases, ..settings() }).await;
        let machine = SampleMachine::start().await;
        let (mut node, port) = machine.node();
        node.interfaces.boot = Some(BootInterface::VirtualMedia);
        let store = &conductor.context.store;
        store.insert_node(&node).await.unwrap();
        store.insert_port(&port).await.unwrap();
        let url = conductor.context.medium(&node).await.unwrap();
        let capability = capability(&url);
        let work = node.work.as_ref().unwrap().id;
        let given = conductor.medium(node.id, work, &capability).await.unwrap().parameters;
        let address = given.iter().find(|(key, _)| key == "bedplate.address");
        assert_eq!(address.and_then(|(_, value)| value.as_deref()), want);
    }
}

#[tokio::test]
async fn the_ramdisk_gets_the_network_that_the_node_names_for_it() {
    let conductor = conductor(settings()).await;
    let machine = SampleMachine::start().await;
    let (mut node, port) = machine.node();
    node.interfaces.boot = Some(BootInterface::VirtualMedia);
    let network = json!({
        "links": [{"id": "a", "type": "phy", "ethernet_mac_address": "52:54:00:aa:00:01", "mtu": 1400}],
        "networks": [{
            "id": "b", "network_id": "b", "link": "a", "type": "ipv4",
            "ip_address": "192.0.2.20", "netmask": "255.255.255.0",
            "routes": [
                {"network": "0.0.0.0", "netmask": "0.0.0.0", "gateway": "192.0.2.1"},
                {"network": "10.0.0.0", "netmask": "255.0.0.0", "gateway": "192.0.2.2"},
            ],
        }],
        "services": [{"type": "dns", "address": "192.0.2.53"}],
    });
    node.network_data = network.as_object().unwrap().clone();
    let store = &conductor.context.store;
    store.insert_node(&node).await.unwrap();
    store.insert_port(&port).await.unwrap();
    let url = conductor.context.medium(&node).await.unwrap();
    let work = node.work.as_ref().unwrap().id;
    let given = conductor.medium(node.id, work, &capability(&url)).await.unwrap().parameters;
    for (key, want) in [
        ("BOOTIF", "01-52-54-00-aa-00-01"),
        ("bedplate.mtu", "1400"),
        ("bedplate.address", "192.0.2.20/24,192.0.2.1"),
        ("bedplate.routes", "10.0.0.0/8-192.0.2.2"),
        ("bedplate.dns", "192.0.2.53"),
    ] {
        let values = given.iter().filter(|(name, _)| name == key);
        let values: Vec<&str> = values.filter_map(|(_, value)| value.as_deref()).collect();
        assert_eq!(values, [want], "{key}");
    }
    let awaited = node.work.as_ref().unwrap();
    let url = conductor.context.script_url(&node, awaited, port.address, X86_64).unwrap();
    let (capability, mac) = (capability(&url), port.address);
    let script = conductor.boot_script(node.id, work, mac, &capability, X86_64).await.unwrap();
    let words =
        "BOOTIF=01-52-54-00-aa-00-01 bedplate.mtu=1400 bedplate.address=192.0.2.20/24,192.0.2.1";
    assert!(script.contains(words), "{script}");
}
