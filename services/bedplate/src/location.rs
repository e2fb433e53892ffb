//! `bedplate where RESOURCE`: the location of a resource, from the rack over node, host and server down to the cluster or VM.

use std::collections::BTreeMap;

use api_client::baremetald::{Explanation, Node, Rack};
use api_client::clusterd::{Host, HostCluster, HostMember, HostVm, Place, PlaceCluster, Places};
use api_client::{WithJson, element_path};
use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

use crate::api::Api;
use crate::drain::drain_state;
use crate::exit::{Exit, Failure};
use crate::output::{Answer, Format, plain, text};
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

/// A rack with the nodes around the resource.
#[derive(Serialize)]
struct LocatedRack {
    /// `None` for nodes without a rack.
    rack: Option<String>,
    nodes: Vec<LocatedNode>,
}

/// A node, or the place of a node for a host without one.
#[derive(Serialize)]
struct LocatedNode {
    /// The node's name or id; `None` if no enrolled node is the host.
    node: Option<String>,
    #[serde(flatten)]
    details: Option<NodeDetails>,
    /// The host that the node is; the inner `None` is a host that the cloud does not know.
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<Option<LocatedHost>>,
}

#[derive(Serialize)]
struct NodeDetails {
    uuid: String,
    provision_state: Option<String>,
    rack: Option<String>,
    position: Option<u64>,
    compute_host: Option<String>,
}

#[derive(Serialize)]
struct LocatedHost {
    host: String,
    #[serde(flatten)]
    details: Option<HostDetails>,
    servers: Vec<WithJson<Place>>,
}

#[derive(Serialize)]
struct HostDetails {
    state: String,
    drain: Option<String>,
    /// The number of servers that clusterd does not manage.
    foreign: u64,
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
    async fn racks_of(&self, resource: &str) -> anyhow::Result<Vec<LocatedRack>> {
        let path = element_path("/bedplate/v1/racks", resource, "")?;
        if let Some(Rack { machines }) = self.machines.find(&path).await? {
            let mut nodes = Vec::new();
            for machine in machines {
                nodes.extend(self.node(&machine.uuid).await?);
            }
            return Ok(vec![LocatedRack { rack: Some(resource.to_owned()), nodes }]);
        }
        let Some(node) = self.node(resource).await? else { return Ok(Vec::new()) };
        // A host can have the same name as its node; the node shows both.
        Ok(vec![node.in_its_rack()])
    }

    /// If `resource` is a host or on a host: everything above it, and only the named servers of each host.
    async fn racks_around(&self, resource: &str) -> anyhow::Result<Vec<LocatedRack>> {
        if let Some(host) = self.host(resource).await? {
            return Ok(vec![self.under(resource, host).await?]);
        }
        let path = element_path("/bedplate/v1/places", resource, "")?;
        let Places { places } = self.clusters.get(&path).await?;
        let mut by_host: BTreeMap<String, Vec<WithJson<Place>>> = BTreeMap::new();
        for place in places {
            let host = place.host.clone().unwrap_or_default();
            by_host.entry(host).or_default().push(place);
        }
        let mut racks = Vec::new();
        for (host, servers) in by_host {
            let shown = LocatedHost { host: host.clone(), details: None, servers };
            racks.push(self.under(&host, shown).await?);
        }
        Ok(racks)
    }

    async fn under(&self, name: &str, host: LocatedHost) -> anyhow::Result<LocatedRack> {
        let host = Some(Some(host));
        let Some(node) = self.node_of(name).await? else {
            let node = LocatedNode { node: None, details: None, host };
            return Ok(LocatedRack { rack: None, nodes: vec![node] });
        };
        Ok(LocatedNode { host, ..node }.in_its_rack())
    }

    /// A node with its compute host and servers.
    async fn node(&self, ident: &str) -> anyhow::Result<Option<LocatedNode>> {
        let Some(mut node) = self.brief(ident).await? else { return Ok(None) };
        if let Some(host) = node.compute_host() {
            node.host = Some(self.host(host).await?);
        }
        Ok(Some(node))
    }

    /// A node, with the name of the compute host that it is.
    async fn brief(&self, ident: &str) -> anyhow::Result<Option<LocatedNode>> {
        let path =
            element_path("/v1/nodes", ident, "?fields=uuid,name,provision_state,instance_info")?;
        let node: Node = match self.machines.find(&path).await {
            Ok(Some(node)) => node,
            Ok(None) => return Ok(None),
            // The API refuses a text that cannot be the name of a node. Such a text is not a node.
            Err(why) if Exit::of(&why) == Exit::Failed => return Ok(None),
            Err(why) => return Err(why),
        };
        let path = element_path("/bedplate/v1/nodes", node.id(), "/explain")?;
        let Explanation { place, hypervisor, .. } = self.machines.get(&path).await?;
        let (rack, position) = place.map(|place| (place.rack, place.position)).unzip();
        let wanted = || node.hypervisor_hostname().map(str::to_owned);
        let details = NodeDetails {
            uuid: node.id().to_owned(),
            provision_state: node.provision_state.clone(),
            rack,
            position,
            compute_host: hypervisor.map(|hypervisor| hypervisor.host).or_else(wanted),
        };
        let name = node.label().to_owned();
        Ok(Some(LocatedNode { node: Some(name), details: Some(details), host: None }))
    }

    /// Finds the node that is this compute host: a node with the same name, or otherwise the first one that names the host.
    async fn node_of(&self, host: &str) -> anyhow::Result<Option<LocatedNode>> {
        // A profile names a host like its node, or `node-` and the node's id.
        for ident in [Some(host), host.strip_prefix("node-")].into_iter().flatten() {
            if let Some(node) = self.brief(ident).await?
                && node.compute_host() == Some(host)
            {
                return Ok(Some(node));
            }
        }
        let mut pages = self.machines.pages::<Node>("/v1/nodes?fields=uuid,instance_info");
        while let Some(nodes) = self.machines.read_page(&mut pages).await? {
            let named = nodes.iter().find(|node| node.hypervisor_hostname() == Some(host));
            if let Some(id) = named.and_then(|node| node.uuid.as_deref()) {
                return self.brief(id).await;
            }
        }
        Ok(None)
    }

    /// A host with its servers in the form of places.
    async fn host(&self, name: &str) -> anyhow::Result<Option<LocatedHost>> {
        let path = element_path("/bedplate/v1/hosts", name, "")?;
        let Some(host) = self.clusters.find::<Host>(&path).await? else { return Ok(None) };
        let mut servers = Vec::new();
        for HostCluster { uuid, name, machines } in host.clusters {
            servers.extend(machines.into_iter().map(|it| place_of_member(it, &uuid, &name)));
        }
        servers.extend(host.machines.into_iter().map(place_of_vm));
        let details = HostDetails {
            state: host.service.status,
            drain: host.drain.map(|drain| drain.state),
            foreign: host.foreign,
        };
        Ok(Some(LocatedHost { host: host.host, details: Some(details), servers }))
    }
}

impl LocatedNode {
    /// The name of the compute host that the node is.
    fn compute_host(&self) -> Option<&str> {
        self.details.as_ref()?.compute_host.as_deref()
    }

    fn in_its_rack(self) -> LocatedRack {
        let rack = self.details.as_ref().and_then(|details| details.rack.clone());
        LocatedRack { rack, nodes: vec![self] }
    }
}

fn place_of_member(member: WithJson<HostMember>, uuid: &str, cluster: &str) -> WithJson<Place> {
    let WithJson { mut json, read } = member;
    if let Value::Object(fields) = &mut json {
        fields.insert("cluster".to_owned(), json!({"uuid": uuid, "name": cluster}));
    }
    let HostMember { machine, name, role, is_etcd_member, server_id, status } = read;
    let read = Place {
        server_id,
        name,
        status,
        host: None,
        cluster: Some(PlaceCluster { name: cluster.to_owned() }),
        machine: Some(machine),
        role,
        is_etcd_member,
        own: None,
    };
    WithJson { json, read }
}

fn place_of_vm(own: WithJson<HostVm>) -> WithJson<Place> {
    let WithJson { json, read: own } = own;
    let HostVm { server_id, name, status } = own.clone();
    let json = json!({"server_id": server_id, "name": name, "status": status, "own": json});
    let read = Place {
        server_id,
        name,
        status,
        host: None,
        cluster: None,
        machine: None,
        role: None,
        is_etcd_member: false,
        own: Some(own),
    };
    WithJson { json, read }
}

/// Formats a rack as a tree.
fn lines(rack: &LocatedRack) -> Vec<String> {
    let mut lines = vec![match &rack.rack {
        Some(name) => format!("rack {}", plain(name)),
        None => "no rack".to_owned(),
    }];
    for LocatedNode { node, details, host } in &rack.nodes {
        let state = details.as_ref().and_then(|details| details.provision_state.as_deref());
        lines.push(match node {
            Some(name) => format!("  node {} ({})", plain(name), text(state)),
            None => "  no enrolled node".to_owned(),
        });
        let Some(Some(host)) = host else { continue };
        lines.push(format!("    {}", describe_host(host)));
        let servers = host.servers.iter();
        lines.extend(servers.map(|server| format!("      {}", describe_server(server))));
        match host.details.as_ref().map(|details| details.foreign) {
            None | Some(0) => {}
            Some(others) => {
                lines.push(format!("      and {others} servers not managed by clusterd"))
            }
        }
    }
    lines
}

fn describe_host(host: &LocatedHost) -> String {
    let name = match host.host.as_str() {
        "" => "not on a host yet".to_owned(),
        name => format!("host {}", plain(name)),
    };
    let Some(HostDetails { state, drain, .. }) = &host.details else { return name };
    let drain = drain.as_ref().map(|state| format!(", {}", plain(drain_state(state))));
    format!("{name} ({}{})", plain(state), drain.unwrap_or_default())
}

fn describe_server(server: &Place) -> String {
    let what = if let Some(cluster) = &server.cluster {
        let etcd = if server.is_etcd_member { ", etcd member" } else { "" };
        let (machine, role) = (text(server.machine.as_deref()), text(server.role.as_deref()));
        format!("member {machine} of cluster {} ({role}{etcd})", plain(&cluster.name))
    } else if let Some(own) = &server.own {
        format!("VM {}", plain(&own.name))
    } else {
        "not managed by clusterd".to_owned()
    };
    let [name, id, status] = [&server.name, &server.server_id, &server.status].map(|it| plain(it));
    format!("server {name} ({id}, {status}): {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_shown_from_the_rack_down() {
        let member = json!({
            "server_id": "s-1", "name": "blue-0", "status": "ACTIVE", "machine": "default-master-0",
            "role": "control-plane", "is_etcd_member": true,
        });
        let member = serde_json::from_value(member).unwrap();
        let details = HostDetails {
            state: "disabled".to_owned(),
            drain: Some("draining".to_owned()),
            foreign: 2,
        };
        let host = LocatedHost {
            host: "r1u07".to_owned(),
            details: Some(details),
            servers: vec![place_of_member(member, "c-1", "blue")],
        };
        let details = NodeDetails {
            uuid: "n-1".to_owned(),
            provision_state: Some("active".to_owned()),
            rack: Some("r1".to_owned()),
            position: Some(7),
            compute_host: Some("r1u07".to_owned()),
        };
        let node = LocatedNode {
            node: Some("r1u07".to_owned()),
            details: Some(details),
            host: Some(Some(host)),
        };
        let want = [
            "rack r1",
            "  node r1u07 (active)",
            "    host r1u07 (disabled, draining)",
            "      server blue-0 (s-1, ACTIVE): member default-master-0 of cluster blue (control-plane, etcd member)",
            "      and 2 servers not managed by clusterd",
        ];
        assert_eq!(lines(&node.in_its_rack()), want);
    }

    #[test]
    fn unknown_parts_are_absent_from_the_answer() {
        let server =
            json!({"server_id": "s-1", "name": "a", "project_id": "p", "status": "ACTIVE"});
        let host = LocatedHost {
            host: "r1u07".to_owned(),
            details: None,
            servers: vec![place_of_vm(serde_json::from_value(server.clone()).unwrap())],
        };
        let node = LocatedNode { node: None, details: None, host: Some(Some(host)) };
        let shown = json!({"server_id": "s-1", "name": "a", "status": "ACTIVE", "own": server});
        let want = json!({
            "rack": null, "nodes": [{"node": null, "host": {"host": "r1u07", "servers": [shown]}}],
        });
        assert_eq!(json!(node.in_its_rack()), want);
    }
}
