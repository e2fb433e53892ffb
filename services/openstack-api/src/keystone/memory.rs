//! Caches Keystone's results for tokens. The cache is bounded, and holds digests instead of tokens.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use openstack::Identity;
use tokio::sync::watch;

/// The digest that stands for a token in the cache.
pub(super) type Digest = [u8; 32];

/// The identity behind a token; `None` for an invalid token.
pub(super) type TokenIdentity = Option<Arc<Identity>>;

/// Keystone could not be asked, or did not answer in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeystoneUnavailable;

/// Receives the result of a validation in progress.
pub(super) type Answer = watch::Receiver<Option<Result<TokenIdentity, KeystoneUnavailable>>>;

/// The next step for a token, as decided by [`TokenCache::next`].
pub(super) enum NextStep {
    /// The result is in the cache.
    Take(TokenIdentity),
    /// Another request is validating the same token; wait for its result.
    Wait(Answer),
    /// Validate the token and send the result here, for this and other waiting requests.
    Ask(watch::Sender<Option<Result<TokenIdentity, KeystoneUnavailable>>>, Answer),
    /// Too many validations are in progress; answer with 503.
    Refuse,
}

/// The most cached valid tokens, and the most cached invalid tokens.
const KEPT: usize = 10_000;
/// The most validations in progress.
const ASKED_AT_ONCE: usize = 256;
/// How long an invalid token is cached.
const REFUSED_FOR: Duration = Duration::from_secs(10);

/// The cached results and the validations in progress.
pub(super) struct TokenCache {
    /// How long a valid token is cached at most.
    cache_for: Duration,
    /// Kept apart from `refused`, so that a flood of invalid tokens does not evict valid ones.
    good: ExpiringMap<Arc<Identity>>,
    refused: ExpiringMap<()>,
    asked: HashMap<Digest, Answer>,
}

impl TokenCache {
    pub(super) fn new(cache_for: Duration) -> Self {
        let (good, refused) = (ExpiringMap::of(KEPT), ExpiringMap::of(KEPT));
        TokenCache { cache_for, good, refused, asked: HashMap::new() }
    }

    /// Decides how to validate the token of this digest.
    pub(super) fn next(&mut self, token: &Digest, now: Instant) -> NextStep {
        if let Some(identity) = self.good.get(token, now) {
            return NextStep::Take(Some(identity.clone()));
        }
        if self.refused.get(token, now).is_some() {
            return NextStep::Take(None);
        }
        // If the task that validates a token ended without a result, the token is not being validated any more.
        self.asked.retain(|_, answer| answer.has_changed().is_ok());
        if let Some(answer) = self.asked.get(token) {
            return NextStep::Wait(answer.clone());
        }
        if self.asked.len() >= ASKED_AT_ONCE {
            return NextStep::Refuse;
        }
        let (sender, answer) = watch::channel(None);
        self.asked.insert(*token, answer.clone());
        NextStep::Ask(sender, answer)
    }

    /// Stores the result of a validation. A valid token expires after `left`.
    pub(super) fn answered(
        &mut self,
        token: &Digest,
        said: &Result<TokenIdentity, KeystoneUnavailable>,
        left: Duration,
        now: Instant,
    ) {
        self.asked.remove(token);
        match said {
            Ok(Some(identity)) => {
                self.good.put(*token, identity.clone(), now, self.cache_for.min(left));
            }
            Ok(None) => self.refused.put(*token, (), now, REFUSED_FOR),
            Err(KeystoneUnavailable) => {}
        }
    }
}

/// A bounded map whose entries expire. If the map is full, the entry that expires first is evicted.
struct ExpiringMap<V> {
    room: usize,
    things: HashMap<Digest, (V, Instant)>,
    ends: BTreeSet<(Instant, Digest)>,
}

impl<V> ExpiringMap<V> {
    fn of(room: usize) -> Self {
        ExpiringMap { room, things: HashMap::new(), ends: BTreeSet::new() }
    }

    fn get(&self, key: &Digest, now: Instant) -> Option<&V> {
        self.things.get(key).filter(|(_, until)| now < *until).map(|(value, _)| value)
    }

    fn put(&mut self, key: Digest, value: V, now: Instant, lasts: Duration) {
        if lasts.is_zero() {
            return;
        }
        let until = now + lasts;
        if let Some((_, before)) = self.things.insert(key, (value, until)) {
            self.ends.remove(&(before, key));
        }
        self.ends.insert((until, key));
        while let Some((end, first)) = self.ends.first().copied()
            && (end <= now || self.things.len() > self.room)
        {
            self.ends.pop_first();
            self.things.remove(&first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn somebody() -> Result<TokenIdentity, KeystoneUnavailable> {
        Ok(Some(Arc::new(Identity::default())))
    }

    fn is_known(memory: &mut TokenCache, token: &Digest, now: Instant) -> bool {
        matches!(memory.next(token, now), NextStep::Take(_))
    }

    #[test]
    fn a_valid_token_is_cached_until_it_expires_or_the_cache_time_ends() {
        for (cache_for, left, known) in [(5 * MINUTE, MINUTE, MINUTE), (MINUTE, 5 * MINUTE, MINUTE)]
        {
            let (mut memory, now) = (TokenCache::new(cache_for), Instant::now());
            memory.answered(&[1; 32], &somebody(), left, now);
            assert!(is_known(&mut memory, &[1; 32], now + known - Duration::from_millis(1)));
            assert!(!is_known(&mut memory, &[1; 32], now + known));
        }
    }

    #[test]
    fn nothing_is_cached_without_a_cache_time() {
        let (mut memory, now) = (TokenCache::new(Duration::ZERO), Instant::now());
        memory.answered(&[1; 32], &somebody(), MINUTE, now);
        assert!(!is_known(&mut memory, &[1; 32], now));
    }

    #[test]
    fn an_invalid_token_is_cached_for_a_short_time() {
        let (mut memory, now) = (TokenCache::new(MINUTE), Instant::now());
        memory.answered(&[1; 32], &Ok(None), Duration::ZERO, now);
        assert!(matches!(memory.next(&[1; 32], now), NextStep::Take(None)));
        assert!(!is_known(&mut memory, &[1; 32], now + REFUSED_FOR));
    }

    #[test]
    fn a_failure_of_keystone_is_not_cached() {
        let (mut memory, now) = (TokenCache::new(MINUTE), Instant::now());
        memory.answered(&[1; 32], &Err(KeystoneUnavailable), Duration::ZERO, now);
        assert!(!is_known(&mut memory, &[1; 32], now));
    }

    #[test]
    fn one_request_asks_keystone_and_the_others_wait() {
        let (mut memory, now) = (TokenCache::new(MINUTE), Instant::now());
        let NextStep::Ask(sender, _) = memory.next(&[1; 32], now) else {
            panic!("nobody asked yet")
        };
        assert!(matches!(memory.next(&[1; 32], now), NextStep::Wait(_)));
        drop(sender);
        assert!(
            matches!(memory.next(&[1; 32], now), NextStep::Ask(..)),
            "the one who asked is gone"
        );
    }

    #[test]
    fn validations_in_progress_are_limited() {
        let (mut memory, now) = (TokenCache::new(MINUTE), Instant::now());
        let mut senders = Vec::new();
        for number in 0..=u16::MAX {
            let mut token = [0; 32];
            token[..2].copy_from_slice(&number.to_be_bytes());
            match memory.next(&token, now) {
                NextStep::Ask(sender, _) => senders.push(sender),
                NextStep::Refuse => break,
                NextStep::Take(_) | NextStep::Wait(_) => panic!("nothing is known of it"),
            }
        }
        assert_eq!(senders.len(), ASKED_AT_ONCE);
    }

    #[test]
    fn the_entry_that_expires_first_is_evicted() {
        let (mut shelf, now) = (ExpiringMap::of(2), Instant::now());
        for (key, minutes) in [(1, 3), (2, 1), (3, 2)] {
            shelf.put([key; 32], key, now, minutes * MINUTE);
        }
        let kept = [1, 2, 3].map(|key| shelf.get(&[key; 32], now).is_some());
        assert_eq!(kept, [true, false, true]);
        shelf.put([4; 32], 4, now + 5 * MINUTE, MINUTE);
        assert_eq!((shelf.things.len(), shelf.ends.len()), (1, 1));
    }
}
