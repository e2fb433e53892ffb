//! Starts that are refused, so that no secret and no record is lost. The error names the file and says what to do.
#![expect(clippy::unwrap_used, reason = "a failed setup fails the test")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use baremetal_core::{Driver, Node, NodeIdent, NodeUuid};
use baremetal_store::Store;
use jiff::Timestamp;
use sealing::Keyring;
use secrecy::ExposeSecret;
use serde_json::json;

/// A key file as version 0.1 wrote it.
const EARLIER_KEYS: &str = include_str!("../../../baremetal-store/tests/fixtures/seal.keys");

/// The state folder and configuration of a stopped service.
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
        fs::write(given.0.path().join("baremetald.toml"), text).unwrap();
        given
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join("state").join(name)
    }

    async fn store(&self) -> Store {
        let store = Store::open(&self.url()).await.unwrap();
        let known = store.known_keys().await.unwrap();
        let keys = Keyring::open(&self.at("seal.keys"), &known).unwrap();
        store.with_keys(Arc::new(keys)).await.unwrap()
    }

    fn url(&self) -> String {
        format!("sqlite://{}", self.at("baremetal.db").display())
    }

    /// Makes an installation with a node that has a password.
    async fn with_a_secret() -> (Installation, NodeUuid) {
        let given = Installation::new();
        let mut node = Node::new(NodeUuid::new_v4(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        node.driver_info.insert("redfish_password".to_owned(), json!("hunter2"));
        given.store().await.insert_node(&node).await.unwrap();
        (given, node.id)
    }

    /// Starts the daemon, which must refuse to start, and returns its error.
    fn refusal(&self, options: &[&str]) -> String {
        let run = Command::new("timeout")
            .arg("60")
            .arg(env!("CARGO_BIN_EXE_baremetald"))
            .args(options)
            .arg("--config")
            .arg(self.0.path().join("baremetald.toml"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(1), "{said}");
        said
    }

    async fn password(&self, id: NodeUuid) -> String {
        let store = self.store().await;
        let node = store.find_node(&NodeIdent::Id(id)).await.unwrap().unwrap();
        let opened = store.secrets().text(&node, "redfish_password").unwrap().unwrap();
        opened.expose_secret().to_owned()
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
async fn a_missing_key_file_is_not_replaced_while_secrets_need_it() {
    let (given, id) = Installation::with_a_secret().await;
    let keys = given.at("seal.keys");
    let away = given.at("away");
    fs::rename(&keys, &away).unwrap();
    let said = given.refusal(&[]);
    says(&said, &[&keys.display().to_string(), "is missing", "1 records", "from its backup"]);
    assert!(!keys.exists(), "another was made");

    // A key file with other keys is refused too.
    for_the_owner(&keys, EARLIER_KEYS);
    says(&given.refusal(&[]), &[&keys.display().to_string(), "does not hold key k"]);

    fs::rename(&away, &keys).unwrap();
    assert_eq!(given.password(id).await, "hunter2");
}

#[tokio::test]
async fn another_key_with_the_same_number_is_refused() {
    let given = Installation::new();
    for_the_owner(&given.at("seal.keys"), EARLIER_KEYS);
    let mut node = Node::new(NodeUuid::new_v4(), Driver::Redfish, Timestamp::UNIX_EPOCH);
    node.driver_info.insert("redfish_password".to_owned(), json!("hunter2"));
    given.store().await.insert_node(&node).await.unwrap();
    // An earlier version replaced a lost key file like this: with another key of the same number.
    let made = sealing::SealingKeys::generate().unwrap();
    let line = format!("1:{}", made.split_once(':').unwrap().1);
    for_the_owner(&given.at("seal.keys"), &line);
    let file = given.at("seal.keys").display().to_string();
    says(
        &given.refusal(&[]),
        &[&file, "the key 1 in the file is not the key 1", "restore the key file"],
    );
    for_the_owner(&given.at("seal.keys"), EARLIER_KEYS);
    assert_eq!(given.password(node.id).await, "hunter2");
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
    assert_eq!(given.password(id).await, "hunter2");
}

#[tokio::test]
async fn a_damaged_database_is_refused_by_name() {
    let (given, _) = Installation::with_a_secret().await;
    let database = given.at("baremetal.db");
    for ending in ["-wal", "-shm"] {
        let _ = fs::remove_file(given.at(&format!("baremetal.db{ending}")));
    }
    fs::write(&database, "a letter, by mistake\n".repeat(1000)).unwrap();
    for options in [&[][..], &["--check"]] {
        let said = given.refusal(options);
        says(&said, &[&database.display().to_string(), "is damaged", "backup", ".recover"]);
    }
}
