//! The metrics of a clusterd that serves requests.

use cluster::{Config, Service};
use contract::openmetrics::Scrape;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn requests_and_clusters_are_counted() {
    let state = tempfile::tempdir().unwrap();
    let text = format!(
        "state_dir = {:?}\n[api]\nlisten = '127.0.0.1:0'\n[metrics]\nlisten = '127.0.0.1:0'\n",
        state.path()
    );
    let config: Config = toml::from_str(&text).unwrap();
    let service = Service::start(config).await.unwrap();
    let listeners = service.listeners().clone();
    let stop = CancellationToken::new();
    let running = tokio::spawn(service.run(stop.clone()));

    let client = contract::client();
    for _ in 0..3 {
        client.get(format!("http://{}/v1/clusters", listeners.api)).send().await.unwrap();
    }
    let page = format!("http://{}/metrics", listeners.metrics.unwrap());
    let scrape = async || {
        let answer = client.get(&page).send().await.unwrap();
        Scrape::read(&answer.text().await.unwrap())
    };
    let scraped = scrape().await;
    let requests =
        "bedplate_http_requests_total{method=\"GET\",route=\"/v1/clusters\",status=\"2xx\"}";
    assert_eq!(scraped.value(requests), Some(3.0));
    assert_eq!(scraped.undocumented(), Vec::<&str>::new());
    assert_eq!(scraped.value("bedplate_clusters"), Some(0.0));
    assert_eq!(scraped.value("bedplate_cluster_members"), Some(0.0));
    assert_eq!(scraped.value("bedplate_vms"), Some(0.0));
    assert_eq!(scraped.value("bedplate_leased_clusters"), Some(0.0));
    assert_eq!(scraped.value("bedplate_database_up"), Some(1.0));
    let working = "bedplate_conductors{daemon=\"clusterd\",state=\"working\"}";
    contract::until(async || scrape().await.value(working).filter(|it| *it >= 1.0)).await;
    stop.cancel();
    running.await.unwrap().unwrap();
}
