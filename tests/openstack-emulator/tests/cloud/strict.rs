//! Services refuse unknown fields, as the real ones do. A client that misspells a field fails in these tests instead of in the first real
//! cloud.

use openstack_emulator::{Kind, Settings};
use reqwest::Method;
use serde_json::{Value, json};

use crate::somebody::alice;

/// The services: name, path, and a part of the error for an unknown field.
#[rustfmt::skip]
const SERVICES: [(&str, &str, &str); 6] = [
    ("nova", "/compute/v2.1", "Additional properties are not allowed ('FIELD' was unexpected)"),
    ("cinder", "/volume/v3/PROJECT", "Additional properties are not allowed ('FIELD' was unexpected)"),
    ("placement", "/placement", "Additional properties are not allowed ('FIELD' was unexpected)"),
    ("designate", "/dns/v2", "Keys ['FIELD'] are not valid"),
    ("neutron", "/network/v2.0", "Unrecognized attribute(s) 'FIELD'"),
    ("octavia", "/load-balancer/v2/lbaas", "Unknown attribute: FIELD"),
];

/// The mandatory fields of a server in a request.
const SERVER: &str = r#""name": "s", "imageRef": "i", "flavorRef": "1""#;

/// Requests with an unknown field: service, method, path, the unknown field, body. `SERVER` stands for the mandatory fields.
const CASES: &str = r#"
    nova POST servers colour {"server": {SERVER, "networks": "none", "colour": "red"}}
    nova POST servers colour {"server": {SERVER, "networks": [{"uuid": "00000000-0000-4000-8000-000000000000", "colour": "red"}]}}
    nova POST servers colour {"server": {SERVER, "networks": "none"}, "colour": "red"}
    nova POST servers colour {"server": {SERVER, "networks": "none", "block_device_mapping_v2": [{"boot_index": 0, "colour": "red"}]}}
    nova POST servers hostname {"server": {SERVER, "networks": "none", "hostname": "h"}}
    nova POST servers personality {"server": {SERVER, "networks": "none", "personality": []}}
    nova PUT servers/s colour {"server": {"name": "n", "colour": "red"}}
    nova POST servers/s/action colour {"reboot": {"type": "SOFT", "colour": "red"}}
    nova POST servers/s/action colour {"os-start": null, "colour": null}
    nova POST servers/s/action colour {"createImage": {"name": "n", "colour": "red"}}
    nova POST servers/s/action disk_over_commit {"os-migrateLive": {"host": null, "block_migration": "auto", "disk_over_commit": true}}
    nova POST os-server-groups colour {"server_group": {"name": "g", "policy": "affinity", "colour": "red"}}
    nova POST os-server-groups policies {"server_group": {"name": "g", "policy": "affinity", "policies": ["affinity"]}}
    nova POST os-keypairs colour {"keypair": {"name": "k", "public_key": "ssh-ed25519 AAAA", "colour": "red"}}
    nova POST servers/s/metadata colour {"metadata": {}, "colour": 1}
    nova POST servers/s/remote-consoles colour {"remote_console": {"protocol": "vnc", "type": "novnc", "colour": "red"}}
    nova POST servers/s/os-interface colour {"interfaceAttachment": {"port_id": "p", "colour": "red"}}
    nova POST servers/s/os-volume_attachments colour {"volumeAttachment": {"volumeId": "v", "colour": "red"}}
    nova PUT servers/s/tags colour {"tags": [], "colour": "red"}
    nova PUT os-services/s colour {"status": "disabled", "colour": "red"}
    nova POST os-aggregates colour {"aggregate": {"name": "a", "colour": "red"}}
    nova PUT os-aggregates/a colour {"aggregate": {"name": "a", "colour": "red"}}
    nova POST os-aggregates/a/action colour {"add_host": {"host": "h", "colour": "red"}}
    nova POST flavors colour {"flavor": {"name": "f", "ram": 1, "vcpus": 1, "disk": 1, "colour": "red"}}
    nova POST flavors/f/os-extra_specs colour {"extra_specs": {}, "colour": "red"}
    nova POST flavors/f/action colour {"addTenantAccess": {"tenant": "t", "colour": "red"}}
    nova PUT os-quota-sets/PROJECT colour {"quota_set": {"cores": 1, "colour": 1}}
    octavia PUT quotas/PROJECT colour {"quota": {"pool": 1, "colour": 1}}
    octavia POST flavors colour {"flavor": {"name": "f", "colour": "red"}}
    octavia POST loadbalancers colour {"loadbalancer": {"name": "n", "colour": "red"}}
    placement POST resource_providers colour {"name": "p", "colour": "red"}
    placement PUT resource_providers/p/inventories colour {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 1, "colour": "red"}}}
    cinder PUT volumes/v colour {"volume": {"name": "n", "colour": "red"}}
    cinder POST snapshots colour {"snapshot": {"volume_id": "v", "colour": "red"}}
    cinder POST volumes colour {"volume": {"size": 1}, "colour": "red"}
    designate POST zones colour {"name": "z.example.", "email": "a@example.org", "colour": "red"}
    designate PATCH zones/z colour {"ttl": 60, "colour": "red"}
    designate POST zones/z/recordsets colour {"name": "a.z.example.", "type": "A", "records": ["192.0.2.1"], "colour": "red"}
    designate PUT zones/z/recordsets/r colour {"records": ["192.0.2.1"], "colour": "red"}
    neutron POST networks colour {"network": {"name": "n", "colour": "red"}}
    neutron POST ports colour {"ports": [{"name": "n", "colour": "red"}]}
    neutron POST routers colour {"router": {"name": "n", "colour": "red"}}
    neutron POST security-groups colour {"security_group": {"name": "n", "colour": "red"}}
"#;

#[tokio::test]
async fn a_field_that_a_service_does_not_know_is_refused_and_nothing_is_made() {
    let (emulator, alice) = alice(Settings::default()).await;
    let before = emulator.cloud.objects_of(&alice.project);
    for case in CASES.lines().map(str::trim).filter(|case| !case.is_empty()) {
        let words: Vec<&str> = case.splitn(5, ' ').collect();
        let [service, method, path, field, body] = words[..] else { panic!("{case}") };
        let (_, prefix, said) = SERVICES.into_iter().find(|row| row.0 == service).unwrap();
        let path = format!("{prefix}/{path}").replace("PROJECT", &alice.project);
        let body: Value = serde_json::from_str(&body.replace("SERVER", SERVER)).unwrap();
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let (status, answer) = alice.ask(method, &path, body).await;
        assert_eq!(status, 400, "{case}: {answer}");
        assert!(answer.to_string().contains(&said.replace("FIELD", field)), "{case}: {answer}");
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
