//! The serial port of a machine, from afar.

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::mpsc;

use crate::BmcError;

/// The serial port of a machine, as its BMC passes it on.
#[async_trait]
pub trait SerialConsole: Send + Sync {
    /// Takes the port, until what is answered is dropped. A BMC lends it to one at a time:
    /// `BmcError::InUse` when another has it.
    async fn open(&self) -> Result<SerialSession, BmcError>;
}

/// A machine's serial port while it is ours. Dropping it gives it back.
///
/// Both ways are bounded. Who does not read makes the BMC wait, which keeps what it can and then
/// loses what the machine says.
#[derive(Debug)]
pub struct SerialSession {
    /// What the machine says, in order; ends after an error, or when the BMC ended the session.
    pub output: mpsc::Receiver<Result<Bytes, BmcError>>,
    /// What is typed, in order. Closed once the session is over.
    pub input: mpsc::Sender<Bytes>,
}
