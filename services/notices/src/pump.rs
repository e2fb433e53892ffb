//! The way out: letters that are due are sent, and tried again where that fails.

use std::collections::BTreeMap;
use std::future::Future;

use database::StoreError;
use database::outbox::{Outbox, Waiting};
use futures::StreamExt as _;
use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::config::{NoticesConfig, RetryConfig, SetupError};
use crate::mail::Mailer;
use crate::receiver::Receiver;
use crate::webhook::Webhook;
use crate::{Addressees, Notice};

/// So many letters are read at once.
const BATCH: u32 = 64;
/// To so many receivers is sent at once.
const AT_ONCE: usize = 8;
/// The longest wait between two tries.
const LONGEST_WAIT: SignedDuration = SignedDuration::from_hours(1);

/// Why a letter was not sent.
#[derive(Debug)]
pub(crate) enum Unsent {
    /// Its receiver takes none now.
    Unreachable(String),
    /// Its receiver does not take this one.
    Refused(String),
}

/// Hears of what was given up.
pub trait GivenUp: Send + Sync {
    /// Writes down that somebody was not told; until that succeeded the letter is kept.
    fn given_up(
        &self,
        notice: &Notice,
        why: &str,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// Sends what waits in an outbox.
pub struct Pump {
    webhook: Option<Webhook>,
    mail: Option<Mailer>,
    retry: RetryConfig,
    clock: fn() -> Timestamp,
}

impl Pump {
    /// One that sends as configured. Reads the files of secrets.
    pub fn new(config: &NoticesConfig, clock: fn() -> Timestamp) -> Result<Pump, SetupError> {
        Ok(Pump {
            webhook: config.webhook.as_ref().map(Webhook::new).transpose()?,
            mail: config.mail.as_ref().map(Mailer::new).transpose()?,
            retry: config.retry,
            clock,
        })
    }

    /// Whom it can tell.
    pub fn addressees(&self) -> Addressees {
        Addressees { webhook: self.webhook.is_some(), mail: self.mail.is_some() }
    }

    /// Sends what is due until `stop` is cancelled. What was under way then may be sent again.
    pub async fn run(self, outbox: Outbox, given_up: impl GivenUp, stop: CancellationToken) {
        let pause = self.retry.look_every.unsigned_abs();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                passed = self.pass(&outbox, &given_up) => if let Err(error) = passed {
                    warn!("cannot read which notices are to be sent: {error}");
                },
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Sends what is due, each receiver's letters one after the other, so that one who is slow holds up nobody else.
    async fn pass(&self, outbox: &Outbox, given_up: &impl GivenUp) -> Result<(), StoreError> {
        loop {
            let due = outbox.due((self.clock)(), LONGEST_WAIT, BATCH).await?;
            let is_all = due.len() < BATCH as usize;
            let mut by_receiver: BTreeMap<String, Vec<Waiting>> = BTreeMap::new();
            for waiting in due {
                by_receiver.entry(waiting.letter.receiver.clone()).or_default().push(waiting);
            }
            let sent = futures::stream::iter(by_receiver)
                .map(|(receiver, letters)| self.tell(outbox, given_up, receiver, letters))
                .buffer_unordered(AT_ONCE)
                .collect::<Vec<_>>()
                .await;
            sent.into_iter().collect::<Result<(), _>>()?;
            if is_all {
                return Ok(());
            }
        }
    }

    /// Sends one receiver's letters, until it takes none.
    async fn tell(
        &self,
        outbox: &Outbox,
        given_up: &impl GivenUp,
        receiver: String,
        letters: Vec<Waiting>,
    ) -> Result<(), StoreError> {
        for waiting in letters {
            let Ok(notice) = serde_json::from_str::<Notice>(&waiting.letter.body) else {
                warn!("a letter to {receiver} cannot be read, and is thrown away");
                outbox.remove(waiting.seq).await?;
                continue;
            };
            let sent = match Receiver::read(&receiver) {
                Some(to) => self.send(&to, &notice, &waiting).await,
                None => Err(Unsent::Refused("there is no such receiver".to_owned())),
            };
            let (why, takes_none) = match sent {
                Ok(()) => {
                    info!(notice.id = %notice.id, "told {receiver} of {}", notice.event);
                    outbox.remove(waiting.seq).await?;
                    continue;
                }
                Err(Unsent::Unreachable(why)) => (why, true),
                Err(Unsent::Refused(why)) => (why, false),
            };
            let tries = waiting.tries.saturating_add(1);
            warn!(notice.id = %notice.id, tries, "cannot tell {receiver} of {}: {why}", notice.event);
            if tries >= self.retry.tries.get() {
                given_up.given_up(&notice, &format!("{receiver} was not told: {why}")).await?;
                outbox.remove(waiting.seq).await?;
                continue;
            }
            let again = self.again(tries);
            outbox.failed(waiting.seq, tries, again).await?;
            if takes_none {
                return outbox.put_off(&receiver, again).await;
            }
        }
        Ok(())
    }

    async fn send(&self, to: &Receiver, notice: &Notice, waiting: &Waiting) -> Result<(), Unsent> {
        let unset = |what: &str| Err(Unsent::Refused(format!("there is no {what} any more")));
        match (to, &self.webhook, &self.mail) {
            (Receiver::Webhook, Some(webhook), _) => {
                webhook.send(notice.id, &waiting.letter.body, (self.clock)()).await
            }
            (Receiver::Mail(address), _, Some(mail)) => mail.send(notice, address).await,
            (Receiver::Webhook, None, _) => unset("webhook"),
            (Receiver::Mail(_), _, None) => unset("mail server"),
        }
    }

    /// When a letter is tried again after so many tries.
    fn again(&self, tries: u32) -> Timestamp {
        let doubled = 1_i32.checked_shl(tries.saturating_sub(1).min(30)).unwrap_or(i32::MAX);
        let wait = self.retry.first.checked_mul(doubled).unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT);
        (self.clock)().saturating_add(wait).unwrap_or(Timestamp::MAX)
    }
}
