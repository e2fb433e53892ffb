//! The cluster under test, and helpers for every story.

use std::future::Future;
use std::time::Duration;

use kubernetes::apply::{self, Document, documents};
use kubernetes::nodes::{self, Node};
use kubernetes::{Access, Client, KubernetesError, Timeouts};
use tokio::time::{Instant, sleep};

use crate::emulated::{self, Emulated};

/// How long a cluster may take for any operation, and for one call: test machines have few processors.
const LONGEST: Duration = Duration::from_secs(300);
const CALL: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(300);

pub(crate) struct ClusterUnderTest {
    pub(crate) access: Access,
    pub(crate) client: Client,
    /// An image that every node has, and whose program does not end.
    pub(crate) image: String,
    _kept: Option<Emulated>,
}

/// Returns the cluster of `BEDPLATE_TEST_KUBECONFIG`, or an emulated one.
pub(crate) async fn cluster() -> ClusterUnderTest {
    let image = std::env::var("BEDPLATE_TEST_POD_IMAGE");
    let image = image.unwrap_or_else(|_| "registry.k8s.io/pause:3.10".to_owned());
    let (kept, access) = match std::env::var_os("BEDPLATE_TEST_KUBECONFIG") {
        Some(path) => {
            let text = std::fs::read_to_string(path).unwrap();
            let mut access = Access::from_kubeconfig(&text, None).unwrap();
            access.timeouts = Timeouts { connect: CALL, call: CALL };
            (None, access)
        }
        None => {
            let kept = emulated::cluster().await;
            let access = kept.access.clone();
            (Some(kept), access)
        }
    };
    let client = Client::new(&access).unwrap();
    ClusterUnderTest { access, client, image, _kept: kept }
}

impl ClusterUnderTest {
    /// Waits until all nodes are ready, because a busy kubelet may be late once, and returns the control-plane nodes, and the other nodes.
    pub(crate) async fn nodes(&self) -> (Vec<Node>, Vec<Node>) {
        let all = until("ready nodes", || async {
            let all = nodes::list(&self.client).await?;
            Ok(all.iter().all(|node| node.readiness.is_ready()).then_some(all))
        });
        let all = all.await;
        all.into_iter().partition(|node| {
            let role =
                |name: &str| node.labels.contains_key(&format!("node-role.kubernetes.io/{name}"));
            role("control-plane") || role("master")
        })
    }

    pub(crate) async fn apply(&self, text: &str) {
        let read = documents(text).unwrap();
        let applied = || async { apply::apply(&self.client, &read).await.map(Some) };
        until("the documents to be applied", applied).await;
    }

    pub(crate) async fn delete(&self, text: &str) {
        let read = documents(text).unwrap();
        let deleted = || async { apply::delete(&self.client, &read).await.map(Some) };
        until("the documents to be deleted", deleted).await;
    }

    /// Returns an object in its current state.
    pub(crate) async fn object(&self, path: &str) -> Option<serde_json::Value> {
        let answer = crate::kubelet::ask(&self.access, None, "GET", path, None).await;
        (answer.0 == 200).then_some(answer.1)
    }
}

/// Reads the documents of a text, for tests that apply them one by one.
pub(crate) fn read(text: &str) -> Vec<Document> {
    documents(text).unwrap()
}

/// Calls `look` until it returns a value, or until the time is up. Transient errors are ignored.
pub(crate) async fn until<T, F>(what: &str, mut look: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<Option<T>, KubernetesError>>,
{
    let end = Instant::now() + LONGEST;
    loop {
        match look().await {
            Ok(Some(found)) => return found,
            Ok(None) => {}
            Err(error) if error.is_transient() => eprintln!("{what}: {error}"),
            Err(error) => panic!("{what}: {error}"),
        }
        assert!(Instant::now() < end, "timed out: {what}");
        sleep(LOOK_EVERY).await;
    }
}

pub(crate) fn name() -> String {
    let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    format!("contract-{:x}-{:x}", std::process::id(), seconds.subsec_nanos())
}
