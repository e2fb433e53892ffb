//! A rack is enrolled as a whole, and brought up with a limit on parallel machines.

use api_client::baremetald::{BringUp, Enrolment, GoalProgress, Node, Rack, RackSummary};
use lab::{Lab, Machine, RackedMachine};
use machine_emulator::Stage;
use reqwest::Method;
use serde_json::{Value, json};

async fn six_machines(lab: &Lab) -> Vec<RackedMachine> {
    let blueprints = (1..=6).map(|place| match place {
        1 | 2 => Machine::redfish(&format!("r1u{place}")),
        3 | 4 => Machine::redfish(&format!("r1u{place}")).uefi(),
        5 => Machine::redfish("r1u5").uefi().boot("http-ipxe"),
        _ => Machine::ipmi(&format!("r1u{place}")),
    });
    lab.rack_all(blueprints.collect()).await
}

fn manifest(machines: &[RackedMachine]) -> Value {
    let rows = (1..).zip(machines).map(|(line, machine)| machine.row(line));
    json!({"name": "r1", "description": "a rack of six", "machines": rows.collect::<Vec<_>>()})
}

#[tokio::test]
async fn a_rack_comes_up_under_its_limit() {
    let lab = Lab::start().await;
    let machines = six_machines(&lab).await;
    let asked = manifest(&machines);
    assert_eq!(enrolled(&lab, &asked).await, ["enrolled"; 6]);

    let up =
        json!({"reach": "installed", "instance_info": lab.image().instance_info(), "limit": 2});
    let begun = lab.api().send(Method::PUT, "/bedplate/v1/racks/r1/up", Some(&up)).await;
    assert_eq!(begun.read::<BringUp>("the rack is on its way").to_do, 6);

    let mut most = 0;
    let all_there = |rack: &Rack| {
        let count = |way| rack.machines.iter().filter(|machine| machine.way == Some(way)).count();
        most = most.max(count(GoalProgress::Working));
        assert_eq!(count(GoalProgress::Stuck), 0, "{rack:?}");
        (count(GoalProgress::There) == rack.machines.len()).then_some(())
    };
    lab.api().until("/bedplate/v1/racks/r1", "a rack that is up", all_there).await;
    assert_eq!(most, 2, "as many as allowed were on their way at once, and never more");
    for machine in &machines {
        let mut stage = machine.stage();
        stage.wait_for(|stage| *stage == Stage::Installed).await.expect("it boots its disk");
    }
}

#[tokio::test]
async fn enrolling_a_rack_twice_changes_nothing() {
    let lab = Lab::start().await;
    let machines = six_machines(&lab).await;
    let asked = manifest(&machines);
    enrolled(&lab, &asked).await;
    let before = everything(&lab).await;
    assert_eq!(enrolled(&lab, &asked).await, ["unchanged"; 6]);
    assert_eq!(everything(&lab).await, before);
}

#[tokio::test]
async fn a_bad_row_is_named_and_nothing_is_enrolled() {
    let lab = Lab::start().await;
    let machines = six_machines(&lab).await;
    let mut asked = manifest(&machines);
    asked["machines"][1]["ports"] = json!(["52:54:00:zz:00:01"]);
    asked["machines"][4]["driver"] = json!("pigeon");
    let refused = lab.api().send(Method::POST, "/bedplate/v1/racks", Some(&asked)).await;
    assert_eq!(refused.status, 400, "{}", refused.body);
    let text = refused.body.to_string();
    for part in ["line 2: mac: ", "line 5: ", "pigeon"] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert_eq!(lab.api().list::<Node>("/v1/nodes").await, []);
    assert_eq!(lab.api().list::<RackSummary>("/bedplate/v1/racks").await, []);
}

/// Enrolls a rack, and returns the result for each machine.
async fn enrolled(lab: &Lab, manifest: &Value) -> Vec<String> {
    let answer = lab.api().send(Method::POST, "/bedplate/v1/racks", Some(manifest)).await;
    let Enrolment { machines } = answer.read("the rack is enrolled");
    machines.into_iter().map(|machine| machine.result).collect()
}

async fn everything(lab: &Lab) -> [Value; 2] {
    [lab.api().get("/v1/nodes/detail").await, lab.api().get("/v1/ports/detail").await]
}
