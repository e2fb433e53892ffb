//! Checks that baremetald reaches the BMCs of all enrolled nodes: baremetald is told to ask each BMC.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_client::baremetald::Node;
use serde::de::IgnoredAny;
use serde_json::Value;
use tokio::task::JoinSet;

use super::finding::{Check, Findings};
use crate::api::Api;

/// The number of concurrent requests.
const AT_ONCE: usize = 16;
/// The number of nodes that are named for each problem.
const NAMED: usize = 5;

/// Lists all nodes with the addresses of their BMCs and their images.
pub(crate) async fn nodes(api: &Api, findings: &mut Findings) -> Vec<Node> {
    let fields = "uuid,name,driver,driver_info,instance_info";
    let path = format!("/v1/nodes?fields={fields}");
    let mut pages = api.pages(&path);
    let mut nodes: Vec<Node> = Vec::new();
    loop {
        match api.read_page(&mut pages).await {
            Ok(Some(page)) => nodes.extend(page),
            Ok(None) => return nodes,
            Err(why) => {
                findings.skipped(Check::Bmcs, format!("cannot list nodes: {why:#}"));
                return nodes;
            }
        }
    }
}

/// Lets baremetald ask every BMC for the boot device of its machine.
pub(crate) async fn look(api: &Arc<Api>, nodes: &[Node], findings: &mut Findings) {
    let is_real = |node: &&Node| node.driver.as_deref() != Some("fake-hardware");
    let asked: Vec<&Node> = nodes.iter().filter(is_real).collect();
    let mut looks = JoinSet::new();
    let mut troubles: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut note = |(name, trouble): (String, Option<String>)| {
        if let Some(trouble) = trouble {
            troubles.entry(trouble).or_default().push(name);
        }
    };
    for node in &asked {
        if looks.len() >= AT_ONCE
            && let Some(Ok(seen)) = looks.join_next().await
        {
            note(seen);
        }
        let path = format!("/v1/nodes/{}/management/boot_device", node.id());
        let (api, name) = (api.clone(), node.label().to_owned());
        looks.spawn(async move {
            let trouble = api.get::<IgnoredAny>(&path).await.err().map(|why| format!("{why:#}"));
            (name, trouble)
        });
    }
    while let Some(Ok(seen)) = looks.join_next().await {
        note(seen);
    }
    judge(asked.len(), &troubles, findings);
    tell_shared(&asked, findings);
}

/// The address of a node's BMC, and the system behind that BMC; `None` if the node does not tell them.
fn bmc(node: &Node) -> Option<(String, String)> {
    let text = |name: &str| match node.driver_info.get(name)? {
        Value::String(text) => Some(text.trim_end_matches('/').to_lowercase()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    match node.driver.as_deref()? {
        "redfish" | "idrac" => {
            Some((text("redfish_address")?, text("redfish_system_id").unwrap_or_default()))
        }
        "ipmi" => Some((text("ipmi_address")?, text("ipmi_port").unwrap_or_else(|| "623".into()))),
        _ => None,
    }
}

/// Reports nodes that share a BMC: a copied row of a manifest that was not corrected would power off another node's machine.
fn tell_shared(nodes: &[&Node], findings: &mut Findings) {
    let mut owners: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for node in nodes {
        if let Some(bmc) = bmc(node) {
            owners.entry(bmc).or_default().push(node.label().to_owned());
        }
    }
    for ((address, _), names) in owners.iter().filter(|(_, names)| names.len() > 1) {
        let what = format!("nodes {} share the BMC {address}", names.join(", "));
        let next = "correct driver_info of all but one node before any action: an action on one node changes the machine of another";
        findings.fail(Check::Bmcs, what, next);
    }
}

fn judge(asked: usize, troubles: &BTreeMap<String, Vec<String>>, findings: &mut Findings) {
    let failed: usize = troubles.values().map(Vec::len).sum();
    match (asked, failed) {
        (0, _) => findings.skipped(Check::Bmcs, "no nodes are enrolled"),
        (asked, 0) => findings.ok(Check::Bmcs, format!("baremetald reaches all {asked} BMCs")),
        (asked, failed) if asked == failed && asked > 1 => {
            let what =
                format!("baremetald cannot reach any of the {asked} BMCs: {}", said(troubles));
            let next = "check the address, the route and the firewall between this machine and the BMC network, then the passwords";
            findings.fail(Check::Bmcs, what, next);
        }
        (asked, failed) => {
            let what =
                format!("baremetald cannot reach {failed} of {asked} BMCs: {}", said(troubles));
            let next = "check cable, address and password; `bedplate node explain NODE` shows the last observation";
            findings.fail(Check::Bmcs, what, next);
        }
    }
}

/// Lists the problems, those with the most nodes first.
fn said(troubles: &BTreeMap<String, Vec<String>>) -> String {
    let mut troubles: Vec<_> = troubles.iter().collect();
    troubles.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    let said = troubles.iter().map(|(trouble, names)| {
        let shown = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = names.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{shown}{more}: {trouble}")
    });
    said.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::doctor::tests::lines;

    #[test]
    fn bmcs_with_the_same_problem_are_grouped_and_the_largest_group_comes_first() {
        let mut findings = Findings::default();
        let names = |from: u32, to: u32| (from..to).map(|at| format!("n{at}")).collect::<Vec<_>>();
        let troubles = BTreeMap::from([
            ("cannot reach it".to_owned(), names(1, 8)),
            ("a wrong password".to_owned(), names(8, 9)),
        ]);
        judge(10, &troubles, &mut findings);
        let want = "wrong: baremetald cannot reach 8 of 10 BMCs: n1, n2, n3, n4, n5 and 2 more: cannot reach it; n8: a wrong password";
        assert_eq!(lines(&findings), [want]);
    }

    #[test]
    fn unreachable_bmcs_are_a_network_problem_if_no_bmc_answers() {
        let mut findings = Findings::default();
        let troubles =
            BTreeMap::from([("no route".to_owned(), vec!["a".to_owned(), "b".to_owned()])]);
        judge(2, &troubles, &mut findings);
        assert_eq!(
            lines(&findings),
            ["wrong: baremetald cannot reach any of the 2 BMCs: a, b: no route"]
        );
        let mut findings = Findings::default();
        judge(2, &BTreeMap::new(), &mut findings);
        assert_eq!(lines(&findings), ["fine: baremetald reaches all 2 BMCs"]);
    }

    #[test]
    fn nodes_with_one_bmc_are_named() {
        let node = |name: &str, driver: &str, info: Value| {
            let node = json!({"name": name, "driver": driver, "driver_info": info});
            serde_json::from_value::<Node>(node).unwrap()
        };
        let redfish = |address: &str, system: Value| json!({"redfish_address": address, "redfish_system_id": system});
        let nodes = [
            node("a", "redfish", redfish("https://10.0.0.11", Value::Null)),
            node("b", "redfish", redfish("https://10.0.0.11/", Value::Null)),
            node("c", "redfish", redfish("https://10.0.0.12", json!("/redfish/v1/Systems/1"))),
            node("d", "redfish", redfish("https://10.0.0.12", json!("/redfish/v1/Systems/2"))),
            node("e", "ipmi", json!({"ipmi_address": "10.0.0.13"})),
            node("f", "ipmi", json!({"ipmi_address": "10.0.0.13", "ipmi_port": 623})),
            node("g", "ipmi", json!({"ipmi_address": "10.0.0.13", "ipmi_port": 6230})),
            node("h", "fake-hardware", json!({})),
            node("i", "fake-hardware", json!({})),
        ];
        let mut findings = Findings::default();
        tell_shared(&nodes.iter().collect::<Vec<_>>(), &mut findings);
        let want = [
            "wrong: nodes e, f share the BMC 10.0.0.13",
            "wrong: nodes a, b share the BMC https://10.0.0.11",
        ];
        assert_eq!(lines(&findings), want);
    }
}
