//! One node's console: who looks at it, and what it said last. It knows no BMC and waits for nobody.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use baremetal_core::Node;
use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::End;
use super::ring::Ring;

/// So many pieces wait for a viewer who is slow: some seconds of a port at 115200 baud.
const PIECES: usize = 1024;
/// So many pieces that were typed wait for the port.
const TYPED: usize = 16;

/// One node's console.
#[derive(Debug)]
pub(super) struct Line {
    label: String,
    /// Whose the node is, and to whom it is lent: what its machine says is for nobody who has it later.
    whose: (Option<String>, Option<String>),
    room: Mutex<Room>,
    /// How many look.
    viewers: watch::Sender<usize>,
    /// Whoever holds the port is to give it up.
    pub(super) given_up: CancellationToken,
}

#[derive(Debug, Default)]
struct Room {
    ring: Ring,
    seats: HashMap<u64, Seat>,
    last: u64,
    /// Where what is typed goes, while somebody holds the port or tries to.
    typed: Option<mpsc::Sender<Bytes>>,
}

#[derive(Debug)]
struct Seat {
    pieces: mpsc::Sender<Bytes>,
    end: Arc<OnceLock<End>>,
    over: CancellationToken,
}

impl Seat {
    fn end(&self, why: End) {
        // What was said first holds.
        let _ = self.end.set(why);
        self.over.cancel();
    }
}

/// Somebody who looks at a node's console, until this is dropped.
#[derive(Debug)]
pub struct Viewing {
    line: Arc<Line>,
    number: u64,
    backlog: Option<Bytes>,
    pieces: mpsc::Receiver<Bytes>,
    typed: mpsc::Sender<Bytes>,
    end: Arc<OnceLock<End>>,
    over: CancellationToken,
    _token: TaskTrackerToken,
}

impl Viewing {
    /// What the machine says next, the first time what it said last; `None` at the end.
    pub async fn next(&mut self) -> Option<Bytes> {
        match self.backlog.take() {
            Some(backlog) => Some(backlog),
            None => self.pieces.recv().await,
        }
    }

    /// Where what is typed goes. Closed once the console is over.
    pub fn keyboard(&self) -> mpsc::Sender<Bytes> {
        self.typed.clone()
    }

    /// Cancelled when there is no more but what waits to be taken.
    pub fn over(&self) -> CancellationToken {
        self.over.clone()
    }

    /// Why there is no more.
    pub fn end(&self) -> End {
        self.end.get().copied().unwrap_or(End::Stopping)
    }
}

impl Drop for Viewing {
    fn drop(&mut self) {
        self.line.lock().seats.remove(&self.number);
        self.line.count();
    }
}

impl Line {
    /// The console of a node, for those who have it now.
    pub(super) fn new(node: &Node) -> Self {
        Line {
            label: node.label(),
            whose: (node.owner.clone(), node.lessee.clone()),
            room: Mutex::default(),
            viewers: watch::Sender::new(0),
            given_up: CancellationToken::new(),
        }
    }

    /// Whether those who have the node now had it when this began.
    pub(super) fn is_of(&self, node: &Node) -> bool {
        self.whose == (node.owner.clone(), node.lessee.clone())
    }

    /// What a person calls the node.
    pub(super) fn label(&self) -> &str {
        &self.label
    }

    /// What was said last.
    pub(super) fn kept(&self) -> Bytes {
        self.lock().ring.kept()
    }

    /// Whether somebody holds the port, or tries to.
    pub(super) fn is_held(&self) -> bool {
        self.lock().typed.is_some()
    }

    /// Lets somebody in. When nobody holds the port yet, `hold` is called with what will be typed, and sees to that.
    ///
    /// # Errors
    ///
    /// `None`, when there are so many already; or why nobody can hold the port.
    pub(super) fn enter<E>(
        self: &Arc<Self>,
        at_most: usize,
        token: TaskTrackerToken,
        hold: impl FnOnce(mpsc::Receiver<Bytes>) -> Result<(), E>,
    ) -> Result<Viewing, Option<E>> {
        let mut room = self.lock();
        if room.seats.len() >= at_most {
            return Err(None);
        }
        let typed = match &room.typed {
            Some(typed) => typed.clone(),
            None => {
                let (sender, receiver) = mpsc::channel(TYPED);
                hold(receiver).map_err(Some)?;
                room.typed.insert(sender).clone()
            }
        };
        room.last += 1;
        let (sender, pieces) = mpsc::channel(PIECES);
        let (end, over) = (Arc::<OnceLock<End>>::default(), CancellationToken::new());
        let number = room.last;
        let backlog = Some(room.ring.kept());
        let seat = Seat { pieces: sender, end: end.clone(), over: over.clone() };
        room.seats.insert(number, seat);
        drop(room);
        self.count();
        let line = self.clone();
        Ok(Viewing { line, number, backlog, pieces, typed, end, over, _token: token })
    }

    /// The machine said something. A viewer who does not keep up is dropped.
    pub(super) fn say(&self, bytes: Bytes) {
        let mut room = self.lock();
        room.ring.push(&bytes);
        room.seats.retain(|_, seat| {
            let keeps_up = !matches!(
                seat.pieces.try_send(bytes.clone()),
                Err(mpsc::error::TrySendError::Full(_))
            );
            if !keeps_up {
                seat.end(End::TooSlow);
            }
            keeps_up
        });
        drop(room);
        self.count();
    }

    /// We say something, on a line of its own.
    pub(super) fn note(&self, words: &str) {
        self.say(Bytes::from(format!("\r\n[bedplate: {words}]\r\n")));
    }

    /// It is over for all who look, and whoever holds the port gives it up.
    pub(super) fn end(&self, why: End) {
        let mut room = self.lock();
        room.typed = None;
        for (_, seat) in room.seats.drain() {
            seat.end(why);
        }
        drop(room);
        self.given_up.cancel();
        self.count();
    }

    /// Waits until nobody has looked for so long, and the port is not held any more.
    pub(super) async fn deserted(&self, linger: Duration) {
        let mut viewers = self.viewers.subscribe();
        loop {
            // The sender is in `self`.
            let _ = viewers.wait_for(|count| *count == 0).await;
            tokio::select! {
                _ = viewers.wait_for(|count| *count > 0) => continue,
                () = tokio::time::sleep(linger) => {}
            }
            let mut room = self.lock();
            if room.seats.is_empty() {
                room.typed = None;
                return;
            }
        }
    }

    fn count(&self) {
        let count = self.lock().seats.len();
        self.viewers.send_if_modified(|known| std::mem::replace(known, count) != count);
    }

    fn lock(&self) -> MutexGuard<'_, Room> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
