//! Rotates the sealing keys while the daemon works, and kills the daemon during the rotation: no secret is lost.
#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cluster_core::{
    ClusterParameters, ClusterUuid, FlavorSize, Owner, RequestedCluster, UserData, UserDataFormat,
    Vm, VmFlavor, VmImage, VmUuid,
};
use cluster_store::Store;
use jiff::Timestamp;
use reqwest::{Client, Method, StatusCode};
use sealing::Keyring;
use serde_json::Value;

/// More secrets than fit into one transaction of a rotation.
const SECRETS: usize = 300;
/// The points at which the daemon is killed: after so many log lines that say how many secrets were re-encrypted. 0 is right after the new
/// key is in the file.
const POINTS: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 2];

/// An installation without a running daemon.
struct Installation {
    folder: tempfile::TempDir,
    cluster: ClusterUuid,
    /// A VM without a server yet.
    vm: VmUuid,
}

/// The daemon process, killed when dropped.
struct Daemon {
    child: Child,
    url: String,
    client: Client,
}

impl Installation {
    async fn new() -> Installation {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("state")).unwrap();
        let text = format!(
            "state_dir = {:?}\n[api]\nlisten = \"127.0.0.1:0\"\n",
            folder.path().join("state")
        );
        fs::write(folder.path().join("clusterd.toml"), text).unwrap();
        let (store, keys) = open(folder.path()).await;
        let asked = RequestedCluster::new(
            ClusterParameters::new("fcos".to_owned()),
            1,
            1,
            Timestamp::UNIX_EPOCH,
        );
        let RequestedCluster { template, cluster, groups } = asked;
        store.insert_template(&template).await.unwrap();
        store.insert_cluster(&cluster, &groups, &[], None).await.unwrap().unwrap();
        for number in 0..SECRETS {
            let (name, secret) = (format!("n{number}"), format!("secret {number}"));
            let sealed = keys.seal(&format!("{}/{name}", cluster.id), secret.as_bytes()).unwrap();
            store.save_secret(cluster.id, &name, &sealed).await.unwrap();
        }
        let vm = unbuilt();
        let told = keys.seal(&place(vm.id), b"what its owner told it").unwrap();
        store.insert_vm(&vm, Some(&told), &[], None).await.unwrap().unwrap();
        Installation { folder, cluster: cluster.id, vm: vm.id }
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn key_file(&self) -> PathBuf {
        self.state().join("seal.keys")
    }

    async fn everything_opens(&self) {
        let (store, keys) = open(self.folder.path()).await;
        for number in 0..SECRETS {
            let name = format!("n{number}");
            let sealed = store.find_secret(self.cluster, &name).await.unwrap().unwrap();
            let opened = keys.open_sealed(&format!("{}/{name}", self.cluster), &sealed).unwrap();
            assert_eq!(opened.text().unwrap(), format!("secret {number}"));
        }
        let sealed = store.sealed_user_data(self.vm).await.unwrap().unwrap();
        let opened = keys.open_sealed(&place(self.vm), &sealed).unwrap();
        assert_eq!(opened.text().unwrap(), "what its owner told it");
    }

    async fn start(&self) -> Daemon {
        let listeners = self.state().join("listeners.json");
        let _ = fs::remove_file(&listeners);
        let child = Command::new(env!("CARGO_BIN_EXE_clusterd"))
            .arg("--config")
            .arg(self.folder.path().join("clusterd.toml"))
            .env("RUST_LOG", "info")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().no_proxy().build().unwrap();
        let mut daemon = Daemon { child, url: String::new(), client };
        daemon.url = until(async || {
            let text = fs::read(&listeners).ok()?;
            let told: Value = serde_json::from_slice(&text).ok()?;
            Some(format!("http://{}", told["api"].as_str()?))
        })
        .await;
        daemon
    }
}

/// A VM with user data.
fn unbuilt() -> Vm {
    let image = VmImage {
        id: "1".to_owned(),
        name: "i".to_owned(),
        told: UserDataFormat::CloudInit,
        min_disk_gib: 0,
        min_ram_mib: 0,
    };
    let flavor = VmFlavor { id: "2".to_owned(), name: "f".to_owned(), size: FlavorSize::default() };
    let (what, now) = ((image, flavor, "n".to_owned()), Timestamp::UNIX_EPOCH);
    let (id, owner) = (VmUuid::new_v4(), Owner::new("p", "u"));
    let vm = Vm::new(id, owner, "dev".parse().unwrap(), what, now);
    Vm { user_data: Some(UserData { digest: "x:y".to_owned(), is_kept: true }), ..vm }
}

/// The place that the user data is sealed for.
fn place(vm: VmUuid) -> String {
    format!("vm/{vm}/user-data")
}

/// The store and keys of the daemon, opened by the test.
async fn open(folder: &Path) -> (Store, Keyring) {
    let state = folder.join("state");
    let keys = Keyring::open(&state.join("seal.keys"), &[]).unwrap();
    let url = format!("sqlite://{}", state.join("clusterd.db").display());
    (Store::open(&url).await.unwrap(), keys)
}

/// Repeats `look` until it returns a value, or fails after a minute.
async fn until<T>(look: impl AsyncFn() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(Instant::now() < deadline, "it does not come");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

impl Daemon {
    async fn ask(&self, method: Method, path: &str) -> (StatusCode, Value) {
        let url = format!("{}/bedplate/v1/keys{path}", self.url);
        let answer = self.client.request(method, url).send().await.unwrap();
        (answer.status(), answer.json().await.unwrap_or_default())
    }

    /// The ids of the keys, and how many records each one seals.
    async fn keys(&self) -> Vec<(String, u64)> {
        let (status, answer) = self.ask(Method::GET, "").await;
        assert_eq!(status, 200, "{answer}");
        let read = |key: &Value| {
            (key["id"].as_str().unwrap().to_owned(), key["records"].as_u64().unwrap())
        };
        answer["keys"].as_array().unwrap().iter().map(read).collect()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn inode(file: &Path) -> u64 {
    fs::metadata(file).unwrap().ino()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotation_that_is_killed_at_any_point_loses_nothing_and_completes() {
    let given = Installation::new().await;
    for point in POINTS {
        let mut daemon = given.start().await;
        let before = inode(&given.key_file());
        let mut lines = BufReader::new(daemon.child.stderr.take().unwrap()).lines();
        let sealed = |line: &String| line.contains("secrets, ") && line.contains(" so far");
        let heard = tokio::task::spawn_blocking(move || {
            let heard = lines.by_ref().map_while(Result::ok).filter(sealed).take(point).count();
            (heard, lines)
        });
        let asked = daemon.client.post(format!("{}/bedplate/v1/keys/rotate", daemon.url)).send();
        let asked = tokio::spawn(asked);
        let key_file = given.key_file();
        until(async || (inode(&key_file) != before).then_some(())).await;
        // The pipe stays open: the daemon would end at the next log line otherwise.
        let (heard, _lines) = heard.await.unwrap();
        assert_eq!(heard, point, "it ended before it was killed");
        drop(daemon);
        let _ = asked.await.unwrap();
        given.everything_opens().await;
    }

    let daemon = given.start().await;
    let rest = until(async || {
        let keys = daemon.keys().await;
        let (current, others) = keys.split_first().unwrap();
        let done = others.iter().all(|(_, records)| *records == 0);
        (done && current.1 > SECRETS as u64).then(|| others.to_vec())
    });
    let rest = rest.await;
    assert_eq!(rest.len(), POINTS.len());
    for (id, records) in rest {
        assert_eq!(records, 0, "key {id}");
        assert_eq!(daemon.ask(Method::DELETE, &format!("/{id}")).await.0, 204);
        assert_eq!(daemon.ask(Method::DELETE, &format!("/{id}")).await.0, 404);
    }
    let left = daemon.keys().await;
    assert_eq!(daemon.ask(Method::DELETE, &format!("/{}", left[0].0)).await.0, 409);
    drop(daemon);
    assert_eq!(fs::read_to_string(given.key_file()).unwrap().lines().count(), 1);
    given.everything_opens().await;
}
