//! `bedplate where RESOURCE`: the location of a resource, from the rack over node, host and server down to the cluster or VM.

use clap::Args;
use serde_json::{Map, Value, json};

use crate::api::Api;
use crate::drain::drain_state;
use crate::exit::{Exit, Failure};
use crate::output::{Answer, Format, plain, text};
use crate::paging::Pages;
use crate::path::element_path;
use crate::watch::Watch;

/// The options of `bedplate where`.
#[derive(Args)]
pub(crate) struct Options {
    /// Rack, node, compute host, VM, server, cluster or member of a cluster, by name or id.
    resource: String,
    #[command(flatten)]
    watch: Watch,
}

/// Clients of both services.
struct LocationFinder<'a> {
    machines: &'a Api,
    clusters: &'a Api,
}

/// Shows the location of a resource, and the servers on it.
pub(crate) async fn run(
    options: Options,
    (machines, clusters): (&Api, &Api),
    format: Format,
) -> anyhow::Result<()> {
    let graph = LocationFinder { machines, clusters };
    options.watch.show(format, async || graph.around(&options.resource).await).await
}

impl LocationFinder<'_> {
    /// Finds a resource with everything above and below it.
    async fn around(&self, resource: &str) -> anyhow::Result<Answer> {
        let mut racks = self.racks_of(resource).await?;
        if racks.is_empty() {
            racks = self.racks_around(resource).await?;
        }
        if racks.is_empty() {
            let sentence = format!(
                "no rack, node, host, VM, server or cluster is called {}. Hint: search with `bedplate rack list`, `node list`, `cluster list` or `vm list`",
                plain(resource)
            );
            return Err(Failure::new(Exit::NotFound, sentence).into());
        }
        let lines: Vec<String> = racks.iter().flat_map(lines).collect();
        Ok(Answer::sentence(json!({"racks": racks}), lines.join("\n")))
    }

    /// If `resource` is a rack or a node: everything below it.
    async fn racks_of(&self, resource: &str) -> anyhow::Result<Vec<Value>> {
        if let Some(rack) =
            self.machines.find(&element_path("/bedplate/v1/racks", resource, "")?).await?
        {
            let mut nodes = Vec::new();
            for machine in rack["machines"].as_array().into_iter().flatten() {
                let id = machine["uuid"].as_str().unwrap_or_default();
                nodes.extend(self.node(id).await?);
            }
            return Ok(vec![json!({"rack": resource, "nodes": nodes})]);
        }
        let Some(node) = self.node(resource).await? else { return Ok(Vec::new()) };
        // A host can have the same name as its node; the node shows both.
        Ok(vec![json!({"rack": node["rack"], "nodes": [node]})])
    }

    /// If `resource` is a host or on a host: everything above it, and only the named servers of each host.
    async fn racks_around(&self, resource: &str) -> anyhow::Result<Vec<Value>> {
        if let Some(host) = self.host(resource).await? {
            return Ok(vec![self.under(resource, host).await?]);
        }
        let found = self.clusters.get(&element_path("/bedplate/v1/places", resource, "")?).await?;
        let mut by_host: Map<String, Value> = Map::new();
        for place in found["places"].as_array().into_iter().flatten() {
            let host = place["host"].as_str().unwrap_or_default();
            let on = by_host.entry(host).or_insert_with(|| json!([]));
            if let Some(on) = on.as_array_mut() {
                on.push(place.clone());
            }
        }
        let mut racks = Vec::new();
        for (host, servers) in by_host {
            let shown = json!({"host": host, "servers": servers});
            racks.push(self.under(&host, shown).await?);
        }
        Ok(racks)
    }

    /// A host with its node and rack.
    async fn under(&self, name: &str, host: Value) -> anyhow::Result<Value> {
        let Some(mut node) = self.node_of(name).await? else {
            return Ok(json!({"rack": null, "nodes": [{"node": null, "host": host}]}));
        };
        node["host"] = host;
        Ok(json!({"rack": node["rack"], "nodes": [node]}))
    }

    /// A node with its compute host and servers.
    async fn node(&self, ident: &str) -> anyhow::Result<Option<Value>> {
        let Some(mut node) = self.brief(ident).await? else { return Ok(None) };
        if let Some(host) = node["compute_host"].as_str() {
            node["host"] = self.host(host).await?.unwrap_or_default();
        }
        Ok(Some(node))
    }

    /// A node, with the name of the compute host that it is.
    async fn brief(&self, ident: &str) -> anyhow::Result<Option<Value>> {
        let path =
            element_path("/v1/nodes", ident, "?fields=uuid,name,provision_state,instance_info")?;
        let node = match self.machines.find(&path).await {
            Ok(Some(node)) => node,
            Ok(None) => return Ok(None),
            // The API refuses a text that cannot be the name of a node. Such a text is not a node.
            Err(why) if Exit::of(&why) == Exit::Failed => return Ok(None),
            Err(why) => return Err(why),
        };
        let id = node["uuid"].as_str().unwrap_or_default();
        let explanation =
            self.machines.get(&element_path("/bedplate/v1/nodes", id, "/explain")?).await?;
        Ok(Some(json!({
            "node": node["name"].as_str().unwrap_or(id), "uuid": id, "provision_state": node["provision_state"],
            "rack": explanation["place"]["rack"], "position": explanation["place"]["position"],
            "compute_host": compute_host(&node, &explanation),
        })))
    }

    /// Finds the node that is this compute host: a node with the same name, or otherwise the first one that names the host.
    async fn node_of(&self, host: &str) -> anyhow::Result<Option<Value>> {
        // A profile names a host like its node, or `node-` and the node's id.
        for ident in [Some(host), host.strip_prefix("node-")].into_iter().flatten() {
            if let Some(node) = self.brief(ident).await?
                && node["compute_host"] == host
            {
                return Ok(Some(node));
            }
        }
        let path = "/v1/nodes?fields=uuid,instance_info";
        let mut pages = Pages::of(self.machines, path, "nodes");
        while let Some(nodes) = pages.read().await? {
            let named =
                nodes.iter().find(|node| node["instance_info"]["hypervisor_hostname"] == host);
            if let Some(id) = named.and_then(|node| node["uuid"].as_str()) {
                return self.brief(id).await;
            }
        }
        Ok(None)
    }

    /// A host with its servers in the form of places.
    async fn host(&self, name: &str) -> anyhow::Result<Option<Value>> {
        let path = element_path("/bedplate/v1/hosts", name, "")?;
        let Some(host) = self.clusters.find(&path).await? else { return Ok(None) };
        let mut servers = Vec::new();
        for cluster in host["clusters"].as_array().into_iter().flatten() {
            for machine in cluster["machines"].as_array().into_iter().flatten() {
                let mut place = machine.clone();
                place["cluster"] = json!({"uuid": cluster["uuid"], "name": cluster["name"]});
                servers.push(place);
            }
        }
        for own in host["machines"].as_array().into_iter().flatten() {
            servers.push(json!({
                "server_id": own["server_id"], "name": own["name"], "status": own["status"], "own": own,
            }));
        }
        let state = &host["service"]["status"];
        Ok(Some(json!({
            "host": host["host"], "state": state, "drain": host["drain"]["state"], "servers": servers, "foreign": host["foreign"],
        })))
    }
}

/// The name of the compute host that a node is, from the node's record.
fn compute_host(node: &Value, explanation: &Value) -> Value {
    let joined = &explanation["hypervisor"]["host"];
    let said = &node["instance_info"]["hypervisor_hostname"];
    if joined.is_string() { joined.clone() } else { said.clone() }
}

/// Formats a rack as a tree.
fn lines(rack: &Value) -> Vec<String> {
    let mut lines = vec![match rack["rack"].as_str() {
        Some(name) => format!("rack {}", plain(name)),
        None => "no rack".to_owned(),
    }];
    for node in rack["nodes"].as_array().into_iter().flatten() {
        lines.push(match node["node"].as_str() {
            Some(name) => format!("  node {} ({})", plain(name), text(&node["provision_state"])),
            None => "  no enrolled node".to_owned(),
        });
        let host = &node["host"];
        if host.is_object() {
            lines.push(format!("    {}", describe_host(host)));
            lines.extend(servers(host).map(|server| format!("      {}", describe_server(server))));
        }
        match host["foreign"].as_u64() {
            None | Some(0) => {}
            Some(others) => {
                lines.push(format!("      and {others} servers not managed by clusterd"))
            }
        }
    }
    lines
}

fn servers(host: &Value) -> impl Iterator<Item = &Value> {
    host["servers"].as_array().into_iter().flatten()
}

fn describe_host(host: &Value) -> String {
    let name = match host["host"].as_str() {
        Some(name) if !name.is_empty() => format!("host {}", plain(name)),
        _ => "not on a host yet".to_owned(),
    };
    let drain = host["drain"].as_str().map(|state| format!(", {}", plain(drain_state(state))));
    match host["state"].as_str() {
        Some(state) => format!("{name} ({}{})", plain(state), drain.unwrap_or_default()),
        None => name,
    }
}

fn describe_server(server: &Value) -> String {
    let what = if server["cluster"].is_object() {
        let member = if server["is_etcd_member"] == true { ", etcd member" } else { "" };
        let (machine, role) = (text(&server["machine"]), text(&server["role"]));
        format!("member {machine} of cluster {} ({role}{member})", text(&server["cluster"]["name"]))
    } else if server["own"].is_object() {
        format!("VM {}", text(&server["own"]["name"]))
    } else {
        "not managed by clusterd".to_owned()
    };
    let (name, id) = (text(&server["name"]), text(&server["server_id"]));
    format!("server {name} ({id}, {}): {what}", text(&server["status"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_shown_from_the_rack_down() {
        let server = json!({
            "server_id": "s-1", "name": "blue-0", "status": "ACTIVE", "cluster": {"name": "blue"},
            "machine": "default-master-0", "role": "control-plane", "is_etcd_member": true,
        });
        let host = json!({
            "host": "r1u07", "state": "disabled", "drain": "draining", "foreign": 2, "servers": [server],
        });
        let node = json!({"node": "r1u07", "provision_state": "active", "host": host});
        let shown = lines(&json!({"rack": "r1", "nodes": [node]}));
        let want = [
            "rack r1",
            "  node r1u07 (active)",
            "    host r1u07 (disabled, draining)",
            "      server blue-0 (s-1, ACTIVE): member default-master-0 of cluster blue (control-plane, etcd member)",
            "      and 2 servers not managed by clusterd",
        ];
        assert_eq!(shown, want);
    }
}
