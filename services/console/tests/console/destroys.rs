//! Nothing is erased or destroyed by one click: the server requires the name as a confirmation, whatever the page sends.

use reqwest::Client;
use serde_json::{Value, json};

use crate::fixture::{Auth, Browser, ConsoleFixture};

const RACK: &str = "name,position,mac,bmc_type,bmc_address\nr1u1,1,52:54:00:00:00:01,fake,\nr1u2,2,52:54:00:00:00:02,fake,\n";

/// Enrolls a rack without bringing it up.
async fn enroll(browser: &mut Browser) {
    let fields = [("manifest", RACK), ("format", "csv"), ("rack", "r1"), ("reach", "enrolled")];
    assert_eq!(browser.fill("/bring-up", "/bring-up/enroll", &fields).await.leads(), "/racks/r1");
}

async fn node(given: &ConsoleFixture, name: &str) -> (u16, Value) {
    given.api(&format!("{}/v1/nodes/{name}", given.machines)).await
}

/// Missing names and wrong names.
const WRONG: [Option<&str>; 5] = [None, Some(""), Some("r1u2"), Some("R1U1"), Some("r1u1 r1u1")];

#[tokio::test]
async fn a_node_is_erased_only_with_its_name_as_confirmation() {
    let given = ConsoleFixture::start(Auth::None).await;
    let mut browser = given.browser();
    enroll(&mut browser).await;
    let page = "/nodes/r1u1";
    assert_eq!(
        browser.fill(page, "/nodes/r1u1/provision", &[("target", "manage")]).await.leads(),
        page
    );
    browser.until(page, ">manageable<").await;
    let (_, before) = node(&given, "r1u1").await;
    for target in [
        "provide", "clean", "active", "deploy", "rebuild", "deleted", "undeploy", "rescue",
        "service", "unhold", "x",
    ] {
        let asked = browser.get(&format!("{page}/confirm?target={target}")).await.has(200);
        asked.says("Type \"<strong>r1u1</strong>\" to confirm");
        for name in WRONG {
            let name = name.map(|name| ("name", name));
            let fields: Vec<_> = [("target", target)].into_iter().chain(name).collect();
            let refused = browser.fill(page, "/nodes/r1u1/provision", &fields).await.has(400);
            refused.says("role=\"alert\"").says("nothing was changed");
        }
    }
    for name in WRONG {
        let fields: Vec<_> = name.map(|name| ("name", name)).into_iter().collect();
        browser.fill(page, "/nodes/r1u1/delete", &fields).await.has(400);
    }
    let (_, after) = node(&given, "r1u1").await;
    assert_eq!(
        after["provision_updated_at"], before["provision_updated_at"],
        "nothing was asked of it"
    );
    assert_eq!(after["provision_state"], "manageable");

    let fields = [("target", "provide"), ("name", "r1u1")];
    assert_eq!(browser.fill(page, "/nodes/r1u1/provision", &fields).await.leads(), page);
    browser.until(page, ">available<").await;
    assert_eq!(node(&given, "r1u1").await.1["provision_state"], "available");
}

#[tokio::test]
async fn a_bmc_password_is_changed_only_with_the_name_of_the_node_as_confirmation() {
    let given = ConsoleFixture::start(Auth::None).await;
    let mut browser = given.browser();
    enroll(&mut browser).await;
    let fake = browser.get("/nodes/r1u1").await.has(200);
    assert!(!fake.text.contains("rotate-bmc-password"), "no BMC: {}", fake.text);

    let info = json!({
        "redfish_address": "https://192.0.2.9", "redfish_username": "root", "redfish_password": "old",
    });
    let body = json!({"name": "r1u7", "driver": "redfish", "driver_info": info});
    let client = Client::builder().no_proxy().build().unwrap();
    let create = client.post(format!("{}/v1/nodes", given.machines)).json(&body);
    let created = create.header("x-openstack-ironic-api-version", "1.95").send().await.unwrap();
    assert_eq!(created.status(), 201);
    let page = "/nodes/r1u7";
    let question = format!("{page}/confirm?target=rotate-bmc-password");
    browser.get(page).await.has(200).says(&question);
    browser.get(&question).await.has(200).says("a new random password, which nobody sees");
    let form = format!("{page}/rotate-bmc-password");
    let history = format!("{}/v1/nodes/r1u7/history", given.machines);
    let before = given.api(&history).await;
    for name in WRONG {
        let fields: Vec<_> = name.map(|name| ("name", name)).into_iter().collect();
        browser.fill(&question, &form, &fields).await.has(400).says("nothing was changed");
    }
    assert_eq!(given.api(&history).await, before, "nothing was asked of it");
    let asked = browser.fill(&question, &form, &[("name", "r1u7")]).await;
    assert_eq!(asked.leads(), page);
    browser.until(page, "a new password of the BMC account requested").await;
}

#[tokio::test]
async fn a_rack_is_brought_up_and_deleted_only_with_its_name_as_confirmation() {
    let given = ConsoleFixture::start(Auth::None).await;
    let mut browser = given.browser();
    let rack = format!("{}/bedplate/v1/racks/r1", given.machines);
    let at_once = [("manifest", RACK), ("format", "csv"), ("rack", "r1"), ("reach", "available")];
    let refused = browser.fill("/bring-up", "/bring-up/enroll", &at_once).await.has(400);
    refused.says("the name of the rack");
    assert_eq!(given.api(&rack).await.0, 404, "nothing was enrolled");

    enroll(&mut browser).await;
    for (field, value) in [("reach", "available"), ("reach", "installed"), ("profile", "kvm")] {
        for name in [None, Some("r2")] {
            let mut fields = vec![("reach", "inspected"), (field, value)];
            fields.extend(name.map(|name| ("name", name)));
            browser.fill("/racks/r1", "/racks/r1/up", &fields).await.has(400);
        }
    }
    assert_eq!(given.api(&rack).await.1["goal"], Value::Null, "nothing was asked of it");

    browser.fill("/racks/r1/delete", "/racks/r1/delete", &[]).await.has(400);
    let full =
        browser.fill("/racks/r1/delete", "/racks/r1/delete", &[("name", "r1")]).await.has(409);
    full.says("rack r1 still has machines");
    for name in ["r1u1", "r1u2"] {
        let page = format!("/nodes/{name}");
        browser.get(&page).await.has(200).says("/confirm?target=delete");
        let ask = format!("{page}/confirm?target=delete");
        let gone = browser.fill(&ask, &format!("{page}/delete"), &[("name", name)]).await;
        assert_eq!(gone.leads(), "/nodes");
        assert_eq!(node(&given, name).await.0, 404);
    }
    let gone = browser.fill("/racks/r1/delete", "/racks/r1/delete", &[("name", "r1")]).await;
    assert_eq!(gone.leads(), "/racks");
    assert_eq!(given.api(&rack).await.0, 404);
}

#[tokio::test]
async fn members_of_a_cluster_are_deleted_only_with_a_name_as_confirmation() {
    let given = ConsoleFixture::start(Auth::None).await;
    let mut browser = given.browser();
    let template = given.template().await;
    let what = [
        ("name", "web"),
        ("template", template.as_str()),
        ("master_count", "1"),
        ("node_count", "2"),
        ("step", "make"),
    ];
    let page = browser.fill("/clusters/new", "/clusters/new", &what).await.leads();
    browser.until(&page, "CREATE_COMPLETE").await;
    let count = async || {
        let (_, shown) = given.api(&format!("{}/v1/clusters/web", given.clusters)).await;
        shown["node_count"].as_i64()
    };
    let resize = format!("{page}/resize");
    for count in ["1", "0"] {
        browser.fill(&page, &resize, &[("node_count", count)]).await.has(400);
        browser.fill(&page, &resize, &[("node_count", count), ("name", "wob")]).await.has(400);
    }
    assert_eq!(count().await, Some(2));
    let smaller = browser.fill(&page, &resize, &[("node_count", "1"), ("name", "web")]).await;
    assert_eq!(smaller.leads(), page);
    browser.until(&page, "UPDATE_COMPLETE").await;
    assert_eq!(count().await, Some(1));

    let group = [("name", "gpu"), ("node_count", "1")];
    assert_eq!(browser.fill(&page, &format!("{page}/groups"), &group).await.leads(), page);
    let groups = format!("{}/v1/clusters/web/nodegroups", given.clusters);
    browser.until(&page, ">gpu<").await;
    let remove = format!("{page}/groups/delete");
    browser.fill(&page, &remove, &[("target", "gpu")]).await.has(400);
    browser.fill(&page, &remove, &[("target", "gpu"), ("name", "web")]).await.has(400);
    assert_eq!(given.api(&format!("{groups}/gpu")).await.0, 200);
    browser.until(&page, "UPDATE_COMPLETE").await;
    let removed = browser.fill(&page, &remove, &[("target", "gpu"), ("name", "gpu")]).await;
    assert_eq!(removed.leads(), page);
    browser.until_gone(&page, ">gpu<").await;
    assert_eq!(given.api(&format!("{groups}/gpu")).await.0, 404);
}
