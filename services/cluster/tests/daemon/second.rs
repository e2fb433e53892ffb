//! A second clusterd beside a first one.
#![expect(clippy::unwrap_used, reason = "a failed setup fails the test")]

use std::path::Path;

use cluster::Service;

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
