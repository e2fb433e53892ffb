//! Pages of lists.

use crate::api::Api;

#[tokio::test]
async fn a_list_has_pages_with_absolute_links() {
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
    let of = async |key: &str| {
        let all = api.get(&format!("/v1/clusters?sort_key={key}")).await.has(200).json();
        all["clusters"].as_array().unwrap().iter().map(|it| it["uuid"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(of("id").await, of("created_at").await, "Magnum numbers resources as they come");
    let templates = api.get("/v1/clustertemplates?limit=1").await.json();
    assert!(templates["next"].is_string());
}

#[tokio::test]
async fn invalid_list_parameters_are_refused_by_name() {
    let api = Api::start().await;
    for collection in ["clusters", "clusters/detail", "clustertemplates"] {
        let path = |query: &str| format!("/v1/{collection}?{query}");
        api.get(&path("sort_key=colour"))
            .await
            .refuses(400, "sort_key: must be created_at, uuid or name");
        api.get(&path("limit=0")).await.refuses(400, "limit: must be positive");
        api.get(&path("zebra=1")).await.refuses(400, "zebra: unknown parameter");
        let nobody = "00000000-0000-0000-0000-000000000001";
        api.get(&path(&format!("marker={nobody}")))
            .await
            .refuses(400, &format!("marker: the marker {nobody} was not found"));
    }
}

#[tokio::test]
async fn a_page_ends_at_its_byte_limit_and_the_next_continues() {
    let limits = toml::from_str("page = 10000").unwrap();
    let api = Api::within(openstack_api::Auth::None, limits).await;
    for number in 0..10 {
        let (proxy, name) = ("x".repeat(3000), format!("t{number}"));
        let body = format!(
            r#"{{"name": "{name}", "image_id": "i", "coe": "kubernetes", "no_proxy": "{proxy}"}}"#
        );
        api.post("/v1/clustertemplates", &body).await.has(201);
    }
    let mut path = "/v1/clustertemplates?sort_key=name".to_owned();
    let (mut names, mut pages) = (Vec::new(), 0);
    loop {
        let answer = api.get(&path).await.has(200);
        assert!(answer.text.len() < 20_000, "{} bytes", answer.text.len());
        let list = answer.json();
        let found = list["clustertemplates"].as_array().unwrap();
        names.extend(found.iter().map(|it| it["name"].as_str().unwrap().to_owned()));
        pages += 1;
        let Some(next) = list["next"].as_str() else { break };
        path = next.split_once("/v1/").map(|(_, rest)| format!("/v1/{rest}")).unwrap();
    }
    assert_eq!(names, (0..10).map(|number| format!("t{number}")).collect::<Vec<_>>());
    assert!(pages >= 3, "{pages} pages");
}
