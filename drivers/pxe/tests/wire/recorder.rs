//! A directory with a fixed decision that records all observations.

use std::net::IpAddr;

use async_trait::async_trait;
use hardware::MacAddress;
use pxe::{Client, Decision, Directory, Observation};
use tokio::sync::watch;

/// A directory for tests: decides by a function and records what the services report.
pub(crate) struct Recorder {
    decide: Box<dyn Fn(&Client) -> Decision + Send + Sync>,
    seen: watch::Sender<Vec<Observation>>,
    declined: watch::Sender<Vec<IpAddr>>,
}

impl Recorder {
    /// Makes a directory that decides `decision` for every client.
    pub(crate) fn new(decision: Decision) -> Self {
        Recorder::deciding(move |_| decision.clone())
    }

    /// Makes a directory that decides by the function `decide`.
    pub(crate) fn deciding(decide: impl Fn(&Client) -> Decision + Send + Sync + 'static) -> Self {
        let (seen, declined) = (watch::Sender::default(), watch::Sender::default());
        Recorder { decide: Box::new(decide), seen, declined }
    }

    /// Waits until all of `wanted` have been observed, in any order.
    pub(crate) async fn saw_all(&self, wanted: &[Observation]) {
        let mut seen = self.seen.subscribe();
        let all = seen.wait_for(|seen| wanted.iter().all(|sighting| seen.contains(sighting)));
        let patience = std::time::Duration::from_secs(60);
        let waited = tokio::time::timeout(patience, all).await.map(|found| found.is_ok());
        assert_eq!(waited, Ok(true), "wanted {wanted:#?}, saw {:#?}", self.seen.borrow());
    }
}

impl Recorder {
    /// Waits until a client declines an address, and returns all declined addresses.
    pub(crate) async fn declined(&self) -> Vec<IpAddr> {
        let mut declined = self.declined.subscribe();
        let any = declined.wait_for(|declined| !declined.is_empty());
        let patience = std::time::Duration::from_secs(60);
        let any = tokio::time::timeout(patience, any).await.expect("it is declined in time");
        any.expect("the recorder lives").clone()
    }
}

#[async_trait]
impl Directory for Recorder {
    async fn decide(&self, client: &Client) -> Decision {
        (self.decide)(client)
    }

    async fn declined(&self, _client: MacAddress, address: IpAddr) {
        self.declined.send_modify(|declined| declined.push(address));
    }

    fn saw(&self, _client: MacAddress, sighting: Observation) {
        self.seen.send_modify(|seen| seen.push(sighting));
    }
}
