//! Ten thousand nodes: a page costs as many requests as with ten nodes, and at most 100 ms.
//!
//! The time is asserted only in a release build (`cargo test --release --manifest-path services/console/Cargo.toml`). A debug build prints the
//! time and uses fewer nodes. `BEDPLATE_NODES` sets the number of nodes.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use baremetal_core::{Driver, Failure, Node, NodeUuid, RackLocation, Reason, State as Stage};
use baremetal_store::Store;
use http::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, Method, Uri};
use jiff::Timestamp;
use reqwest::Client;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use crate::fixture::{Auth, Browser, ConsoleFixture};

/// The maximum time of a page.
const BUDGET: Duration = Duration::from_millis(100);
/// The number of nodes in a rack.
const HEIGHT: usize = 40;
/// The pages that an operator uses most.
const PAGES: [&str; 5] = ["/", "/racks", "/racks?page=1", "/nodes", "/nodes?state=clean+failed"];
/// The number of measurements; their median counts.
const TIMES: usize = 15;

/// The number of nodes.
fn how_many() -> usize {
    let reported = std::env::var("BEDPLATE_NODES").ok().and_then(|count| count.parse().ok());
    reported.unwrap_or(if cfg!(debug_assertions) { 1_200 } else { 10_000 })
}

/// Writes racks with so many nodes into a database: some failed, some free, most in use.
async fn fill(folder: &Path, racks: usize, height: usize) {
    std::fs::create_dir_all(folder).unwrap();
    let store = Store::open(&format!("sqlite://{}/baremetal.db", folder.display())).await.unwrap();
    let now = Timestamp::now();
    for number in 0..racks {
        let rack = format!("r{number:03}");
        let node = |n: usize| {
            let state = match n % 50 {
                0 => Stage::CleanFailed,
                1..=4 => Stage::Available,
                5 => Stage::Enroll,
                _ => Stage::Active,
            };
            let failed = state == Stage::CleanFailed;
            let properties = json!({"cpus": 64, "memory_mb": 524288, "local_gb": 3840, "cpu_arch": "x86_64",
                "capabilities": "boot_mode:uefi", "vendor": "a vendor", "note": "x".repeat(600)});
            let place = RackLocation {
                rack: rack.clone(),
                position: (n % height) as u32 + 1,
                group: None,
                role: None,
            };
            Node {
                name: Some(format!("n{n:05}").parse().unwrap()),
                provision_state: state,
                provision_updated_at: Some(now),
                failure: failed.then(|| Failure::new(Reason::StepFailed, "the disk is full")),
                properties: properties.as_object().unwrap().clone(),
                place: Some(place),
                ..Node::new(NodeUuid::new_v4(), Driver::FakeHardware, now)
            }
        };
        let machines: Vec<Node> = (number * height..(number + 1) * height).map(node).collect();
        store.enroll((&rack, &json!({}), None), &machines, &[], &[], &[]).await.unwrap();
    }
}

/// A proxy in front of a service that records the requests.
struct Counter {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
    _running: AbortOnDropHandle<()>,
}

#[derive(Clone)]
struct Passing {
    client: Client,
    base: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Counter {
    async fn before(base: &str) -> Counter {
        let asked = Arc::default();
        let client = Client::builder().no_proxy().build().unwrap();
        let passing = Passing { client, base: base.to_owned(), asked: Arc::clone(&asked) };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(pass).with_state(passing);
        let run = async move { axum::serve(listener, router).await.unwrap() };
        Counter { url, asked, _running: AbortOnDropHandle::new(tokio::spawn(run)) }
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

async fn pass(
    State(passing): State<Passing>,
    method: Method,
    uri: Uri,
    mut headers: HeaderMap,
    body: Bytes,
) -> Response {
    passing.asked.lock().unwrap().push(format!("{method} {uri}"));
    headers.remove(HOST);
    let request = passing.client.request(method, format!("{}{uri}", passing.base));
    let answer = request.headers(headers).body(body).send().await.unwrap();
    let (status, mut headers) = (answer.status(), answer.headers().clone());
    headers.remove(TRANSFER_ENCODING);
    headers.remove(CONTENT_LENGTH);
    (status, headers, answer.bytes().await.unwrap()).into_response()
}

/// The number of requests that each page sends to the services of `given`.
async fn questions(given: &ConsoleFixture) -> Vec<(&'static str, usize)> {
    let (machines, clusters) =
        (Counter::before(&given.machines).await, Counter::before(&given.clusters).await);
    let text = format!(
        "listen = '127.0.0.1:0'\nbaremetal = '{}'\nclusters = '{}'",
        machines.url, clusters.url
    );
    let service = console::Service::start(toml::from_str(&text).unwrap()).await.unwrap();
    let mut browser = given.browser();
    browser.url = format!("http://{}", service.address());
    let run = async move { service.run(Default::default()).await.unwrap() };
    let _running = AbortOnDropHandle::new(tokio::spawn(run));
    let mut counted = Vec::new();
    for page in PAGES {
        browser.get(page).await.has(200);
        counted.push((page, machines.take().len() + clusters.take().len()));
    }
    counted
}

/// The median time until the last byte of a page.
async fn median(browser: &mut Browser, page: &str) -> Duration {
    browser.get(page).await.has(200);
    let mut times = Vec::new();
    for _ in 0..TIMES {
        let begun = Instant::now();
        browser.get(page).await.has(200);
        times.push(begun.elapsed());
    }
    times.sort();
    times[TIMES / 2]
}

#[tokio::test]
async fn ten_thousand_nodes_cost_no_more_requests_and_time_than_a_few() {
    let few =
        ConsoleFixture::filled(Auth::None, "", async |folder| fill(folder, 24, 1).await).await;
    let of_few = questions(&few).await;
    drop(few);
    let racks = how_many() / HEIGHT;
    let nodes = racks * HEIGHT;
    let many =
        ConsoleFixture::filled(Auth::None, "", async |folder| fill(folder, racks, HEIGHT).await)
            .await;
    assert_eq!(questions(&many).await, of_few, "left: of {nodes} nodes, right: of a few");
    assert!(of_few.iter().all(|(_, questions)| *questions <= 13), "{of_few:?}");

    let mut browser = many.browser();
    browser.get("/").await.says(&format!("<dd>{nodes}</dd>")).says("the disk is full");
    let mut slow = Vec::new();
    for page in PAGES {
        let took = median(&mut browser, page).await;
        eprintln!("{nodes} nodes: {page}: {took:.1?}");
        if took > BUDGET {
            slow.push((page, took));
        }
    }
    assert!(cfg!(debug_assertions) || slow.is_empty(), "over {BUDGET:?}: {slow:?}");
}
