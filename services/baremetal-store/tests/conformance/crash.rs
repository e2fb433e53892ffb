//! A process that is killed while it writes loses nothing that it has acknowledged.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use baremetal_core::{HistoryEntry, Node, NodeFilter, NodeIdent, NodeSort, Page};
use baremetal_store::Store;
use tokio::task::JoinSet;

use crate::scratch::{Scratch, at, bare_node, open};

/// The environment variable with the database's URL, set for the process that will be killed.
const VICTIM: &str = "BAREMETAL_STORE_TEST_VICTIM";
const ACKNOWLEDGED: &str = "acknowledged ";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_writes_survive_a_kill_on_sqlite() {
    if let Ok(url) = std::env::var(VICTIM) {
        return write_until_killed(&url).await;
    }
    kill_and_look(&Scratch::sqlite(), "crash::acknowledged_writes_survive_a_kill_on_sqlite").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_writes_survive_a_kill_on_postgres() {
    if let Ok(url) = std::env::var(VICTIM) {
        return write_until_killed(&url).await;
    }
    let Some(scratch) = Scratch::postgres().await else { return };
    kill_and_look(&scratch, "crash::acknowledged_writes_survive_a_kill_on_postgres").await;
}

/// Writes nodes, changes each with two history entries, and prints an acknowledgement for each.
#[expect(clippy::print_stdout, reason = "the parent process reads the acknowledgements")]
async fn write_until_killed(url: &str) {
    let store = Store::open(url).await.unwrap();
    let mut writers = JoinSet::new();
    for _ in 0..8 {
        let store = store.clone();
        writers.spawn(async move {
            loop {
                let node = bare_node();
                store.insert_node(&node).await.unwrap();
                let changed = Node { description: Some("changed".into()), ..node.clone() };
                let line = HistoryEntry::changed(&node, &changed, "changed".into(), at(0));
                store.update_node(&changed, &[line.clone(), line]).await.unwrap();
                println!("{ACKNOWLEDGED}{}", node.id);
            }
        });
    }
    // A writer ends only by a failure.
    writers.join_next().await.unwrap().unwrap()
}

async fn kill_and_look(scratch: &Scratch, test: &str) {
    let mut acknowledged = Vec::new();
    // Twice, so that the second process opens what the first one left behind.
    for _ in 0..2 {
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(VICTIM, &scratch.url)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(victim.stdout.take().unwrap()).lines();
        let ids = lines
            .by_ref()
            .filter_map(|line| line.unwrap().strip_prefix(ACKNOWLEDGED).map(str::to_owned));
        acknowledged.extend(ids.take(100));
        victim.kill().unwrap();
        victim.wait().unwrap();
        // Everything acknowledged before the kill counts, except a line that was cut off.
        acknowledged.extend(lines.map_while(Result::ok).filter_map(|line| {
            line.strip_prefix(ACKNOWLEDGED).filter(|id| id.len() == 36).map(str::to_owned)
        }));
    }
    assert!(acknowledged.len() >= 200);

    let store = open(scratch).await;
    for id in &acknowledged {
        let ident: NodeIdent = id.parse().unwrap();
        let node = store.find_node(&ident).await.unwrap().expect("an acknowledged node is gone");
        assert_eq!((node.version, node.description.as_deref()), (2, Some("changed")));
    }
    // Every transaction that was not acknowledged is there completely or not at all.
    let page = Page { limit: 100_000, marker: None, sort: NodeSort::Id, descending: false };
    let nodes = store.list_nodes(&NodeFilter::default(), &page).await.unwrap();
    assert!(nodes.len() >= acknowledged.len());
    for node in nodes {
        let lines = store.history(node.id, 10, None).await.unwrap().len();
        assert!(matches!((node.version, lines), (1, 0) | (2, 2)), "{node:?} has {lines} lines");
    }
}
