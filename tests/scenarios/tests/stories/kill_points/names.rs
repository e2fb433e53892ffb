//! The name of a machine in DNS is changed while baremetald is killed: the zone gets each change, and the names of others stay.

use lab::{Lab, Machine};
use openstack::dns::recordsets;
use reqwest::Method;
use serde_json::{Value, json};

use super::settings;
use crate::lab_in_cloud::LabInCloud;
use crate::names::{becomes, leased, with_zone};

const OTHER: (&str, &str) = ("other.machines.test.", "192.0.2.7");

/// Makes a change while the service is killed before and after its next change of the zone, and waits until the zone has these names.
async fn outlived(lab: &LabInCloud, zone: &str, change: impl AsyncFn(), want: &[(&str, &str)]) {
    let done = async || becomes(lab, zone, want).await;
    let points = lab.kill_at_every_point(1, |it| !it.contains("dns: change"), change, done).await;
    assert_eq!(points.len(), 2, "before the change and after: {points:#?}");
    becomes(lab, zone, want).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_name_of_a_machine_survives_kills() {
    let (lab, zone) = with_zone(async |it| Lab::with_mortal(it).await, settings()).await;
    let other = json!({"name": OTHER.0, "type": "A", "records": [OTHER.1]}).to_string();
    let path = format!("/dns/v2/zones/{zone}/recordsets");
    lab.admin.send(Method::POST, &path, "application/json", other).await;
    let machine = lab.rack(Machine::redfish("r1u1").without_tls()).await;
    let node = lab.available(&machine).await;
    let address = leased(&machine);

    // Adds the name, then removes it and adds another one.
    for (name, host) in [("r1u1", "r1u1.machines.test."), ("r1u2", "r1u2.machines.test.")] {
        let rename = async || lab.set(node, "/name", json!(name)).await;
        outlived(&lab, &zone, rename, &[OTHER, (host, &address)]).await;
    }
    let own = ("r1u2.machines.test.", &*address);
    // Replaces an address that somebody else wrote.
    let listed = recordsets::list(&lab.admin.session, &zone).await.expect("recordsets");
    let known = listed.into_iter().find(|it| it.name == own.0).expect("the node has a name");
    let replace = async || {
        let wrong = ["192.0.2.9".to_owned()];
        let set = recordsets::set_records(&lab.admin.session, &zone, &known.id, &wrong).await;
        set.expect("the recordset");
    };
    outlived(&lab, &zone, replace, &[OTHER, own]).await;
    // Removes the name.
    let delete = async || {
        let listed: Value = lab.api().get("/v1/nodes").await;
        if listed["nodes"] != json!([]) {
            lab.api().send(Method::DELETE, &node.path(), None).await.expect("the node goes");
        }
    };
    outlived(&lab, &zone, delete, &[OTHER]).await;
}
