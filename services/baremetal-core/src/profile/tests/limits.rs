//! The smallest and the largest value of each field of a profile, and the values beside them.

use serde_json::{Value, json};

use super::profile;
use crate::check_profile;

/// Sets the value at `pointer`; parents that are missing become objects.
fn set(document: &mut Value, pointer: &str, value: Value) {
    let mut at = document;
    for key in pointer.trim_start_matches('/').split('/') {
        at = match key.parse::<usize>() {
            Ok(index) => &mut at[index],
            Err(_) => &mut at[key],
        };
    }
    *at = value;
}

/// Checks that a profile with one changed value is accepted.
#[track_caller]
fn accepts(pointer: &str, values: impl IntoIterator<Item = Value>) {
    for value in values {
        let got = check_profile(&profile(|it| set(it, pointer, value.clone())));
        assert_eq!(got, Ok(()), "{pointer} {value}");
    }
}

/// Checks that a profile with one changed value is refused because of `field`.
#[track_caller]
fn refuses(pointer: &str, field: &str, values: impl IntoIterator<Item = Value>) {
    for value in values {
        let got = check_profile(&profile(|it| set(it, pointer, value.clone())));
        assert_eq!(
            got.map_err(|invalid| invalid.field),
            Err(field.to_owned()),
            "{pointer} {value}"
        );
    }
}

fn long(length: usize) -> Value {
    json!("x".repeat(length))
}

#[test]
fn a_description_is_short() {
    accepts("/description", [json!(""), long(4096)]);
    refuses("/description", "description", [long(4097)]);
}

#[test]
fn a_text_fits_on_one_line_and_is_read_back_unchanged() {
    for (pointer, field) in [
        ("/settings/keystone/username", "settings.keystone.username"),
        ("/settings/keystone/password", "settings.keystone.password"),
        ("/settings/keystone/user_domain", "settings.keystone.user_domain"),
        ("/settings/keystone/project", "settings.keystone.project"),
        ("/settings/keystone/project_domain", "settings.keystone.project_domain"),
        ("/settings/keystone/region", "settings.keystone.region"),
        ("/placement/aggregate/fixed", "placement.aggregate"),
    ] {
        accepts(pointer, [json!("a b"), json!("a\"b"), long(255)]);
        let edges = ["", "a\nb", " a", "a ", "\"a", "a\"", "'a", "a'", "\ta"];
        refuses(pointer, field, edges.map(|it| json!(it)));
        refuses(pointer, field, [long(256)]);
    }
    accepts("/settings/keystone/region", [Value::Null]);
    let zone = |name: &str| json!({"fixed": name});
    accepts("/placement/availability_zone", [zone("a"), json!("group"), Value::Null]);
    refuses("/placement/availability_zone", "placement.availability_zone", [zone("a:b"), zone("")]);
}

#[test]
fn a_url_has_a_host_and_no_password() {
    let url = |length: usize| json!(format!("https://a/{}", "x".repeat(length - 10)));
    let field = "settings.keystone.auth_url";
    accepts(
        "/settings/keystone/auth_url",
        [json!("http://a"), json!("https://a?b@c"), json!("https://a#b"), url(2048)],
    );
    let bad = ["", "a", "ftp://a", "http://", "https:///v3", "https://:5000/v3", "https://a b"];
    refuses("/settings/keystone/auth_url", field, bad.map(|it| json!(it)));
    refuses("/settings/keystone/auth_url", field, [json!("https://u@a/v3"), url(2049)]);
}

#[test]
fn a_message_bus_is_one_that_oslo_knows() {
    let pointer = "/settings/message_bus/transport_url";
    let bus = |length: usize| json!(format!("rabbit://{}", "x".repeat(length - 9)));
    let good = ["rabbit://a", "amqp://a", "kafka://a"];
    accepts(pointer, good.map(|it| json!(it)).into_iter().chain([bus(2048)]));
    let bad = ["", "rabbit://", "redis://a", "rabbit://a b", "rabbit://a\n"];
    refuses(pointer, "settings.message_bus.transport_url", bad.map(|it| json!(it)));
    refuses(pointer, "settings.message_bus.transport_url", [bus(2049)]);
}

#[test]
fn bridges_have_names_that_linux_and_neutron_accept() {
    let pointer = "/settings/neutron/bridge_mappings";
    let mapping = |network: &str, bridge: &str| json!({network: {"bridge": bridge}});
    let (most, more) = ("x".repeat(64), "x".repeat(65));
    accepts(pointer, [json!({}), mapping("a.b_c-d", "br-ex.1_2"), mapping(&most, &"x".repeat(15))]);
    for network in ["", "a:b", "a,b", "ä", &more] {
        let field = format!("{}.{network:.64}", "settings.neutron.bridge_mappings");
        refuses(pointer, &field, [mapping(network, "br")]);
    }
    for name in ["", "-a", ".a", "a b", "a/b", &"x".repeat(16)] {
        let field = "settings.neutron.bridge_mappings.physnet1";
        refuses(pointer, &format!("{field}.bridge"), [mapping("physnet1", name)]);
        let interface = json!({"physnet1": {"bridge": "br", "interface": name}});
        refuses(pointer, &format!("{field}.interface"), [interface]);
    }
    let mappings = |count: usize| {
        (0..count).map(|n| (format!("n{n}"), json!({"bridge": "br"}))).collect::<Value>()
    };
    accepts(pointer, [mappings(64)]);
    refuses(pointer, "settings.neutron.bridge_mappings", [mappings(65)]);
}

#[test]
fn a_volume_group_has_a_name_that_lvm_accepts() {
    accepts("/settings/storage", [json!("qcow2"), json!({"lvm": "a+b_c.d-e"})]);
    accepts("/settings/storage/lvm", [long(127)]);
    for bad in [json!(""), json!("-a"), json!("a/b"), long(128)] {
        refuses("/settings/storage/lvm", "settings.storage.lvm", [bad]);
    }
}

#[test]
fn a_device_has_the_ids_that_lspci_prints() {
    for of in ["vendor_id", "product_id"] {
        let pointer = format!("/settings/passthrough/0/{of}");
        accepts(&pointer, [json!("0000"), json!("9aff")]);
        let bad = ["", "10d", "10de0", "10DE", "10dg", "10d/", "10d:", "10d`"];
        refuses(&pointer, &format!("settings.passthrough[0].{of}"), bad.map(|it| json!(it)));
    }
    accepts("/settings/passthrough/0/alias", [json!("a._-1"), long(64)]);
    let bad = [json!(""), json!("a b"), long(65)];
    refuses("/settings/passthrough/0/alias", "settings.passthrough[0].alias", bad);
    accepts("/settings/iommu", [json!("intel"), json!("amd")]);
    let none = |iommu: Value| {
        check_profile(&profile(|it| {
            it["settings"]["passthrough"] = json!([]);
            it["settings"]["iommu"] = iommu;
        }))
    };
    assert_eq!((none(Value::Null), none(json!("amd"))), (Ok(()), Ok(())));
}

#[test]
fn a_kernel_argument_is_read_alike_by_every_boot_loader() {
    let argument = |key: &str, value: Value| json!([{"key": key, "value": value}]);
    let (most, more) = ("x".repeat(256), "x".repeat(257));
    accepts(
        "/settings/kernel_arguments",
        [
            argument("a.b_c-d", json!("_-.,:=/+@% 1")),
            argument(&most, json!(&most)),
            argument("a", Value::Null),
        ],
    );
    for (key, value) in [
        ("", json!("a")),
        ("a b", json!("a")),
        (&*more, json!("a")),
        ("a", json!("")),
        ("a", json!("$a")),
        ("a", json!(&more)),
    ] {
        let field = "settings.kernel_arguments[0]";
        refuses("/settings/kernel_arguments", field, [argument(key, value)]);
    }
}

#[test]
fn huge_pages_of_one_size_are_given_once() {
    let pages = |size: &str, count: u32| json!({"size": size, "count": count});
    let pointer = "/settings/hugepages";
    accepts(pointer, [json!([]), json!([pages("2M", 1), pages("1G", 1)])]);
    refuses(pointer, "settings.hugepages[0]", [json!([pages("2M", 0)])]);
    let twice = json!([pages("2M", 1), pages("1G", 1), pages("2M", 3)]);
    refuses(pointer, "settings.hugepages[2]", [twice]);
}

#[test]
fn a_public_key_is_one_line() {
    accepts("/settings/ssh_keys/0", [long(16_384)]);
    let bad = [json!(""), json!("a\nb"), long(16_385)];
    refuses("/settings/ssh_keys/0", "settings.ssh_keys[0]", bad);
}

#[test]
fn a_list_has_at_most_64_entries() {
    let device = json!({"vendor_id": "10de", "product_id": "1eb8", "alias": "a"});
    for (field, entry) in [
        ("kernel_arguments", json!({"key": "a"})),
        ("ssh_keys", json!("ssh-ed25519 AAAA")),
        ("passthrough", device),
    ] {
        let pointer = format!("/settings/{field}");
        accepts(&pointer, [json!(vec![entry.clone(); 64])]);
        refuses(&pointer, &format!("settings.{field}"), [json!(vec![entry; 65])]);
    }
    let pages = json!(vec![json!({"size": "2M", "count": 1}); 65]);
    refuses("/settings/hugepages", "settings.hugepages", [pages]);
}

#[test]
fn a_base_config_has_a_url_and_a_checksum() {
    let check = |base: Value| {
        let of = profile(|it| {
            it["kind"] = json!("ignition");
            it["settings"]["base_ignition"] = base;
        });
        check_profile(&of).map_err(|invalid| invalid.field)
    };
    let good = "0123456789abcdef".repeat(4);
    assert_eq!(check(json!({"url": "https://a", "sha256": &good})), Ok(()));
    let refused = Err("settings.base_ignition.url".to_owned());
    assert_eq!(check(json!({"url": "a", "sha256": &good})), refused);
    for bad in ["", &good[1..], &format!("{good}0"), &good.to_uppercase(), &"g".repeat(64)] {
        let refused = Err("settings.base_ignition.sha256".to_owned());
        assert_eq!(check(json!({"url": "https://a", "sha256": bad})), refused, "{bad}");
    }
}

#[test]
fn joining_is_awaited_for_at_most_a_day() {
    for limit in ["compute_service", "hypervisor", "resource_provider", "placement"] {
        let pointer = format!("/joining/{limit}");
        accepts(&pointer, [json!("1s"), json!("24h")]);
        let bad = [json!("0s"), json!("-1s"), json!("24h 1s")];
        refuses(&pointer, &format!("joining.{limit}"), bad);
    }
}

#[test]
fn only_the_keys_of_an_image_are_allowed() {
    let pem = "-----BEGIN CERTIFICATE-----";
    for (key, value) in [
        ("image_source", "http://images/other.qcow2"),
        ("image_os_hash_value", &*"b".repeat(64)),
        ("image_checksum", &*"b".repeat(64)),
        ("image_disk_format", "qcow2"),
        ("image_ca", pem),
    ] {
        accepts(&format!("/instance_info/{key}"), [json!(value)]);
    }
    refuses("/instance_info/image_ca", "instance_info.image_ca", [json!("x")]);
    refuses("/instance_info/capabilities", "instance_info.capabilities", [json!("x")]);
}
