//! The requests of Metal3's baremetal-operator for one host, as its `pkg/provisioner/ironic` sends them by gophercloud v2.
//!
//! The microversion, paths, queries, bodies, the order of requests and the accepted status codes are those of its source. Differences
//! between a node and the wanted values are sent as JSON patches, as its `NodeUpdater` does.

use lab::{Lab, RackedMachine};
use reqwest::{Client, Method};
use serde_json::{Map, Value, json};

/// The newest microversion that the operator chooses (`ChooseMicroversion`).
const MICROVERSION: &str = "1.110";

/// The operator, at work on one host.
pub(super) struct Operator<'a> {
    lab: &'a Lab,
    http: Client,
    pub(super) host: &'static str,
    /// The node's UUID, once the host is registered.
    pub(super) node: String,
}

pub(super) fn node_name(host: &str) -> String {
    format!("metal3~{host}")
}

impl<'a> Operator<'a> {
    pub(super) fn new(lab: &'a Lab, host: &'static str) -> Operator<'a> {
        let http = Client::builder().no_proxy().tls_certs_only([]).build();
        let http = http.expect("a client for plain HTTP can be made");
        Operator { lab, http, host, node: String::new() }
    }

    /// Sends a request; returns the status and the body.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> (u16, Value) {
        let url = self.lab.api().url().join(path.trim_start_matches('/')).expect("a URL");
        let request = self
            .http
            .request(method, url)
            .header("X-OpenStack-Ironic-API-Version", MICROVERSION)
            .header("OpenStack-API-Version", format!("baremetal {MICROVERSION}"))
            .header("Accept", "application/json");
        let request = body.into_iter().fold(request, |request, body| request.json(body));
        let answer = request.send().await.expect("an answer");
        let status = answer.status().as_u16();
        let text = answer.text().await.expect("a body");
        (status, serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    /// Sends a request that gophercloud accepts with this status only.
    pub(super) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        status: u16,
    ) -> Value {
        let sent = format!("{method} {path} {}", body.unwrap_or(&Value::Null));
        let (answered, body) = self.send(method, path, body).await;
        assert_eq!(answered, status, "{sent}: {body}");
        body
    }

    pub(super) async fn get(&self, path: &str) -> Value {
        self.call(Method::GET, path, None, 200).await
    }

    /// The node, as far as gophercloud can decode it.
    pub(super) async fn node(&self) -> Value {
        let node = self.get(&format!("/v1/nodes/{}", self.node)).await;
        check_decodes(&node);
        node
    }

    /// Sends the differences as one patch, and no request if there are none (`tryUpdateNode`).
    pub(super) async fn update(&self, updater: Updater) -> Value {
        if updater.operations.is_empty() {
            return self.node().await;
        }
        let patch = Value::Array(updater.operations);
        self.call(Method::PATCH, &format!("/v1/nodes/{}", self.node), Some(&patch), 200).await
    }

    /// Requests a change of provision state; the operator does so only without maintenance and without a fault.
    pub(super) async fn provision(&self, body: Value) {
        let node = self.node().await;
        assert_eq!((&node["maintenance"], &node["fault"]), (&json!(false), &Value::Null));
        let path = format!("/v1/nodes/{}/states/provision", self.node);
        self.call(Method::PUT, &path, Some(&body), 202).await;
    }

    /// Reads the node again and again until it is in `state`, without an error.
    pub(super) async fn reaches(&self, state: &str) -> Value {
        self.until(state, |node| {
            let now = node["provision_state"].as_str().unwrap_or_default();
            assert!(now == state || !now.ends_with("failed"), "{now}: {}", node["last_error"]);
            now == state
        })
        .await
    }

    /// Reads the node again and again until `seen` holds.
    pub(super) async fn until(&self, what: &str, seen: impl Fn(&Value) -> bool) -> Value {
        let path = format!("/v1/nodes/{}", self.node);
        let look = |node: &Value| seen(node).then(|| node.clone());
        self.lab.api().until(&path, what, look).await;
        self.node().await
    }

    /// The ports with this query, with the fields that the operator asks for (`getPorts`).
    pub(super) async fn ports(&self, query: &str) -> Vec<Value> {
        let path = format!("/v1/ports?{query}&fields=node_uuid%2Cuuid%2Caddress");
        self.get(&path).await["ports"].as_array().cloned().expect("a list of ports")
    }
}

/// The driver_info of a host whose BMC address is `redfish+http://ADDRESS/redfish/v1/Systems/1`.
pub(super) fn driver_info(machine: &RackedMachine) -> Value {
    let known = machine.driver_info();
    json!({
        "redfish_address": known["redfish_address"],
        "redfish_username": known["redfish_username"],
        "redfish_password": known["redfish_password"],
        "redfish_system_id": "/redfish/v1/Systems/1",
    })
}

/// Collects the patch of a node (`clients/updateopts.go`): an equal value is left out, and `null` removes a value that is there.
#[derive(Default)]
pub(super) struct Updater {
    operations: Vec<Value>,
}

impl Updater {
    /// Compares the members of `wanted` with those of a field of the node.
    pub(super) fn section(mut self, node: &Value, section: &str, wanted: Value) -> Updater {
        let empty = Map::new();
        let now = node[section].as_object().unwrap_or(&empty);
        for (name, value) in wanted.as_object().expect("an object") {
            self.compare(now.get(name), &format!("/{section}/{name}"), value);
        }
        self
    }

    /// Compares a field of the node. A field without a value counts as being there.
    pub(super) fn top(mut self, node: &Value, name: &str, wanted: Value) -> Updater {
        self.compare(node.get(name).or(Some(&Value::Null)), &format!("/{name}"), &wanted);
        self
    }

    fn compare(&mut self, now: Option<&Value>, path: &str, wanted: &Value) {
        match (now, wanted) {
            (None, Value::Null) => {}
            (Some(_), Value::Null) => self.operations.push(json!({"op": "remove", "path": path})),
            (Some(now), wanted) if now == wanted => {}
            (_, wanted) => {
                self.operations.push(json!({"op": "add", "path": path, "value": wanted}));
            }
        }
    }
}

/// Checks that the fields of a node have the types of gophercloud's `nodes.Node`, where `null` is the zero of every type.
fn check_decodes(node: &Value) {
    let texts = "uuid name power_state target_power_state provision_state target_provision_state \
        maintenance_reason fault health last_error reservation driver instance_uuid chassis_uuid \
        resource_class bios_interface boot_interface console_interface deploy_interface \
        inspect_interface management_interface network_interface power_interface raid_interface \
        rescue_interface storage_interface vendor_interface firmware_interface conductor_group \
        parent_node protected_reason owner lessee shard description conductor allocation_uuid \
        retired_reason provision_updated_at inspection_started_at inspection_finished_at";
    let objects = "driver_info driver_internal_info properties instance_info extra raid_config \
        target_raid_config clean_step deploy_step service_step network_data";
    let flags = "maintenance console_enabled protected retired automated_clean disable_power_off";
    let lists = "links ports portgroups states traits volume";
    let check = |names: &str, is: fn(&Value) -> bool| {
        for name in names.split_whitespace() {
            let value = node.get(name).unwrap_or(&Value::Null);
            assert!(value.is_null() || is(value), "{name}: {value}");
        }
    };
    check(texts, Value::is_string);
    check(objects, Value::is_object);
    check(flags, Value::is_boolean);
    check(lists, Value::is_array);
}
