//! A new sealing key reaches all living conductors before it seals.
//!
//! The conductor that rotates the keys adds the new key to its key file, and tells it to the others, sealed with the current key. They add it to
//! their files. When all have answered, the new key becomes the first of each file, and seals from then on. Until then nothing depends on it.

use std::sync::Arc;
use std::time::Duration;

use sealing::{KeyFileError, Keyring, NewKey};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tracing::{debug, info, warn};

use crate::membership::Membership;
use crate::share::ShareKey;

/// The word with which the notifications of this file begin.
pub(crate) const SEALING_KEY: &str = "sealing-key";

/// The words that follow: a new key, the request to seal with it, and the answers to both.
const OFFER: &str = "offer";
const FIRST: &str = "first";
const HAS: &str = "has";
const SEALS: &str = "seals";

/// A question may be lost, so it is asked again after this time.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// How often a question is asked.
const QUESTIONS: u32 = 10;

/// Makes a new key that seals at all living conductors from now on, and returns its id.
///
/// # Errors
///
/// `NotEverywhere` if a living conductor does not add the key. Then nothing seals with it.
pub async fn rotate_key<K: ShareKey>(
    membership: &Membership<K>,
    keyring: &Arc<Keyring>,
) -> Result<String, KeyFileError> {
    if !membership.is_shared() {
        let keyring = keyring.clone();
        return on_blocking_thread(move || keyring.rotate()).await;
    }
    let key = NewKey::generate().map_err(KeyFileError::Make)?;
    let offered = keyring.seal_key(&key).map_err(KeyFileError::Make)?;
    let id = key.id.clone();
    let answers = &membership.key_answers;
    let _rotation = answers.begin(&id);
    let own = keyring.clone();
    on_blocking_thread(move || own.add(&key)).await?;
    if let Some(process) = ask(membership, &format!("{OFFER} {offered}"), HAS).await {
        return Err(KeyFileError::NotEverywhere { process });
    }
    let (own, first) = (keyring.clone(), id.clone());
    on_blocking_thread(move || own.seal_with(&first)).await?;
    if let Some(process) = ask(membership, &format!("{FIRST} {id}"), SEALS).await {
        warn!("conductor {process} has key {id} and may still seal with an older one");
    }
    info!(key.id = id, "key {id} seals from now on at all conductors");
    Ok(id)
}

/// Asks all other living conductors until they have answered. Returns one that has not.
async fn ask<K: ShareKey>(
    membership: &Membership<K>,
    question: &str,
    answer: &str,
) -> Option<String> {
    let missing = || membership.key_answers.missing(answer, membership.others());
    for _ in 0..QUESTIONS {
        membership.tell_all(format!("{SEALING_KEY} {question}"));
        let answered = async {
            while missing().is_some() {
                membership.key_answers.changed.notified().await;
            }
        };
        if timeout(ASK_AGAIN, answered).await.is_ok() {
            return None;
        }
    }
    missing()
}

/// Follows a message of another conductor about its rotation, or its answer to a question.
pub(crate) fn hear<K: ShareKey>(membership: &Membership<K>, keyring: &Keyring, message: &str) {
    let own = membership.own_hostname();
    let words: Vec<&str> = message.split(' ').collect();
    match words[..] {
        // Of two rotations at the same time neither ends, so that all conductors seal with the same key.
        [OFFER, _] if membership.key_answers.is_expected() => {}
        [OFFER, sealed] => match keyring.open_key(sealed) {
            Ok(key) => match keyring.add(&key) {
                Ok(()) => membership.tell_all(format!("{SEALING_KEY} {HAS} {} {own}", key.id)),
                Err(why) => warn!("cannot add the new sealing key of another conductor: {why}"),
            },
            Err(why) => warn!("cannot open the new sealing key of another conductor: {why}"),
        },
        [FIRST, id] => match keyring.seal_with(id) {
            Ok(()) => membership.tell_all(format!("{SEALING_KEY} {SEALS} {id} {own}")),
            Err(why) => warn!("cannot seal with the new key of another conductor: {why}"),
        },
        [word @ (HAS | SEALS), id, hostname] => membership.key_answers.note(word, id, hostname),
        _ => debug!("a message about sealing keys that this version does not know"),
    }
}

/// Runs `work`, which writes files, on a thread where it does not block other tasks.
async fn on_blocking_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, KeyFileError> + Send + 'static,
) -> Result<T, KeyFileError> {
    let done = spawn_blocking(work).await;
    done.unwrap_or_else(|ended| Err(KeyFileError::BrokeOff(Box::new(ended))))
}

#[cfg(test)]
mod tests {
    use newtype_uuid::{TypedUuid, TypedUuidKind, TypedUuidTag};
    use tempfile::TempDir;

    use super::*;
    use crate::share::{LivingConductor, LivingConductors};

    /// The kind of the ids of nodes.
    enum Node {}

    impl TypedUuidKind for Node {
        fn tag() -> TypedUuidTag {
            const TAG: TypedUuidTag = TypedUuidTag::new("node");
            TAG
        }
    }

    /// A conductor with a key file.
    struct Conductor {
        membership: Membership<TypedUuid<Node>>,
        keyring: Arc<Keyring>,
        _folder: TempDir,
    }

    /// The conductors "a" and "b" with the same key file. Both know that both live.
    fn two() -> [Conductor; 2] {
        let one = |hostname: &str| LivingConductor {
            hostname: hostname.to_owned(),
            epoch: 1,
            groups: vec![String::new()],
            is_draining: false,
            settled: String::new(),
        };
        let mut text = None;
        ["a", "b"].map(|hostname| {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("seal.keys");
            if let Some(text) = &text {
                std::fs::copy(text, &file).unwrap();
            }
            let keyring = Arc::new(Keyring::open(&file, &[]).unwrap());
            text.get_or_insert(file);
            let membership = Membership::shared(hostname);
            membership.observe(LivingConductors::new(vec![one("a"), one("b")]));
            Conductor { membership, keyring, _folder: folder }
        })
    }

    /// Passes the messages of each conductor to the other one, as long as `passes` does.
    async fn exchange([a, b]: &[Conductor; 2], passes: impl Fn(&str) -> bool) {
        loop {
            for (from, to) in [(a, b), (b, a)] {
                for message in from.membership.take_news().tasks {
                    let (word, rest) = message.split_once(' ').unwrap();
                    assert_eq!(word, SEALING_KEY);
                    if passes(rest) {
                        hear(&to.membership, &to.keyring, rest);
                    }
                }
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn rotated(
        both: &[Conductor; 2],
        passes: impl Fn(&str) -> bool,
    ) -> Result<String, KeyFileError> {
        tokio::select! {
            rotated = rotate_key(&both[0].membership, &both[0].keyring) => rotated,
            () = exchange(both, passes) => unreachable!("it passes messages for ever"),
        }
    }

    #[tokio::test]
    async fn a_new_key_seals_once_all_conductors_have_it() {
        let both = two();
        let id = rotated(&both, |_| true).await.unwrap();
        for conductor in &both {
            assert_eq!(conductor.keyring.keys().current(), id);
        }
        let sealed = both[1].keyring.seal("p", b"s").unwrap();
        assert_eq!(&*both[0].keyring.open_sealed("p", &sealed).unwrap(), b"s");
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_a_conductor_does_not_add_seals_nothing() {
        let both = two();
        let before = both[0].keyring.keys().current().to_owned();
        let refused = rotated(&both, |message| !message.starts_with(OFFER)).await.unwrap_err();
        assert!(
            matches!(&refused, KeyFileError::NotEverywhere { process } if process == "b"),
            "{refused}"
        );
        for conductor in &both {
            assert_eq!(conductor.keyring.keys().current(), before);
        }
        // The next rotation succeeds.
        rotated(&both, |_| true).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn of_two_rotations_at_the_same_time_neither_ends() {
        let both = two();
        let [a, b] = &both;
        let ended = tokio::select! {
            ended = async {
                tokio::join!(
                    rotate_key(&a.membership, &a.keyring),
                    rotate_key(&b.membership, &b.keyring)
                )
            } => ended,
            () = exchange(&both, |_| true) => unreachable!("it passes messages for ever"),
        };
        assert!(ended.0.is_err() && ended.1.is_err());
        assert_eq!(a.keyring.keys().current(), b.keyring.keys().current());
    }
}
