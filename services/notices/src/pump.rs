//! The way out: letters that are due are sent, and tried again where that fails.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::panic::resume_unwind;
use std::sync::Arc;

use database::StoreError;
use database::outbox::{Outbox, Waiting};
use jiff::{SignedDuration, Timestamp};
use tokio::task::{JoinError, JoinSet};
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
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unsent {
    /// Its receiver takes none now.
    #[error("{0}")]
    Unreachable(String),
    /// Its receiver does not take this one.
    #[error("{0}")]
    Refused(String),
}

/// Hears of what was given up.
pub trait GivenUp: Send + Sync + 'static {
    /// Writes down that somebody was not told, in words that all may read who have to do with what the notice is about, and strikes
    /// the letter out in the same transaction ([`database::outbox::strike`]): one that is not there any more was given up before.
    fn given_up(
        &self,
        letter: i64,
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

/// Who was told what there was, and whether the store took that down.
type Told = (String, Result<(), StoreError>);

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

    /// Sends what is due until `stop` is cancelled: to several receivers at once, to each one letter after the other, so that one who is
    /// slow holds up nobody else. What was under way when it stops may be sent again.
    pub async fn run(self, outbox: Outbox, given_up: impl GivenUp, stop: CancellationToken) {
        let pause = self.retry.look_every.unsigned_abs();
        let sending = Arc::new(Sending { pump: self, outbox, given_up });
        let (mut busy, mut telling) = (BTreeSet::new(), JoinSet::new());
        loop {
            if let Err(error) = sending.begin(&mut busy, &mut telling).await {
                warn!("cannot read which notices are to be sent: {error}");
            }
            tokio::select! {
                () = stop.cancelled() => return,
                Some(told) = telling.join_next() => {
                    let (receiver, told) = match told.map_err(JoinError::try_into_panic) {
                        Ok(told) => told,
                        Err(Ok(panic)) => resume_unwind(panic),
                        // Nobody else ends them.
                        Err(Err(_)) => return,
                    };
                    busy.remove(&receiver);
                    if let Err(error) = told {
                        warn!("cannot write down what became of notices: {error}");
                        tokio::select! {
                            () = stop.cancelled() => return,
                            () = tokio::time::sleep(pause) => {}
                        }
                    }
                }
                () = tokio::time::sleep(pause) => {}
            }
        }
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

/// What sends, from where, and who hears of what it gives up.
struct Sending<G> {
    pump: Pump,
    outbox: Outbox,
    given_up: G,
}

impl<G: GivenUp> Sending<G> {
    /// Begins to tell receivers who are not being told yet, while there are seats.
    async fn begin(
        self: &Arc<Self>,
        busy: &mut BTreeSet<String>,
        telling: &mut JoinSet<Told>,
    ) -> Result<(), StoreError> {
        while busy.len() < AT_ONCE {
            let others: Vec<String> = busy.iter().cloned().collect();
            let now = (self.pump.clock)();
            let due = self.outbox.due_to_others(now, LONGEST_WAIT, &others, BATCH).await?;
            if due.is_empty() {
                return Ok(());
            }
            let mut by_receiver: BTreeMap<String, Vec<Waiting>> = BTreeMap::new();
            for waiting in due {
                by_receiver.entry(waiting.letter.receiver.clone()).or_default().push(waiting);
            }
            for (receiver, letters) in by_receiver.into_iter().take(AT_ONCE - busy.len()) {
                busy.insert(receiver.clone());
                let sending = self.clone();
                telling.spawn(async move {
                    let told = sending.tell(&receiver, letters).await;
                    (receiver, told)
                });
            }
        }
        Ok(())
    }

    /// Sends one receiver's letters, until it takes none.
    async fn tell(&self, receiver: &str, letters: Vec<Waiting>) -> Result<(), StoreError> {
        let Sending { pump, outbox, given_up } = self;
        for waiting in letters {
            let Ok(notice) = serde_json::from_str::<Notice>(&waiting.letter.body) else {
                warn!("a letter to {receiver} cannot be read, and is thrown away");
                outbox.remove(waiting.seq).await?;
                continue;
            };
            let to = Receiver::read(receiver);
            let sent = match &to {
                Some(to) => pump.send(to, &notice, &waiting).await,
                None => Err(Unsent::Refused("there is no such receiver".to_owned())),
            };
            let unsent = match sent {
                Ok(()) => {
                    info!(notice.id = %notice.id, "told {receiver} of {}", notice.event);
                    outbox.remove(waiting.seq).await?;
                    continue;
                }
                Err(unsent) => unsent,
            };
            let tries = waiting.tries.saturating_add(1);
            warn!(notice.id = %notice.id, tries, "cannot tell {receiver} of {}: {unsent}", notice.event);
            if tries >= pump.retry.tries.get() {
                let why = for_all(to.as_ref(), &unsent);
                given_up.given_up(waiting.seq, &notice, &why).await?;
                continue;
            }
            let again = pump.again(tries);
            outbox.failed(waiting.seq, tries, again).await?;
            if matches!(unsent, Unsent::Unreachable(_)) {
                return outbox.put_off(receiver, again).await;
            }
        }
        Ok(())
    }
}

/// Why somebody was not told, in words for all who have to do with what the notice is about: they name nobody's address, nor
/// what a mail server says of it.
fn for_all(to: Option<&Receiver>, unsent: &Unsent) -> String {
    match (to, unsent) {
        (Some(Receiver::Webhook), unsent) => format!("the webhook was not told: {unsent}"),
        (Some(Receiver::Mail(_)), Unsent::Refused(_)) => {
            "no mail was sent: the mail server does not take it".to_owned()
        }
        (Some(Receiver::Mail(_)), Unsent::Unreachable(_)) => {
            "no mail was sent: the mail server could not be reached, or took none".to_owned()
        }
        (None, _) => "there is no such receiver".to_owned(),
    }
}
