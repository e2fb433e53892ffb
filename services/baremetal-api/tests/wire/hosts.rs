//! The addresses of BMCs and images that are refused, with no allow-list in the configuration: loopback and link-local addresses.

use serde_json::{Value, json};

use crate::api::{Api, ID, NEWEST};

const BMC: &str = "; allow the address with bmc.networks in the configuration of the service";
const IMAGE: &str = "; allow the host with images.hosts in the configuration of the service";

fn refused(field: &str, why: &str, advice: &str) -> String {
    format!("{field}: {why}{advice}")
}

#[tokio::test]
async fn a_bmc_address_on_this_machine_is_refused() {
    let api = Api::start().await;
    for (key, address, why) in [
        ("redfish_address", "http://127.0.0.1:6385", "127.0.0.1 is a loopback address"),
        ("redfish_address", "https://localhost", "localhost is a loopback address"),
        ("redfish_address", "http://169.254.169.254", "169.254.169.254 is a link-local address"),
        ("redfish_address", "2130706433:6385", "127.0.0.1 is a loopback address"),
        ("ipmi_address", "127.0.0.1", "127.0.0.1 is a loopback address"),
        ("ipmi_address", "::1", "::1 is a loopback address"),
        ("ipmi_address", "224.0.0.1", "224.0.0.1 is a multicast address"),
    ] {
        let node = json!({"uuid": ID, "driver": "redfish", "driver_info": {key: address}});
        let why = refused(&format!("driver_info.{key}"), why, BMC);
        api.send("POST", "/v1/nodes", NEWEST, &node.to_string()).await.refuses(400, &why);
    }
    api.enroll(r#", "driver_info": {"redfish_address": "https://bmc.example"}"#).await;
    let set =
        json!([{"op": "add", "path": "/driver_info/redfish_address", "value": "http://[::1]:80"}]);
    let path = format!("/v1/nodes/{ID}");
    let why = refused("driver_info.redfish_address", "::1 is a loopback address", BMC);
    api.send("PATCH", &path, NEWEST, &set.to_string()).await.refuses(400, &why);
    let shown = api.get(&path).await.json();
    assert_eq!(shown["driver_info"]["redfish_address"], "https://bmc.example");
    // A node stored before the check existed: its other fields can be changed, but its BMC is not contacted.
    api.edit(|node| {
        node.driver = baremetal_core::Driver::Redfish;
        node.driver_info.insert("redfish_address".to_owned(), "http://127.0.0.1:1".into());
    })
    .await;
    let other = json!([{"op": "add", "path": "/description", "value": "x"}]);
    api.send("PATCH", &path, NEWEST, &other.to_string()).await.has(200);
    let verdicts = api.get(&format!("{path}/validate")).await.has(200).json();
    assert_eq!(
        verdicts["power"]["reason"],
        format!("driver_info/redfish_address: 127.0.0.1 is a loopback address{BMC}")
    );
    let sensors = api.get(&format!("/bedplate/v1/nodes/{ID}/sensors")).await.has(400);
    assert!(sensors.text.contains("is a loopback address"), "{}", sensors.text);
    let rack = json!({"name": "r1", "machines": [{
        "name": "r1u1", "position": 1, "driver": "ipmi", "ports": [], "driver_info": {"ipmi_address": "127.0.0.1"},
    }]});
    let rack = api.send("POST", "/bedplate/v1/racks", NEWEST, &rack.to_string()).await.has(400);
    assert!(rack.text.contains("is a loopback address"), "{}", rack.text);
}

#[tokio::test]
async fn an_image_url_on_the_fetching_machine_is_refused() {
    let api = Api::start().await;
    let source = "http://169.254.169.254/latest/meta-data";
    let info = json!({"image_source": source, "image_checksum": "a".repeat(64)});
    let why = "169.254.169.254 is a link-local address";
    let named = refused("instance_info.image_source", why, IMAGE);
    let node = json!({"uuid": ID, "driver": "fake-hardware", "instance_info": info});
    api.send("POST", "/v1/nodes", NEWEST, &node.to_string()).await.refuses(400, &named);
    let file = json!({"image_source": "file:///etc/shadow", "image_checksum": "a".repeat(64)});
    let with_file = json!({"uuid": ID, "driver": "fake-hardware", "instance_info": file});
    let words = "instance_info.image_source: a file of the service's host has to be in the folder that images of [provisioning] names in its configuration";
    api.send("POST", "/v1/nodes", NEWEST, &with_file.to_string()).await.refuses(400, words);
    api.enroll("").await;
    let set = json!([{"op": "add", "path": "/instance_info", "value": info}]);
    let path = format!("/v1/nodes/{ID}");
    api.send("PATCH", &path, NEWEST, &set.to_string()).await.refuses(400, &named);
    // A node stored before the check existed.
    api.edit(|node| {
        node.instance_info.insert("image_source".to_owned(), Value::from(source));
    })
    .await;
    let verdicts = api.get(&format!("{path}/validate")).await.has(200).json();
    assert_eq!(verdicts["deploy"]["reason"], named.as_str());

    let rack = r#"{"name": "r1", "machines": []}"#;
    api.send("POST", "/bedplate/v1/racks", NEWEST, rack).await.has(200);
    let up = json!({"instance_info": info}).to_string();
    api.send("PUT", "/bedplate/v1/racks/r1/up", NEWEST, &up).await.refuses(400, &named);
    let wish = json!({
        "resource_class": "gpu", "image": {"url": source, "checksum": format!("sha256:{}", "a".repeat(64))},
        "ssh_keys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2 ann@desk"], "lease": "3d",
    });
    let reserved = api.send("POST", "/bedplate/v1/reservations", NEWEST, &wish.to_string()).await;
    let reserved = reserved.has(400);
    assert!(reserved.text.contains(&format!("image.url: {why}")), "{}", reserved.text);
}
