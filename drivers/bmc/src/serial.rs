//! The serial port of a machine, used remotely through its BMC.

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::mpsc;

use crate::BmcError;

/// The serial port of a machine, as its BMC forwards it.
#[async_trait]
pub trait SerialConsole: Send + Sync {
    /// Opens the port; dropping the session closes it. A BMC lends the port to one session at a time, so
    /// a second session gets `BmcError::InUse`.
    async fn open(&self) -> Result<SerialSession, BmcError>;
}

/// An open session with a machine's serial port. Dropping the session releases the port.
///
/// Both directions are bounded. If the caller does not read `output`, the BMC buffers what the machine prints as long
/// as its memory allows and then loses output.
#[derive(Debug)]
pub struct SerialSession {
    /// Output of the machine, in order; ends after an error, or when the BMC ended the session.
    pub output: mpsc::Receiver<Result<Bytes, BmcError>>,
    /// Bytes to type, in order. Closed once the session is over.
    pub input: mpsc::Sender<Bytes>,
}
