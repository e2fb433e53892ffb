//! Passwords and tokens that are not known yet: each may be a guess, and guesses are slow.
//!
//! What was proven before passes by without a look here. Anything else is tried at once as long as few from there were wrong
//! lately; from then on one after the other, as fast as configured, in the order in which they came. So whoever is right
//! comes in though somebody else guesses from the same address, and no wrong one makes the others wait longer than for its turn.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use http::StatusCode;
use tokio::sync::Semaphore;

use super::bucket::{Bucket, Pace};
use super::recent::Recent;
use crate::ApiError;

/// Of how many is known what they guessed, twice.
const SUSPECTS: usize = 10_000;
/// How many of one may wait for their turn.
const WAITING: usize = 8;
/// An address has so many times what a name at that address has: people share addresses.
const PEOPLE: u32 = 10;
/// A name has so many times from all addresses what it has from one: a person has several, and who guesses may have thousands.
const ADDRESSES: u32 = 10;
/// How many may be wrong at once, in seconds of their pace.
const AT_ONCE: f64 = 10.0;

/// Those who guessed lately.
#[derive(Debug)]
pub struct Guesses {
    of_a_name: Pace,
    of_an_address: Pace,
    of_a_name_anywhere: Pace,
    suspects: Mutex<Recent<Key, Arc<Suspect>>>,
    hasher: RandomState,
}

/// Which guesses are counted together. Names are kept as their hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// Those that come from one household.
    Household(IpAddr),
    /// Those for one name that come from one household.
    NameAt(IpAddr, u64),
    /// Those for one name, wherever they come from.
    Name(u64),
}

#[derive(Debug)]
struct Suspect {
    pace: Pace,
    lately: Mutex<Lately>,
    turns: Semaphore,
}

#[derive(Debug)]
struct Lately {
    bucket: Bucket,
    waiting: usize,
}

/// Where somebody shows a proof.
#[derive(Clone, Debug)]
pub struct Door {
    /// Who guessed lately.
    pub guesses: Arc<Guesses>,
    /// The address that the proof comes from.
    pub from: IpAddr,
}

/// A place in the queues of those who guess.
pub struct Ticket(Vec<Waiting>);

struct Waiting {
    suspect: Arc<Suspect>,
    place: Place,
}

/// How far somebody is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It waits.
    Queued,
    /// It may be tried.
    Taken,
    /// It is tried.
    Used,
}

/// A proof that is being tried. Unless it is forgiven it was wrong.
pub struct Guess(Vec<Arc<Suspect>>);

impl Guesses {
    /// With so many wrong ones in a minute for a name from one address; ten times as many from an address whatever the name, and for a
    /// name wherever they come from.
    pub fn new(per_minute: NonZeroU32) -> Self {
        let pace = |times: u32| {
            let per_second = f64::from(per_minute.get()) * f64::from(times) / 60.0;
            Pace { per_second, burst: (per_second * AT_ONCE).max(2.0) }
        };
        Guesses {
            of_a_name: pace(1),
            of_an_address: pace(PEOPLE),
            of_a_name_anywhere: pace(ADDRESSES),
            suspects: Mutex::new(Recent::of(SUSPECTS)),
            hasher: RandomState::new(),
        }
    }

    fn suspect(&self, key: &Key) -> Arc<Suspect> {
        let pace = match key {
            Key::Household(_) => self.of_an_address,
            Key::NameAt(..) => self.of_a_name,
            Key::Name(_) => self.of_a_name_anywhere,
        };
        let fresh = || {
            let lately = Lately { bucket: Bucket::full(pace, Instant::now()), waiting: 0 };
            Arc::new(Suspect { pace, lately: Mutex::new(lately), turns: Semaphore::new(1) })
        };
        let mut suspects = self.suspects.lock().unwrap_or_else(PoisonError::into_inner);
        suspects.get(key, fresh).clone()
    }
}

impl Door {
    /// Queues what is not known yet, of `name` where one is claimed.
    ///
    /// # Errors
    ///
    /// 429: too many wait already.
    pub(crate) fn queue(&self, name: Option<&str>) -> Result<Ticket, ApiError> {
        let from = household(self.from);
        let name = name.map(|name| Key::NameAt(from, self.guesses.hasher.hash_one(name)));
        self.queue_for(name.into_iter().chain([Key::Household(from)]))
    }

    /// Queues a password of `name`, whose guesses from all addresses are counted together, too.
    ///
    /// # Errors
    ///
    /// 429: too many wait already.
    pub fn queue_password(&self, name: &str) -> Result<Ticket, ApiError> {
        let (from, name) = (household(self.from), self.guesses.hasher.hash_one(name));
        self.queue_for([Key::NameAt(from, name), Key::Household(from), Key::Name(name)].into_iter())
    }

    fn queue_for(&self, keys: impl Iterator<Item = Key>) -> Result<Ticket, ApiError> {
        let waiting = keys.map(|key| self.guesses.suspect(&key).enter());
        Ok(Ticket(waiting.collect::<Result<_, _>>()?))
    }
}

impl Ticket {
    /// Waits until it may be tried.
    pub async fn turn(self) -> Guess {
        let mut guess = Guess(Vec::new());
        for mut waiting in self.0 {
            if waiting.place == Place::Queued {
                waiting.suspect.wait().await;
            } else {
                waiting.place = Place::Used;
            }
            guess.0.push(waiting.suspect.clone());
        }
        guess
    }
}

impl Guess {
    /// It was right, or nobody can tell.
    pub fn forgive(self) {
        for suspect in self.0 {
            suspect.lately().bucket.give_back();
        }
    }
}

impl Suspect {
    fn lately(&self) -> MutexGuard<'_, Lately> {
        self.lately.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(self: Arc<Self>) -> Result<Waiting, ApiError> {
        let mut lately = self.lately();
        let waits = lately.waiting > 0 || lately.bucket.take(self.pace, Instant::now()).is_err();
        if waits && lately.waiting >= WAITING {
            return Err(too_many());
        }
        lately.waiting += usize::from(waits);
        drop(lately);
        Ok(Waiting { suspect: self, place: if waits { Place::Queued } else { Place::Taken } })
    }

    async fn wait(&self) {
        // Nobody closes it.
        let _turn = self.turns.acquire().await;
        loop {
            let taken = self.lately().bucket.take(self.pace, Instant::now());
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
            Place::Queued => self.suspect.lately().waiting -= 1,
            // It was not tried after all.
            Place::Taken => self.suspect.lately().bucket.give_back(),
            Place::Used => {}
        }
    }
}

fn too_many() -> ApiError {
    let why =
        "too many passwords or tokens from your address were wrong lately; try again in a while";
    ApiError::protocol(StatusCode::TOO_MANY_REQUESTS, why).again_in(2)
}

/// Of an IPv6 address the network of 64 bits, all of which one household has.
fn household(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn doors(per_minute: u32) -> impl Fn(&str) -> Door {
        let guesses = Arc::new(Guesses::new(per_minute.try_into().unwrap()));
        move |from| Door { guesses: guesses.clone(), from: from.parse().unwrap() }
    }

    /// How many wrong ones are tried at once.
    async fn at_once(door: &Door, name: Option<&str>) -> usize {
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
    async fn wrong_ones_are_slow_and_nobody_else_is() {
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
    async fn right_ones_cost_nothing() {
        let door = doors(1)("10.0.0.1");
        for _ in 0..100 {
            door.queue(Some("ann")).unwrap().turn().await.forgive();
        }
    }

    #[tokio::test]
    async fn who_is_right_comes_in_though_others_guess_from_there() {
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
    async fn so_many_wait_and_no_more() {
        let door = doors(1)("10.0.0.1");
        at_once(&door, Some("ann")).await;
        let waiting: Vec<Ticket> = (0..WAITING).map(|_| door.queue(Some("ann")).unwrap()).collect();
        let why = door.queue(Some("ann")).err().unwrap();
        assert_eq!(why.status, StatusCode::TOO_MANY_REQUESTS);
        drop(waiting);
        door.queue(Some("ann")).expect("their places are free again");
    }

    #[tokio::test]
    async fn whoever_comes_what_is_known_is_bounded() {
        let door = doors(60);
        let all = door("10.0.0.1").guesses;
        for number in 0..50_000_u32 {
            let door = Door { guesses: all.clone(), from: IpAddr::from(number.to_be_bytes()) };
            drop(door.queue(Some("ann")).unwrap().turn().await);
        }
        assert!(all.suspects.lock().unwrap().len() <= 2 * SUSPECTS);
    }
}
