//! The metrics of consoled.

use console::{Config, Service};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn requests_are_counted_by_their_route() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let text = "listen = '127.0.0.1:0'\n[metrics]\nlisten = '127.0.0.1:0'\n";
    let config: Config = toml::from_str(text).unwrap();
    let service = Service::start(config).await.unwrap();
    let (pages, metrics) = (service.address(), service.metrics_address().unwrap());
    let stop = CancellationToken::new();
    let running = tokio::spawn(service.run(stop.clone()));

    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    for path in ["/assets/secret-tag/secret-name", "/secret-page"] {
        let answer = client.get(format!("http://{pages}{path}")).send().await.unwrap();
        assert_eq!(answer.status(), 404, "{path}");
    }
    let page = client.get(format!("http://{metrics}/metrics")).send().await.unwrap();
    let page = page.text().await.unwrap();
    for start in [
        "bedplate_build_info{daemon=\"consoled\"",
        "bedplate_http_requests_total{method=\"GET\",route=\"/assets/{tag}/{name}\",status=\"4xx\"} 1",
        "bedplate_http_requests_total{method=\"GET\",route=\"unrouted\",status=\"4xx\"} 1",
    ] {
        assert!(page.lines().any(|line| line.starts_with(start)), "no {start} in:\n{page}");
    }
    assert!(!page.contains("secret") && !page.contains("bedplate_database_up"), "{page}");
    stop.cancel();
    running.await.unwrap().unwrap();
}
