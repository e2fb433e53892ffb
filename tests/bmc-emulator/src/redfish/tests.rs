//! Malformed and hostile requests, and the consistency of the resource tree.

use http::header::CONTENT_TYPE;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn face(profile: &str) -> RedfishFace {
    let spec = json!({
        "name": "m", "uuid": "7d0c3a52-93a2-4f0b-8d5e-0c6f7a1b2c3d", "serial": "S", "manufacturer": "A",
        "model": "M", "firmware": "uefi", "cpus": 128, "memory_mib": 524_288,
        "nics": [{"mac": "52:54:00:00:00:01", "speed_mbps": 1000}],
        "disks": [{"name": "sda", "serial": "D", "size_bytes": 1, "model": "M", "rotational": true}],
        "bmc": {"kind": "redfish", "address": "127.0.0.1:0", "username": "admin", "password": "secret"},
    });
    RedfishFace::new(
        Machine::new(serde_json::from_value(spec).unwrap()),
        Profile::find(profile).unwrap(),
    )
}

fn all(face: &RedfishFace) -> impl Iterator<Item = Resource> {
    face.profile.tree.iter().flat_map(|row| Resource::of(row, face))
}

fn ask(face: &RedfishFace, method: &str, path: &str, body: &[u8]) -> Option<StatusCode> {
    Some(face.answer(&parts(method, path)?, body).status)
}

fn parts(method: &str, path: &str) -> Option<Parts> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("authorization", "Basic YWRtaW46c2VjcmV0")
        .header("if-match", "*")
        .header(CONTENT_TYPE, "application/json");
    Some(request.body(()).ok()?.into_parts().0)
}

/// All profiles. The iDRAC is last, because it refuses to eject from an empty drive with a server error.
const PROFILES: [&str; 7] =
    ["generic", "hpe-ilo", "supermicro", "lenovo-xcc", "ami-megarac", "poor", "dell-idrac"];

#[test]
fn every_path_leads_back_to_its_resource() {
    for profile in PROFILES {
        let face = face(profile);
        for resource in all(&face) {
            let found = Resource::find(&resource.path, &face).unwrap();
            assert_eq!((found.path, found.index), (resource.path, resource.index), "{profile}");
        }
    }
}

#[test]
fn every_resource_has_a_document_or_is_an_action() {
    for profile in PROFILES {
        let face = face(profile);
        for resource in all(&face) {
            let readable = resource.row.document.is_empty() == resource.document(&face).is_none();
            assert!(readable && !resource.row.methods().is_empty(), "{profile}: {resource:?}");
        }
    }
}

#[test]
fn every_placeholder_has_a_value() {
    for profile in PROFILES {
        let face = face(profile);
        for resource in all(&face) {
            let filled = format!("{}{:?}", resource.path, resource.document(&face));
            assert!(!filled.contains("\"{") && !filled.contains("\"$"), "{profile}: {filled}");
            assert!(!resource.path.contains('{'), "{profile}: {}", resource.path);
        }
    }
}

#[test]
fn every_profile_uses_the_words_of_the_schemas() {
    for profile in PROFILES {
        let face = face(profile);
        let resets = &face.profile.reset.types;
        let targets = &face.profile.boot.targets;
        let known = |name: &String| schema::RESET_TYPES.iter().any(|(known, ..)| known == name);
        assert!(resets.iter().all(known), "{profile}: {resets:?}");
        let known = |name: &String| schema::BOOT_TARGETS.iter().any(|(known, _)| known == name);
        assert!(targets.iter().all(known), "{profile}: {targets:?}");
    }
}

#[test]
fn a_change_is_answered_with_the_changed_resource() {
    let face = face("lenovo-xcc");
    let body = br#"{"Image": "http://x/y.iso"}"#;
    let drive = "/redfish/v1/Managers/1/VirtualMedia/EXT1";
    let parts = parts("PATCH", drive).unwrap();
    let answer = format!("{:?}", face.answer(&parts, body));
    assert!(answer.contains("y.iso"), "{answer}");
}

#[test]
fn sessions_are_counted_and_refused_beyond_the_slots() {
    let face = face("four-sessions");
    let login = br#"{"UserName": "admin", "Password": "secret"}"#;
    let path = "/redfish/v1/SessionService/Sessions";
    for _ in 0..4 {
        assert_eq!(ask(&face, "POST", path, login), Some(StatusCode::CREATED));
    }
    assert_eq!(ask(&face, "DELETE", &format!("{path}/2"), b""), Some(StatusCode::NO_CONTENT));
    assert_eq!(ask(&face, "POST", path, login), Some(StatusCode::CREATED));
    let counted = face.machine.sessions();
    assert_eq!((counted.most(), counted.refused()), (4, 0));
    assert_eq!(ask(&face, "POST", path, login), Some(StatusCode::SERVICE_UNAVAILABLE));
    assert_eq!((counted.most(), counted.refused()), (4, 1));
}

#[test]
fn large_memory_is_made_of_equal_modules() {
    let face = face("generic");
    let spec = face.machine.spec();
    assert_eq!((values::dimm_count(spec), values::processor_count(spec)), (8, 2));
}

/// JSON with names that the service knows, in wrong places.
fn any_form() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("On"),
        Just("Boot"),
        Just("Image"),
        Just("ResetType"),
        Just("Inserted"),
        Just("SessionTimeout"),
        Just("BootSourceOverrideTarget"),
        Just("BootSourceOverrideEnabled"),
        Just("Pxe"),
        Just("Once"),
        Just("IndicatorLED"),
        Just("UserName"),
        Just("http://x/y"),
        Just(""),
        Just("\u{0}é"),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::hash_map(word.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_path_panics(path in "/redfish(/[!-~]{0,12}){0,6}", method in "GET|POST|PATCH|DELETE|PUT") {
        ask(&face("generic"), &method, &path, b"{}");
    }

    #[test]
    fn no_body_panics_and_none_is_a_server_error(which in 0usize..64, profile in 0usize..6, form in any_form()) {
        let face = face(PROFILES[profile]);
        let writable: Vec<Resource> = all(&face)
            .filter(|resource| resource.row.post.is_some() || resource.row.patch.is_some())
            .collect();
        let resource = &writable[which % writable.len()];
        let method = if resource.row.post.is_some() { "POST" } else { "PATCH" };
        let status = ask(&face, method, &resource.path, form.to_string().as_bytes()).unwrap();
        prop_assert!(!status.is_server_error(), "{resource:?} {form}: {status}");
    }

    #[test]
    fn no_bytes_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        ask(&face("generic"), "PATCH", "/redfish/v1/Systems/1", &body);
    }
}
