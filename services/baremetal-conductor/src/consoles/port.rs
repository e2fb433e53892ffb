//! The task that holds a machine's serial port for all viewers: opens the port, copies data in both directions, and reopens the port after
//! an error.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bmc::{BmcError, SerialSession};
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::shared_console::{ConsoleEnd, SharedConsole};
use crate::problem::chain;

/// The pause before a broken port is opened again.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause, because BMCs are slow computers that fail under load.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Why a port was not opened.
#[derive(Debug)]
pub(crate) enum OpenPortError {
    /// The BMC refused, or the node does not say how to reach it.
    Failed {
        why: String,
        /// Whether a retry may succeed soon.
        is_transient: bool,
    },
    /// The console has ended, so the port must not be opened.
    Over(ConsoleEnd),
}

impl From<BmcError> for OpenPortError {
    fn from(why: BmcError) -> Self {
        // The other holder of the port closes it some time.
        let is_transient = why.is_transient() || matches!(why, BmcError::InUse { .. });
        OpenPortError::Failed { why: chain(&why), is_transient }
    }
}

/// Holds the port until nobody has viewed the console for `linger`, or until the console has ended.
pub(super) async fn run_port<F>(
    line: Arc<SharedConsole>,
    typed: mpsc::Receiver<Bytes>,
    linger: Duration,
    open: impl Fn() -> F,
) where
    F: Future<Output = Result<SerialSession, OpenPortError>>,
{
    tokio::select! {
        biased;
        () = line.given_up.cancelled() => {}
        why = pass_on(&line, typed, open) => line.end(why),
        () = line.until_unviewed(linger) => {}
    }
}

/// Copies data in both directions, and opens a new session after each one that ends.
async fn pass_on<F>(
    line: &SharedConsole,
    mut typed: mpsc::Receiver<Bytes>,
    open: impl Fn() -> F,
) -> ConsoleEnd
where
    F: Future<Output = Result<SerialSession, OpenPortError>>,
{
    let mut pause = FIRST_PAUSE;
    line.broadcast_note(&format!("opening the console of {}", line.label()));
    loop {
        let (why, is_transient) = match discarding_input(&mut typed, open()).await {
            Ok(session) => {
                line.broadcast_note("the console is open");
                let begun = Instant::now();
                let why = pump(line, session, &mut typed).await;
                if begun.elapsed() > pause {
                    pause = FIRST_PAUSE;
                }
                (why, true)
            }
            Err(OpenPortError::Failed { why, is_transient }) => (why, is_transient),
            Err(OpenPortError::Over(why)) => return why,
        };
        if !is_transient {
            pause = LONGEST_PAUSE;
        }
        line.broadcast_note(&format!("{why}; reopening in {} s", pause.as_secs()));
        discarding_input(&mut typed, sleep(pause)).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Waits for `done` and discards all input meanwhile: the input was typed for an earlier prompt and might do harm at a later one.
async fn discarding_input<T>(
    typed: &mut mpsc::Receiver<Bytes>,
    done: impl Future<Output = T>,
) -> T {
    let mut done = std::pin::pin!(done);
    loop {
        tokio::select! {
            done = &mut done => return done,
            Some(_) = typed.recv() => {}
        }
    }
}

/// Copies data in both directions until the session ends; returns the reason.
async fn pump(
    line: &SharedConsole,
    session: SerialSession,
    typed: &mut mpsc::Receiver<Bytes>,
) -> String {
    let SerialSession { mut output, input } = session;
    let mut next: Option<Bytes> = None;
    loop {
        tokio::select! {
            said = output.recv() => match said {
                Some(Ok(bytes)) => line.broadcast(bytes),
                Some(Err(why)) => return chain(&why),
                None => return "the BMC ended the session".to_owned(),
            },
            // The machine may read slowly. Its output is copied meanwhile.
            place = input.reserve(), if next.is_some() => {
                if let (Ok(place), Some(bytes)) = (place, next.take()) {
                    place.send(bytes);
                }
            }
            Some(bytes) = typed.recv(), if next.is_none() => next = Some(bytes),
        }
    }
}
