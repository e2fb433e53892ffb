//! A second clusterd beside a first one.
#![expect(clippy::unwrap_used, reason = "a failed setup fails the test")]

use std::fs::copy;
use std::path::Path;
use std::time::Duration;

use cluster::Service;
use cluster_store::Store;
use database::scratch::Scratch;
use jiff::Timestamp;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Starts a clusterd with this state folder and this SQLite file.
async fn start(state: &Path, database: &Path) -> anyhow::Result<Service> {
    let text = format!(
        "state_dir = {state:?}\n[api]\nlisten = \"127.0.0.1:0\"\n[database]\nurl = 'sqlite://{}'\n",
        database.display()
    );
    Service::start(toml::from_str(&text).unwrap()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_process_on_a_sqlite_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second, database] = ["a", "b", "clusters.db"].map(|name| folder.path().join(name));
    let running = start(&first, &database).await.unwrap();
    let refused = start(&second, &database).await.map(drop).unwrap_err().to_string();
    let used = format!("another clusterd uses the database {}", database.display());
    assert!(refused.contains(&used), "{refused}");
    drop(running);
    start(&second, &database).await.unwrap();
}

/// Starts a clusterd with the listener for members on this PostgreSQL, in a state folder with its host name.
async fn start_shared(folder: &Path, hostname: &str, url: &str) -> Service {
    let state = folder.join(hostname);
    let text = format!(
        "state_dir = {state:?}\n[api]\nlisten = '127.0.0.1:0'\n[conductor]\nhostname = '{hostname}'\n\
         [nodes]\nlisten = '127.0.0.1:0'\nurl = 'https://127.0.0.1:9/'\n[database]\nurl = '{url}'\n"
    );
    Service::start(toml::from_str(&text).unwrap()).await.unwrap()
}

/// Waits until so many conductors have a lease.
async fn until_alive(store: &Store, number: usize) {
    let looking = async {
        loop {
            let all = store.conductors().list(Timestamp::now()).await.unwrap();
            if all.iter().filter(|it| it.is_alive && it.epoch > 0).count() == number {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(60), looking).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_need_one_certificate_authority_for_members() {
    let Some(scratch) = Scratch::postgres().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&scratch.url).await.unwrap();
    let stop = CancellationToken::new();
    let first = start_shared(folder.path(), "a", &scratch.url).await;
    let first = tokio::spawn(first.run(stop.clone()));
    until_alive(&store, 1).await;
    let file = |hostname: &str, name: &str| folder.path().join(hostname).join(name);
    std::fs::create_dir(folder.path().join("b")).unwrap();
    copy(file("a", "seal.keys"), file("b", "seal.keys")).unwrap();

    let stranger = start_shared(folder.path(), "b", &scratch.url).await;
    let refused = stranger.run(CancellationToken::new()).await.unwrap_err();
    assert!(format!("{refused:#}").contains("another certificate authority"), "{refused:#}");

    copy(file("a", "nodes.authority"), file("b", "nodes.authority")).unwrap();
    let second = start_shared(folder.path(), "b", &scratch.url).await;
    let second = tokio::spawn(second.run(stop.clone()));
    until_alive(&store, 2).await;
    stop.cancel();
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
}
