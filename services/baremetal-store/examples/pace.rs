//! Measures the speed of the store: `cargo run --release -p baremetal-store --example pace [URL]`.
//!
//! Without a URL, a new SQLite file in the folder for temporary files is used.
#![expect(clippy::print_stdout, reason = "the example prints its measurements")]
#![expect(clippy::unwrap_used, reason = "a failed step ends the measurement")]

use std::time::{Duration, Instant};

use baremetal_core::{Driver, HistoryEntry, Node, NodeFilter, NodeIdent, NodeSort, NodeUuid, Page};
use baremetal_store::{SeenPower, Store};
use hardware::PowerState;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

const NODES: usize = 10_000;
const CLIENTS: usize = 16;
/// The number of updates that are made one after the other.
const ALONE: usize = 200;

#[tokio::main]
async fn main() {
    let file = std::env::temp_dir().join(format!("pace-{}.db", std::process::id()));
    let url = std::env::args().nth(1).unwrap_or(format!("sqlite://{}", file.display()));
    let begun = Instant::now();
    let store = Store::open(&url).await.unwrap();
    println!("open             {:>8.1} ms", millis(begun.elapsed()));

    let nodes: Vec<Node> = (0..NODES).map(node).collect();
    each(&store, "insert", &nodes, |store, node| async move {
        store.insert_node(&node).await.unwrap();
    })
    .await;
    each(&store, "get by id", &nodes, |store, node| async move {
        assert!(store.find_node(&NodeIdent::Id(node.id)).await.unwrap().is_some());
    })
    .await;
    each(&store, "get by name", &nodes, |store, node| async move {
        assert!(store.find_node(&NodeIdent::Name(node.name.unwrap())).await.unwrap().is_some());
    })
    .await;
    each(&store, "update", &nodes, |store, node| async move {
        let changed = Node { description: Some("moved".into()), ..node.clone() };
        let line = HistoryEntry::changed(&node, &changed, "moved".into(), node.created_at);
        store.update_node(&changed, &[line]).await.unwrap();
    })
    .await;

    // One writer alone: no other write shares the wait for the disk.
    let begun = Instant::now();
    for node in &nodes[..ALONE] {
        let node = store.find_node(&NodeIdent::Id(node.id)).await.unwrap().unwrap();
        store.update_node(&node, &[]).await.unwrap();
    }
    println!("update, alone    {:>8.2} ms each", millis(begun.elapsed()) / ALONE as f64);
    let begun = Instant::now();
    drop(Store::open(&url).await.unwrap());
    println!("open again       {:>8.1} ms, all looked through", millis(begun.elapsed()));

    list(&store, NodeSort::Creation).await;
    list(&store, NodeSort::ProvisionState).await;
    list(&store, NodeSort::Name).await;

    let seen: Vec<SeenPower> =
        nodes.iter().map(|node| SeenPower::of(node, PowerState::On)).collect();
    for what in ["all differ", "none differs"] {
        let begun = Instant::now();
        let changed = store.record_power(&seen, Timestamp::now()).await.unwrap();
        println!(
            "power of {NODES}   {:>8.1} ms, {what}: {changed} written",
            millis(begun.elapsed())
        );
    }
    println!("resident         {:>8.1} MiB", resident());
    drop(store);
    for ending in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{ending}", file.display()));
    }
}

/// Calls `act` for every node, in `CLIENTS` concurrent tasks.
async fn each<F, D>(store: &Store, what: &str, nodes: &[Node], act: F)
where
    F: Fn(Store, Node) -> D + Copy + Send + 'static,
    D: Future<Output = ()> + Send,
{
    let (begun, used) = (Instant::now(), processor());
    let clients: Vec<_> = nodes
        .chunks(NODES / CLIENTS)
        .map(|nodes| {
            let (store, nodes) = (store.clone(), nodes.to_vec());
            tokio::spawn(async move {
                for node in nodes {
                    act(store.clone(), node).await;
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    let rate = NODES as f64 / begun.elapsed().as_secs_f64();
    let each = (processor() - used).as_secs_f64() * 1e6 / NODES as f64;
    println!("{what:<16} {rate:>8.0} /s, {each:.0} us of processor each");
}

async fn list(store: &Store, sort: NodeSort) {
    let (begun, used) = (Instant::now(), processor());
    let mut page = Page { limit: 1000, marker: None, sort, descending: false };
    let mut listed = 0;
    loop {
        let nodes = store.list_nodes(&NodeFilter::default(), &page).await.unwrap();
        let Some(last) = nodes.last() else { break };
        listed += nodes.len();
        page.marker = Some(last.id.to_string().parse().unwrap());
    }
    let (wall, processor) = (millis(begun.elapsed()), millis(processor() - used));
    println!("list {listed}       {wall:>8.1} ms by {sort:?}, {processor:.0} ms of processor");
}

fn node(n: usize) -> Node {
    let map = |value: Value| -> Map<String, Value> { value.as_object().cloned().unwrap() };
    Node {
        name: Some(format!("r{}u{n}", n / 40).parse().unwrap()),
        resource_class: Some("baremetal".into()),
        driver_info: map(json!({
            "redfish_address": format!("https://10.0.{}.{}", n / 250, n % 250),
            "redfish_username": "admin",
            "redfish_password": "not-a-real-password",
            "redfish_verify_ca": false,
        })),
        properties: map(json!({
            "cpus": 64, "memory_mb": 524_288, "local_gb": 3_500, "cpu_arch": "x86_64",
            "capabilities": "boot_mode:uefi,disk_label:gpt",
        })),
        extra: map(json!({ "asset": format!("A-{n}"), "bought": "2026-01-01" })),
        ..Node::new(NodeUuid::new_v4(), Driver::Redfish, Timestamp::now())
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Returns the processor time of this process from Linux. Unlike a rate, this figure does not depend on other processes.
fn processor() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // proc(5): fields 14 and 15, in hundredths of a second. The name before them is in parentheses.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * ticks)
}

/// Returns the resident memory of this process from Linux, in MiB.
fn resident() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: f64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0.0);
    pages * 4096.0 / 1024.0 / 1024.0
}
