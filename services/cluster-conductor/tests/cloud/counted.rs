//! The metrics of clusters, from the first turn to the deletion.

use std::time::Duration;

use metrics::Metrics;

use crate::given::{ClusterFixture, PATIENCE};

/// Waits until the page has this line.
pub(crate) async fn until_line(page: &Metrics, line: &str) {
    let looking = async {
        while !page.text().unwrap().lines().any(|it| it == line) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, looking).await.is_err() {
        panic!("no line {line} in:\n{}", page.text().unwrap());
    }
}

#[tokio::test]
async fn a_cluster_is_counted_by_its_conditions_while_it_exists() {
    const NODES: &str = r#"bedplate_cluster_conditions{condition="NodesHealthy",status="true"}"#;
    const COMPLETE: &str = r#"bedplate_cluster_statuses{status="CREATE_COMPLETE"}"#;
    let mut page = Metrics::new("test", "0");
    let mut given = ClusterFixture::cluster(1, 1).await;
    given.settings.metrics.clusters = page.conditions();
    let working = given.conductor();
    given.until_complete().await;
    until_line(&page, &format!("{NODES} 1")).await;
    until_line(&page, &format!("{COMPLETE} 1")).await;
    drop(working);

    // A conductor that starts counts clusters that it finds.
    let mut page = Metrics::new("test", "0");
    given.settings.metrics.clusters = page.conditions();
    let _working = given.conductor();
    until_line(&page, &format!("{NODES} 1")).await;
    given.deleted().await;
    until_line(&page, &format!("{NODES} 0")).await;
    until_line(&page, &format!("{COMPLETE} 0")).await;
}
