//! The action resize.

use crate::api::Api;

#[tokio::test]
async fn a_group_is_resized() {
    let api = Api::start().await;
    let id = api.small().await;
    let resize = async |body: &str| api.post("/v1/clusters/c/actions/resize", body).await;
    // The body that `openstack coe cluster resize` sends.
    resize(r#"{"node_count": 4}"#).await.has(202).is(&format!(r#"{{"uuid": "{id}"}}"#));
    resize(r#"{"node_count": 2, "nodes_to_remove": ["default-worker-0"], "nodegroup": "default-worker"}"#)
        .await
        .has(202);
    let machines = api.get("/bedplate/v1/clusters/c/machines").await.json();
    let names: Vec<&str> = machines["machines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["default-master-0", "default-worker-1", "default-worker-2"]);

    resize(r#"{"node_count": 2, "nodegroup": "default-master"}"#)
        .await
        .refuses(400, "node_count: a control plane has 1, 3 or 5 members");
    resize(r#"{"node_count": 1, "nodes_to_remove": ["x"]}"#)
        .await
        .refuses(400, "nodes_to_remove: \"x\" is not a member of this cluster");
    resize(r#"{"node_count": 1, "nodegroup": "x"}"#)
        .await
        .refuses(404, "Nodegroup x could not be found.");
    resize(r#"{"nodegroup": null}"#).await.has(400);
    api.send(
        "POST",
        "/v1/clusters/c/actions/resize",
        "container-infra 1.6",
        r#"{"node_count": 2}"#,
    )
    .await
    .refuses(406, "this path requires API version 1.7; the requested version is 1.6");
}
