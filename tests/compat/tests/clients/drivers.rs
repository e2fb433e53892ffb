//! Tests of `openstack baremetal driver` and `conductor`.

use compat::{CommandLine, Service};
use serde_json::Value;

fn column<'a>(table: &'a Value, name: &str) -> Vec<&'a str> {
    let rows = table.as_array().expect("a table");
    rows.iter().map(|row| row[name].as_str().unwrap_or_default()).collect()
}

#[test]
fn drivers_are_listed_with_their_conductors() {
    let service = Service::start();
    let mut client = CommandLine::start(&service.url);
    let conductors = client.json(&["conductor", "list"]);
    let host = conductors[0]["hostname"].as_str().expect("a host name").to_owned();

    let drivers = client.json(&["driver", "list"]);
    for driver in ["fake-hardware", "idrac", "ipmi", "manual-management", "redfish"] {
        assert!(column(&drivers, "name").contains(&driver), "no {driver} in {drivers}");
    }
    assert!(column(&drivers, "hosts").iter().all(|hosts| *hosts == host), "{drivers}");

    let shown = client.json(&["driver", "show", "redfish"]);
    assert_eq!(shown["name"], "redfish");
    assert_eq!(shown["type"], "dynamic");
    assert_eq!(shown["default_power_interface"], "redfish");
    let boot = shown["enabled_boot_interfaces"].as_str().expect("a list in a cell");
    assert!(boot.contains("redfish-virtual-media"), "{boot}");

    let said = client.refused(&["driver", "show", "typewriter"]);
    assert!(said.contains("(HTTP 404)") && said.contains("typewriter"), "{said}");
}

#[test]
fn a_driver_lists_its_properties() {
    let service = Service::start();
    let mut client = CommandLine::start(&service.url);
    for (driver, properties) in [
        (
            "redfish",
            [
                "redfish_address",
                "redfish_system_id",
                "redfish_username",
                "redfish_password",
                "redfish_verify_ca",
            ],
        ),
        (
            "ipmi",
            ["ipmi_address", "ipmi_port", "ipmi_username", "ipmi_password", "ipmi_cipher_suite"],
        ),
    ] {
        let table = client.json(&["driver", "property", "list", driver]);
        for property in properties {
            assert!(column(&table, "property").contains(&property), "{driver} has no {property}");
        }
        assert!(column(&table, "description").iter().all(|text| !text.is_empty()), "{table}");
    }
}

#[test]
fn the_conductor_is_shown() {
    let service = Service::start();
    let mut client = CommandLine::start(&service.url);
    let list = client.json(&["conductor", "list"]);
    assert_eq!(list.as_array().map(Vec::len), Some(1), "{list}");
    let host = list[0]["hostname"].as_str().expect("a host name");
    let shown = client.json(&["conductor", "show", host]);
    assert_eq!(shown["hostname"], host);
    assert_eq!(shown["conductor_group"], "");
    let drivers: Vec<&str> =
        shown["drivers"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert!(drivers.contains(&"fake-hardware"), "{drivers:?}");
    // On SQLite, a real Ironic never reports itself as alive.
    assert!(!service.is_ours() || shown["alive"] == true, "{shown}");

    client.json(&["node", "create", "--driver", "fake-hardware", "--name", "conducted"]);
    assert_eq!(client.json(&["node", "show", "conducted"])["conductor"], host);
    client.done(&["node", "delete", "conducted"]);
    client.refused(&["conductor", "show", "nowhere"]);
}
