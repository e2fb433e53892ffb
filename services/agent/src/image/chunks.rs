//! The queue between the download and the later steps.

use bytes::Bytes;
use tokio::sync::mpsc;

/// The receiving end of a queue of chunks.
pub(super) type Chunks = mpsc::Receiver<Bytes>;
