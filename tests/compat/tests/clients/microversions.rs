//! Tests which microversions show which field of a node.

use compat::Service;
use compat::wire::Request;
use serde_json::{Value, json};

/// A field and the first microversion that shows it, according to the Bare Metal API's history.
#[rustfmt::skip]
const SINCE: &[(&str, u32)] = &[
    ("driver_internal_info", 3), ("name", 5), ("inspection_finished_at", 6), ("inspection_started_at", 6),
    ("clean_step", 7), ("raid_config", 12), ("target_raid_config", 12), ("network_interface", 20), ("resource_class", 21),
    ("boot_interface", 31), ("console_interface", 31), ("deploy_interface", 31), ("inspect_interface", 31),
    ("management_interface", 31), ("power_interface", 31), ("raid_interface", 31), ("vendor_interface", 31),
    ("storage_interface", 33), ("traits", 37), ("rescue_interface", 38), ("bios_interface", 40), ("fault", 42),
    ("deploy_step", 44), ("conductor_group", 46), ("automated_clean", 47), ("protected", 48), ("protected_reason", 48),
    ("conductor", 49), ("owner", 50), ("description", 51), ("allocation_uuid", 52), ("retired", 61), ("retired_reason", 61),
    ("lessee", 65), ("network_data", 66), ("boot_mode", 75), ("secure_boot", 75), ("shard", 82), ("parent_node", 83),
    ("firmware_interface", 86), ("service_step", 87),
];

/// Fields that every version shows.
#[rustfmt::skip]
const ALWAYS: &[&str] = &[
    "uuid", "chassis_uuid", "console_enabled", "created_at", "driver", "driver_info", "extra", "instance_info", "instance_uuid",
    "last_error", "links", "maintenance", "maintenance_reason", "power_state", "properties", "provision_state",
    "provision_updated_at", "reservation", "target_power_state", "target_provision_state", "updated_at",
];

fn show(service: &Service, uuid: &str, minor: u32) -> Value {
    let request = Request::new("GET", &format!("/v1/nodes/{uuid}")).version(&format!("1.{minor}"));
    request.send(&service.url).expect(200).json()
}

#[test]
fn a_field_appears_with_its_version() {
    let service = Service::start();
    let body = json!({"driver": "fake-hardware", "name": "versioned"});
    let made = Request::new("POST", "/v1/nodes")
        .version("latest")
        .json(&body)
        .send(&service.url)
        .expect(201);
    let made = made.json();
    let uuid = made["uuid"].as_str().expect("a uuid");

    for (field, since) in SINCE {
        let before = show(&service, uuid, since - 1);
        assert!(before.get(field).is_none(), "{field} is there in 1.{}", since - 1);
        assert!(
            show(&service, uuid, *since).get(field).is_some(),
            "{field} is not there in 1.{since}"
        );
    }
    for minor in [1, 11, 50, 95] {
        let node = show(&service, uuid, minor);
        for field in ALWAYS {
            assert!(node.get(field).is_some(), "{field} is not there in 1.{minor}");
        }
    }
}

#[test]
fn before_1_5_a_node_is_found_by_uuid_only() {
    let service = Service::start();
    let body = json!({"driver": "fake-hardware", "name": "named"});
    Request::new("POST", "/v1/nodes").version("1.5").json(&body).send(&service.url).expect(201);
    let by_name = Request::new("GET", "/v1/nodes/named");
    by_name.clone().version("1.5").send(&service.url).expect(200);
    let reply = by_name.version("1.4").send(&service.url);
    assert!((400..500).contains(&reply.status), "{reply:?}");
}

#[test]
fn a_new_node_is_enrolled_from_1_11_on() {
    let service = Service::start();
    let body = json!({"driver": "fake-hardware"});
    for (minor, state) in [(11, json!("enroll")), (10, json!("available"))] {
        let post = Request::new("POST", "/v1/nodes").version(&format!("1.{minor}")).json(&body);
        let uuid = post.send(&service.url).expect(201).json()["uuid"].clone();
        let node =
            service.ask("GET", &format!("/v1/nodes/{}", uuid.as_str().expect("a uuid"))).json();
        assert_eq!(node["provision_state"], state, "created in 1.{minor}");
    }
}

#[test]
fn a_field_of_a_later_version_is_refused_in_a_request() {
    let service = Service::start();
    for (field, value, since) in [
        ("name", json!("early"), 5),
        ("resource_class", json!("gold"), 21),
        ("deploy_interface", json!("fake"), 31),
        ("automated_clean", json!(true), 47),
        ("description", json!("early"), 51),
    ] {
        let body = json!({"driver": "fake-hardware", (field): value});
        let post = Request::new("POST", "/v1/nodes").json(&body);
        let early = post.clone().version(&format!("1.{}", since - 1)).send(&service.url);
        assert!(
            early.status == 400 || early.status == 406,
            "{field} in 1.{}: {}",
            since - 1,
            early.status
        );
        post.version(&format!("1.{since}")).send(&service.url).expect(201);
    }
}
