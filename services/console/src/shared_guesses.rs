//! The limits of wrong passwords that all consoles on one database share, with the rates of [`Guesses`].

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use console_store::{GuessLimit, Store};
use jiff::Timestamp;
use openstack_api::Guesses;
use ring::digest::{SHA256, digest};
use tokio::time::{Instant, sleep};
use tracing::warn;

use crate::problem::{Problem, Result};

/// How long a guess waits for its turn.
const PATIENCE: Duration = Duration::from_secs(20);

/// The limits of wrong passwords.
#[derive(Clone)]
pub(crate) struct SharedGuesses {
    store: Store,
    per_minute: NonZeroU32,
}

/// A guess that is being verified. It counts as wrong unless it is forgiven.
pub(crate) struct SharedGuess {
    store: Store,
    limits: Vec<GuessLimit>,
}

impl SharedGuesses {
    pub(crate) fn new(store: Store, per_minute: NonZeroU32) -> Self {
        SharedGuesses { store, per_minute }
    }

    /// Waits until a password for this name may be tried from this network.
    pub(crate) async fn turn(&self, name: &str, network: IpAddr) -> Result<SharedGuess> {
        let limits = vec![
            self.limit(&format!("name {name} at {network}"), 1),
            self.limit(&format!("address {network}"), Guesses::NAMES_PER_ADDRESS),
            self.limit(&format!("name {name}"), Guesses::ADDRESSES),
        ];
        let deadline = Instant::now() + PATIENCE;
        loop {
            let taken = self.store.take_guesses(&limits, Timestamp::now()).await;
            let wait = taken.map_err(|why| Problem::database(&why))?;
            if wait.is_zero() {
                return Ok(SharedGuess { store: self.store.clone(), limits });
            }
            if Instant::now() + wait > deadline {
                let sentence =
                    "too many wrong passwords came from your address recently: retry later";
                let again_in = wait.as_secs().max(1);
                return Err(Problem::TooMany { sentence: sentence.to_owned(), again_in });
            }
            sleep(wait).await;
        }
    }

    fn limit(&self, of: &str, times: u32) -> GuessLimit {
        let per_minute = self.per_minute.get().saturating_mul(times);
        GuessLimit {
            id: hex::encode(digest(&SHA256, of.as_bytes())),
            every: Duration::from_secs(60) / per_minute,
            at_once: (per_minute.saturating_mul(Guesses::AT_ONCE) / 60).max(2),
        }
    }
}

impl SharedGuess {
    /// Takes the guess back: it was right, or could not be verified.
    pub(crate) async fn forgive(self) {
        if let Err(why) = self.store.give_back_guesses(&self.limits).await {
            warn!("cannot give a guess back: {why}");
        }
    }
}
