//! Clients behind a load balancer: they repeat a request after an error of the connection, as those of operators do, and remember every
//! answer.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api_client::ClientError;
use api_client::baremetald::Node;
use lab::{Answer, Api};
use reqwest::{Method, Url};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// How long a client repeats a request.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);
/// The answers of a load balancer without a server, or whose server ended before it answered; and of a service without its database.
pub(super) const REPEATED: [u16; 3] = [502, 503, 504];

/// Sends a request until it is answered. Returns the answer, and the reason of each repetition.
pub(super) async fn send(
    api: &Api,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> (Answer, Vec<String>) {
    let (begun, mut before) = (Instant::now(), Vec::new());
    loop {
        let why = match api.try_send(method.clone(), path, body).await {
            Ok(answer) if REPEATED.contains(&answer.status) => {
                format!("{} {}", answer.status, answer.body)
            }
            Ok(answer) => return (answer, before),
            Err(error @ ClientError::Unreachable { .. }) => error.to_string(),
            Err(error) => panic!("{method} {path}: {error}"),
        };
        assert!(begun.elapsed() < PATIENCE, "{method} {path} is not answered: {why}");
        before.push(format!("{method} {path}: {why}"));
        sleep(PAUSE).await;
    }
}

/// Sends a request that has to be accepted. A repetition may find what an earlier try has done: these are the statuses that say so. Returns the
/// reason of each repetition.
pub(super) async fn done(
    api: &Api,
    method: Method,
    path: &str,
    body: Option<&Value>,
    repeated: &[u16],
) -> Vec<String> {
    let (answer, before) = send(api, method.clone(), path, body).await;
    let is_done = answer.status < 300 || (!before.is_empty() && repeated.contains(&answer.status));
    assert!(is_done, "{method} {path}, after {before:?}: {} {}", answer.status, answer.body);
    before
}

/// The reasons why requests had to be sent again, each with its request.
#[derive(Clone, Default)]
struct Repetitions(Arc<Mutex<Vec<String>>>);

impl Repetitions {
    fn add(&self, reasons: impl IntoIterator<Item = String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(reasons);
    }
}

/// Clients that read and write until they are stopped.
pub(super) struct Load {
    stop: CancellationToken,
    tasks: JoinSet<()>,
    requests: Arc<AtomicUsize>,
    /// Why requests had to be sent again.
    repeated: Repetitions,
    written: Arc<AtomicUsize>,
    nodes: Api,
}

impl Load {
    /// Starts clients of both APIs and of the console, each by its address at the load balancer.
    pub(super) fn start(nodes: &Api, clusters: Option<&Api>, console: Option<Url>) -> Load {
        let mut load = Load {
            stop: CancellationToken::new(),
            tasks: JoinSet::new(),
            requests: Arc::default(),
            repeated: Repetitions::default(),
            written: Arc::default(),
            nodes: nodes.clone(),
        };
        load.reads(nodes, "/v1/nodes/detail?limit=20");
        if let Some(clusters) = clusters {
            load.reads(clusters, "/v1/clusters");
        }
        if let Some(console) = console {
            load.looks(console);
        }
        load.writes();
        load
    }

    fn reads(&mut self, api: &Api, path: &'static str) {
        let (api, stop, requests) = (api.clone(), self.stop.clone(), self.requests.clone());
        let repeated = self.repeated.clone();
        self.tasks.spawn(async move {
            while !stop.is_cancelled() {
                let (answer, before) = send(&api, Method::GET, path, None).await;
                repeated.add(before);
                assert_eq!(answer.status, 200, "{path}: {}", answer.body);
                requests.fetch_add(1, Ordering::Relaxed);
                sleep(PAUSE).await;
            }
        });
    }

    /// Reads a page of the console, which reads both APIs.
    fn looks(&mut self, console: Url) {
        let (stop, requests) = (self.stop.clone(), self.requests.clone());
        let repeated = self.repeated.clone();
        let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build();
        let client = client.expect("a client for plain HTTP can be made");
        let page = console.join("nodes").expect("a path of letters is valid");
        self.tasks.spawn(async move {
            let mut answered = Instant::now();
            while !stop.is_cancelled() {
                let answer = async {
                    let answer = client.get(page.clone()).send().await?;
                    Ok::<_, reqwest::Error>((answer.status().as_u16(), answer.text().await?))
                };
                let answer = answer.await;
                match &answer {
                    Ok((200, _)) => {
                        answered = Instant::now();
                        requests.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok((status, body)) => {
                        assert!(REPEATED.contains(status), "{page}: {status} {body}");
                        repeated.add([format!("GET {page}: {status} {body}")]);
                    }
                    Err(error) => repeated.add([format!("GET {page}: {error:?}")]),
                }
                assert!(answered.elapsed() < PATIENCE, "{page} is not answered: {answer:?}");
                sleep(PAUSE).await;
            }
        });
    }

    /// Creates nodes, one after the other, and changes each.
    fn writes(&mut self) {
        let (api, stop) = (self.nodes.clone(), self.stop.clone());
        let (requests, written) = (self.requests.clone(), self.written.clone());
        let repeated = self.repeated.clone();
        self.tasks.spawn(async move {
            while !stop.is_cancelled() {
                let number = written.load(Ordering::Relaxed);
                let node = json!({"name": name(number), "driver": "fake-hardware"});
                repeated.add(done(&api, Method::POST, "/v1/nodes", Some(&node), &[409]).await);
                let patch = json!([{"op": "add", "path": "/extra/written", "value": number}]);
                let path = format!("/v1/nodes/{}", name(number));
                repeated.add(done(&api, Method::PATCH, &path, Some(&patch), &[]).await);
                written.fetch_add(1, Ordering::Relaxed);
                requests.fetch_add(2, Ordering::Relaxed);
                sleep(2 * PAUSE).await;
            }
        });
    }

    /// Returns how many writes were answered so far.
    pub(super) fn written(&self) -> usize {
        self.written.load(Ordering::Relaxed)
    }

    /// Returns why requests had to be sent again so far.
    pub(super) fn repeated(&self) -> Vec<String> {
        self.repeated.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stops the clients, and asserts that everything that was answered is there, once. Returns the number of answered requests.
    pub(super) async fn end(mut self) -> usize {
        self.stop.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended.expect("no request was lost");
        }
        let mut found = Vec::new();
        let nodes: Vec<Node> = self.nodes.list("/v1/nodes/detail").await;
        for node in nodes {
            let Some(number) = node.name.as_deref().and_then(|it| it.strip_prefix("written-"))
            else {
                continue;
            };
            assert_eq!(node.extra["written"].to_string(), number, "{node:?}");
            found.push(number.parse::<usize>().expect("a number"));
        }
        found.sort_unstable();
        let want: Vec<usize> = (0..self.written()).collect();
        assert_eq!(found, want, "what was answered is there, once");
        self.requests.load(Ordering::Relaxed)
    }

    /// Stops the test if a client has failed already.
    pub(super) fn check(&mut self) {
        while let Some(ended) = self.tasks.try_join_next() {
            ended.expect("no request was lost");
        }
    }
}

fn name(number: usize) -> String {
    format!("written-{number}")
}
