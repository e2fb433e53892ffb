//! Forged and stale requests, and requests with another machine's credentials, are refused on the machines' port and leave no record.
//!
//! Each test ends with the correct requests, which are accepted.

use std::net::Ipv4Addr;
use std::time::Duration;

use agent_protocol::KernelParameters;
use baremetal_core::{
    AgentCommand, DeployInterface, Driver, InspectInterface, Node, NodeFilter, NodeIdent, NodeSort,
    Page, Port, State, StepKind, Task, Verb, WorkUuid, request_verb,
};
use baremetal_store::{PagePart, Store};
use hardware::MacAddress;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::machine::{Machine, Speaker, mac};
use crate::site::{LOOPBACK, TestService, awaited, enrolled};

const PATIENCE: Duration = Duration::from_secs(60);
/// The id of a node that does not exist.
const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

/// A request, and the expected status of its answer.
struct Row {
    what: String,
    method: Method,
    url: String,
    body: Option<Value>,
    status: u16,
}

/// Makes a row with a request without a body.
fn get(what: &str, url: impl Into<String>, status: u16) -> Row {
    Row { what: what.to_owned(), method: Method::GET, url: url.into(), body: None, status }
}

fn post(what: &str, url: impl Into<String>, body: Value, status: u16) -> Row {
    Row { body: Some(body), method: Method::POST, ..get(what, url, status) }
}

/// Returns everything that the store contains about machines.
async fn stored(store: &Store) -> String {
    let page = Page { limit: 100, marker: None, sort: NodeSort::Id, descending: false };
    let nodes = store.list_nodes(&NodeFilter::default(), &page).await.unwrap();
    let mut all = format!(
        "{:?}\n",
        store.list_discoveries_part(1000, PagePart::whole()).await.unwrap().found
    );
    for node in nodes {
        let ports = store.ports_of(node.id).await.unwrap();
        let boot = store.find_boot(node.id).await.unwrap();
        let inspected = store.find_inspected(node.id).await.unwrap();
        let history = store.history(node.id, 300, None).await.unwrap();
        all += &format!("{node:?}\n{ports:?}\n{boot:?}\n{inspected:?}\n{history:?}\n");
    }
    all
}

impl TestService {
    /// Sends every request, and asserts that its status is as expected and that the store is unchanged.
    async fn refuses(&self, rows: Vec<Row>) {
        for row in rows {
            let before = stored(&self.store).await;
            assert_eq!(
                self.send(&row).await,
                row.status,
                "{}: {} {}",
                row.what,
                row.method,
                row.url
            );
            assert_eq!(stored(&self.store).await, before, "{}", row.what);
        }
    }

    async fn send(&self, row: &Row) -> u16 {
        let request = self.http.request(row.method.clone(), &row.url);
        let request = match &row.body {
            Some(body) => request.json(body),
            None => request,
        };
        request.send().await.unwrap().status().as_u16()
    }

    fn machines(&self, path: &str) -> String {
        format!("http://{}{path}", self.provisioning)
    }

    fn operators(&self, path: &str) -> String {
        format!("http://{}{path}", self.api)
    }

    /// Boots a machine by iPXE; returns the URL of its script and the kernel parameters in it.
    async fn boot(&self, mac: MacAddress) -> (String, KernelParameters) {
        let machine = Machine::new(self.dhcp, Ipv4Addr::LOCALHOST, mac).await;
        let url = machine.boots(Speaker::Ipxe).await.unwrap().boot_file;
        let reported = self.script(&url).await;
        (url, reported)
    }

    /// Fetches a boot script and returns its kernel parameters.
    async fn script(&self, url: &str) -> KernelParameters {
        let script = self.http.get(url).send().await.unwrap().text().await.unwrap();
        KernelParameters::parse(script.lines().find(|line| line.starts_with("kernel ")).unwrap())
    }

    /// Waits until `look` accepts the node.
    async fn until(&self, node: &Node, look: impl Fn(&Node) -> bool) {
        let seen = async {
            let ident = NodeIdent::Id(node.id);
            while !look(&self.store.find_node(&ident).await.unwrap().unwrap()) {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, seen).await.unwrap();
    }
}

fn certificate() -> String {
    rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap().cert.pem()
}

/// Makes a heartbeat. No process listens on port 9 for the callback.
fn beat(token: &str, certificate: &str) -> Value {
    json!({"callback_url": "https://127.0.0.1:9", "agent_token": token, "agent_version": "1",
        "agent_verify_ca": certificate})
}

/// Returns the heartbeat with one field changed, or left out if `value` is null.
fn but(beat: &Value, field: &str, value: impl Into<Value>) -> Value {
    let (mut changed, value) = (beat.clone(), value.into());
    changed.as_object_mut().unwrap().remove(field);
    if !value.is_null() {
        changed[field] = value;
    }
    changed
}

fn inventory() -> Value {
    json!({"inventory": {
        "interfaces": [], "disks": [], "memory": {"total": 1, "physical_mb": 1},
        "cpu": {"model_name": "c", "frequency": "1", "count": 1, "architecture": "x86_64", "flags": []},
        "system_vendor": {"product_name": "p", "serial_number": "s", "manufacturer": "m"},
        "boot": {"current_boot_mode": "bios", "pxe_interface": null}, "hostname": "h",
    }})
}

/// Returns two nodes that are cleaned, one that is inspected, and one without work.
fn nodes() -> [(Node, Port); 4] {
    [
        awaited("first", mac(1), Verb::Provide),
        awaited("second", mac(2), Verb::Provide),
        awaited("inspected", mac(3), Verb::Inspect),
        enrolled("at-rest", mac(4)),
    ]
}

#[tokio::test]
async fn a_forged_or_stale_heartbeat_is_refused() {
    let nodes = nodes();
    let site = TestService::start(LOOPBACK, "refuse", &nodes).await;
    let [first, second, _, at_rest] = nodes.map(|(node, _)| node);
    let (script, reported) = site.boot(mac(1)).await;
    let earlier = reported.agent_token.unwrap();
    let token = site.script(&script).await.agent_token.unwrap();
    let others = site.boot(mac(2)).await.1.agent_token.unwrap();
    let short = certificate();
    // The longest certificate that is accepted. Text before the certificate is no part of it.
    let pem = "#".repeat((16 << 10) - short.len() - 1) + "\n" + &short;
    let right = beat(&token, &pem);
    let at = |node: &str| site.machines(&format!("/v1/heartbeat/{node}"));
    let here = at(&first.id.to_string());

    site.refuses(vec![
        post("a wrong token", &here, but(&right, "agent_token", "x".repeat(64)), 401),
        post("an empty token", &here, but(&right, "agent_token", ""), 401),
        post("no token", &here, but(&right, "agent_token", Value::Null), 401),
        post(
            "what lookup tells instead of a token",
            &here,
            but(&right, "agent_token", "******"),
            401,
        ),
        post("the token of an earlier script", &here, but(&right, "agent_token", earlier), 401),
        post("another node's token", &here, but(&right, "agent_token", others.clone()), 401),
        post("a token at another node", at(&second.id.to_string()), right.clone(), 401),
        post("a node without a boot", at(&at_rest.id.to_string()), right.clone(), 400),
        post("a node that is not there", at(NOBODY), right.clone(), 404),
        post("a node that is no UUID", at("first"), right.clone(), 404),
        post("no certificate", &here, but(&right, "agent_verify_ca", Value::Null), 400),
        post("an empty certificate", &here, but(&right, "agent_verify_ca", ""), 400),
        post("what is no certificate", &here, but(&right, "agent_verify_ca", "x"), 400),
        post(
            "two certificates",
            &here,
            but(&right, "agent_verify_ca", format!("{short}{short}")),
            400,
        ),
        post("a long certificate", &here, but(&right, "agent_verify_ca", format!("#{pem}")), 400),
        post("no callback", &here, but(&right, "callback_url", Value::Null), 400),
        post("another's address", &here, but(&right, "callback_url", "https://127.0.0.2:9"), 400),
        post("a name", &here, but(&right, "callback_url", "https://localhost:9"), 400),
        post("plain HTTP", &here, but(&right, "callback_url", "http://127.0.0.1:9"), 400),
        post("a file", &here, but(&right, "callback_url", "file:///etc/passwd"), 400),
        post("no object", &here, json!([]), 400),
        get("another method", &here, 405),
    ])
    .await;

    assert_eq!(site.send(&post("the agent itself", &here, right.clone(), 202)).await, 202);
    let boot = site.store.find_boot(first.id).await.unwrap().unwrap();
    assert!(boot.script_at.is_some_and(|fetched| boot.seen_at.is_some_and(|seen| seen > fetched)));
    assert_eq!(
        (boot.agent_version.as_deref(), boot.certificate.as_deref()),
        (Some("1"), Some(&*pem))
    );
    let lists = Task::Agent(AgentCommand::ListSteps(StepKind::Clean));
    let works = |node: &Node| node.work.as_ref().is_some_and(|work| work.task() == Some(&lists));
    site.until(&first, works).await;
    site.refuses(vec![
        post(
            "another port, later",
            &here,
            but(&right, "callback_url", "https://127.0.0.1:10"),
            400,
        ),
        post("a wrong token, later", &here, but(&right, "agent_token", others), 401),
        post("no certificate, later", &here, but(&right, "agent_verify_ca", Value::Null), 400),
        get("the script, once its agent reports", &script, 404),
    ])
    .await;

    // The work has ended, so the credentials of its agent are not valid any more.
    let ident = NodeIdent::Id(first.id);
    let node = site.store.find_node(&ident).await.unwrap().unwrap();
    let over = Node { work: None, provision_state: State::CleanFailed, ..node };
    site.store.update_node(&over, &[]).await.unwrap();
    site.refuses(vec![
        post("a heartbeat after the work", &here, right, 404),
        get("the script after the work", &script, 404),
    ])
    .await;
}

#[tokio::test]
async fn a_forged_or_replayed_capability_is_refused() {
    let nodes = nodes();
    let site = TestService::start(LOOPBACK, "refuse", &nodes).await;
    let [first, second, inspected, at_rest] = nodes.map(|(node, _)| node);
    let (script, _) = site.boot(mac(1)).await;
    let earlier = site.boot(mac(3)).await.1.inspection_callback_url.unwrap();
    let callback = site.boot(mac(3)).await.1.inspection_callback_url.unwrap();
    let swapped = |url: &str, from: &dyn ToString, to: &dyn ToString| {
        assert!(url.contains(&from.to_string()), "{url}");
        url.replace(&from.to_string(), &to.to_string())
    };
    // The work of this node ends while its machine boots.
    let (withdrawn, port) = awaited("withdrawn", mac(5), Verb::Inspect);
    site.store.insert_node(&withdrawn).await.unwrap();
    site.store.insert_port(&port).await.unwrap();
    let withdrawn_callback = site.boot(mac(5)).await.1.inspection_callback_url.unwrap();
    let node = site.store.find_node(&NodeIdent::Id(withdrawn.id)).await.unwrap().unwrap();
    site.store.update_node(&Node { work: None, ..node }, &[]).await.unwrap();
    let (_, capability) = callback.rsplit_once('=').unwrap();
    let wrong = "0".repeat(capability.len());
    let medium = |capability: &str| {
        let work = first.work.as_ref().unwrap().id;
        site.machines(&format!("/media/{}/{work}/{capability}/boot.iso", first.id))
    };
    let own_image = |capability: &str| {
        site.machines(&format!("/own-image/{}/{}/{capability}/boot.ipxe", first.id, mac(1)))
    };
    let glance = |node: &Node, image: &str, capability: &str| {
        let work = first.work.as_ref().unwrap().id;
        site.machines(&format!("/glance/{}/{work}/{image}/{capability}", node.id))
    };
    let blob = format!("sha256:{}", "0".repeat(64));
    let oci = |digest: &str, capability: &str| {
        let work = first.work.as_ref().unwrap().id;
        site.machines(&format!("/oci/{}/{work}/{digest}/{capability}", first.id))
    };
    let mut parts = script.rsplit('/').skip(1);
    let (script_capability, script_mac) = (parts.next().unwrap(), parts.next().unwrap());

    site.refuses(vec![
        get("a wrong script", swapped(&script, &script_capability, &wrong), 401),
        get("another node's script", swapped(&script, &first.id, &second.id), 401),
        get("another port's script", swapped(&script, &script_mac, &mac(2)), 401),
        get(
            "another work's script",
            swapped(&script, &first.work.as_ref().unwrap().id, &NOBODY),
            401,
        ),
        get("a wrong medium", medium(&wrong), 401),
        get("a script's capability for a medium", medium(script_capability), 401),
        get("a wrong script of an own image", own_image(&wrong), 401),
        get("a script's capability for an own image", own_image(script_capability), 401),
        get("a wrong image of Glance", glance(&first, NOBODY, &wrong), 401),
        get("a script's capability for an image", glance(&first, NOBODY, script_capability), 401),
        get("an image without a boot", glance(&at_rest, NOBODY, &wrong), 404),
        get("a wrong blob", oci(&blob, &wrong), 401),
        get("a script's capability for a blob", oci(&blob, script_capability), 401),
        get("a blob that is no digest", oci("sha256:0", &wrong), 400),
        get("an image that is no UUID", glance(&first, "system.raw", &wrong), 400),
        post("a wrong capability", swapped(&callback, &capability, &wrong), inventory(), 401),
        post(
            "none",
            swapped(&callback, &format!("&capability={capability}"), &""),
            inventory(),
            400,
        ),
        post("an earlier boot's", earlier, inventory(), 401),
        post("another node's", swapped(&callback, &inspected.id, &first.id), inventory(), 401),
        post("after the work", withdrawn_callback, inventory(), 404),
        post("at rest", swapped(&callback, &inspected.id, &at_rest.id), inventory(), 404),
        post("at nobody's", swapped(&callback, &inspected.id, &NOBODY), inventory(), 404),
        post("what is no inventory", &callback, json!({"inventory": "as usual"}), 400),
        post("no object", &callback, json!([]), 400),
    ])
    .await;

    assert_eq!(site.send(&post("the agent itself", &callback, inventory(), 202)).await, 202);
    let boot = site.store.find_boot(inspected.id).await.unwrap().unwrap();
    assert!(boot.seen_at.is_some() && boot.seen_at == boot.inventory_at, "{boot:?}");
    site.until(&inspected, |node| node.work.is_none()).await;
    site.refuses(vec![post("a replay", &callback, inventory(), 404)]).await;
}

#[tokio::test]
async fn a_discovery_needs_its_capability_and_ends_with_the_enrolment() {
    let nodes = nodes();
    let site = TestService::start(LOOPBACK, "discover", &nodes).await;
    let (script, reported) = site.boot(mac(9)).await;
    let callback = reported.inspection_callback_url.unwrap();
    let other = |url: &str| url.replace(&mac(9).to_string(), &mac(8).to_string());
    let wrong =
        |what: &str| site.machines(&format!("/discover/{}/{}/{what}", mac(9), "0".repeat(64)));
    site.refuses(vec![
        get("a wrong script", wrong("boot.ipxe"), 401),
        get("another's script", other(&script), 401),
        post("a wrong capability", wrong("inventory"), inventory(), 401),
        post("another's capability", other(&callback), inventory(), 401),
        post("what is no inventory", &callback, json!({}), 400),
    ])
    .await;
    assert_eq!(site.send(&post("the stranger itself", &callback, inventory(), 202)).await, 202);

    let (node, port) = enrolled("no-stranger", mac(9));
    site.store.insert_node(&node).await.unwrap();
    site.store.insert_port(&port).await.unwrap();
    site.refuses(vec![
        get("a replayed script", script, 404),
        post("a replayed capability", callback, inventory(), 404),
    ])
    .await;

    let refusing = TestService::start(LOOPBACK, "refuse", &[]).await;
    let none =
        |what: &str| refusing.machines(&format!("/discover/{}/{}/{what}", mac(9), "0".repeat(64)));
    refusing
        .refuses(vec![
            get("a script where strangers are refused", none("boot.ipxe"), 404),
            post("an inventory where strangers are refused", none("inventory"), inventory(), 404),
        ])
        .await;
}

#[tokio::test]
async fn a_lookup_returns_no_token_and_changes_nothing() {
    let mut done = awaited("done", mac(5), Verb::Provide);
    let work = done.0.work.as_mut().unwrap();
    while work.needs_agent() {
        work.cursor += 1;
    }
    let nodes = Vec::from_iter(nodes().into_iter().chain([done]));
    let site = TestService::start(LOOPBACK, "refuse", &nodes).await;
    let token = site.boot(mac(1)).await.1.agent_token.unwrap();
    let lookup = |query: String| site.machines(&format!("/v1/lookup{query}"));
    let of = |macs: &[MacAddress]| {
        let macs: Vec<String> = macs.iter().map(ToString::to_string).collect();
        lookup(format!("?addresses={}", macs.join(",")))
    };
    site.refuses(vec![
        get("nobody", lookup(String::new()), 400),
        get("no address", lookup("?addresses=first".to_owned()), 400),
        get("a stranger", of(&[mac(9)]), 404),
        get("a node at rest", of(&[mac(4)]), 404),
        get("a node whose agent is done", of(&[mac(5)]), 404),
        get("a node that is not there", lookup(format!("?node_uuid={NOBODY}")), 404),
        get("two nodes at once", of(&[mac(1), mac(2)]), 400),
        get("a node that is awaited", of(&[mac(1)]), 200),
    ])
    .await;
    let reported = site.http.get(of(&[mac(1)])).send().await.unwrap().text().await.unwrap();
    assert!(reported.contains("******") && !reported.contains(&token), "{reported}");
}

/// Returns a node whose machine somebody else boots, and which has just got this request.
fn booted_by_others(name: &str, address: MacAddress, verb: Verb) -> (Node, Port) {
    let (mut node, port) = enrolled(name, address);
    node.driver = Driver::FakeHardware;
    node.provision_state = State::Manageable;
    node.interfaces.deploy = Some(DeployInterface::Direct);
    node.interfaces.inspect = Some(InspectInterface::Agent);
    let work = WorkUuid::new_v4();
    let (node, _) = request_verb(&node, verb, work, jiff::Timestamp::now()).unwrap();
    (node, port)
}

#[tokio::test]
async fn an_agent_that_somebody_else_booted_gets_its_token_once() {
    let nodes = [
        booted_by_others("cleaned", mac(1), Verb::Provide),
        awaited("booted", mac(2), Verb::Provide),
    ];
    let site = TestService::start(LOOPBACK, "refuse", &nodes).await;
    let [cleaned, _] = nodes.map(|(node, _)| node);
    site.until(&cleaned, |node| node.provision_state == State::CleanWait).await;
    let lookup = async |n: u8| {
        let url = site.machines(&format!("/v1/lookup?addresses={}", mac(n)));
        let answer: Value = site.http.get(url).send().await.unwrap().json().await.unwrap();
        answer["config"]["agent_token"].as_str().unwrap().to_owned()
    };
    let token = lookup(1).await;
    assert!(token.len() >= 32, "{token}");
    assert_eq!(lookup(1).await, "******");
    assert_eq!(lookup(2).await, "******", "its boot script has the token");
    let heartbeat = site.machines(&format!("/v1/heartbeat/{}", cleaned.id));
    let wrong = beat(&"x".repeat(43), &certificate());
    site.refuses(vec![post("another token", &heartbeat, wrong, 401)]).await;
    let right = beat(&token, &certificate());
    assert_eq!(site.send(&post("its token", &heartbeat, right, 202)).await, 202);
}

#[tokio::test]
async fn an_inventory_without_a_capability_is_accepted_only_from_a_machine_that_somebody_else_booted()
 {
    let nodes = [
        booted_by_others("inspected", mac(1), Verb::Inspect),
        awaited("booted", mac(2), Verb::Inspect),
        enrolled("at-rest", mac(3)),
    ];
    let site = TestService::start(LOOPBACK, "refuse", &nodes).await;
    let [inspected, ..] = nodes.map(|(node, _)| node);
    site.until(&inspected, |node| node.provision_state == State::InspectWait).await;
    let url = site.machines("/v1/continue_inspection");
    let of = |n: u8| {
        let mut inventory = inventory();
        inventory["inventory"]["interfaces"] =
            json!([{"name": "eth0", "mac_address": mac(n).to_string()}]);
        inventory
    };
    let other = format!("{url}?node_uuid={NOBODY}");
    site.refuses(vec![
        post("a machine that got a boot script", &url, of(2), 401),
        post("a node at rest", &url, of(3), 401),
        post("a stranger", &url, of(9), 404),
        post("no addresses", &url, inventory(), 400),
        post("another node", other, of(1), 404),
        post("a capability without a node", format!("{url}?capability=x"), of(1), 400),
    ])
    .await;
    assert_eq!(site.send(&post("the machine", &url, of(1), 202)).await, 202);
    site.until(&inspected, |node| node.provision_state == State::Manageable).await;
}

#[tokio::test]
async fn neither_port_serves_the_routes_of_the_other() {
    let nodes = nodes();
    let site = TestService::start(LOOPBACK, "refuse", &nodes).await;
    let first = nodes[0].0.id;
    let document = site.http.get(site.operators("/openapi.json")).send().await.unwrap();
    let document: Value = document.json().await.unwrap();
    let mut rows = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        // Both listeners answer `/` with a version document, so that path is left out.
        let names = path.split('/').map(|part| if part.starts_with('{') { NOBODY } else { part });
        let at = site.machines(&names.collect::<Vec<_>>().join("/"));
        for method in methods.as_object().unwrap().keys().filter(|_| path != "/") {
            let Ok(method) = method.to_uppercase().parse::<Method>() else { continue };
            let row = post(path, &at, json!({}), 404);
            rows.push(Row { method, ..row });
        }
    }
    assert!(rows.len() > 50, "the operators' API has many routes, not {}", rows.len());
    site.refuses(rows).await;

    // The requests of machines, with valid credentials, on the API's port.
    let (script, reported) = site.boot(mac(1)).await;
    let callback = site.boot(mac(3)).await.1.inspection_callback_url.unwrap();
    let there = |url: &str| url.replace(&site.provisioning.to_string(), &site.api.to_string());
    let right = beat(&reported.agent_token.unwrap(), &certificate());
    let heartbeat = format!("/v1/heartbeat/{}", first);
    site.refuses(vec![
        get("lookup", site.operators(&format!("/v1/lookup?addresses={}", mac(1))), 404),
        post("a heartbeat", site.operators(&heartbeat), right.clone(), 404),
        post("an inventory", there(&callback), inventory(), 404),
        get("a script", there(&script), 404),
        get("the kernel", site.operators("/ramdisk/kernel"), 404),
        get("a loader", site.operators("/ipxe/undionly.kpxe"), 404),
        get("an image", site.operators("/images/system.raw"), 404),
        get("an own image", site.operators(&format!("/own-image/{first}/x/x/boot.ipxe")), 404),
        get("an image of Glance", site.operators(&format!("/glance/{first}/x/x/x")), 404),
        get("a blob of a registry", site.operators(&format!("/oci/{first}/x/x/x")), 404),
    ])
    .await;
    assert_eq!(site.send(&get("the kernel", site.machines("/ramdisk/kernel"), 200)).await, 200);
    assert_eq!(site.send(&post("there", site.machines(&heartbeat), right, 202)).await, 202);
}

#[tokio::test]
async fn the_api_serves_agents_if_it_is_configured_to() {
    let nodes = nodes();
    let tables = "[agents]\non_api_listener = true\n";
    let mut site = TestService::start_with(LOOPBACK, "refuse", &nodes, tables).await;
    let (script, reported) = site.boot(mac(1)).await;
    let callback = site.boot(mac(3)).await.1.inspection_callback_url.unwrap();
    let there = |url: &str| url.replace(&site.provisioning.to_string(), &site.api.to_string());
    let (script, callback) = (there(&script), there(&callback));
    let lookup = |query: String| format!("http://{}/v1/lookup{query}", site.api);
    let (awaited, stranger) = [1, 9].map(|n| lookup(format!("?addresses={}", mac(n)))).into();
    let (nobody, no_node) = (lookup(String::new()), lookup("?node_uuid=first".to_owned()));
    let heartbeat = site.operators(&format!("/v1/heartbeat/{}", nodes[0].0.id));
    let no_heartbeat = site.operators("/v1/heartbeat/first");
    let right = beat(&reported.agent_token.unwrap(), &certificate());
    let forged = callback.replace("capability=", "capability=0");
    site.refuses(vec![get("a lookup of version 1.1", &awaited, 404)]).await;

    let version = "x-openstack-ironic-api-version".parse().unwrap();
    let headers = [(version, "1.115".parse().unwrap())].into_iter().collect();
    let client = reqwest::Client::builder().no_proxy().default_headers(headers).build();
    site.http = client.unwrap();
    site.refuses(vec![
        get("nobody", nobody, 400),
        get("no UUID", no_node, 400),
        get("a stranger", stranger, 404),
        get("a node that is awaited", &awaited, 200),
        post("a forged heartbeat", &heartbeat, but(&right, "agent_token", "forged"), 401),
        post("a heartbeat of no node", no_heartbeat, right.clone(), 404),
        post("a forged inventory", forged, inventory(), 401),
        get("a script", script, 404),
        get("the kernel", site.operators("/ramdisk/kernel"), 404),
    ])
    .await;
    assert_eq!(site.send(&post("a heartbeat", heartbeat, right, 202)).await, 202);
    assert_eq!(site.send(&post("an inventory", callback, inventory(), 202)).await, 202);
    let found = site.store.find_inspected(nodes[2].0.id).await.unwrap().unwrap();
    assert_eq!(found.inventory["hostname"], "h");
    let listed = site.http.get(site.operators("/v1")).send().await.unwrap();
    let listed: Value = listed.json().await.unwrap();
    for resource in ["lookup", "heartbeat", "continue_inspection"] {
        assert!(listed[resource].is_array(), "{listed:#}");
    }
}
