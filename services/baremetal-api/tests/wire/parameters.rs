//! Wire tests of parameters: in the body or the query, each at most once.

use serde_json::json;

use crate::api::{Api, ID, NEWEST};

const NODE: &str = "/v1/nodes/7c9e6679-7425-40de-944b-e07fc1f90ae7";

/// An API with a node that has a console.
async fn with_node() -> Api {
    let api = Api::start().await;
    assert!(NODE.ends_with(ID));
    api.enroll(r#", "name": "n1", "console_interface": "fake""#).await;
    api
}

#[tokio::test]
async fn a_parameter_is_taken_from_the_query() {
    let api = with_node().await;
    let put = async |path: &str, body: &str, status: u16| {
        api.send("PUT", &format!("{NODE}/{path}"), NEWEST, body).await.has(status)
    };
    put("states/console?enabled=true", "", 202).await;
    assert_eq!(api.get(NODE).await.json()["console_enabled"], true);
    put("states/console", r#"{"enabled": "no"}"#, 202).await;
    assert_eq!(api.get(NODE).await.json()["console_enabled"], false);
    put("management/boot_device?boot_device=pxe&persistent=True", "", 204).await;
    let device = api.get(&format!("{NODE}/management/boot_device")).await.json();
    assert_eq!(device, json!({"boot_device": "pxe", "persistent": true}));
    put("maintenance?reason=a+new+fan", "", 202).await;
    assert_eq!(api.get(NODE).await.json()["maintenance_reason"], "a new fan");
    put("states/provision?target=manage", "", 202).await;
    assert_eq!(api.get(NODE).await.json()["provision_state"], "verifying");
}

#[tokio::test]
async fn a_parameter_is_given_once() {
    let api = with_node().await;
    let refused = async |path: &str, body: &str, words: &str| {
        let answer = api.send("PUT", &format!("{NODE}/{path}"), NEWEST, body).await;
        answer.refuses(400, words);
    };
    let power = r#"{"target": "power on"}"#;
    let twice = "target: is given in the body and in the query";
    refused("states/power?target=power+on", power, twice).await;
    let reason = "reason: is given in the body and in the query";
    refused("maintenance?reason=fan", r#"{"reason": "disk"}"#, reason).await;
    let again = "target: is given more than once";
    refused("states/power?target=power+on&target=power+off", "", again).await;
    refused("states/power?color=red", power, "color: unknown parameter").await;
    refused("states/console?enabled=maybe", "", "query: must be true or false").await;
    refused("states/power", r#"["power on"]"#, "body: must be an object, not a list").await;
    // A password does not belong into a URL.
    let rescue = "states/provision?target=rescue&rescue_password=x";
    refused(rescue, "", "rescue_password: unknown parameter").await;
    let node = api.get(NODE).await.json();
    assert_eq!((&node["target_power_state"], &node["maintenance"]), (&json!(null), &json!(false)));
}

#[tokio::test]
async fn a_query_names_the_node_to_validate() {
    let api = with_node().await;
    let want = api.get(&format!("{NODE}/validate")).await.has(200).text;
    for query in ["node=n1", &format!("node_uuid={ID}")] {
        let got = api.get(&format!("/v1/nodes/validate?{query}")).await.has(200).text;
        assert_eq!(got, want);
    }
    api.get("/v1/nodes/validate").await.refuses(400, "node: is required");
    let named = "/v1/nodes/validate?node_uuid=n1";
    api.get(named).await.refuses(400, "node_uuid: must be a UUID");
    api.send("GET", "/v1/nodes/validate?node=n1", "1.4", "").await.has(406);
    let missing = "Node n2 could not be found.";
    api.get("/v1/nodes/validate?node=n2").await.refuses(404, missing);
}
