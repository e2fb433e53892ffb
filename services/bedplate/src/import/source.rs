//! The resources of an Ironic, as its API shows them.

use std::collections::BTreeMap;

use anyhow::Context;
use api_client::Listed;
use serde_json::Value;

use super::ironic_node::IronicNode;
use crate::exit::{Exit, Failure};
use crate::ironic::{
    Allocations, ChassisList, Conductors, Connectors, InspectionRules, Ironic, Object, PortGroups,
    Ports, Runbooks, Targets, Templates, is_set, word,
};
use crate::let_go::is_let_go;

/// A resource that belongs to no node.
pub(super) struct Shared {
    pub(super) kind: &'static str,
    /// The path of imports of this kind.
    pub(super) path: &'static str,
    pub(super) object: Object,
}

/// Everything that an import takes.
pub(super) struct Source {
    pub(super) shared: Vec<Shared>,
    /// Parents before the nodes that are parts of them.
    pub(super) nodes: Vec<IronicNode>,
    /// Whether a conductor of Ironic is alive.
    is_conducting: bool,
}

impl Source {
    /// Reads the resources of `ironic`; of the nodes only those with these ids or names, if there are any.
    pub(super) async fn read(ironic: &Ironic, wanted: &[String]) -> anyhow::Result<Source> {
        let conductors = list::<Conductors>(ironic, "/v1/conductors").await?;
        let is_conducting = conductors.iter().any(|it| is_set(it, "alive"));
        let all = by_markers(ironic, "/v1/nodes/detail?include_children=True", "nodes").await?;
        let nodes = selected(all, wanted)?;
        let mut allocations = list::<Allocations>(ironic, "/v1/allocations").await?;
        let mut parts = Parts::read(ironic).await?;
        let mut found = Vec::with_capacity(nodes.len());
        for node in nodes {
            let id = word(&node, "uuid").to_owned();
            let own = word(&node, "allocation_uuid").to_owned();
            let at = allocations.iter().position(|it| !own.is_empty() && word(it, "uuid") == own);
            found.push(IronicNode {
                history: Vec::new(),
                inventory: inventory(ironic, &node).await?,
                allocation: at.map(|at| without(allocations.remove(at), &["links"])),
                portgroups: parts.groups.remove(&id).unwrap_or_default(),
                ports: parts.ports.remove(&id).unwrap_or_default(),
                connectors: parts.connectors.remove(&id).unwrap_or_default(),
                targets: parts.targets.remove(&id).unwrap_or_default(),
                node,
            });
        }
        let mut shared = shared(ironic).await?;
        if wanted.is_empty() {
            shared.extend(allocations.into_iter().map(|object| Shared {
                kind: "allocation",
                path: "/bedplate/v1/import/allocations",
                object: without(object, &["links"]),
            }));
        }
        Ok(Source { shared, nodes: parents_first(found), is_conducting })
    }

    /// Whether the node is among the imported ones.
    pub(super) fn has(&self, id: &str) -> bool {
        self.nodes.iter().any(|it| word(&it.node, "uuid") == id)
    }

    /// Whether Ironic may talk to the BMC of the node: a conductor is alive, and the node is not in maintenance.
    pub(super) fn is_controlled(&self, node: &Object) -> bool {
        self.is_conducting && !is_set(node, "maintenance") && !is_let_go(node)
    }
}

/// The parts of all nodes, by the id of the node.
struct Parts {
    groups: BTreeMap<String, Vec<Object>>,
    ports: BTreeMap<String, Vec<Object>>,
    connectors: BTreeMap<String, Vec<Object>>,
    targets: BTreeMap<String, Vec<Object>>,
}

impl Parts {
    async fn read(ironic: &Ironic) -> anyhow::Result<Parts> {
        Ok(Parts {
            groups: by_node(list::<PortGroups>(ironic, "/v1/portgroups/detail").await?),
            ports: by_node(list::<Ports>(ironic, "/v1/ports/detail").await?),
            connectors: by_node(
                list::<Connectors>(ironic, "/v1/volume/connectors?detail=True").await?,
            ),
            targets: by_node(list::<Targets>(ironic, "/v1/volume/targets?detail=True").await?),
        })
    }
}

async fn list<T: Listed + Into<Object>>(
    ironic: &Ironic,
    path: &str,
) -> anyhow::Result<Vec<Object>> {
    let all = ironic.all::<T>(path).await;
    let all = all.with_context(|| format!("cannot read {path} of Ironic"))?;
    Ok(all.into_iter().map(Into::into).collect())
}

/// Reads all pages of a list whose links to further pages do not work in Ironic: the link of nodes lacks `include_children`, and the link of
/// histories names `fields`, which histories refuse (ironic, `_get_nodes_collection` and `NodeHistoryController.get_all`).
async fn by_markers(ironic: &Ironic, path: &str, name: &str) -> anyhow::Result<Vec<Object>> {
    let mut all: Vec<Object> = Vec::new();
    loop {
        let marker = all.last().map(|last| format!("&marker={}", word(last, "uuid")));
        let at = format!("{path}{}", marker.unwrap_or_default());
        let page = ironic.get::<Object>(&at).await;
        let mut page = page.with_context(|| format!("cannot read {at} of Ironic"))?;
        let rows = page.remove(name).unwrap_or_default();
        let rows: Vec<Object> = serde_json::from_value(rows)
            .with_context(|| format!("Ironic's answer to {at} has no list {name}"))?;
        let is_last = rows.is_empty() || !page.contains_key("next");
        all.extend(rows);
        if is_last {
            return Ok(all);
        }
    }
}

fn by_node(all: Vec<Object>) -> BTreeMap<String, Vec<Object>> {
    let mut sorted: BTreeMap<String, Vec<Object>> = BTreeMap::new();
    for it in all {
        sorted.entry(word(&it, "node_uuid").to_owned()).or_default().push(it);
    }
    sorted
}

/// The nodes with these ids or names; all nodes if there are none.
fn selected(all: Vec<Object>, wanted: &[String]) -> anyhow::Result<Vec<Object>> {
    if wanted.is_empty() {
        return Ok(all);
    }
    let is_named =
        |node: &Object, name: &str| [word(node, "uuid"), word(node, "name")].contains(&name);
    if let Some(missing) = wanted.iter().find(|name| !all.iter().any(|it| is_named(it, name))) {
        let sentence = format!("Ironic has no node {missing:?}");
        return Err(Failure::new(Exit::NotFound, sentence).into());
    }
    Ok(all.into_iter().filter(|it| wanted.iter().any(|name| is_named(it, name))).collect())
}

/// Reads what the last inspection found, if there was one.
async fn inventory(ironic: &Ironic, node: &Object) -> anyhow::Result<Option<Value>> {
    if word(node, "inspection_finished_at").is_empty() {
        return Ok(None);
    }
    ironic.find(&format!("/v1/nodes/{}/inventory", word(node, "uuid"))).await
}

/// Reads the history of a node, the oldest entry first.
pub(super) async fn history(ironic: &Ironic, node: &Object) -> anyhow::Result<Vec<Object>> {
    let path = format!("/v1/nodes/{}/history?detail=True", word(node, "uuid"));
    by_markers(ironic, &path, "history").await
}

/// Reads a node again, with its ports and its history.
pub(super) async fn read_again(ironic: &Ironic, found: &IronicNode) -> anyhow::Result<IronicNode> {
    let path = format!("/v1/nodes/{}", word(&found.node, "uuid"));
    Ok(IronicNode {
        node: ironic.get(&path).await?,
        portgroups: list::<PortGroups>(ironic, &format!("{path}/portgroups/detail")).await?,
        ports: list::<Ports>(ironic, &format!("{path}/ports/detail")).await?,
        history: history(ironic, &found.node).await?,
        ..found.clone()
    })
}

/// Reads the resources that belong to no node.
async fn shared(ironic: &Ironic) -> anyhow::Result<Vec<Shared>> {
    let of = |kind, path, dropped: &[&str], all: Vec<Object>| {
        let all = all.into_iter().map(|it| Shared { kind, path, object: without(it, dropped) });
        all.collect::<Vec<_>>()
    };
    let chassis = list::<ChassisList>(ironic, "/v1/chassis/detail").await?;
    let templates = list::<Templates>(ironic, "/v1/deploy_templates?detail=True").await?;
    let runbooks = list::<Runbooks>(ironic, "/v1/runbooks?detail=True").await?;
    let rules = list::<InspectionRules>(ironic, "/v1/inspection_rules?detail=True").await?;
    let mut shared = of("chassis", "/bedplate/v1/import/chassis", &["links", "nodes"], chassis);
    shared.extend(of("template", "/bedplate/v1/import/deploy-templates", &["links"], templates));
    shared.extend(of("runbook", "/bedplate/v1/import/runbooks", &["links"], runbooks));
    let path = "/bedplate/v1/import/inspection-rules";
    shared.extend(of("inspection rule", path, &["links"], rules));
    Ok(shared)
}

fn without(mut object: Object, fields: &[&str]) -> Object {
    object.retain(|field, _| !fields.contains(&field.as_str()));
    object
}

/// Sorts nodes so that each comes after its parent, if the parent is among them.
fn parents_first(mut left: Vec<IronicNode>) -> Vec<IronicNode> {
    let mut sorted = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let ids: Vec<String> = left.iter().map(|it| word(&it.node, "uuid").to_owned()).collect();
        let waits = |it: &IronicNode| ids.iter().any(|id| id == word(&it.node, "parent_node"));
        let (waiting, ready): (Vec<_>, Vec<_>) = left.into_iter().partition(waits);
        if ready.is_empty() {
            // A circle of parents: baremetald refuses these nodes by name.
            sorted.extend(waiting);
            break;
        }
        sorted.extend(ready);
        left = waiting;
    }
    sorted
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(id: &str, parent: Option<&str>) -> IronicNode {
        let node = json!({"uuid": id, "name": format!("name-{id}"), "parent_node": parent});
        IronicNode { node: node.as_object().unwrap().clone(), ..IronicNode::default() }
    }

    #[track_caller]
    fn check(nodes: &[(&str, Option<&str>)], want: &[&str]) {
        let sorted = parents_first(nodes.iter().map(|(id, parent)| node(id, *parent)).collect());
        let ids: Vec<&str> = sorted.iter().map(|it| word(&it.node, "uuid")).collect();
        assert_eq!(ids, want);
    }

    #[test]
    fn a_node_comes_after_its_parent() {
        check(&[("c", Some("b")), ("b", Some("a")), ("a", None)], &["a", "b", "c"]);
        check(&[("b", Some("elsewhere")), ("a", None)], &["b", "a"]);
        check(&[("a", Some("b")), ("b", Some("a"))], &["a", "b"]);
    }

    #[test]
    fn nodes_are_selected_by_id_or_name() {
        let all = || ["a", "b", "c"].map(|id| node(id, None).node).to_vec();
        let names = |wanted: &[&str]| {
            let wanted: Vec<String> = wanted.iter().map(|it| (*it).to_owned()).collect();
            let found = selected(all(), &wanted).map_err(|why| why.to_string())?;
            Ok::<_, String>(found.iter().map(|it| word(it, "uuid").to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(names(&["c", "name-a"]).unwrap(), ["a", "c"]);
        assert_eq!(names(&[]).unwrap().len(), 3);
        assert_eq!(names(&["d"]).unwrap_err(), "Ironic has no node \"d\"");
    }
}
