//! A machine is installed with an image of Glance: the service reads the image with its own token and passes it on to the machine.

use lab::{Lab, Machine, Node, RackedMachine, Settings};
use machine_emulator::Stage;
use openstack_emulator::{Act, Rule};
use reqwest::Method;
use serde_json::json;

use crate::lab_in_cloud::LabInCloud;

/// Uploads a small bootable image to Glance, and returns its id.
async fn upload(lab: &LabInCloud) -> String {
    let id = create_image(lab, "debian").await;
    let mut disk: Vec<u8> = (0..1 << 20).map(|at| (at / 512 % 251) as u8).collect();
    disk[510..512].copy_from_slice(&[0x55, 0xaa]);
    let path = format!("/image/v2/images/{id}/file");
    lab.admin.send(Method::PUT, &path, "application/octet-stream", disk).await;
    id
}

/// Creates an image without content, and returns its id.
async fn create_image(lab: &LabInCloud, name: &str) -> String {
    let body = json!({"name": name, "disk_format": "raw", "container_format": "bare"}).to_string();
    let made = lab.admin.send(Method::POST, "/image/v2/images", "application/json", body).await;
    made["id"].as_str().expect("an id").to_owned()
}

async fn choose(lab: &LabInCloud, node: Node, source: &str) {
    lab.set(node, "/instance_info", json!({"image_source": source})).await;
}

async fn started(machine: Machine) -> (LabInCloud, RackedMachine, Node, String) {
    let lab = LabInCloud::start(async |it| Lab::start_with(it).await, Settings::default()).await;
    let machine = lab.rack(machine).await;
    let node = lab.available(&machine).await;
    let image = upload(&lab).await;
    (lab, machine, node, image)
}

#[tokio::test]
async fn a_machine_is_installed_with_an_image_of_glance_and_rebuilt() {
    let (lab, machine, node, image) = started(Machine::redfish("r1u1").without_tls()).await;
    choose(&lab, node, &image).await;
    lab.provision(node, "active").await.reaches("active").await;
    machine.stage().wait_for(|stage| *stage == Stage::Installed).await.expect("the machine");
    choose(&lab, node, &format!("glance://{image}")).await;
    lab.provision(node, "rebuild").await.reaches("active").await;
    let shown = lab.node(node).await;
    assert!(!shown.instance_info.contains_key("image_os_hash_value"), "{shown:#?}");
}

#[tokio::test]
async fn our_agent_installs_an_image_of_glance() {
    let (lab, machine, node, image) = started(Machine::redfish("r1u2").with_our_agent()).await;
    choose(&lab, node, &image).await;
    lab.provision(node, "active").await.reaches("active").await;
    machine.stage().wait_for(|stage| *stage == Stage::Installed).await.expect("the machine");
}

#[tokio::test]
async fn an_image_that_glance_does_not_have_or_send_is_refused() {
    let (lab, machine, node, image) = started(Machine::redfish("r1u3").without_tls()).await;
    let request = async |wanted: &str| {
        let path = format!("{}/states/provision", node.path());
        let answer = lab.api().send(Method::PUT, &path, Some(&Node::target(wanted))).await;
        (answer.status, answer.body.to_string())
    };
    choose(&lab, node, "00000000-0000-4000-8000-000000000000").await;
    let (status, why) = request("active").await;
    assert!(status == 400 && why.contains("was not found in Glance"), "{status} {why}");
    choose(&lab, node, &create_image(&lab, "empty").await).await;
    let (status, why) = request("active").await;
    assert!(status == 400 && why.contains("it is not active"), "{status} {why}");
    let down = Act::Answer { status: 503, retry_after: None, message: None };
    let rule = lab.cloud.misbehave(Rule::new("GET", "/image/v2/images/**", down.clone()));
    choose(&lab, node, &image).await;
    assert_eq!(request("active").await.0, 503);
    lab.cloud.end_rule(rule);
    assert_eq!(lab.node(node).await.state(), "available", "nothing has begun");

    // The image fails to arrive in the middle of the deployment.
    let rule = lab.cloud.misbehave(Rule::new("GET", "/image/v2/images/*/file", down));
    let failed = lab.provision(node, "active").await.fails("deploy failed").await;
    assert!(failed.contains("write_image") || failed.contains("image"), "{failed}");
    lab.cloud.end_rule(rule);
    lab.provision(node, "active").await.reaches("active").await;
    machine.stage().wait_for(|stage| *stage == Stage::Installed).await.expect("the machine");
}
