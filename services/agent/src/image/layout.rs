//! The places on the disk that the image fills.

use super::qcow2;

/// The decompressor's output, which is known before anything is written.
pub(super) enum Layout {
    /// Bytes in order, with their number if it is known.
    Linear(Option<u64>),
    /// Clusters, whose places on the disk are in the image's tables.
    Qcow2(Box<qcow2::Map>),
}

impl Layout {
    pub(super) fn disk_bytes(&self) -> Option<u64> {
        match self {
            Layout::Linear(bytes) => *bytes,
            Layout::Qcow2(map) => Some(map.virtual_size()),
        }
    }
}
