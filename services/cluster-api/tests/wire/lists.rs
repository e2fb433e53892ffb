//! Pages of lists.

use crate::api::Api;

#[tokio::test]
async fn a_list_goes_in_pages_by_absolute_links() {
    let api = Api::start().await;
    api.template("t", "").await;
    for name in ["a", "b", "c"] {
        api.cluster(name, "").await;
    }
    let mut path = "/v1/clusters?limit=2&sort_key=name&sort_dir=desc".to_owned();
    let mut names = Vec::new();
    loop {
        let page = api.get(&path).await.has(200).json();
        let clusters = page["clusters"].as_array().unwrap();
        names.extend(clusters.iter().map(|cluster| cluster["name"].as_str().unwrap().to_owned()));
        let Some(next) = page.get("next") else { break };
        path = next.as_str().unwrap().strip_prefix("http://api:9511").unwrap().to_owned();
    }
    assert_eq!(names, ["c", "b", "a"]);
    let templates = api.get("/v1/clustertemplates?limit=1").await.json();
    assert!(templates["next"].is_string());
}

#[tokio::test]
async fn what_a_list_cannot_be_is_named() {
    let api = Api::start().await;
    for collection in ["clusters", "clusters/detail", "clustertemplates"] {
        let path = |query: &str| format!("/v1/{collection}?{query}");
        api.get(&path("sort_key=colour"))
            .await
            .refuses(400, "sort_key: it must be created_at, uuid or name");
        api.get(&path("limit=0")).await.refuses(400, "limit: it must be positive");
        api.get(&path("zebra=1")).await.refuses(400, "zebra: this parameter is not known here");
        let nobody = "00000000-0000-0000-0000-000000000001";
        api.get(&path(&format!("marker={nobody}")))
            .await
            .refuses(400, &format!("marker: there is no {nobody} to begin the page after"));
    }
}
