//! `bedplate` takes over a real Ironic, and returns its nodes to another one.
#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use compat::wait::wait_for;
use compat::wire::Request;
use compat::{Service, program};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The configuration of baremetald: the BMCs of this test are on loopback.
const CONFIGURATION: &str = "[bmc]\nnetworks = [\"127.0.0.0/8\"]\n";

/// The provision states of nodes that the fixture reaches by requests.
const LIVED: [&str; 5] = ["enroll", "manageable", "available", "active", "rescue"];

/// The provision states that no request reaches with fake hardware. The fixture writes them to Ironic's database.
const WRITTEN: [&str; 8] = [
    "inspect failed",
    "clean failed",
    "deploy failed",
    "adopt failed",
    "service failed",
    "rescue failed",
    "unrescue failed",
    "error",
];

/// The fields that an import does not keep: links, Ironic's own work, and the times at which it was put into maintenance or a power state
/// was read after the import.
const COMPUTED: [&str; 16] = [
    "clean_step",
    "conductor",
    "deploy_step",
    "driver_internal_info",
    "fault",
    "health",
    "links",
    "nodes",
    "portgroups",
    "ports",
    "reservation",
    "service_step",
    "states",
    "target_power_state",
    "target_provision_state",
    "volume",
];

/// A running Ironic, which ends with the test.
struct Ironic {
    url: String,
    port: u16,
    state: PathBuf,
}

impl Ironic {
    fn start(port: u16, folder: &Path) -> Ironic {
        let state = folder.join(format!("ironic-{port}"));
        let ironic = Ironic { url: format!("http://127.0.0.1:{port}"), port, state };
        let up = ironic.script("up");
        assert!(up.status.success(), "ironic.sh up: {}", String::from_utf8_lossy(&up.stderr));
        ironic
    }

    fn script(&self, word: &str) -> Output {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../real/ironic/ironic.sh");
        let mut command = Command::new(script);
        command
            .arg(word)
            .env("IRONIC_PORT", self.port.to_string())
            .env("IRONIC_STATE", &self.state);
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// Writes to Ironic's database.
    fn sql(&self, statement: &str) {
        let code = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], timeout=30); c.execute(sys.argv[2]); c.commit()";
        let database = self.state.join("ironic.sqlite");
        let mut python = Command::new("python3");
        let done = python.args(["-c", code]).arg(database).arg(statement).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    /// Requests a change of provision state, and waits for its end.
    fn reach(&self, node: &str, target: &str, state: &str) {
        let mut body = json!({"target": target});
        if target == "rescue" {
            body["rescue_password"] = "abc".into();
        }
        send(&self.url, "PUT", &format!("/v1/nodes/{node}/states/provision"), &body);
        wait_for(state, Duration::from_secs(60), || {
            let now = get(&self.url, &format!("/v1/nodes/{node}"));
            (now["provision_state"] == state && now["reservation"].is_null()).then_some(())
        });
    }
}

impl Drop for Ironic {
    fn drop(&mut self) {
        self.script("down");
    }
}

/// An emulated BMC with a control API, which ends with the test.
struct Bmc {
    child: Child,
    redfish: String,
    control: String,
}

impl Bmc {
    fn start() -> Bmc {
        let mut command = Command::new(program("bmc-emulator"));
        command.args(["--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--name", "m"]);
        let mut child = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut url = || lines.next().unwrap().unwrap().split_once(' ').unwrap().1.to_owned();
        let (redfish, control) = (url(), url());
        Bmc { child, redfish, control }
    }

    /// The requests to change the machine.
    fn changes(&self) -> Value {
        let reply = Request::new("GET", "/_control/machines/m/log").send(&self.control);
        reply.expect(200).json()
    }
}

impl Drop for Bmc {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn send(url: &str, method: &str, path: &str, body: &Value) -> Value {
    let reply = Request::new(method, path).version("1.115").json(body).send(url);
    assert!(reply.status < 300, "{method} {path} {body}: {} {}", reply.status, reply.body);
    serde_json::from_str(&reply.body).unwrap_or_default()
}

#[track_caller]
fn get(url: &str, path: &str) -> Value {
    Request::new("GET", path).version("1.115").send(url).expect(200).json()
}

/// The lists that an import takes, each with its path.
const LISTS: [(&str, &str); 10] = [
    ("nodes", "/v1/nodes/detail?include_children=True"),
    ("ports", "/v1/ports/detail"),
    ("portgroups", "/v1/portgroups/detail"),
    ("chassis", "/v1/chassis/detail"),
    ("connectors", "/v1/volume/connectors?detail=True"),
    ("targets", "/v1/volume/targets?detail=True"),
    ("allocations", "/v1/allocations"),
    ("deploy_templates", "/v1/deploy_templates?detail=True"),
    ("runbooks", "/v1/runbooks?detail=True"),
    ("inspection_rules", "/v1/inspection_rules?detail=True"),
];

/// The fields of a history entry that an import keeps.
const EVENT_FIELDS: [&str; 10] = [
    "created_at",
    "duration_seconds",
    "event",
    "event_type",
    "project",
    "severity",
    "state",
    "target_provision_state",
    "user",
    "uuid",
];

/// The number of events that the fixture adds to the node `active`: more than one page of Ironic, and more than baremetald keeps.
const EVENTS: usize = 1100;
/// The number of events that an import keeps.
const KEPT_EVENTS: usize = 299;
/// The description of the inspection rule that baremetald takes.
const TAKEN_RULE: &str = "taken";

/// Every resource of a service, by its list and id.
fn all(url: &str) -> BTreeMap<(&'static str, String), Map<String, Value>> {
    let mut all = BTreeMap::new();
    for (list, path) in LISTS {
        for one in get(url, path)[list].as_array().unwrap() {
            let one = one.as_object().unwrap().clone();
            all.insert((list, one["uuid"].as_str().unwrap().to_owned()), one);
        }
    }
    all
}

/// The history of a node, the oldest event first.
fn history(url: &str, node: &str) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    loop {
        let marker = all.last().map(|last| format!("&marker={}", last["uuid"].as_str().unwrap()));
        let marker = marker.unwrap_or_default();
        let page = get(url, &format!("/v1/nodes/{node}/history?detail=True{marker}"));
        match page["history"].as_array().unwrap() {
            events if events.is_empty() => return all,
            events => all.extend(events.iter().cloned()),
        }
    }
}

/// Fails unless baremetald has the newest events of Ironic, and then the import.
#[track_caller]
fn history_is_kept(what: &str, ironic: &str, ours: &str, node: &str) {
    let theirs = history(ironic, node);
    let newest = &theirs[theirs.len().saturating_sub(KEPT_EVENTS)..];
    let kept = history(ours, node);
    let import = kept.iter().position(|it| it["event"] == "the node was imported");
    let kept = &kept[..import.unwrap_or_else(|| panic!("{what}: {kept:#?}"))];
    assert_eq!(kept.len(), newest.len(), "{what}: {kept:#?}");
    let time = |event: &Value| event["created_at"].as_str().unwrap().parse::<Timestamp>().unwrap();
    for (kept, event) in kept.iter().zip(newest) {
        for field in EVENT_FIELDS {
            match field {
                "created_at" => assert_eq!(time(kept), time(event), "{what}: {event}"),
                _ => assert_eq!(kept[field], event[field], "{what}: {field} of {event}"),
            }
        }
    }
}

/// Runs `bedplate WORD ironic` with a JSON report. Returns the exit status and the report, by the names of the resources, or by their ids.
fn bedplate(word: &str, ironic: &str, ours: &str, more: &[&str]) -> (i32, BTreeMap<String, Value>) {
    let mut command = Command::new(program("bedplate"));
    command.args([word, "ironic", "--ironic-url", ironic, "--url", ours, "-o", "json"]).args(more);
    for variable in ["OS_CLOUD", "OS_AUTH_URL", "BEDPLATE_USER", "BEDPLATE_PASSWORD_FILE"] {
        command.env_remove(variable);
    }
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{errors}"));
    let lines = report["resources"].as_array().unwrap().iter();
    let label = |it: &Value| it["name"].as_str().or(it["uuid"].as_str()).unwrap().to_owned();
    let named = lines.map(|it| (label(it), it.clone()));
    (output.status.code().unwrap(), named.collect())
}

/// Enrolls fake hardware in Ironic, and returns its id.
fn fake(ironic: &Ironic, name: &str, more: &Value) -> String {
    let mut body = json!({
        "driver": "fake-hardware", "name": name, "resource_class": name, "bios_interface": "no-bios", "boot_interface": "fake",
        "console_interface": "fake", "deploy_interface": "fake", "firmware_interface": "no-firmware", "inspect_interface": "fake",
        "management_interface": "fake", "network_interface": "noop", "power_interface": "fake", "raid_interface": "no-raid",
        "rescue_interface": "fake", "storage_interface": "noop", "vendor_interface": "no-vendor",
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    send(&ironic.url, "POST", "/v1/nodes", &body)["uuid"].as_str().unwrap().to_owned()
}

/// Brings a node to one of the states in [`LIVED`].
fn live(ironic: &Ironic, node: &str, state: &str) {
    let way = [
        ("manage", "manageable"),
        ("provide", "available"),
        ("active", "active"),
        ("rescue", "rescue"),
    ];
    let length = LIVED.iter().position(|it| *it == state).unwrap();
    for (verb, next) in &way[..length] {
        ironic.reach(node, verb, next);
    }
}

/// Fills Ironic with nodes in every stable state, and with resources of every kind.
fn fill(ironic: &Ironic, bmc: &Bmc) {
    let url = &ironic.url;
    let chassis =
        send(url, "POST", "/v1/chassis", &json!({"description": "row 3", "extra": {"a": 1}}));
    let step = json!({"interface": "bios", "step": "apply_configuration", "args": {"settings": []}, "priority": 150});
    send(url, "POST", "/v1/deploy_templates", &json!({"name": "CUSTOM_BIOS", "steps": [step]}));
    let step = json!({"interface": "deploy", "step": "erase_devices", "args": {}, "order": 1});
    send(
        url,
        "POST",
        "/v1/runbooks",
        &json!({"name": "wipe", "description": "erases", "steps": [step]}),
    );
    for state in LIVED {
        let about =
            json!({"chassis_uuid": chassis["uuid"], "description": state, "extra": {"was": state}});
        let node = fake(ironic, state, &about);
        live(ironic, &node, state);
    }
    let written = |name: &str, state: &str| {
        let node = fake(ironic, name, &json!({}));
        live(ironic, &node, "manageable");
        ironic.sql(&format!("UPDATE nodes SET provision_state = '{state}', last_error = 'it burned' WHERE uuid = '{node}'"));
    };
    for state in WRITTEN {
        written(&state.replace(' ', "-"), state);
    }
    written("busy", "clean wait");
    marked(ironic);
    parts(ironic);
    networks(ironic);
    rules(url);
    pasts(ironic);
    let redfish = |name: &str| {
        let info = json!({"redfish_address": bmc.redfish, "redfish_username": "admin", "redfish_password": "wrong"});
        let body = json!({"driver": "redfish", "name": name, "driver_info": info, "boot_interface": "ipxe", "inspect_interface": "no-inspect"});
        send(url, "POST", "/v1/nodes", &body)["uuid"].as_str().unwrap().to_owned()
    };
    let node = redfish("bmc");
    // The failure is an event that Ironic records itself.
    ironic.reach(&node, "manage", "enroll");
    let path = format!("/v1/nodes/{node}");
    let password =
        json!([{"op": "replace", "path": "/driver_info/redfish_password", "value": "password"}]);
    send(url, "PATCH", &path, &password);
    ironic.reach(&node, "manage", "manageable");
    assert_eq!(history(url, &node)[0]["severity"], "ERROR");
    redfish("secretless");
    fake(ironic, "ramdisk", &json!({"deploy_interface": "ramdisk"}));
    let parent = get(url, "/v1/nodes/manageable")["uuid"].clone();
    fake(ironic, "child", &json!({"parent_node": parent}));
}

/// Nodes with marks: in maintenance, protected, retired.
fn marked(ironic: &Ironic) {
    let mark = |name: &str, state: &str, patch: Value| {
        let node = fake(ironic, name, &json!({}));
        live(ironic, &node, state);
        send(&ironic.url, "PATCH", &format!("/v1/nodes/{node}"), &patch);
        node
    };
    let set = |field: &str| {
        json!([
            {"op": "replace", "path": format!("/{field}"), "value": true},
            {"op": "replace", "path": format!("/{field}_reason"), "value": "why"},
        ])
    };
    mark("protected", "active", set("protected"));
    mark("retired", "active", set("retired"));
    let node =
        mark("maintained", "manageable", json!([{"op": "replace", "path": "/extra", "value": {}}]));
    send(&ironic.url, "PUT", &format!("/v1/nodes/{node}/maintenance"), &json!({"reason": "fan"}));
}

/// Nodes with a network that baremetald takes, and with networks that it does not take.
fn networks(ironic: &Ironic) {
    let link = json!({"id": "eth0", "type": "phy", "ethernet_mac_address": "52:54:00:00:00:07"});
    let route = json!({"network": "0.0.0.0", "netmask": "0.0.0.0", "gateway": "192.0.2.1"});
    let first = json!({
        "id": "n0", "network_id": "n0", "link": "eth0", "type": "ipv4", "ip_address": "192.0.2.20", "netmask": "255.255.255.0",
        "routes": [route],
    });
    let second = json!({"id": "n1", "network_id": "n1", "link": "eth0", "type": "ipv4_dhcp"});
    for (name, networks) in
        [("one-network", json!([first])), ("two-networks", json!([first, second]))]
    {
        let services = json!([{"type": "dns", "address": "192.0.2.53"}]);
        let data = json!({"links": [link], "networks": networks, "services": services});
        fake(ironic, name, &json!({"network_data": data}));
    }
}

/// Inspection rules, of which baremetald takes one: it has no action `api-call`, and Ironic hides a sensitive rule.
fn rules(url: &str) {
    let condition = json!({"op": "!is-empty", "args": {"value": "{item}"}, "loop": ["a"]});
    let trait_action = json!({"op": "add-trait", "args": {"name": "CUSTOM_SMALL"}});
    let call = json!({"op": "api-call", "args": {"url": "http://192.0.2.1/"}});
    for (description, sensitive, action) in [
        (TAKEN_RULE, false, &trait_action),
        ("calls an API", false, &call),
        ("sensitive", true, &trait_action),
    ] {
        let body = json!({
            "description": description, "priority": 10, "sensitive": sensitive, "conditions": [condition], "actions": [action],
        });
        send(url, "POST", "/v1/inspection_rules", &body);
    }
}

/// Attached VIFs, which Ironic attaches with Neutron only, and a long history.
fn pasts(ironic: &Ironic) {
    let set = |table: &str, vif: &str, condition: &str| {
        let info = format!(r#"{{"tenant_vif_port_id": "{vif}"}}"#);
        ironic.sql(&format!("UPDATE {table} SET internal_info = '{info}' WHERE {condition}"));
    };
    set("ports", "5a4f1d5e-0000-4000-8000-000000000001", "address = '52:54:00:00:00:02'");
    set("portgroups", "5a4f1d5e-0000-4000-8000-000000000002", "name = 'bond'");
    ironic.sql(&format!(
        "INSERT INTO node_history (created_at, version, uuid, conductor, event_type, severity, event, user, project, node_id, state, \
         target_provision_state, duration_seconds) \
         WITH RECURSIVE numbers(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM numbers WHERE x < {EVENTS}) \
         SELECT datetime(1700000000 + x, 'unixepoch'), '1.3', printf('%08x-0000-4000-8000-000000000000', x), 'c', 'deploying', 'ERROR', \
         'event ' || x, 'u', 'p', nodes.id, 'wait call-back', 'active', x FROM numbers, nodes WHERE nodes.name = 'active'"
    ));
}

/// A free node that an allocation reserves, with ports, a port group, traits and volumes; and an allocation without a node.
fn parts(ironic: &Ironic) {
    let url = &ironic.url;
    let node = fake(ironic, "whole", &json!({"properties": {"cpus": 4}}));
    let path = format!("/v1/nodes/{node}");
    let group = json!({"node_uuid": node, "name": "bond", "mode": "802.3ad", "properties": {"miimon": "100"}});
    let group = send(url, "POST", "/v1/portgroups", &group);
    let link = json!({"switch_id": "0a:1b:2c:3d:4e:5f", "port_id": "Gig0/1"});
    let port = json!({
        "node_uuid": node, "address": "52:54:00:00:00:01", "local_link_connection": link, "pxe_enabled": false,
        "portgroup_uuid": group["uuid"], "extra": {"x": 1}, "name": "eth0",
    });
    send(url, "POST", "/v1/ports", &port);
    send(url, "POST", "/v1/ports", &json!({"node_uuid": node, "address": "52:54:00:00:00:02"}));
    let traits = json!({"traits": ["CUSTOM_GPU", "HW_CPU_X86_VMX"]});
    send(url, "PUT", &format!("{path}/traits"), &traits);
    let connector =
        json!({"node_uuid": node, "type": "iqn", "connector_id": "iqn.2025-01.example:a"});
    send(url, "POST", "/v1/volume/connectors", &connector);
    let target = json!({
        "node_uuid": node, "volume_type": "iscsi", "volume_id": "v1", "boot_index": 0, "properties": {"target_portal": "192.0.2.1"},
    });
    send(url, "POST", "/v1/volume/targets", &target);
    live(ironic, &node, "available");
    ironic.reach_power(&node);
    let taken = json!({"name": "taken", "resource_class": "whole", "traits": ["CUSTOM_GPU"], "extra": {"who": "ann"}});
    let left = json!({"name": "left", "resource_class": "none"});
    // One after the other: on SQLite, Ironic loses an allocation if its workers write at the same time.
    for (allocation, state) in [(taken, "active"), (left, "error")] {
        let made = send(url, "POST", "/v1/allocations", &allocation);
        let path = format!("/v1/allocations/{}", made["uuid"].as_str().unwrap());
        wait_for(state, Duration::from_secs(60), || {
            (get(url, &path)["state"] == state).then_some(())
        });
    }
}

impl Ironic {
    /// Gives a fake machine a power state, which allocations need.
    fn reach_power(&self, node: &str) {
        let path = format!("/v1/nodes/{node}");
        send(&self.url, "PUT", &format!("{path}/states/power"), &json!({"target": "power on"}));
        wait_for("power", Duration::from_secs(60), || {
            let now = get(&self.url, &path);
            (now["power_state"] == "power on" && now["reservation"].is_null()).then_some(())
        });
    }
}

/// Fails unless `ours` has each field of `theirs` that an import keeps.
#[track_caller]
fn is_kept(what: &str, theirs: &Map<String, Value>, ours: &Map<String, Value>) {
    let time = |value: &Value| value.as_str().map(|text| text.parse::<Timestamp>().unwrap());
    let has_power = !theirs.get("power_state").is_some_and(Value::is_null);
    for (field, value) in theirs {
        let got = &ours.get(field).cloned().unwrap_or_default();
        let place = format!("{what}: {field}");
        match field.as_str() {
            field if COMPUTED.contains(&field) => {}
            // A power state that Ironic does not know is read after the import, which changes the record.
            "power_state" | "updated_at" if !has_power => {}
            "last_error" if value.is_string() => {
                assert!(
                    got.as_str().unwrap().starts_with(value.as_str().unwrap()),
                    "{place}: {got}"
                );
            }
            field if field.ends_with("_at") => assert_eq!(time(got), time(value), "{place}"),
            "instance_info" => assert_eq!(got, &unmasked(value), "{place}"),
            "traits" => assert_eq!(sorted(got), sorted(value), "{place}"),
            "actions" => assert_eq!(got, &without_empty_loops(value), "{place}"),
            _ => assert_eq!(got, value, "{place}"),
        }
    }
}

/// A list of words, whose order means nothing.
fn sorted(list: &Value) -> Vec<String> {
    let mut words: Vec<String> = serde_json::from_value(list.clone()).unwrap();
    words.sort();
    words
}

/// The actions of a rule without the empty loops that Ironic shows.
fn without_empty_loops(actions: &Value) -> Value {
    let mut actions = actions.clone();
    for action in actions.as_array_mut().unwrap() {
        if action["loop"] == json!([]) {
            action.as_object_mut().unwrap().remove("loop");
        }
    }
    actions
}

/// An object without the secrets that a service masks.
fn unmasked(value: &Value) -> Value {
    let mut object = value.as_object().unwrap().clone();
    object.retain(|_, value| value != "******");
    Value::Object(object)
}

/// Everything of a service except for the power states, which baremetald reads at intervals.
fn steady(url: &str) -> BTreeMap<(&'static str, String), Map<String, Value>> {
    let mut all = all(url);
    for one in all.values_mut() {
        one.retain(|field, _| !["power_state", "updated_at"].contains(&field.as_str()));
    }
    all
}

/// The nodes that cannot be taken, each with the reason.
const LEFT: [(&str, &str); 3] = [
    ("busy", "provision_state: a node in state \"clean wait\" has work in progress"),
    ("secretless", "driver_info.redfish_password: this secret is masked"),
    ("ramdisk", "deploy_interface: driver fake-hardware does not support \"ramdisk\""),
];

#[test]
fn the_standard_traits_are_those_of_ironic() {
    if !peers::installed("python3") {
        return peers::skip("import", "python3 is not installed");
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../real/ironic/ironic.sh");
    let theirs = Command::new(script).arg("traits").output().expect("ironic.sh can be started");
    assert!(theirs.status.success(), "{}", String::from_utf8_lossy(&theirs.stderr));
    let ours = include_str!("../../../services/baremetal-core/src/traits/standard.txt");
    assert_eq!(String::from_utf8_lossy(&theirs.stdout), ours);
}

#[test]
fn a_real_ironic_is_taken_over_and_its_nodes_return_to_another_one() {
    if !peers::installed("python3") {
        return peers::skip("import", "python3 is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    let bmc = Bmc::start();
    let ironic = Ironic::start(16395, folder.path());
    fill(&ironic, &bmc);
    let before = all(&ironic.url);
    let ours = Service::machines_with(CONFIGURATION);
    let secrets = folder.path().join("secrets.yaml");
    fs::write(&secrets, "bmc: {redfish_password: password}\n").unwrap();
    let replaced = ["raid_interface:redfish=no-raid", "firmware_interface:redfish=no-firmware"];
    let mut options = vec!["--secrets", secrets.to_str().unwrap()];
    options.extend(replaced.iter().flat_map(|it| ["--replace", *it]));
    let run =
        |more: &[&str]| bedplate("import", &ironic.url, &ours.url, &[&options[..], more].concat());

    // Ironic controls the BMCs, so nothing but the node in maintenance is taken.
    let (status, report) = run(&["--dry-run"]);
    assert_eq!((status, &report["maintained"]["result"]), (1, &json!("would_be_taken")));
    let why = report["active"]["reasons"][0].as_str().unwrap();
    assert!(why.starts_with("Ironic controls its BMC"), "{why}");

    let (status, dry) = run(&["--quiesce", "--dry-run"]);
    assert_eq!(status, 1);
    assert_eq!(get(&ours.url, "/v1/nodes")["nodes"], json!([]));
    assert_eq!(all(&ironic.url), before, "a dry run changes nothing in Ironic");

    let (status, report) = run(&["--quiesce"]);
    assert_eq!(status, 1, "some nodes are not taken");
    assert_eq!(report["rescue"]["losses"], json!([]), "a rescue password is of no use any more");
    for (name, why) in LEFT {
        assert_eq!(report[name]["result"], "not_taken", "{}", report[name]);
        assert!(report[name]["reasons"][0].as_str().unwrap().starts_with(why), "{}", report[name]);
        assert_eq!(dry[name], report[name], "the dry run tells the same");
    }
    let is_left = |name: &Value| LEFT.iter().any(|(left, _)| name == left);
    let (mut imported, quiesced) = (all(&ours.url), all(&ironic.url));
    for ((list, id), theirs) in &before {
        let name = theirs.get("name").unwrap_or(&Value::Null);
        let what = format!("{list} {id} {name}");
        if is_left(name) {
            assert_eq!(quiesced[&(*list, id.clone())]["maintenance"], false, "{what}");
            continue;
        }
        if *list == "inspection_rules" && theirs["description"] != TAKEN_RULE {
            assert_eq!(report[id]["result"], "not_taken", "{}", report[id]);
            continue;
        }
        let mut theirs = theirs.clone();
        if name == "two-networks" {
            theirs.remove("network_data");
        }
        if name == "bmc" {
            for field in ["raid_interface", "firmware_interface"] {
                theirs.remove(field);
            }
        }
        let kept =
            imported.remove(&(*list, id.clone())).unwrap_or_else(|| panic!("{what}: {report:?}"));
        is_kept(&what, &theirs, &kept);
        if *list == "nodes" {
            assert_eq!(quiesced[&(*list, id.clone())]["maintenance"], true, "{what}");
            history_is_kept(&what, &ironic.url, &ours.url, id);
        }
    }
    assert!(imported.is_empty(), "{imported:?}");
    let older = history(&ironic.url, "active").len() - KEPT_EVENTS;
    let lost_events =
        format!("history: the oldest {older} entries (at most {KEPT_EVENTS} are kept)");
    assert_eq!(report["active"]["losses"], json!([lost_events]));
    let lost_network = "network_data: networks: the ramdisk configures exactly one network";
    assert_eq!(report["two-networks"]["losses"], json!([lost_network]));
    assert_eq!(
        dry["two-networks"],
        json!({
            "kind": "node", "name": "two-networks", "uuid": report["two-networks"]["uuid"], "reasons": [],
            "result": "would_be_taken", "losses": [lost_network],
        })
    );
    let losses = report["bmc"]["losses"].as_array().unwrap();
    assert!(
        losses.contains(&json!("raid_interface: redfish is replaced by no-raid")),
        "{losses:?}"
    );

    let (imported, quiesced) = (steady(&ours.url), all(&ironic.url));
    let (_, again) = run(&["--quiesce"]);
    assert_eq!(again["active"]["result"], "present");
    assert_eq!(again["active"]["losses"], report["active"]["losses"]);
    assert_eq!(again["two-networks"]["losses"].as_array().unwrap().len(), 1);
    assert_eq!(steady(&ours.url), imported, "a second run changes nothing");
    assert_eq!(all(&ironic.url), quiesced, "nor in Ironic");

    let other = Ironic::start(16405, folder.path());
    returns(&other, &ours.url, &secrets);
    assert_eq!(bmc.changes(), json!([]), "no request changes the machine");
}

/// Exports the nodes to a fresh Ironic.
fn returns(other: &Ironic, ours: &str, secrets: &Path) {
    let options = ["--quiesce", "--secrets", secrets.to_str().unwrap()];
    let nodes = |url: &str| all(url).into_iter().filter(|((list, _), _)| *list == "nodes");
    let before: Vec<_> = nodes(ours).collect();
    let ports: Vec<_> =
        all(ours).into_iter().filter(|((list, _), _)| list.starts_with("port")).collect();
    let (status, report) = bedplate("export", &other.url, ours, &options);
    assert_eq!(status, 1, "some states become others");
    let found = all(&other.url);
    for ((list, id), was) in before {
        let now = &found[&(list, id)];
        let name = was["name"].as_str().unwrap();
        let state = was["provision_state"].as_str().unwrap();
        let near = match state {
            "enroll" | "manageable" | "available" | "active" => state,
            "rescue" | "rescue failed" | "unrescue failed" | "service failed" => "active",
            _ => "manageable",
        };
        assert_eq!(now["provision_state"], near, "{name}: {}", report[name]);
        assert_eq!(report[name]["result"], "taken", "{}", report[name]);
        let fields = [
            "name",
            "driver",
            "resource_class",
            "extra",
            "protected",
            "retired",
            "automated_clean",
            "instance_uuid",
        ];
        for field in fields {
            assert_eq!(now[field], was[field], "{name}: {field}");
        }
        assert_eq!(sorted(&now["traits"]), sorted(&was["traits"]), "{name}");
        assert_eq!(now["maintenance"], name == "maintained", "{name}");
    }
    for ((list, id), was) in ports {
        let now = &found[&(list, id)];
        assert_eq!(now["address"], was["address"]);
        assert_eq!(now["extra"], was["extra"]);
    }
    let (_, again) = bedplate("export", &other.url, ours, &options);
    assert_eq!(again["active"]["result"], "present", "{}", again["active"]);
}
