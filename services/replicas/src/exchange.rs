//! Notifications between the conductors. Nothing depends on one of them: without it the others look some time later.

use std::future::pending;
use std::time::Duration;

use database::{MAX_NOTIFICATION, Notifications};
use reconcile::with_sources;
use tokio::time::{sleep, timeout};
use tracing::debug;

use crate::key_exchange::{SEALING_KEY, hear};
use crate::participant::Participant;

/// The pause after the connection for notifications was lost.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The time after which a notification is no longer waited for on one connection: a server that is gone closes none.
const SILENCE: Duration = Duration::from_secs(60);

/// The keys in one notification. A key is a UUID, with at most 13 characters before it.
const KEYS_AT_ONCE: usize = MAX_NOTIFICATION / 50 - 1;

/// The words of notifications, which follow the name of the sender, beside those of `key_exchange`. Anything else is the name of a task.
const MEMBERS: &str = "members";
const KEYS: &str = "keys";
const ADDRESS: &str = "address";

/// Has the other conductors look at each other now, and tells them the URL of this one. They tell theirs.
pub(crate) async fn tell_members(participant: &impl Participant, sender: &str) {
    notify(participant, format!("{sender} {MEMBERS}")).await;
    participant.membership().tell_address(ADDRESS);
}

async fn notify(participant: &impl Participant, text: String) {
    if let Err(error) = participant.conductors().notify(text).await {
        debug!(error = with_sources(&error), "cannot notify the other conductors");
    }
}

/// Tells the other conductors of everything for which this process recorded something.
pub(crate) async fn tell(participant: &impl Participant, sender: &str) {
    let membership = participant.membership();
    loop {
        membership.has_news.notified().await;
        let news = membership.take_news();
        if news.members {
            tell_members(participant, sender).await;
        }
        for task in news.tasks {
            notify(participant, format!("{sender} {task}")).await;
        }
        let keys: Vec<String> = news.keys.iter().map(ToString::to_string).collect();
        for some in keys.chunks(KEYS_AT_ONCE) {
            notify(participant, format!("{sender} {KEYS} {}", some.join(" "))).await;
        }
    }
}

/// Receives what other conductors tell.
pub(crate) async fn listen(participant: &impl Participant, sender: &str) {
    loop {
        match participant.conductors().notifications().await {
            Ok(Some(mut notifications)) => {
                // Some may have been lost before.
                tell_members(participant, sender).await;
                participant.membership().look_again.notify_one();
                participant.membership().share_changed.notify_one();
                receive(participant, sender, &mut notifications).await;
            }
            Ok(None) => return pending().await,
            Err(error) => {
                debug!(error = with_sources(&error), "cannot listen to the other conductors");
                sleep(RETRY_PAUSE).await;
            }
        }
    }
}

/// Receives notifications until the connection is lost or silent.
async fn receive(participant: &impl Participant, sender: &str, notifications: &mut Notifications) {
    loop {
        match timeout(SILENCE, notifications.next()).await {
            Ok(Ok(Some(text))) => follow(participant, sender, &text),
            Ok(Ok(None)) | Err(_) => return,
            Ok(Err(error)) => {
                let error = with_sources(&error);
                debug!(error, "the connection to the other conductors is lost");
                return sleep(RETRY_PAUSE).await;
            }
        }
    }
}

fn follow<P: Participant>(participant: &P, own: &str, text: &str) {
    let Some((sender, message)) = text.split_once(' ') else {
        return debug!("a notification that this version does not know: {text}");
    };
    if sender == own {
        return;
    }
    match message.split_once(' ').unwrap_or((message, "")) {
        (MEMBERS, _) => {
            participant.membership().look_again.notify_one();
            participant.membership().tell_address(ADDRESS);
        }
        (ADDRESS, rest) => match rest.split_once(' ') {
            Some((hostname, address)) => participant.membership().note_address(hostname, address),
            None => debug!("an address without a host name: {rest}"),
        },
        (KEYS, keys) => {
            let keys = keys.split(' ').filter_map(|key| key.parse::<P::Key>().ok());
            keys.for_each(|key| participant.wake(key));
        }
        (SEALING_KEY, rest) => {
            if let Some(keyring) = participant.keyring() {
                // Writes a file, which is rare.
                hear(participant.membership(), keyring, rest);
            }
        }
        _ => participant.hear(message),
    }
}
