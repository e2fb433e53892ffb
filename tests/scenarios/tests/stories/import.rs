//! `bedplate import ironic` takes over the nodes of another baremetald, which plays Ironic. The command is killed before and after each of its
//! changes, or baremetald at each of its writes, and the command is repeated: nothing is lost or there twice, and no machine and no port of
//! Neutron is changed.

mod proxy;

use std::collections::BTreeMap;
use std::fs::File;
use std::process::Stdio;
use std::sync::Arc;

use api_client::baremetald::Allocation;
use lab::{Api, Lab, Machine, Settings};
use reqwest::Method;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

use self::proxy::{Gate, Proxy};
use crate::vifs::VifSite;

/// The lists of the API, each with its path.
const LISTS: [(&str, &str); 10] = [
    ("nodes", "/v1/nodes/detail?include_children=true"),
    ("ports", "/v1/ports/detail"),
    ("portgroups", "/v1/portgroups/detail"),
    ("chassis", "/v1/chassis/detail"),
    ("connectors", "/v1/volume/connectors?detail=true"),
    ("targets", "/v1/volume/targets?detail=true"),
    ("allocations", "/v1/allocations"),
    ("deploy_templates", "/v1/deploy_templates?detail=true"),
    ("runbooks", "/v1/runbooks?detail=true"),
    ("inspection_rules", "/v1/inspection_rules?detail=true"),
];

/// The fields that belong to the service and not to the resource.
const OWN: [&str; 7] = ["conductor", "links", "nodes", "portgroups", "ports", "states", "volume"];

/// The exit status of the command if baremetald does not answer.
const UNREACHABLE: i32 = 6;

type Object = Map<String, Value>;

/// Everything that an import takes.
struct Everything {
    /// Each resource, by its list and id.
    resources: BTreeMap<(&'static str, String), Object>,
    /// The history of each node.
    histories: BTreeMap<String, Vec<Object>>,
}

impl Everything {
    async fn of(api: &Api) -> Everything {
        let (mut resources, mut histories) = (BTreeMap::new(), BTreeMap::new());
        for (list, path) in LISTS {
            let mut lists: BTreeMap<String, Vec<Object>> = api.get(path).await;
            for mut resource in lists.remove(list).expect("the list") {
                let id = resource["uuid"].as_str().expect("an id").to_owned();
                resource.retain(|field, _| !OWN.contains(&field.as_str()));
                if list == "nodes" {
                    histories.insert(id.clone(), history(api, &id).await);
                }
                resources.insert((list, id), resource);
            }
        }
        Everything { resources, histories }
    }
}

/// The history of a node, without the fields of the service.
async fn history(api: &Api, node: &str) -> Vec<Object> {
    let path = format!("/v1/nodes/{node}/history?detail=true&limit=1000");
    let mut lists: BTreeMap<String, Vec<Object>> = api.get(&path).await;
    let mut history = lists.remove("history").expect("the list");
    for event in &mut history {
        event.retain(|field, _| !OWN.contains(&field.as_str()));
    }
    history
}

/// Enrolls nodes of fake hardware, one with a network and parts, one in maintenance and one below another, and makes a resource of each other
/// kind that no allocation needs.
async fn fill(api: &Api) {
    let make = async |path: &str, body: Value| api.create(path, &body).await;
    let chassis = make("/v1/chassis", json!({"description": "row 3"})).await;
    let erase = json!({"interface": "deploy", "step": "erase_devices", "args": {}, "priority": 50});
    make("/v1/deploy_templates", json!({"name": "CUSTOM_ERASE", "steps": [erase]})).await;
    let erase = json!({"interface": "deploy", "step": "erase_devices", "args": {}, "order": 1});
    make("/v1/runbooks", json!({"name": "CUSTOM_WIPE", "steps": [erase]})).await;
    let action = json!({"op": "add-trait", "args": {"name": "CUSTOM_SMALL"}});
    make("/v1/inspection_rules", json!({"description": "small", "actions": [action]})).await;
    let allocation =
        make("/v1/allocations", json!({"name": "left", "resource_class": "none"})).await;
    let failed = |it: &Allocation| (it.state.as_deref() == Some("error")).then_some(());
    api.until(&format!("/v1/allocations/{allocation}"), "a failed allocation", failed).await;

    let network = json!({
        "links": [{"id": "eth0", "type": "phy", "ethernet_mac_address": "52:54:00:ee:00:01"}],
        "networks": [{"id": "n0", "network_id": "n0", "link": "eth0", "type": "ipv4_dhcp"}],
        "services": [],
    });
    let fake = |name: &str, more: Value| {
        let mut body = json!({"name": name, "driver": "fake-hardware"});
        body.as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        body
    };
    let free = fake("free", json!({"chassis_uuid": chassis, "network_data": network}));
    let free = make("/v1/nodes", free).await;
    let group = make("/v1/portgroups", json!({"node_uuid": free, "name": "bond"})).await;
    let address = "52:54:00:ee:00:01";
    let port = json!({"node_uuid": free, "address": address, "portgroup_uuid": group});
    make("/v1/ports", port).await;
    let connector =
        json!({"node_uuid": free, "type": "iqn", "connector_id": "iqn.2025-01.example:a"});
    make("/v1/volume/connectors", connector).await;
    let extra = json!([{"op": "add", "path": "/extra/row", "value": 3}]);
    api.send(Method::PATCH, &format!("/v1/nodes/{free}"), Some(&extra)).await.expect("a patch");
    make("/v1/nodes", fake("child", json!({"parent_node": free}))).await;
    let kept = make("/v1/nodes", fake("kept", json!({}))).await;
    let reason = json!({"reason": "fan"});
    let path = format!("/v1/nodes/{kept}/maintenance");
    api.send(Method::PUT, &path, Some(&reason)).await.expect("maintenance");
}

#[derive(Debug)]
enum RunEnd {
    Killed,
    Ended { code: Option<i32>, report: Value, errors: String },
}

/// The command line between two services.
struct Importer {
    ironic: String,
    ours: String,
    /// For the secrets, and the output of the command.
    folder: TempDir,
}

impl Importer {
    fn new(ironic: &str, ours: &str) -> Importer {
        let folder = tempfile::tempdir().expect("a folder");
        let secrets = format!("r1u1: {{redfish_password: {:?}}}\n", left::canary::BMC);
        std::fs::write(folder.path().join("secrets.yaml"), secrets).expect("a file");
        Importer { ironic: ironic.to_owned(), ours: ours.to_owned(), folder }
    }

    fn start(&self) -> Child {
        let file = |name: &str| File::create(self.folder.path().join(name)).expect("a file");
        let mut command = Command::new(compat::program("bedplate"));
        command
            .env_clear()
            .args(["import", "ironic", "--ironic-url", &self.ironic, "--url", &self.ours])
            .args(["-o", "json", "--quiesce", "--secrets"])
            .arg(self.folder.path().join("secrets.yaml"))
            .stdin(Stdio::null())
            .stdout(file("report"))
            .stderr(file("errors"))
            .kill_on_drop(true);
        command.spawn().expect("bedplate starts")
    }

    /// Runs the command, and kills it when the gate stops it.
    async fn run(&self, gate: &Gate) -> RunEnd {
        let mut child = self.start();
        let code = tokio::select! {
            status = child.wait() => status.expect("a child ends").code(),
            () = gate.stopped() => {
                child.kill().await.expect("a child can be killed");
                return RunEnd::Killed;
            }
        };
        self.end(code)
    }

    fn end(&self, code: Option<i32>) -> RunEnd {
        let text = |name: &str| {
            let text = std::fs::read_to_string(self.folder.path().join(name)).expect("a file");
            left::keep_text("bedplate", text.as_bytes());
            text
        };
        let (report, errors) = (text("report"), text("errors"));
        let report = serde_json::from_str(&report).unwrap_or_default();
        RunEnd::Ended { code, report, errors }
    }
}

/// A machine in use and other nodes of a baremetald that plays Ironic, in a cloud that a second baremetald shares.
struct Takeover {
    ironic: VifSite,
    before: Everything,
    bmc_requests: usize,
    folder: TempDir,
}

impl Takeover {
    async fn start() -> Takeover {
        let start = async |settings| Lab::start_with(settings).await;
        let ironic = VifSite::start(start, Settings::default()).await;
        assert_eq!(ironic.attach(&ironic.vif).await, 204);
        ironic.lab.provision(ironic.node, "active").await.reaches("active").await;
        ironic.is_bound();
        fill(ironic.lab.api()).await;
        let before = Everything::of(ironic.lab.api()).await;
        let bmc_requests = ironic.machine.chassis().log().len();
        ironic.lab.cloud.forget_calls();
        let folder = tempfile::tempdir().expect("a folder");
        let clouds = ironic.lab.cloud.clouds_yaml();
        std::fs::write(folder.path().join("clouds.yaml"), clouds).expect("a file");
        Takeover { ironic, before, bmc_requests, folder }
    }

    /// The settings of the baremetald that takes over the nodes.
    fn settings(&self) -> Settings {
        let cloud = Some(self.folder.path().join("clouds.yaml"));
        Settings { cloud, ..Settings::default() }
    }

    /// Checks that no BMC is controlled by both services: Ironic has let go of each node that baremetald has.
    async fn no_machine_has_two_services(&self, ours: &Api) {
        let theirs = Everything::of(self.ironic.lab.api()).await;
        let taken = Everything::of(ours).await.resources.into_keys();
        for key in taken.filter(|(list, _)| *list == "nodes") {
            assert_eq!(theirs.resources[&key]["maintenance"], true, "{key:?}");
        }
    }

    /// Checks that baremetald has everything once, and that nothing outside the two services has changed.
    async fn is_complete(&self, lab: &Lab) {
        let imported = Everything::of(lab.api()).await;
        let ironic = Everything::of(self.ironic.lab.api()).await;
        let mut histories = imported.histories.clone();
        for (node, history) in &mut histories {
            let last = history.pop().expect("an event");
            assert_eq!(last["event"], "the node was imported", "{node}: {last:?}");
        }
        assert_eq!(histories, ironic.histories);
        let ids = |all: &Everything| all.resources.keys().cloned().collect::<Vec<_>>();
        assert_eq!(ids(&imported), ids(&self.before));
        for (key, resource) in &self.before.resources {
            assert_eq!(&imported.resources[key], resource, "{key:?}");
        }
        assert_eq!(self.ironic.machine.chassis().log().len(), self.bmc_requests, "a BMC was asked");
        let calls = self.ironic.lab.cloud.calls();
        let network: Vec<_> = calls.iter().filter(|it| it.path.starts_with("/network")).collect();
        assert!(network.is_empty(), "{network:#?}");
        self.ironic.is_bound();
    }

    /// Undeploys the machine with the baremetald that has taken it over, which releases the port of Neutron.
    async fn ends(&self, lab: &Lab) {
        let node = self.ironic.node;
        lab.set(node, "/automated_clean", json!(false)).await;
        lab.provision(node, "deleted").await.reaches("available").await;
        self.ironic.is_unbound();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_survives_a_kill_before_and_after_each_of_its_changes() {
    let takeover = Takeover::start().await;
    let lab = Lab::start_with(takeover.settings()).await;
    let gate = Arc::new(Gate::default());
    let theirs = Proxy::start(&gate, takeover.ironic.lab.api().url()).await;
    let ours = Proxy::start(&gate, lab.api().url()).await;
    let importer = Importer::new(&theirs.url, &ours.url);
    let (code, report, errors) = loop {
        if let RunEnd::Ended { code, report, errors } = importer.run(&gate).await {
            break (code, report, errors);
        }
        takeover.no_machine_has_two_services(lab.api()).await;
    };
    assert_eq!(code, Some(0), "{errors}{report:#}");
    for line in report["resources"].as_array().expect("a list") {
        assert_eq!(line["result"], "present", "{line}");
    }
    // Five resources of no node, four nodes, and the maintenance of three of them.
    assert_eq!(gate.count(), 2 * 12);
    takeover.is_complete(&lab).await;
    takeover.ends(&lab).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_survives_a_kill_of_baremetald_at_each_of_its_writes() {
    let takeover = Takeover::start().await;
    let lab = Lab::with_mortal(takeover.settings()).await;
    let urls = [takeover.ironic.lab.api().url(), lab.api().url()];
    let importer = Importer::new(urls[0].as_str(), urls[1].as_str());
    let running: Mutex<Option<Child>> = Mutex::default();
    let done = async || {
        // A run that was in progress when baremetald was killed goes on until it has noticed.
        loop {
            let mut running = running.lock().await;
            let child = running.get_or_insert_with(|| importer.start());
            let code = child.wait().await.expect("a child ends").code();
            *running = None;
            let end = importer.end(code);
            match code {
                Some(0) => return,
                _ => assert_eq!(code, Some(UNREACHABLE), "{end:?}"),
            }
        }
    };
    let points = lab.kill_at_every_point(1, |_| false, async || {}, done).await;
    assert!(points.iter().any(|point| point.starts_with("before import_node")), "{points:#?}");
    assert!(points.iter().any(|point| point.starts_with("after import_node")), "{points:#?}");
    takeover.no_machine_has_two_services(lab.api()).await;
    takeover.is_complete(&lab).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_not_taken_after_a_kill_returns_to_ironic() {
    let (ironic, lab) = (Lab::start().await, Lab::start().await);
    let machine = ironic.rack(Machine::redfish("r1u1").without_tls()).await;
    let node = ironic.enroll(&machine).await;
    let gate = Arc::new(Gate::default());
    let theirs = Proxy::start(&gate, ironic.api().url()).await;
    let importer = Importer::new(&theirs.url, lab.api().url().as_str());
    for _ in ["before the maintenance", "after the maintenance"] {
        let killed = importer.run(&gate).await;
        assert!(matches!(killed, RunEnd::Killed), "{killed:?}");
    }
    assert!(ironic.node(node).await.maintenance);

    let other = json!({"name": "r1u1", "driver": "fake-hardware"});
    lab.enroll_as(&other).await;
    gate.open();
    let RunEnd::Ended { code, report, errors } = importer.run(&gate).await else {
        panic!("no request is stopped")
    };
    assert_eq!(code, Some(1), "{errors}");
    let line = &report["resources"][0];
    assert_eq!(line["reasons"], json!(["name: \"r1u1\" is already in use"]), "{line}");
    let back = ironic.node(node).await;
    assert_eq!((back.maintenance, back.maintenance_reason), (false, None));
}
