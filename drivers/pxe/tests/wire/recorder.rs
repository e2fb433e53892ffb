//! A directory that always decides the same, and remembers what was seen.

use async_trait::async_trait;
use hardware::MacAddress;
use pxe::{Client, Decision, Directory, Sighting};
use tokio::sync::watch;

/// See the head of the file.
pub(crate) struct Recorder {
    decide: Box<dyn Fn(&Client) -> Decision + Send + Sync>,
    seen: watch::Sender<Vec<Sighting>>,
}

impl Recorder {
    /// Always decides `decision`.
    pub(crate) fn new(decision: Decision) -> Self {
        Recorder::deciding(move |_| decision.clone())
    }

    /// Decides by `decide`.
    pub(crate) fn deciding(decide: impl Fn(&Client) -> Decision + Send + Sync + 'static) -> Self {
        Recorder { decide: Box::new(decide), seen: watch::Sender::new(Vec::new()) }
    }

    /// Waits until all of `wanted` have been seen, in any order.
    pub(crate) async fn saw_all(&self, wanted: &[Sighting]) {
        let mut seen = self.seen.subscribe();
        let all = seen.wait_for(|seen| wanted.iter().all(|sighting| seen.contains(sighting)));
        let patience = std::time::Duration::from_secs(60);
        let waited = tokio::time::timeout(patience, all).await.map(|found| found.is_ok());
        assert_eq!(waited, Ok(true), "wanted {wanted:#?}, saw {:#?}", self.seen.borrow());
    }
}

#[async_trait]
impl Directory for Recorder {
    async fn decide(&self, client: &Client) -> Decision {
        (self.decide)(client)
    }

    fn saw(&self, _client: MacAddress, sighting: Sighting) {
        self.seen.send_modify(|seen| seen.push(sighting));
    }
}
