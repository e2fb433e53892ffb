//! Wire tests of drivers, conductors, validation, inventories and empty lists.

use baremetal_core::{Driver, InspectionReport, Interface, Interfaces};
use serde_json::json;

use crate::api::{Api, ID, NEWEST};

#[tokio::test]
async fn drivers_are_listed_and_shown() {
    let api = Api::start().await;
    let links = |path: &str| {
        format!(
            r#"[{{"href": "http://api:6385/v1/drivers/{path}", "rel": "self"}},
                {{"href": "http://api:6385/drivers/{path}", "rel": "bookmark"}}]"#
        )
    };
    let one = |name: &str| {
        format!(r#"{{"name": "{name}", "hosts": ["host-1"], "links": {}}}"#, links(name))
    };
    let all =
        ["fake-hardware", "idrac", "ipmi", "manual-management", "redfish"].map(one).join(", ");
    api.send("GET", "/v1/drivers", "1.1", "")
        .await
        .has(200)
        .is(&format!(r#"{{"drivers": [{all}]}}"#));
    api.get("/v1/drivers?type=classic").await.has(200).is(r#"{"drivers": []}"#);
    api.send("GET", "/v1/drivers/ipmi", "1.30", "").await.has(200).is(&format!(
        r#"{{
            "name": "ipmi", "hosts": ["host-1"], "links": {}, "properties": {}, "type": "dynamic",
            "default_boot_interface": "ipxe", "enabled_boot_interfaces": ["ipxe", "http-ipxe"],
             "default_console_interface": "no-console", "enabled_console_interfaces": ["no-console", "ipmitool-socat", "bmc-vnc"],
             "default_deploy_interface": "direct", "enabled_deploy_interfaces": ["direct", "custom-agent", "ramdisk", "bootc", "autodetect"],
            "default_inspect_interface": "agent", "enabled_inspect_interfaces": ["agent", "no-inspect"],
            "default_management_interface": "ipmitool", "enabled_management_interfaces": ["ipmitool", "noop"],
            "default_network_interface": "noop", "enabled_network_interfaces": ["noop", "flat", "neutron"],
            "default_power_interface": "ipmitool", "enabled_power_interfaces": ["ipmitool"],
            "default_raid_interface": "no-raid", "enabled_raid_interfaces": ["no-raid", "agent"],
            "default_vendor_interface": "no-vendor", "enabled_vendor_interfaces": ["no-vendor"]
        }}"#,
        links("ipmi"),
        links("ipmi/properties")
    ));
    let properties = api.get("/v1/drivers/ipmi/properties").await.has(200).json();
    assert_eq!(properties["ipmi_address"], "IP address of the BMC. Required.");
    let iso = "URL of an ISO image with an agent that redfish-virtual-media boots. Optional.";
    assert_eq!(properties["deploy_iso"], iso);
    let named = "/v1/drivers/ipmi?fields=name,default_boot_interface";
    let want = format!(
        r#"{{"name": "ipmi", "links": {}, "default_boot_interface": "ipxe"}}"#,
        links("ipmi")
    );
    api.get(named).await.has(200).is(&want);
    api.send("GET", named, "1.76", "").await.has(406);
    let listed = api.get("/v1/drivers?fields=hosts").await.has(200).json();
    assert_eq!(
        listed["drivers"][1],
        json!({"hosts": ["host-1"], "links": listed["drivers"][1]["links"]})
    );
    let why = "fields: a driver has no field \"zz\"";
    api.get("/v1/drivers/ipmi?fields=zz").await.refuses(400, why);
    let why = "fields: cannot be used together with detail";
    api.get("/v1/drivers?fields=name&detail=true").await.refuses(400, why);
    let words =
        "unknown driver \"zz\"; use fake-hardware, idrac, ipmi, manual-management or redfish";
    api.get("/v1/drivers/zz").await.refuses(404, words);
    api.get("/v1/drivers?type=zz").await.refuses(400, "type: must be classic or dynamic");
}

/// The version of the programs of this workspace.
const VERSION: &str = env!("CARGO_PKG_VERSION");

#[tokio::test]
async fn conductors_are_shown_with_their_shares() {
    let api = Api::start().await;
    let now: jiff::Timestamp = "2026-01-02T03:04:05.000006Z".parse().unwrap();
    let groups = [String::new()];
    api.store.conductors().touch("host-1", &groups, now).await.unwrap();
    let before = now - jiff::SignedDuration::from_mins(5);
    api.store.conductors().touch("host-2", &groups, before).await.unwrap();
    api.enroll("").await;
    let one = |name: &str, state: &str, nodes: u32, seen: &str| {
        format!(
            r#"{{"hostname": "{name}", "conductor_groups": [""], "state": "{state}", "version": "{VERSION}", "nodes": {nodes}, "busy_nodes": 0,
                "turns_of_others": 0, "last_seen_at": "{seen}"}}"#
        )
    };
    let alive = one("host-1", "working", 1, "2026-01-02T03:04:05.000006+00:00");
    let dead = one("host-2", "dead", 0, "2026-01-02T02:59:05.000006+00:00");
    let path = "/bedplate/v1/conductors";
    api.get(path).await.has(200).is(&format!(r#"{{"conductors": [{dead}, {alive}]}}"#));
    api.get(&format!("{path}/host-1")).await.has(200).is(&alive);
    api.get(&format!("{path}/zz")).await.refuses(404, "Conductor zz could not be found.");
    for method in ["PUT", "DELETE"] {
        let drain =
            async |name: &str| api.send(method, &format!("{path}/{name}/drain"), NEWEST, "").await;
        drain("zz").await.refuses(404, "Conductor zz could not be found.");
        let why = "a conductor whose database is SQLite has no other that takes its work";
        drain("host-1").await.refuses(409, why);
    }
}

#[tokio::test]
async fn a_conductor_is_alive_while_it_reports() {
    let api = Api::start().await;
    let now = "2026-01-02T03:04:05.000006Z".parse().unwrap();
    let groups = ["east".to_owned(), String::new()];
    api.store.conductors().touch("host-1", &groups, now).await.unwrap();
    let before = now - jiff::SignedDuration::from_mins(5);
    api.store.conductors().touch("host-2", &groups, before).await.unwrap();
    let one = |name: &str, alive: bool| {
        format!(
            r#""hostname": "{name}", "conductor_group": "east", "alive": {alive},
                "links": [{{"href": "http://api:6385/v1/conductors/{name}", "rel": "self"}},
                          {{"href": "http://api:6385/conductors/{name}", "rel": "bookmark"}}]"#
        )
    };
    let (old, new) = (one("host-2", false), one("host-1", true));
    let want = format!(r#"{{"conductors": [{{{old}}}, {{{new}}}]}}"#);
    api.get("/v1/conductors").await.has(200).is(&want);
    let want = format!(
        r#"{{{}, "drivers": ["fake-hardware", "idrac", "ipmi", "manual-management", "redfish"],
            "created_at": "2026-01-02T03:04:05.000006+00:00", "updated_at": "2026-01-02T03:04:05.000006+00:00"}}"#,
        one("host-1", true)
    );
    api.get("/v1/conductors/host-1").await.has(200).is(&want);
    api.get("/v1/conductors/zz").await.refuses(404, "Conductor zz could not be found.");
    let names = async |query: &str| {
        let listed = api.get(&format!("/v1/conductors?{query}")).await.has(200).json();
        let names = listed["conductors"].as_array().unwrap().iter();
        names.map(|it| it["hostname"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for (query, want) in [
        ("fields=hostname", &["host-2", "host-1"][..]),
        ("sort_key=hostname", &["host-1", "host-2"]),
        ("sort_key=updated_at", &["host-2", "host-1"]),
        ("sort_key=hostname&sort_dir=desc", &["host-2", "host-1"]),
        ("sort_key=hostname&limit=1", &["host-1"]),
        ("marker=host-2", &["host-1"]),
        ("marker=host-1", &[]),
    ] {
        assert_eq!(names(query).await, want, "{query}");
    }
    let next = api.get("/v1/conductors?limit=1&fields=alive").await.json()["next"].clone();
    let query = "sort_key=id&sort_dir=asc&fields=alive&limit=1&marker=host-2";
    assert_eq!(next, format!("http://api:6385/v1/conductors?{query}"));
    let shown = api.get("/v1/conductors/host-1?fields=alive").await.has(200).json();
    assert_eq!((shown["alive"].as_bool(), shown.as_object().unwrap().len()), (Some(true), 2));
    let why = "marker: Conductor zz could not be found.";
    api.get("/v1/conductors?marker=zz").await.refuses(404, why);
    let why = "sort_key: conductors cannot be sorted by \"alive\"";
    api.get("/v1/conductors?sort_key=alive").await.refuses(400, why);
    let why = "fields: a conductor has no field \"zz\"";
    api.get("/v1/conductors?fields=zz").await.refuses(400, why);
}

#[tokio::test]
async fn validation_names_missing_settings() {
    let api = Api::start().await;
    api.enroll("").await;
    let fine = |name| format!(r#""{name}": {{"result": true}}"#);
    let always = ["boot", "deploy", "inspect", "management", "network", "power", "storage"];
    let always = always.map(fine).join(", ");
    let others = ["bios", "console", "firmware", "raid", "rescue"];
    let want = format!("{{{always}, {}}}", others.map(fine).join(", "));
    api.get(&format!("/v1/nodes/{ID}/validate")).await.has(200).is(&want);

    let lacking = others.map(|name| {
        format!(
            r#""{name}": {{"result": false,
                "reason": "Driver fake-hardware does not support {name} (disabled or not implemented)."}}"#
        )
    });
    api.edit(|node| {
        for name in others {
            let interface = Interface::ALL.into_iter().find(|it| it.as_str() == name).unwrap();
            assert!(node.interfaces.choose(interface, &format!("no-{name}")));
        }
    })
    .await;
    let want = format!("{{{always}, {}}}", lacking.join(", "));
    api.get(&format!("/v1/nodes/{ID}/validate")).await.has(200).is(&want);
    api.edit(|node| node.interfaces = Interfaces::default()).await;

    api.edit(|node| node.driver = Driver::Redfish).await;
    let verdicts = api.get(&format!("/v1/nodes/{ID}/validate")).await.has(200).json();
    assert_eq!(
        verdicts["boot"],
        json!({"result": false, "reason": "ports: no port has pxe_enabled; network boot needs one to recognize the machine"})
    );
    assert_eq!(
        verdicts["deploy"]["reason"],
        "instance_info.image_source: missing; set it to the http or https URL of an image"
    );
    for interface in ["power", "management", "inspect"] {
        assert_eq!(verdicts[interface]["result"], false);
        assert!(verdicts[interface]["reason"].as_str().unwrap().contains("redfish_address"));
    }
    assert_eq!(verdicts["storage"], json!({"result": true}));
}

#[tokio::test]
async fn a_setting_of_a_bmc_that_is_not_obeyed_is_not_valid() {
    let api = Api::start().await;
    api.enroll("").await;
    for (driver, key, harmless, other) in [
        (Driver::Ipmi, "ipmi_bridging", json!("no"), json!("single")),
        (Driver::Ipmi, "ipmi_force_boot_device", json!(false), json!("True")),
        (Driver::Redfish, "redfish_tls_ciphers", json!(""), json!("AES256")),
    ] {
        for (value, is_valid) in [(harmless, true), (other, false)] {
            let mut info = json!({"ipmi_address": "192.0.2.1", "redfish_address": "192.0.2.1"});
            info[key] = value;
            api.edit(|node| {
                node.driver = driver;
                node.driver_info = info.as_object().unwrap().clone();
            })
            .await;
            let verdicts = api.get(&format!("/v1/nodes/{ID}/validate")).await.has(200).json();
            assert_eq!(verdicts["power"]["result"], is_valid, "{info}");
            if !is_valid {
                let why = verdicts["power"]["reason"].as_str().unwrap();
                assert!(why.starts_with(&format!("driver_info/{key}: must be ")), "{why}");
            }
        }
    }
}

#[tokio::test]
async fn a_missing_interface_is_not_valid() {
    let api = Api::start().await;
    api.enroll("").await;
    let validated = async |interface: &str| {
        let mut verdicts = api.get(&format!("/v1/nodes/{ID}/validate")).await.has(200).json();
        verdicts[interface].take()
    };
    let choose = async |interface: Interface, name: &str| {
        api.edit(|node| {
            assert!(node.interfaces.choose(interface, name));
        })
        .await;
    };
    choose(Interface::Console, "fake").await;
    assert_eq!(validated("console").await["result"], true);
    choose(Interface::Inspect, "no-inspect").await;
    assert_eq!(
        validated("inspect").await["reason"],
        "Driver fake-hardware does not support inspect (disabled or not implemented)."
    );

    api.edit(|node| {
        node.driver = Driver::Ipmi;
        node.driver_info.insert("ipmi_address".to_owned(), "192.0.2.1".into());
        node.interfaces = Interfaces::default();
    })
    .await;
    assert_eq!(validated("power").await["result"], true);
    assert_eq!(validated("console").await["result"], false);
    assert!(validated("inspect").await["reason"].as_str().unwrap().contains("pxe_enabled"));
    choose(Interface::Console, "ipmitool-socat").await;
    assert_eq!(validated("console").await["result"], true);
}

#[tokio::test]
async fn an_inventory_is_shown_once_there_is_one() {
    let api = Api::start().await;
    api.enroll("").await;
    let path = format!("/v1/nodes/{ID}/inventory");
    api.get(&path).await.refuses(404, &format!("node {ID} has not been inspected yet"));
    let found = InspectionReport {
        node: ID.parse().unwrap(),
        at: "2026-01-02T03:04:05Z".parse().unwrap(),
        inventory: json!({"cpu": {"count": 8}}),
        plugin_data: json!({"root_disk": null}),
    };
    api.store.save_inspected(&found).await.unwrap();
    api.get(&path)
        .await
        .has(200)
        .is(r#"{"inventory": {"cpu": {"count": 8}}, "plugin_data": {"root_disk": null}}"#);
    api.send("GET", &path, "1.80", "").await.has(404);
}

#[tokio::test]
async fn lists_of_absent_resources_are_empty() {
    let api = Api::start().await;
    api.enroll("").await;
    for (path, key) in [
        ("inspection_rules", "inspection_rules"),
        (&format!("nodes/{ID}/bios"), "bios"),
        (&format!("nodes/{ID}/firmware"), "firmware"),
        (&format!("nodes/{ID}/vifs"), "vifs"),
    ] {
        api.get(&format!("/v1/{path}")).await.has(200).is(&format!(r#"{{"{key}": []}}"#));
    }
    api.get("/v1/shards").await.has(200).is(r#"{"shards": [{"name": null, "count": 1}]}"#);
    api.get(&format!("/v1/nodes/{ID}/children")).await.has(200).is(&format!(
        r#"{{"children": [], "links": {{"href": "http://api:6385/v1/nodes?parent_node={ID}", "rel": "children"}}}}"#
    ));
    api.get(&format!("/v1/nodes/{ID}/states/console"))
        .await
        .has(200)
        .is(r#"{"console_enabled": false, "console_info": null}"#);
    api.send("POST", &format!("/v1/nodes/{ID}/vifs"), NEWEST, r#"{"id": "x", "port_uuid": "y"}"#)
        .await
        .has(204);
    api.send("DELETE", &format!("/v1/nodes/{ID}/vifs/x"), NEWEST, "").await.has(204);
}
