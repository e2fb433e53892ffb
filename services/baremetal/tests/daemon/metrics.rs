//! The metrics of a baremetald that serves requests.
#![expect(clippy::unwrap_used, reason = "a failed setup fails the test")]

use baremetal::{Config, Service};
use baremetal_core::{Driver, Node, NodeUuid};
use baremetal_store::Store;
use contract::openmetrics::Scrape;
use jiff::Timestamp;
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// Reads the page of metrics.
async fn scrape(url: &str) -> Scrape {
    let answer = contract::client().get(url).send().await.unwrap();
    let kind = answer.headers()["content-type"].to_str().unwrap();
    assert_eq!(kind, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    Scrape::read(&answer.text().await.unwrap())
}

#[tokio::test]
async fn requests_and_nodes_are_counted_without_a_word_of_the_caller() {
    let state = tempfile::tempdir().unwrap();
    let text = format!(
        "state_dir = {:?}\n[api]\nlisten = '127.0.0.1:0'\n[metrics]\nlisten = '127.0.0.1:0'\n",
        state.path()
    );
    let store = Store::open(&format!("sqlite://{}/baremetal.db", state.path().display())).await;
    let node = Node::new(NodeUuid::new_v4(), Driver::FakeHardware, Timestamp::now());
    store.unwrap().insert_node(&node).await.unwrap();
    let config: Config = toml::from_str(&text).unwrap();
    let service = Service::start(config).await.unwrap();
    let listeners = service.listeners().clone();
    let api = format!("http://{}", listeners.api);
    let page = format!("http://{}/metrics", listeners.metrics.unwrap());
    let stop = CancellationToken::new();
    let running = tokio::spawn(service.run(stop.clone()));

    let client = contract::client();
    let secret = "word-of-the-caller";
    for path in ["/v1/nodes", "/v1/nodes", &format!("/v1/nodes/{secret}"), &format!("/{secret}")] {
        client.get(format!("{api}{path}")).send().await.unwrap();
    }
    let method = reqwest::Method::from_bytes(b"WORD").unwrap();
    client.request(method, format!("{api}/v1/nodes")).send().await.unwrap();

    let scraped = scrape(&page).await;
    let requests = |method: &str, route: &str, status: &str| {
        let labels = format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"");
        scraped.value(&format!("bedplate_http_requests_total{{{labels}}}"))
    };
    assert_eq!(requests("GET", "/v1/nodes", "2xx"), Some(2.0));
    assert_eq!(requests("GET", "/v1/nodes/{node}", "4xx"), Some(1.0));
    assert_eq!(requests("GET", "unrouted", "4xx"), Some(1.0));
    assert_eq!(requests("other", "/v1/nodes", "4xx"), Some(1.0));
    let nodes = "bedplate_nodes{provision_state=\"enroll\",busy=\"false\",failed=\"false\"}";
    assert_eq!(scraped.value(nodes), Some(1.0));
    let withheld = "bedplate_capacity_nodes{resource_class=\"(none)\",allocation=\"withheld\"}";
    assert_eq!(scraped.value(withheld), Some(1.0));
    assert_eq!(scraped.value("bedplate_leased_nodes"), Some(0.0));
    assert_eq!(scraped.value("bedplate_database_up"), Some(1.0));
    let verb = client.put(format!("{api}/v1/nodes/{}/states/provision", node.id));
    let verb = verb.header("x-openstack-ironic-api-version", "1.80");
    let answer = verb.json(&json!({"target": "manage"})).send().await.unwrap();
    assert_eq!(answer.status(), 202);
    let turns = "bedplate_turn_duration_seconds_count{kind=\"node\"}";
    contract::until(async || scrape(&page).await.value(turns).filter(|turns| *turns >= 1.0)).await;
    let verified = "bedplate_node_state_duration_seconds_count{provision_state=\"verifying\",failed=\"false\"}";
    contract::until(async || scrape(&page).await.value(verified)).await;
    let working = "bedplate_conductors{daemon=\"baremetald\",state=\"working\"}";
    contract::until(async || scrape(&page).await.value(working).filter(|it| *it >= 1.0)).await;
    assert_eq!(scrape(&page).await.undocumented(), Vec::<&str>::new());
    for label in ["method", "route", "status", "provision_state"] {
        let values = scraped.label(label);
        assert!(!values.iter().any(|it| it.contains(secret) || it == "WORD"), "{values:?}");
    }
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[test]
fn the_section_needs_an_address_and_has_no_other_key() {
    for (lines, words) in [
        ("[metrics]", "missing field `listen`"),
        ("[metrics]\nlisten = '127.0.0.1:0'\nauth = 'none'", "unknown field `auth`"),
    ] {
        let why = toml::from_str::<Config>(&format!("state_dir = '/tmp/x'\n{lines}")).unwrap_err();
        assert!(why.to_string().contains(words), "{lines}: {why}");
    }
}

#[test]
fn sensors_are_read_for_the_metrics_only() {
    let metrics = "[metrics]\nlisten = '127.0.0.1:0'\n";
    let settings = |lines: &str| {
        let text = format!("state_dir = '/tmp/x'\n{lines}");
        toml::from_str::<Config>(&text).unwrap().sensor_settings()
    };
    assert!(settings("").unwrap().is_none());
    let read = settings(&format!("{metrics}[sensors]\n")).unwrap().unwrap();
    assert_eq!((read.every.as_secs(), read.at_once, read.undeployed_nodes), (600, 4, false));
    for (lines, words) in [
        ("[sensors]\n".to_owned(), "sensors: set metrics.listen"),
        (format!("{metrics}[sensors]\nevery = '0s'\n"), "sensors.every: must be 1s or longer"),
    ] {
        let why = settings(&lines).unwrap_err().to_string();
        assert!(why.contains(words), "{lines}: {why}");
    }
}
