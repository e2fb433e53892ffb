//! Services refuse unknown fields, as the real ones do. A client that misspells a field fails in these tests instead of in the first real
//! cloud.

use openstack_emulator::{Kind, Settings};
use reqwest::Method;
use serde_json::{Value, json};

use crate::somebody::alice;

/// A request with an unknown field, and a part of the expected error.
struct Case {
    method: &'static str,
    path: String,
    body: Value,
    words: &'static str,
}

fn case(method: &'static str, service: &str, path: &str, body: Value, words: &'static str) -> Case {
    Case { method, path: format!("{service}/{path}"), body, words }
}

impl Case {
    /// The same request, with another error.
    fn saying(self, words: &'static str) -> Case {
        Case { words, ..self }
    }
}

fn cases() -> Vec<Case> {
    let network = json!([{"uuid": "00000000-0000-4000-8000-000000000000", "colour": "red"}]);
    let server = |more: Value| {
        let mut server =
            json!({"name": "s", "imageRef": "i", "flavorRef": "1", "networks": "none"});
        more.as_object().unwrap().iter().for_each(|(key, value)| server[key] = value.clone());
        json!({"server": server})
    };
    let unexpected = "Additional properties are not allowed ('colour' was unexpected)";
    let keys = "Keys ['colour'] are not valid";
    let attribute = "Unrecognized attribute(s) 'colour'";
    let nova = |method, path, body| case(method, "/compute/v2.1", path, body, unexpected);
    let cinder = |method, path, body| case(method, "/volume/v3/PROJECT", path, body, unexpected);
    let placement = |method, path, body| case(method, "/placement", path, body, unexpected);
    let designate = |method, path, body| case(method, "/dns/v2", path, body, keys);
    let neutron = |method, path, body| case(method, "/network/v2.0", path, body, attribute);
    let octavia = |method, path, body| {
        case(method, "/load-balancer/v2/lbaas", path, body, "Unknown attribute: colour")
    };
    vec![
        nova("POST", "servers", server(json!({"colour": "red"}))),
        nova("POST", "servers", server(json!({"networks": network}))),
        nova("POST", "servers", json!({"server": server(json!({}))["server"], "colour": "red"})),
        nova(
            "POST",
            "servers",
            server(json!({"block_device_mapping_v2": [{"boot_index": 0, "colour": "red"}]})),
        ),
        nova("POST", "servers", server(json!({"hostname": "h"}))).saying("'hostname' was unexpected"),
        nova("POST", "servers", server(json!({"personality": []}))).saying("'personality' was unexpected"),
        nova("PUT", "servers/s", json!({"server": {"name": "n", "colour": "red"}})),
        nova("POST", "servers/s/action", json!({"reboot": {"type": "SOFT", "colour": "red"}})),
        nova("POST", "servers/s/action", json!({"os-start": null, "colour": null})),
        nova("POST", "servers/s/action", json!({"createImage": {"name": "n", "colour": "red"}})),
        nova(
                "POST",
                "servers/s/action",
                json!({"os-migrateLive": {"host": null, "block_migration": "auto", "disk_over_commit": true}}),
            ).saying("'disk_over_commit' was unexpected"),
        nova(
            "POST",
            "os-server-groups",
            json!({"server_group": {"name": "g", "policy": "affinity", "colour": "red"}}),
        ),
        nova(
                "POST",
                "os-server-groups",
                json!({"server_group": {"name": "g", "policy": "affinity", "policies": ["affinity"]}}),
            ).saying("'policies' was unexpected"),
        nova(
            "POST",
            "os-keypairs",
            json!({"keypair": {"name": "k", "public_key": "ssh-ed25519 AAAA", "colour": "red"}}),
        ),
        nova("POST", "servers/s/metadata", json!({"metadata": {}, "colour": 1})),
        nova(
            "POST",
            "servers/s/remote-consoles",
            json!({"remote_console": {"protocol": "vnc", "type": "novnc", "colour": "red"}}),
        ),
        nova(
            "POST",
            "servers/s/os-interface",
            json!({"interfaceAttachment": {"port_id": "p", "colour": "red"}}),
        ),
        nova(
            "POST",
            "servers/s/os-volume_attachments",
            json!({"volumeAttachment": {"volumeId": "v", "colour": "red"}}),
        ),
        nova("PUT", "servers/s/tags", json!({"tags": [], "colour": "red"})),
        nova("PUT", "os-services/s", json!({"status": "disabled", "colour": "red"})),
        nova("POST", "os-aggregates", json!({"aggregate": {"name": "a", "colour": "red"}})),
        nova("PUT", "os-aggregates/a", json!({"aggregate": {"name": "a", "colour": "red"}})),
        nova("POST", "os-aggregates/a/action", json!({"add_host": {"host": "h", "colour": "red"}})),
        nova(
            "POST",
            "flavors",
            json!({"flavor": {"name": "f", "ram": 1, "vcpus": 1, "disk": 1, "colour": "red"}}),
        ),
        nova("POST", "flavors/f/os-extra_specs", json!({"extra_specs": {}, "colour": "red"})),
        nova(
            "POST",
            "flavors/f/action",
            json!({"addTenantAccess": {"tenant": "t", "colour": "red"}}),
        ),
        nova("PUT", "os-quota-sets/PROJECT", json!({"quota_set": {"cores": 1, "colour": 1}})),
        octavia("PUT", "quotas/PROJECT", json!({"quota": {"pool": 1, "colour": 1}})),
        octavia("POST", "flavors", json!({"flavor": {"name": "f", "colour": "red"}})),
        placement("POST", "resource_providers", json!({"name": "p", "colour": "red"})),
        placement(
            "PUT",
            "resource_providers/p/inventories",
            json!({"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 1, "colour": "red"}}}),
        ),
        cinder("PUT", "volumes/v", json!({"volume": {"name": "n", "colour": "red"}})),
        designate(
            "POST",
            "zones",
            json!({"name": "z.example.", "email": "a@example.org", "colour": "red"}),
        ),
        designate("PATCH", "zones/z", json!({"ttl": 60, "colour": "red"})),
        designate(
            "POST",
            "zones/z/recordsets",
            json!({"name": "a.z.example.", "type": "A", "records": ["192.0.2.1"], "colour": "red"}),
        ),
        designate(
            "PUT",
            "zones/z/recordsets/r",
            json!({"records": ["192.0.2.1"], "colour": "red"}),
        ),
        neutron("POST", "networks", json!({"network": {"name": "n", "colour": "red"}})),
        neutron("POST", "ports", json!({"ports": [{"name": "n", "colour": "red"}]})),
        neutron("POST", "routers", json!({"router": {"name": "n", "colour": "red"}})),
        neutron(
            "POST",
            "security-groups",
            json!({"security_group": {"name": "n", "colour": "red"}}),
        ),
        octavia("POST", "loadbalancers", json!({"loadbalancer": {"name": "n", "colour": "red"}})),
        cinder("POST", "snapshots", json!({"snapshot": {"volume_id": "v", "colour": "red"}})),
        cinder("POST", "volumes", json!({"volume": {"size": 1}, "colour": "red"})),
    ]
}

#[tokio::test]
async fn a_field_that_a_service_does_not_know_is_refused_and_nothing_is_made() {
    let (emulator, alice) = alice(Settings::default()).await;
    let before = emulator.cloud.objects_of(&alice.project);
    for Case { method, path, body, words } in cases() {
        let path = path.replace("PROJECT", &alice.project);
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let (status, answer) = alice.ask(method.clone(), &path, body.clone()).await;
        let what = format!("{method} {path} {body}: {answer}");
        assert_eq!(status, 400, "{what}");
        let said = answer.to_string();
        assert!(said.contains(words), "{what}");
    }
    assert_eq!(emulator.cloud.objects_of(&alice.project), before);
    assert_eq!(emulator.cloud.count_of(Kind::Keypair, &alice.project), 0);
}

#[tokio::test]
async fn recordsets_hold_records_of_their_type() {
    let (_emulator, alice) = alice(Settings::default()).await;
    let zone = json!({"name": "z.example.", "email": "a@example.org"});
    let zone = alice.ask(Method::POST, "/dns/v2/zones", zone).await.1;
    let path = format!("/dns/v2/zones/{}/recordsets", zone["id"].as_str().unwrap());
    for (kind, records, ttl) in [
        ("A", json!(["fd00::1"]), json!(60)),
        ("AAAA", json!(["192.0.2.1"]), json!(60)),
        ("A", json!([]), json!(60)),
        ("A", json!("192.0.2.1"), json!(60)),
        ("A", json!([192]), json!(60)),
        ("A", json!(["192.0.2.1"]), json!(-1)),
        ("A", json!(["192.0.2.1"]), json!("60")),
        ("A", json!(["192.0.2.1"]), json!(2_147_483_648_u64)),
        ("COLOUR", json!(["red"]), json!(60)),
        ("CNAME", json!(["no dot at its end"]), json!(60)),
    ] {
        let body = json!({"name": "a.z.example.", "type": kind, "records": records, "ttl": ttl});
        let (status, answer) = alice.ask(Method::POST, &path, body.clone()).await;
        assert_eq!((status, &answer["type"]), (400, &json!("invalid_object")), "{body}: {answer}");
    }
}
