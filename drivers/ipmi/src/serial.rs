//! The serial port of a machine by serial over LAN (IPMI 2.0 §15), in a session separate from that of commands.

mod commands;
mod opening;
mod session;
mod transfer;

use std::sync::Arc;

use async_trait::async_trait;
use bmc::{BmcError, SerialConsole, SerialSession};
use tokio::sync::{mpsc, oneshot};

use crate::client::Client;
use crate::exchange::unreachable;
use crate::line::BmcLine;
use crate::lines::Shared;

use session::Ended;

/// How many packets of output wait for the reader: 64 KiB at most.
const OUTPUT: usize = 256;
/// How many pieces of typed input wait for the BMC.
const INPUT: usize = 16;

#[async_trait]
impl SerialConsole for Client {
    async fn open(&self) -> Result<SerialSession, BmcError> {
        self.line().check_account()?;
        let (opened, answer) = oneshot::channel();
        let (shared, line) = (Arc::clone(self.shared()), Arc::clone(self.line()));
        // The port is opened in a separate task, so that a caller that gives up during the opening leaves no session behind.
        self.shared().serials.spawn(run_serial_session(shared, line, opened));
        answer.await.unwrap_or_else(|_| Err(unreachable(&self.line().target, "it was closed")))
    }
}

/// Opens the port, transfers data until one side ends, and releases the port.
async fn run_serial_session(
    shared: Arc<Shared>,
    line: Arc<BmcLine>,
    opened: oneshot::Sender<Result<SerialSession, BmcError>>,
) {
    let closings = shared.closings.subscribe();
    let every = shared.pace.keep_alive_every;
    let mut session = match opening::open(shared.port(), &line, every).await {
        Ok(session) => session,
        Err(error) => return drop(opened.send(Err(error))),
    };
    let (output, heard) = mpsc::channel(OUTPUT);
    let (input, typed) = mpsc::channel(INPUT);
    // A reserved place, so that even a slow reader receives the error that ended the session.
    let last_word = output.clone().try_reserve_owned();
    let ended = match opened.send(Ok(SerialSession { output: heard, input })) {
        Ok(()) => session.serve(&output, typed, closings).await,
        Err(_) => Ended::Dropped,
    };
    drop(output);
    match (ended, last_word) {
        (Ended::Lost(error), Ok(last_word)) => drop(last_word.send(Err(error))),
        (Ended::Lost(_) | Ended::ByBmc | Ended::Dropped, _) => {}
    }

    let _ending = line.serial_ends.lock().await;
    session.give_back().await;
}
