//! What Keystone said of tokens lately: bounded, and without any token.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use openstack::Identity;
use tokio::sync::watch;

/// By what a token is known here.
pub(super) type Digest = [u8; 32];

/// Whose token it is; `None` if nobody's.
pub(super) type Verdict = Option<Arc<Identity>>;

/// Keystone could not be asked, or not in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Away;

/// Where the answer to a question that is under way will be.
pub(super) type Answer = watch::Receiver<Option<Result<Verdict, Away>>>;

/// What to do about a token.
pub(super) enum Next {
    /// Nothing: this is known.
    Take(Verdict),
    /// Wait: somebody has asked already.
    Wait(Answer),
    /// Ask, and send the answer here; others wait for it too.
    Ask(watch::Sender<Option<Result<Verdict, Away>>>, Answer),
    /// Come back later: too much is being asked.
    Refuse,
}

/// How many tokens are known at most, good ones and others each.
const KEPT: usize = 10_000;
/// How many questions are under way at most.
const ASKED_AT_ONCE: usize = 256;
/// How long a token that is nobody's is remembered as such.
const REFUSED_FOR: Duration = Duration::from_secs(10);

/// What is known of tokens, and what is being asked.
pub(super) struct Memory {
    /// How long Keystone's word for a good token is taken.
    cache_for: Duration,
    /// Apart, so that guesses drive out nobody who was let in.
    good: Shelf<Arc<Identity>>,
    refused: Shelf<()>,
    asked: HashMap<Digest, Answer>,
}

impl Memory {
    pub(super) fn new(cache_for: Duration) -> Self {
        let (good, refused) = (Shelf::of(KEPT), Shelf::of(KEPT));
        Memory { cache_for, good, refused, asked: HashMap::new() }
    }

    /// What to do about the token of this digest.
    pub(super) fn next(&mut self, token: &Digest, now: Instant) -> Next {
        if let Some(identity) = self.good.get(token, now) {
            return Next::Take(Some(identity.clone()));
        }
        if self.refused.get(token, now).is_some() {
            return Next::Take(None);
        }
        // A question whose asker is gone without an answer is not under way any more.
        self.asked.retain(|_, answer| answer.has_changed().is_ok());
        if let Some(answer) = self.asked.get(token) {
            return Next::Wait(answer.clone());
        }
        if self.asked.len() >= ASKED_AT_ONCE {
            return Next::Refuse;
        }
        let (sender, answer) = watch::channel(None);
        self.asked.insert(*token, answer.clone());
        Next::Ask(sender, answer)
    }

    /// Keystone has answered; a good token ends after `left`.
    pub(super) fn answered(
        &mut self,
        token: &Digest,
        said: &Result<Verdict, Away>,
        left: Duration,
        now: Instant,
    ) {
        self.asked.remove(token);
        match said {
            Ok(Some(identity)) => {
                self.good.put(*token, identity.clone(), now, self.cache_for.min(left));
            }
            Ok(None) => self.refused.put(*token, (), now, REFUSED_FOR),
            Err(Away) => {}
        }
    }
}

/// So many things at most, each until its time; what ends first goes first.
struct Shelf<V> {
    room: usize,
    things: HashMap<Digest, (V, Instant)>,
    ends: BTreeSet<(Instant, Digest)>,
}

impl<V> Shelf<V> {
    fn of(room: usize) -> Self {
        Shelf { room, things: HashMap::new(), ends: BTreeSet::new() }
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

    fn somebody() -> Result<Verdict, Away> {
        Ok(Some(Arc::new(Identity::default())))
    }

    fn is_known(memory: &mut Memory, token: &Digest, now: Instant) -> bool {
        matches!(memory.next(token, now), Next::Take(_))
    }

    #[test]
    fn a_good_token_is_known_until_the_earlier_of_its_end_and_ours() {
        for (cache_for, left, known) in [(5 * MINUTE, MINUTE, MINUTE), (MINUTE, 5 * MINUTE, MINUTE)]
        {
            let (mut memory, now) = (Memory::new(cache_for), Instant::now());
            memory.answered(&[1; 32], &somebody(), left, now);
            assert!(is_known(&mut memory, &[1; 32], now + known - Duration::from_millis(1)));
            assert!(!is_known(&mut memory, &[1; 32], now + known));
        }
    }

    #[test]
    fn nothing_is_kept_where_no_time_is_given() {
        let (mut memory, now) = (Memory::new(Duration::ZERO), Instant::now());
        memory.answered(&[1; 32], &somebody(), MINUTE, now);
        assert!(!is_known(&mut memory, &[1; 32], now));
    }

    #[test]
    fn a_bad_token_is_known_for_a_short_while() {
        let (mut memory, now) = (Memory::new(MINUTE), Instant::now());
        memory.answered(&[1; 32], &Ok(None), Duration::ZERO, now);
        assert!(matches!(memory.next(&[1; 32], now), Next::Take(None)));
        assert!(!is_known(&mut memory, &[1; 32], now + REFUSED_FOR));
    }

    #[test]
    fn that_keystone_was_away_is_not_remembered() {
        let (mut memory, now) = (Memory::new(MINUTE), Instant::now());
        memory.answered(&[1; 32], &Err(Away), Duration::ZERO, now);
        assert!(!is_known(&mut memory, &[1; 32], now));
    }

    #[test]
    fn one_asks_and_the_others_wait() {
        let (mut memory, now) = (Memory::new(MINUTE), Instant::now());
        let Next::Ask(sender, _) = memory.next(&[1; 32], now) else { panic!("nobody asked yet") };
        assert!(matches!(memory.next(&[1; 32], now), Next::Wait(_)));
        drop(sender);
        assert!(matches!(memory.next(&[1; 32], now), Next::Ask(..)), "the one who asked is gone");
    }

    #[test]
    fn questions_are_bounded() {
        let (mut memory, now) = (Memory::new(MINUTE), Instant::now());
        let mut senders = Vec::new();
        for number in 0..=u16::MAX {
            let mut token = [0; 32];
            token[..2].copy_from_slice(&number.to_be_bytes());
            match memory.next(&token, now) {
                Next::Ask(sender, _) => senders.push(sender),
                Next::Refuse => break,
                Next::Take(_) | Next::Wait(_) => panic!("nothing is known of it"),
            }
        }
        assert_eq!(senders.len(), ASKED_AT_ONCE);
    }

    #[test]
    fn what_ends_first_makes_room() {
        let (mut shelf, now) = (Shelf::of(2), Instant::now());
        for (key, minutes) in [(1, 3), (2, 1), (3, 2)] {
            shelf.put([key; 32], key, now, minutes * MINUTE);
        }
        let kept = [1, 2, 3].map(|key| shelf.get(&[key; 32], now).is_some());
        assert_eq!(kept, [true, false, true]);
        shelf.put([4; 32], 4, now + 5 * MINUTE, MINUTE);
        assert_eq!((shelf.things.len(), shelf.ends.len()), (1, 1));
    }
}
