//! Slows down the guessing of passwords and tokens.
//!
//! Credentials that were verified before bypass this check. All others are verified at once as long as few wrong ones came from the same
//! address or for the same name; after that they are verified one after the other, at the configured rate, in the order of arrival. So a
//! user with the right password is let in although somebody else guesses from the same address, and each wrong guess delays the others only
//! by its own turn.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use http::StatusCode;
use tokio::sync::Semaphore;

use super::bucket::{Bucket, Pace};
use super::recent::RecentMap;
use crate::ApiError;

/// The counters of this many addresses and names are remembered, at most twice as many.
const MAX_COUNTERS: usize = 10_000;
/// How many requests may wait for their turn at one counter.
const WAITING: usize = 8;

/// The counters of wrong guesses.
#[derive(Debug)]
pub struct Guesses {
    of_a_name: Pace,
    of_an_address: Pace,
    of_a_name_anywhere: Pace,
    suspects: Mutex<RecentMap<Key, Arc<GuessCounter>>>,
    hasher: RandomState,
}

/// Identifies a counter. Names are stored as hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// All guesses from one address, or from one IPv6 network of 64 bits.
    Household(IpAddr),
    /// The guesses for one name from one address or network.
    NameAt(IpAddr, u64),
    /// The guesses for one name from all addresses.
    Name(u64),
}

#[derive(Debug)]
struct GuessCounter {
    pace: Pace,
    state: Mutex<CounterState>,
    turns: Semaphore,
}

#[derive(Debug)]
struct CounterState {
    bucket: Bucket,
    waiting: usize,
}

/// The address of a client that presents credentials, with the counters of wrong guesses.
#[derive(Clone, Debug)]
pub struct CredentialSource {
    pub guesses: Arc<Guesses>,
    pub from: IpAddr,
}

/// A place in the queues of all counters that apply to a guess.
pub struct Ticket(Vec<Waiting>);

struct Waiting {
    suspect: Arc<GuessCounter>,
    place: GuessState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GuessState {
    /// Waits for its turn.
    Queued,
    /// Has a permit, but is not verified yet.
    Taken,
    Used,
}

/// A guess that is being verified. The guess counts as wrong unless it is forgiven.
pub struct Guess(Vec<Arc<GuessCounter>>);

impl Guesses {
    /// The rate of an address, as a multiple of the rate of a name at an address: several people share an address.
    pub const NAMES_PER_ADDRESS: u32 = 10;
    /// The rate of a name from all addresses, as a multiple of the rate from one address: a person has several addresses, while an attacker
    /// may have thousands.
    pub const ADDRESSES: u32 = 10;
    /// How many wrong guesses are verified in a burst, in seconds of the average rate.
    pub const AT_ONCE: u32 = 10;

    /// Allows `per_minute` wrong guesses for a name from one address, and ten times as many for an address and for a name from all
    /// addresses.
    pub fn new(per_minute: NonZeroU32) -> Self {
        let pace = |times: u32| {
            let per_second = f64::from(per_minute.get()) * f64::from(times) / 60.0;
            Pace { per_second, burst: (per_second * f64::from(Self::AT_ONCE)).max(2.0) }
        };
        Guesses {
            of_a_name: pace(1),
            of_an_address: pace(Self::NAMES_PER_ADDRESS),
            of_a_name_anywhere: pace(Self::ADDRESSES),
            suspects: Mutex::new(RecentMap::of(MAX_COUNTERS)),
            hasher: RandomState::new(),
        }
    }

    fn suspect(&self, key: &Key) -> Arc<GuessCounter> {
        let pace = match key {
            Key::Household(_) => self.of_an_address,
            Key::NameAt(..) => self.of_a_name,
            Key::Name(_) => self.of_a_name_anywhere,
        };
        let fresh = || {
            let state = CounterState { bucket: Bucket::full(pace, Instant::now()), waiting: 0 };
            Arc::new(GuessCounter { pace, state: Mutex::new(state), turns: Semaphore::new(1) })
        };
        let mut suspects = self.suspects.lock().unwrap_or_else(PoisonError::into_inner);
        suspects.get(key, fresh).clone()
    }
}

impl CredentialSource {
    /// The address that guesses are counted under: one for a network of IPv6, which one client usually owns.
    pub fn network(&self) -> IpAddr {
        client_network(self.from)
    }

    /// Queues unverified credentials; `name` is the claimed user name, if there is one.
    ///
    /// # Errors
    ///
    /// 429 if too many guesses wait already.
    pub(crate) fn queue(&self, name: Option<&str>) -> Result<Ticket, ApiError> {
        let from = client_network(self.from);
        let name = name.map(|name| Key::NameAt(from, self.guesses.hasher.hash_one(name)));
        self.queue_for(name.into_iter().chain([Key::Household(from)]))
    }

    /// Queues a password for `name`, counting guesses for the name from all addresses as well.
    ///
    /// # Errors
    ///
    /// 429 if too many guesses wait already.
    pub fn queue_password(&self, name: &str) -> Result<Ticket, ApiError> {
        let (from, name) = (client_network(self.from), self.guesses.hasher.hash_one(name));
        self.queue_for([Key::NameAt(from, name), Key::Household(from), Key::Name(name)].into_iter())
    }

    fn queue_for(&self, keys: impl Iterator<Item = Key>) -> Result<Ticket, ApiError> {
        let waiting = keys.map(|key| self.guesses.suspect(&key).enter());
        Ok(Ticket(waiting.collect::<Result<_, _>>()?))
    }
}

impl Ticket {
    /// Waits until the credentials may be verified.
    pub async fn turn(self) -> Guess {
        let mut guess = Guess(Vec::new());
        for mut waiting in self.0 {
            if waiting.place == GuessState::Queued {
                waiting.suspect.wait().await;
            } else {
                waiting.place = GuessState::Used;
            }
            guess.0.push(waiting.suspect.clone());
        }
        guess
    }
}

impl Guess {
    /// Takes the guess back: it was right, or could not be verified.
    pub fn forgive(self) {
        for suspect in self.0 {
            suspect.state().bucket.give_back();
        }
    }
}

impl GuessCounter {
    fn state(&self) -> MutexGuard<'_, CounterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(self: Arc<Self>) -> Result<Waiting, ApiError> {
        let mut state = self.state();
        let waits = state.waiting > 0 || state.bucket.take(self.pace, Instant::now()).is_err();
        if waits && state.waiting >= WAITING {
            return Err(too_many());
        }
        state.waiting += usize::from(waits);
        drop(state);
        Ok(Waiting {
            suspect: self,
            place: if waits { GuessState::Queued } else { GuessState::Taken },
        })
    }

    async fn wait(&self) {
        // The semaphore is never closed.
        let _turn = self.turns.acquire().await;
        loop {
            let taken = self.state().bucket.take(self.pace, Instant::now());
            match taken {
                Ok(()) => return,
                Err(left) => tokio::time::sleep(left).await,
            }
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        match self.place {
            GuessState::Queued => self.suspect.state().waiting -= 1,
            // The permit was not used.
            GuessState::Taken => self.suspect.state().bucket.give_back(),
            GuessState::Used => {}
        }
    }
}

fn too_many() -> ApiError {
    let why = "too many wrong passwords or tokens came from your address recently: retry later";
    ApiError::protocol(StatusCode::TOO_MANY_REQUESTS, why).retry_after(2)
}

/// The address that guesses are counted under. All addresses of an IPv6 network of 64 bits count together, because one client usually owns
/// the whole network.
fn client_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn doors(per_minute: u32) -> impl Fn(&str) -> CredentialSource {
        let guesses = Arc::new(Guesses::new(per_minute.try_into().unwrap()));
        move |from| CredentialSource { guesses: guesses.clone(), from: from.parse().unwrap() }
    }

    /// How many wrong guesses are verified without waiting.
    async fn at_once(door: &CredentialSource, name: Option<&str>) -> usize {
        let mut tried = 0;
        while let Ok(ticket) = door.queue(name) {
            let Ok(_wrong) = tokio::time::timeout(Duration::ZERO, ticket.turn()).await else {
                return tried;
            };
            tried += 1;
        }
        tried
    }

    #[tokio::test]
    async fn wrong_guesses_slow_down_only_their_name_and_address() {
        let door = doors(1);
        assert_eq!(at_once(&door("10.0.0.1"), Some("ann")).await, 2);
        assert_eq!(at_once(&door("10.0.0.1"), Some("bob")).await, 0, "all of the address");
        assert_eq!(at_once(&door("10.0.0.2"), Some("ann")).await, 2);
        let door = doors(60);
        assert_eq!(at_once(&door("10.0.0.1"), Some("ann")).await, 10);
        assert_eq!(at_once(&door("10.0.0.1"), Some("bob")).await, 10);
        assert_eq!(at_once(&door("10.0.0.1"), None).await, 80);
    }

    #[tokio::test]
    async fn a_password_is_guessed_no_faster_from_many_addresses() {
        let door = doors(60);
        let mut tried = 0;
        for number in 0..=255_u8 {
            let from = door(&format!("10.0.{number}.1"));
            let Ok(ticket) = from.queue_password("ann") else { continue };
            tried += usize::from(tokio::time::timeout(Duration::ZERO, ticket.turn()).await.is_ok());
        }
        assert!((100..150).contains(&tried), "{tried}");
        let bob = door("10.0.0.1").queue_password("bob").unwrap();
        let bob = tokio::time::timeout(Duration::ZERO, bob.turn()).await;
        bob.expect("another name is tried at once").forgive();
    }

    #[tokio::test]
    async fn right_passwords_are_never_delayed() {
        let door = doors(1)("10.0.0.1");
        for _ in 0..100 {
            door.queue(Some("ann")).unwrap().turn().await.forgive();
        }
    }

    #[tokio::test]
    async fn the_right_password_gets_in_while_others_guess_from_the_same_address() {
        let door = doors(600)("10.0.0.1");
        while tokio::time::timeout(Duration::ZERO, door.queue(Some("ann")).unwrap().turn())
            .await
            .is_ok()
        {}
        let before: Vec<Ticket> = (0..3).map(|_| door.queue(Some("ann")).unwrap()).collect();
        let mine = tokio::spawn(door.queue(Some("ann")).unwrap().turn());
        for wrong in before {
            drop(wrong.turn().await);
        }
        mine.await.unwrap().forgive();
    }

    #[tokio::test]
    async fn waiting_guesses_are_limited() {
        let door = doors(1)("10.0.0.1");
        at_once(&door, Some("ann")).await;
        let waiting: Vec<Ticket> = (0..WAITING).map(|_| door.queue(Some("ann")).unwrap()).collect();
        let why = door.queue(Some("ann")).err().unwrap();
        assert_eq!(why.status, StatusCode::TOO_MANY_REQUESTS);
        drop(waiting);
        door.queue(Some("ann")).expect("their places are free again");
    }

    #[tokio::test]
    async fn the_memory_for_guesses_is_bounded() {
        let door = doors(60);
        let all = door("10.0.0.1").guesses;
        for number in 0..50_000_u32 {
            let door =
                CredentialSource { guesses: all.clone(), from: IpAddr::from(number.to_be_bytes()) };
            drop(door.queue(Some("ann")).unwrap().turn().await);
        }
        assert!(all.suspects.lock().unwrap().len() <= 2 * MAX_COUNTERS);
    }
}
