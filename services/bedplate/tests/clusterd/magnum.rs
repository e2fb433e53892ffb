//! Tests of `bedplate import magnum` with two clusterd, of which one stands for Magnum.

use reqwest::Client;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::fixture::Clusterd;

impl Clusterd {
    async fn make(&self, path: &str, body: &Value) {
        let client = Client::builder().no_proxy().build().unwrap();
        let answer = client.post(format!("{}{path}", self.url)).json(body).send().await.unwrap();
        assert!(answer.status().is_success(), "{}", answer.text().await.unwrap());
    }

    async fn get(&self, path: &str) -> Value {
        let client = Client::builder().no_proxy().build().unwrap();
        let answer = client.get(format!("{}{path}", self.url)).send().await.unwrap();
        answer.json().await.unwrap()
    }

    /// Imports from `magnum` with these options. Returns the report, the error and the exit status.
    async fn import(&self, magnum: &Clusterd, options: &[&str]) -> (Value, String, i32) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bedplate"));
        command.env_clear().args(["--output", "json", "--clusters-url", &self.url]);
        command.args(["import", "magnum", "--magnum-url", &magnum.url]).args(options);
        let output = command.output().await.unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let error = String::from_utf8(output.stderr).unwrap();
        (report["resources"].clone(), error, output.status.code().unwrap())
    }
}

/// The results in a report.
fn results(report: &Value) -> Vec<&str> {
    report.as_array().unwrap().iter().map(|one| one["result"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn templates_are_taken_over_and_a_cluster_is_created_like_one_of_magnum() {
    let (magnum, ours) = (Clusterd::start().await, Clusterd::start().await);
    let labels = json!({"kube_tag": "v1.34.1", "team": "blue"});
    let template = json!({"name": "t", "coe": "kubernetes", "image_id": "i", "flavor_id": "f", "labels": labels});
    magnum.make("/v1/clustertemplates", &template).await;
    magnum
        .make("/v1/clusters", &json!({"name": "c", "cluster_template_id": "t", "node_count": 3}))
        .await;
    let theirs = magnum.get("/v1/clustertemplates/t").await;

    let (report, error, status) = ours.import(&magnum, &["--dry-run"]).await;
    assert_eq!((results(&report), status), (vec!["would_be_taken"], 0), "{error}");
    assert_eq!(ours.get("/v1/clustertemplates").await, json!({"clustertemplates": []}));
    let options = ["--cluster", "c", "--replace", "flavor_id:f=g", "--drop-label", "team"];
    let (report, error, status) = ours.import(&magnum, &options).await;
    assert_eq!((results(&report), status), (vec!["taken", "taken"], 1), "{error}");
    let losses = ["flavor_id: f is replaced by g", "labels/team: \"blue\""];
    assert_eq!((&report[0]["losses"], &report[1]["losses"]), (&json!(losses), &json!(losses)));
    let taken = ours.get("/v1/clustertemplates/t").await;
    for field in ["uuid", "project_id", "user_id", "created_at", "image_id"] {
        assert_eq!(taken[field], theirs[field], "{field}");
    }
    let labels = json!({"kube_tag": "v1.34.1"});
    assert_eq!((&taken["flavor_id"], &taken["labels"]), (&json!("g"), &labels));
    let made = ours.get("/v1/clusters/c").await;
    assert_eq!((&made["node_count"], &made["cluster_template_id"]), (&json!(3), &theirs["uuid"]));

    let (report, error, _) = ours.import(&magnum, &options).await;
    assert_eq!(results(&report), ["present", "present"], "{error}");
}

#[tokio::test]
async fn a_template_that_clusterd_refuses_is_named_with_its_field() {
    let (magnum, ours) = (Clusterd::start().await, Clusterd::start().await);
    let template = json!({"name": "t", "coe": "kubernetes", "image_id": "i", "flavor_id": "f"});
    for place in [&magnum, &ours] {
        place.make("/v1/clustertemplates", &template).await;
    }
    let (report, error, status) = ours.import(&magnum, &[]).await;
    assert_eq!((results(&report), status), (vec!["not_taken"], 1), "{error}");
    let reason = report[0]["reasons"][0].as_str().unwrap();
    assert!(reason.contains("name: \"t\" is already in use"), "{reason}");
    let (report, error, _) = ours.import(&magnum, &["--replace", "name:t=u"]).await;
    assert_eq!(results(&report), ["taken"], "{error}");
    let (_, error, status) = ours.import(&ours, &[]).await;
    assert!(status == 2 && error.contains("the same service"), "{error}");
}
