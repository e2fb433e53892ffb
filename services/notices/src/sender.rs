//! Sends the letters that are due from the outbox, and retries failed ones.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::panic::resume_unwind;
use std::sync::Arc;

use database::StoreError;
use database::outbox::{Outbox, WaitingLetter};
use jiff::{SignedDuration, Timestamp};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::config::{NoticesConfig, RetryConfig, SetupError};
use crate::mail::Mailer;
use crate::receiver::Receiver;
use crate::unsent::SendError;
use crate::webhook::Webhook;
use crate::{Notice, ReceiverKinds};

/// How many letters are read from the outbox at a time.
const BATCH: u32 = 64;
/// To how many receivers the pump sends in parallel.
const MAX_PARALLEL: usize = 8;
/// The longest wait between two attempts.
const LONGEST_WAIT: SignedDuration = SignedDuration::from_hours(1);

/// Records the notices that were given up.
pub trait RecordGivenUp: Send + Sync + 'static {
    /// Whether this process sends the letters now, and not another one on the same database.
    fn may_send(&self) -> bool {
        true
    }

    /// Records that a notice did not reach its receiver, and deletes the letter in the same transaction ([`database::outbox::delete`]). A
    /// letter that is no longer in the outbox was given up before. Everybody who may see the subject of the notice may read `why`, so it
    /// names no address.
    fn given_up(
        &self,
        letter: i64,
        notice: &Notice,
        why: &str,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// Sends the letters of an outbox.
pub struct OutboxSender {
    webhook: Option<Webhook>,
    mail: Option<Mailer>,
    retry: RetryConfig,
    clock: fn() -> Timestamp,
}

/// A receiver, and whether the results of its letters could be stored.
type ReceiverResult = (String, Result<(), StoreError>);

impl OutboxSender {
    /// Creates a pump for this configuration. Reads the files that hold secrets.
    pub fn new(
        config: &NoticesConfig,
        clock: fn() -> Timestamp,
    ) -> Result<OutboxSender, SetupError> {
        Ok(OutboxSender {
            webhook: config.webhook.as_ref().map(Webhook::new).transpose()?,
            mail: config.mail.as_ref().map(Mailer::new).transpose()?,
            retry: config.retry,
            clock,
        })
    }

    /// The kinds of receivers that are configured.
    pub fn addressees(&self) -> ReceiverKinds {
        ReceiverKinds { webhook: self.webhook.is_some(), mail: self.mail.is_some() }
    }

    /// Sends the letters that are due until `stop` is cancelled. Several receivers are served in parallel, each with one letter after the
    /// other, so a slow receiver does not delay the others. Letters in progress when the pump stops may be sent again.
    pub async fn run(self, outbox: Outbox, given_up: impl RecordGivenUp, stop: CancellationToken) {
        let pause = self.retry.look_every.unsigned_abs();
        let sending = Arc::new(SenderContext { pump: self, outbox, given_up });
        let (mut busy, mut telling) = (BTreeSet::new(), JoinSet::new());
        loop {
            if let Err(error) = sending.begin(&mut busy, &mut telling).await {
                warn!("cannot read the notices to send: {error}");
            }
            tokio::select! {
                () = stop.cancelled() => return,
                Some(reported) = telling.join_next() => {
                    let (receiver, reported) = match reported.map_err(JoinError::try_into_panic) {
                        Ok(reported) => reported,
                        Err(Ok(panic)) => resume_unwind(panic),
                        // Only a cancelled task ends like this, and nobody cancels these tasks.
                        Err(Err(_)) => return,
                    };
                    busy.remove(&receiver);
                    if let Err(error) = reported {
                        warn!("cannot store the results of notices: {error}");
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

    async fn send(
        &self,
        to: &Receiver,
        notice: &Notice,
        waiting: &WaitingLetter,
    ) -> Result<(), SendError> {
        let unset =
            |what: &str| Err(SendError::Refused(format!("no {what} is configured any more")));
        match (to, &self.webhook, &self.mail) {
            (Receiver::Webhook, Some(webhook), _) => {
                webhook.send(notice.id, &waiting.letter.body, (self.clock)()).await
            }
            (Receiver::Mail(address), _, Some(mail)) => mail.send(notice, address).await,
            (Receiver::Webhook, None, _) => unset("webhook"),
            (Receiver::Mail(_), _, None) => unset("mail server"),
        }
    }

    /// The time of the next attempt after `tries` attempts.
    fn next_attempt(&self, tries: u32) -> Timestamp {
        let doubled = 1_i32.checked_shl(tries.saturating_sub(1).min(30)).unwrap_or(i32::MAX);
        let wait = self.retry.first.checked_mul(doubled).unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT);
        (self.clock)().saturating_add(wait).unwrap_or(Timestamp::MAX)
    }
}

/// The pump, its outbox, and the recorder of given-up notices, shared by the tasks.
struct SenderContext<G> {
    pump: OutboxSender,
    outbox: Outbox,
    given_up: G,
}

impl<G: RecordGivenUp> SenderContext<G> {
    /// Starts a task for each receiver that has letters due and no task yet, up to [`MAX_PARALLEL`] tasks.
    async fn begin(
        self: &Arc<Self>,
        busy: &mut BTreeSet<String>,
        telling: &mut JoinSet<ReceiverResult>,
    ) -> Result<(), StoreError> {
        while busy.len() < MAX_PARALLEL && self.given_up.may_send() {
            let others: Vec<String> = busy.iter().cloned().collect();
            let now = (self.pump.clock)();
            let due = self.outbox.due_to_others(now, LONGEST_WAIT, &others, BATCH).await?;
            if due.is_empty() {
                return Ok(());
            }
            let mut by_receiver: BTreeMap<String, Vec<WaitingLetter>> = BTreeMap::new();
            for waiting in due {
                by_receiver.entry(waiting.letter.receiver.clone()).or_default().push(waiting);
            }
            for (receiver, letters) in by_receiver.into_iter().take(MAX_PARALLEL - busy.len()) {
                busy.insert(receiver.clone());
                let sending = self.clone();
                telling.spawn(async move {
                    let reported = sending.tell(&receiver, letters).await;
                    (receiver, reported)
                });
            }
        }
        Ok(())
    }

    /// Sends the letters of one receiver, until the receiver is unreachable.
    async fn tell(&self, receiver: &str, letters: Vec<WaitingLetter>) -> Result<(), StoreError> {
        let SenderContext { pump, outbox, given_up } = self;
        for waiting in letters {
            if !given_up.may_send() {
                return Ok(());
            }
            let Ok(notice) = serde_json::from_str::<Notice>(&waiting.letter.body) else {
                warn!("dropping an unreadable notice to {receiver}");
                outbox.remove(waiting.seq).await?;
                continue;
            };
            let to = Receiver::read(receiver);
            let sent = match &to {
                Some(to) => {
                    let sending = pump.send(to, &notice, &waiting);
                    outbox.tripwire().around("notice: send", sending).await
                }
                None => Err(SendError::Refused("unknown receiver".to_owned())),
            };
            let unsent = match sent {
                Ok(()) => {
                    info!(notice.id = %notice.id, "sent notice {} to {receiver}", notice.event);
                    outbox.remove(waiting.seq).await?;
                    continue;
                }
                Err(unsent) => unsent,
            };
            let tries = waiting.tries.saturating_add(1);
            warn!(notice.id = %notice.id, tries, "cannot send notice {} to {receiver}: {unsent}", notice.event);
            if tries >= pump.retry.tries.get() {
                let why = public_reason(to.as_ref(), &unsent);
                given_up.given_up(waiting.seq, &notice, &why).await?;
                continue;
            }
            let again = pump.next_attempt(tries);
            outbox.failed(waiting.seq, tries, again).await?;
            if matches!(unsent, SendError::Unreachable(_)) {
                return outbox.postpone(receiver, again).await;
            }
        }
        Ok(())
    }
}

/// The reason in a form that everybody with access to the subject of the notice may read: without mail addresses, and without the words of
/// a mail server.
fn public_reason(to: Option<&Receiver>, unsent: &SendError) -> String {
    match (to, unsent) {
        (Some(Receiver::Webhook), unsent) => {
            format!("the notice did not reach the webhook: {unsent}")
        }
        (Some(Receiver::Mail(_)), SendError::Refused(_)) => {
            "no mail was sent: the mail server refused it".to_owned()
        }
        (Some(Receiver::Mail(_)), SendError::Unreachable(_)) => {
            "no mail was sent: the mail server is unreachable or accepts no mail".to_owned()
        }
        (None, _) => "unknown receiver".to_owned(),
    }
}
