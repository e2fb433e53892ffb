//! The shared console of one node: its viewers and its latest output. A line knows no BMC and never waits for a viewer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use baremetal_core::Node;
use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::ring::Ring;

/// The number of output pieces that wait for a slow viewer: some seconds of a port at 115200 baud.
const PIECES: usize = 1024;
/// The number of input pieces that wait for the port.
const TYPED: usize = 16;

/// The shared console of one node.
#[derive(Debug)]
pub(super) struct SharedConsole {
    label: String,
    /// The owner and the lessee when the console began. A later owner or lessee must not see the output of this console.
    whose: (Option<String>, Option<String>),
    room: Mutex<ConsoleState>,
    viewers: watch::Sender<usize>,
    /// Cancelled when the task that holds the port has to close it.
    pub(super) given_up: CancellationToken,
}

#[derive(Debug, Default)]
struct ConsoleState {
    ring: Ring,
    seats: HashMap<u64, ViewerSlot>,
    last: u64,
    /// The channel for input, while a task holds the port or tries to open it.
    typed: Option<mpsc::Sender<Bytes>>,
}

#[derive(Debug)]
struct ViewerSlot {
    pieces: mpsc::Sender<Bytes>,
    end: Arc<OnceLock<ConsoleEnd>>,
    over: CancellationToken,
}

impl ViewerSlot {
    fn end(&self, why: ConsoleEnd) {
        // The first reason counts; later ones are ignored.
        let _ = self.end.set(why);
        self.over.cancel();
    }
}

/// Why a viewer's console ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleEnd {
    Disabled,
    Deleted,
    /// The owner or lessee of the node changed.
    HandedOver,
    /// The viewer did not read the output in time.
    TooSlow,
    /// The BMC opened no session.
    Refused,
    /// The BMC ended the session, or the viewer left.
    Over,
    Stopping,
}

impl ConsoleEnd {
    /// Returns the reason as a sentence for the viewer.
    pub const fn as_str(self) -> &'static str {
        match self {
            ConsoleEnd::Disabled => "the console was disabled",
            ConsoleEnd::Deleted => "the node was deleted",
            ConsoleEnd::HandedOver => "the node has another owner or lessee now",
            ConsoleEnd::TooSlow => "you did not read the output in time",
            ConsoleEnd::Refused => "the BMC opened no session",
            ConsoleEnd::Over => "the BMC ended the session",
            ConsoleEnd::Stopping => "the service is stopping; connect again",
        }
    }
}

/// One viewer of a node's console. Dropping the value ends the viewing.
#[derive(Debug)]
pub struct ConsoleViewer {
    line: Arc<SharedConsole>,
    number: u64,
    backlog: Option<Bytes>,
    pieces: mpsc::Receiver<Bytes>,
    typed: mpsc::Sender<Bytes>,
    end: Arc<OnceLock<ConsoleEnd>>,
    over: CancellationToken,
    _token: TaskTrackerToken,
}

impl ConsoleViewer {
    /// Returns the next output of the machine. The first call returns the kept output, and `None` means the end.
    pub async fn next(&mut self) -> Option<Bytes> {
        match self.backlog.take() {
            Some(backlog) => Some(backlog),
            None => self.pieces.recv().await,
        }
    }

    /// Returns the channel for input. The channel is closed when the console has ended.
    pub fn keyboard(&self) -> mpsc::Sender<Bytes> {
        self.typed.clone()
    }

    /// Returns a token that is cancelled when the console has ended; output that is already queued can still be read.
    pub fn over(&self) -> CancellationToken {
        self.over.clone()
    }

    /// Returns why the console ended.
    pub fn end(&self) -> ConsoleEnd {
        self.end.get().copied().unwrap_or(ConsoleEnd::Stopping)
    }
}

impl Drop for ConsoleViewer {
    fn drop(&mut self) {
        self.line.lock().seats.remove(&self.number);
        self.line.count();
    }
}

impl SharedConsole {
    /// Makes the console of a node, for its current owner and lessee.
    pub(super) fn new(node: &Node) -> Self {
        SharedConsole {
            label: node.label(),
            whose: (node.owner.clone(), node.lessee.clone()),
            room: Mutex::default(),
            viewers: watch::Sender::new(0),
            given_up: CancellationToken::new(),
        }
    }

    /// Returns whether the node still has the owner and lessee under which the console began.
    pub(super) fn is_of(&self, node: &Node) -> bool {
        self.whose == (node.owner.clone(), node.lessee.clone())
    }

    /// Returns the node's name or id for messages.
    pub(super) fn label(&self) -> &str {
        &self.label
    }

    /// Returns the latest output.
    pub(super) fn kept(&self) -> Bytes {
        self.lock().ring.kept()
    }

    /// Returns whether a task holds the port or tries to open it.
    pub(super) fn is_held(&self) -> bool {
        self.lock().typed.is_some()
    }

    /// Adds a viewer. If no task holds the port yet, `hold` is called with the channel for input and has to start one.
    ///
    /// # Errors
    ///
    /// Returns `None` if the console has the maximum number of viewers, or the error of `hold`.
    pub(super) fn enter<E>(
        self: &Arc<Self>,
        at_most: usize,
        token: TaskTrackerToken,
        hold: impl FnOnce(mpsc::Receiver<Bytes>) -> Result<(), E>,
    ) -> Result<ConsoleViewer, Option<E>> {
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
        let (end, over) = (Arc::<OnceLock<ConsoleEnd>>::default(), CancellationToken::new());
        let number = room.last;
        let backlog = Some(room.ring.kept());
        let seat = ViewerSlot { pieces: sender, end: end.clone(), over: over.clone() };
        room.seats.insert(number, seat);
        drop(room);
        self.count();
        let line = self.clone();
        Ok(ConsoleViewer { line, number, backlog, pieces, typed, end, over, _token: token })
    }

    /// Sends output of the machine to all viewers. A viewer whose queue is full is removed.
    pub(super) fn broadcast(&self, bytes: Bytes) {
        let mut room = self.lock();
        room.ring.push(&bytes);
        room.seats.retain(|_, seat| {
            let keeps_up = !matches!(
                seat.pieces.try_send(bytes.clone()),
                Err(mpsc::error::TrySendError::Full(_))
            );
            if !keeps_up {
                seat.end(ConsoleEnd::TooSlow);
            }
            keeps_up
        });
        drop(room);
        self.count();
    }

    /// Sends a message of the service to all viewers, on a line of its own.
    pub(super) fn broadcast_note(&self, words: &str) {
        self.broadcast(Bytes::from(format!("\r\n[bedplate: {words}]\r\n")));
    }

    /// Ends the console for all viewers, and tells the task that holds the port to close it.
    pub(super) fn end(&self, why: ConsoleEnd) {
        let mut room = self.lock();
        room.typed = None;
        for (_, seat) in room.seats.drain() {
            seat.end(why);
        }
        drop(room);
        self.given_up.cancel();
        self.count();
    }

    /// Waits until nobody has viewed the console for `linger`, and marks the port as not held.
    pub(super) async fn until_unviewed(&self, linger: Duration) {
        let mut viewers = self.viewers.subscribe();
        loop {
            // Cannot fail, because `self` owns the sender.
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

    fn lock(&self) -> MutexGuard<'_, ConsoleState> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
