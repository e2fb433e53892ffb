//! Starts that are refused so that no secret and no record is lost. The error names the file and says what to do.
#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use cluster_core::{ClusterParameters, ClusterUuid, RequestedCluster};
use cluster_store::Store;
use jiff::Timestamp;
use sealing::Keyring;

/// A key file that version 0.1 wrote.
const EARLIER_KEYS: &str = include_str!("../../../cluster-store/tests/fixtures/seal.keys");

/// An installation that is stopped.
struct Installation(tempfile::TempDir);

impl Installation {
    fn new() -> Installation {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("state")).unwrap();
        let given = Installation(folder);
        let text = format!(
            "state_dir = {:?}\n[api]\nlisten = \"127.0.0.1:0\"\n",
            given.0.path().join("state")
        );
        fs::write(given.0.path().join("clusterd.toml"), text).unwrap();
        given
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join("state").join(name)
    }

    async fn store(&self) -> (Store, Arc<Keyring>) {
        let store = Store::open(&self.url()).await.unwrap();
        let known = store.known_keys().await.unwrap();
        let keys = Arc::new(Keyring::open(&self.at("seal.keys"), &known).unwrap());
        (store.with_keys(keys.clone()).await.unwrap(), keys)
    }

    /// Stores a secret of a cluster.
    async fn seal(&self) -> ClusterUuid {
        let (store, keys) = self.store().await;
        let asked = RequestedCluster::new(
            ClusterParameters::new("fcos".to_owned()),
            1,
            1,
            Timestamp::UNIX_EPOCH,
        );
        let RequestedCluster { template, cluster, groups } = asked;
        store.insert_template(&template).await.unwrap();
        store.insert_cluster(&cluster, &groups, &[], None).await.unwrap().unwrap();
        let sealed = keys.seal(&format!("{}/pki", cluster.id), b"hunter2").unwrap();
        store.save_secret(cluster.id, "pki", &sealed).await.unwrap();
        cluster.id
    }

    fn url(&self) -> String {
        format!("sqlite://{}", self.at("clusterd.db").display())
    }

    /// An installation with a sealed secret.
    async fn with_a_secret() -> (Installation, ClusterUuid) {
        let given = Installation::new();
        let cluster = given.seal().await;
        (given, cluster)
    }

    /// The daemon's error output. Fails if the daemon starts.
    fn refusal(&self, options: &[&str]) -> String {
        let run = Command::new("timeout")
            .arg("60")
            .arg(env!("CARGO_BIN_EXE_clusterd"))
            .args(options)
            .arg("--config")
            .arg(self.0.path().join("clusterd.toml"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(1), "{said}");
        said
    }

    async fn secret(&self, of: ClusterUuid) -> String {
        let (store, keys) = self.store().await;
        let sealed = store.find_secret(of, "pki").await.unwrap().unwrap();
        keys.open_sealed(&format!("{of}/pki"), &sealed).unwrap().text().unwrap().to_owned()
    }
}

#[track_caller]
fn says(said: &str, words: &[&str]) {
    for word in words {
        assert!(said.contains(word), "{word}: {said}");
    }
}

fn for_the_owner(file: &Path, text: &str) {
    fs::write(file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

#[tokio::test]
async fn a_missing_key_file_is_not_replaced_while_it_seals_secrets() {
    let (given, id) = Installation::with_a_secret().await;
    let keys = given.at("seal.keys");
    let away = given.at("away");
    fs::rename(&keys, &away).unwrap();
    let said = given.refusal(&[]);
    says(&said, &[&keys.display().to_string(), "is missing", "1 records", "from its backup"]);
    assert!(!keys.exists(), "another was made");

    // A key file with other keys is not accepted either.
    for_the_owner(&keys, EARLIER_KEYS);
    says(&given.refusal(&[]), &[&keys.display().to_string(), "does not hold key k"]);

    fs::rename(&away, &keys).unwrap();
    assert_eq!(given.secret(id).await, "hunter2");
}

#[tokio::test]
async fn another_key_under_the_number_of_the_old_one_is_refused() {
    let given = Installation::new();
    for_the_owner(&given.at("seal.keys"), EARLIER_KEYS);
    let cluster = given.seal().await;
    // Version 0.1 replaced a lost key with another key under the same number.
    let made = sealing::SealingKeys::generate().unwrap();
    let line = format!("1:{}", made.split_once(':').unwrap().1);
    for_the_owner(&given.at("seal.keys"), &line);
    let file = given.at("seal.keys").display().to_string();
    says(
        &given.refusal(&[]),
        &[&file, "the key 1 in the file is not the key 1", "restore the key file"],
    );
    for_the_owner(&given.at("seal.keys"), EARLIER_KEYS);
    assert_eq!(given.secret(cluster).await, "hunter2");
}

#[tokio::test]
async fn a_key_file_that_others_can_read_is_refused() {
    let (given, id) = Installation::with_a_secret().await;
    let keys = given.at("seal.keys");
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o640)).unwrap();
    for options in [&[][..], &["--check"]] {
        let said = given.refusal(options);
        says(&said, &[&keys.display().to_string(), "mode 640", "chmod 600"]);
    }
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(given.secret(id).await, "hunter2");
}

#[tokio::test]
async fn a_damaged_database_is_refused_by_name() {
    let (given, _) = Installation::with_a_secret().await;
    let database = given.at("clusterd.db");
    for ending in ["-wal", "-shm"] {
        let _ = fs::remove_file(given.at(&format!("clusterd.db{ending}")));
    }
    fs::write(&database, "a letter, by mistake\n".repeat(1000)).unwrap();
    for options in [&[][..], &["--check"]] {
        let said = given.refusal(options);
        says(&said, &[&database.display().to_string(), "is damaged", "backup", ".recover"]);
    }
}
