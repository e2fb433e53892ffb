//! The verbs that each flag of a node forbids, as a table of statuses. A refused request leaves the node unchanged.
//!
//! As in Ironic (`conductor/manager.py`), `protected` forbids undeploying, rebuilding and deleting (403), `retired` forbids providing, and
//! maintenance forbids deploying, rebuilding, manual cleaning, service, rescue and, as with `allow_provisioning_in_maintenance = False`,
//! providing. Ironic deploys and cleans a machine with `disable_power_off` by restarts alone; here such work is refused, because it always
//! powers the machine off.

use std::collections::BTreeSet;

use baremetal_core::{
    LendRequest, Maintenance, Node, NodeIdent, State as Stage, lend, with_stage_taken,
};
use jiff::Timestamp;
use lease::{LeaseStage, Terms};
use serde_json::{Map, Value};

use crate::api::{Api, ID, NEWEST};

/// A verb, and a provision state that allows it.
struct VerbRequest {
    what: &'static str,
    from: Stage,
}

const fn verb(what: &'static str, from: Stage) -> VerbRequest {
    VerbRequest { what, from }
}

/// A flag, and the change that sets it on a node.
type Flag = (&'static str, fn(&mut Node));

const FLAGS: [Flag; 7] = [
    ("nothing", |_| {}),
    ("protected", |node| node.protected = Some(String::new())),
    ("retired", |node| node.retired = Some(String::new())),
    ("maintenance", |node| node.maintenance = Some(Maintenance::requested(None))),
    ("disable_power_off", |node| node.disable_power_off = true),
    ("reserved", |node| node.instance_uuid = Some(ID.parse().unwrap())),
    ("lease ended", |node| {
        let now = Timestamp::UNIX_EPOCH;
        let loan =
            LendRequest { lessee: "lab".to_owned(), length: "1d".parse().unwrap(), notify: None };
        let (lent, _) = lend(node, loan, "root", Terms::default(), now).unwrap();
        *node = with_stage_taken(&lent, LeaseStage::SwitchOff { deleted_at: now }, now).0;
    }),
];

/// DELETE comes last, because it may delete the node.
#[rustfmt::skip]
const TABLE: [(VerbRequest, [u16; 7]); 21] = [
    //                                               -    prot ret  maint nooff resv ended
    (verb("manage",         Stage::Enroll),         [202, 202, 202, 202,  202,  202, 202]),
    (verb("inspect",        Stage::Manageable),     [202, 202, 202, 400,  202,  202, 202]),
    (verb("provide",        Stage::Manageable),     [202, 202, 400, 400,  409,  202, 202]),
    (verb("clean",          Stage::Manageable),     [202, 202, 202, 400,  409,  202, 202]),
    (verb("adopt",          Stage::Manageable),     [202, 202, 202, 202,  202,  202, 202]),
    (verb("active",         Stage::Available),      [202, 202, 400, 400,  409,  202, 400]),
    (verb("rebuild",        Stage::Active),         [202, 403, 202, 400,  409,  202, 400]),
    (verb("deleted",        Stage::Active),         [202, 403, 202, 202,  409,  202, 202]),
    (verb("abort",          Stage::DeployWait),     [202, 202, 202, 202,  202,  202, 202]),
    // Whether the steps of a service switch the machine off is known once they are planned.
    (verb("service",        Stage::Active),         [202, 202, 202, 400,  202,  202, 400]),
    (verb("unhold",         Stage::ServiceHold),    [202, 202, 202, 202,  202,  202, 202]),
    (verb("rescue",         Stage::Active),         [202, 202, 202, 400,  409,  202, 400]),
    (verb("unrescue",       Stage::Rescued),        [202, 202, 202, 400,  409,  202, 400]),
    (verb("secure boot",    Stage::Active),         [202, 202, 202, 202,  202,  202, 400]),
    (verb("power on",       Stage::Active),         [202, 202, 202, 202,  202,  202, 400]),
    (verb("power off",      Stage::Active),         [202, 202, 202, 202,  409,  202, 202]),
    (verb("soft power off", Stage::Active),         [202, 202, 202, 202,  409,  202, 202]),
    (verb("rebooting",      Stage::Active),         [202, 202, 202, 202,  409,  202, 400]),
    (verb("soft rebooting", Stage::Active),         [202, 202, 202, 202,  409,  202, 400]),
    (verb("maintenance",    Stage::Active),         [202, 202, 202, 202,  202,  202, 202]),
    (verb("DELETE",         Stage::Manageable),     [204, 403, 204, 204,  204,  409, 409]),
];

impl VerbRequest {
    async fn of(&self, api: &Api) -> u16 {
        let what = self.what;
        let (method, path, body) = match what {
            "DELETE" => ("DELETE", String::new(), String::new()),
            "maintenance" => {
                ("PUT", "/maintenance".to_owned(), r#"{"reason": "a fan"}"#.to_owned())
            }
            "clean" | "service" => {
                let steps = r#"[{"interface": "deploy", "step": "erase_devices"}]"#;
                let body = format!(r#"{{"target": "{what}", "{what}_steps": {steps}}}"#);
                ("PUT", "/states/provision".to_owned(), body)
            }
            "rescue" => {
                let body = r#"{"target": "rescue", "rescue_password": "s3cret"}"#.to_owned();
                ("PUT", "/states/provision".to_owned(), body)
            }
            "secure boot" => {
                ("PUT", "/states/secure_boot".to_owned(), r#"{"target": true}"#.to_owned())
            }
            _ => {
                let is_power = what.contains("power") || what.contains("rebooting");
                let path = if is_power { "/states/power" } else { "/states/provision" };
                ("PUT", path.to_owned(), format!(r#"{{"target": "{what}"}}"#))
            }
        };
        let answer = api.send(method, &format!("/v1/nodes/{ID}{path}"), NEWEST, &body).await;
        answer.status.as_u16()
    }
}

/// Adds the values of each `target` of a provision state in an OpenAPI document.
fn collect_targets(document: &Value, targets: &mut BTreeSet<String>) {
    if let Some(names) = document.get("enum").and_then(Value::as_array)
        && names.iter().any(|name| name == "unhold")
    {
        targets.extend(names.iter().filter_map(Value::as_str).map(str::to_owned));
    }
    let fields = document.as_object().into_iter().flat_map(Map::values);
    let elements = document.as_array().into_iter().flatten();
    fields.chain(elements).for_each(|it| collect_targets(it, targets));
}

#[tokio::test]
async fn every_verb_has_a_row() {
    let document = Api::start().await.get("/openapi.json").await.json();
    let mut targets = BTreeSet::new();
    collect_targets(&document, &mut targets);
    // Other names of `active` and `deleted`.
    let has_row = |target: &String| {
        ["deploy", "undeploy"].contains(&&**target)
            || TABLE.iter().any(|(verb, _)| verb.what == target)
    };
    let without: Vec<&String> = targets.iter().filter(|target| !has_row(target)).collect();
    assert!(targets.len() >= 15 && without.is_empty(), "{without:?} of {targets:?}");
}

#[tokio::test]
async fn each_flag_refuses_the_verbs_that_it_forbids_and_changes_nothing() {
    let ident: NodeIdent = ID.parse().unwrap();
    for (at, (flag, set)) in FLAGS.iter().enumerate() {
        let api = Api::start().await;
        api.enroll("").await;
        let fresh = api.store.find_node(&ident).await.unwrap().unwrap();
        let history = async || api.get(&format!("/v1/nodes/{ID}/history")).await.has(200).text;
        for (asked, want) in &TABLE {
            let about = format!("{} of a node with {flag}", asked.what);
            api.edit(|node| {
                *node = Node { version: node.version, ..fresh.clone() };
                node.provision_state = asked.from;
                set(node);
            })
            .await;
            let before = api.store.find_node(&ident).await.unwrap().unwrap();
            let reported = history().await;
            let status = asked.of(&api).await;
            assert_eq!(status, want[at], "{about}");
            let after = api.store.find_node(&ident).await.unwrap();
            if status < 400 {
                assert!(after != Some(before), "{about}: nothing was written");
            } else {
                assert!(after == Some(before), "{about}: the node changed");
                assert_eq!(history().await, reported, "{about}");
            }
        }
    }
}
