//! Sends many requests with a few clients and times them.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::task::{JoinSet, LocalSet};

use crate::client::{Call, Client};

/// How often a request is tried again because its node is locked. The public clients retry as well.
const TRIES: usize = 100;
/// The pause before a retry.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// The result of many requests.
#[derive(Debug, Default)]
pub(crate) struct LoadResult {
    /// Seconds from the first request to the last answer.
    pub(crate) seconds: f64,
    /// The latencies in milliseconds, in ascending order. Refused tries count as well.
    pub(crate) took: Vec<f64>,
    pub(crate) retries: usize,
    /// The number of requests answered with an error.
    pub(crate) errors: usize,
    pub(crate) first_error: Option<String>,
    /// The bodies of the answers to requests that create something, in the order of arrival.
    pub(crate) made: Vec<Bytes>,
}

impl LoadResult {
    /// The latency in milliseconds below which `share` of the requests stayed. `None` without requests.
    pub(crate) fn quantile(&self, share: f64) -> Option<f64> {
        let last = self.took.len().checked_sub(1)?;
        self.took.get(((share * self.took.len() as f64) as usize).min(last)).copied()
    }
}

/// Sends all `calls` with `clients` of them in progress at any time.
pub(crate) async fn run(
    address: SocketAddr,
    clients: usize,
    calls: impl Iterator<Item = Call> + 'static,
) -> anyhow::Result<LoadResult> {
    let mut connections = Vec::new();
    for _ in 0..clients {
        connections.push(Client::connect(address).await?);
    }
    let calls = Rc::new(RefCell::new(calls));
    let load = Rc::new(RefCell::new(LoadResult::default()));
    let begun = Instant::now();
    let local = LocalSet::new();
    let mut tasks = JoinSet::new();
    for mut client in connections {
        let (calls, load) = (calls.clone(), load.clone());
        let work = async move {
            loop {
                let Some(call) = calls.borrow_mut().next() else { return anyhow::Ok(()) };
                one(&mut client, &call, &load).await?;
            }
        };
        tasks.spawn_local_on(work, &local);
    }
    let all = async {
        while let Some(ended) = tasks.join_next().await {
            ended??;
        }
        anyhow::Ok(())
    };
    local.run_until(all).await?;
    let mut load = load.take();
    load.seconds = begun.elapsed().as_secs_f64();
    load.took.sort_by(f64::total_cmp);
    Ok(load)
}

async fn one(client: &mut Client, call: &Call, load: &RefCell<LoadResult>) -> anyhow::Result<()> {
    let begun = Instant::now();
    let mut retries = 0;
    let (status, answer) = loop {
        let (status, answer) = client.ask(call).await?;
        let busy = matches!(status, StatusCode::CONFLICT | StatusCode::SERVICE_UNAVAILABLE);
        if !busy || retries == TRIES {
            break (status, answer);
        }
        retries += 1;
        tokio::time::sleep(TRY_AGAIN_AFTER).await;
    };
    let mut load = load.borrow_mut();
    load.took.push(begun.elapsed().as_secs_f64() * 1000.0);
    load.retries += retries;
    if !status.is_success() {
        load.errors += 1;
        let text = String::from_utf8_lossy(&answer[..answer.len().min(300)]);
        load.first_error.get_or_insert(format!("{} {}: {status} {text}", call.method, call.path));
    }
    if status == StatusCode::CREATED {
        load.made.push(answer);
    }
    Ok(())
}

#[derive(Deserialize)]
struct Page {
    nodes: Vec<IgnoredAny>,
    next: Option<String>,
}

/// Reads all pages of a list of nodes. Returns the number of nodes and the milliseconds of each page.
pub(crate) async fn walk(client: &mut Client, first: &str) -> anyhow::Result<(usize, Vec<f64>)> {
    let (mut count, mut took, mut path) = (0, Vec::new(), Some(first.to_owned()));
    while let Some(at) = path {
        let begun = Instant::now();
        let page: Page = serde_json::from_slice(&client.get(&at).await?)?;
        took.push(begun.elapsed().as_secs_f64() * 1000.0);
        count += page.nodes.len();
        // The link is a whole URL. Only its path is needed.
        path = page.next.map(|next| next[next.find("/v1/").unwrap_or(0)..].to_owned());
    }
    took.sort_by(f64::total_cmp);
    Ok((count, took))
}
