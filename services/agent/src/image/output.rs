//! From unpacked bytes to large writes.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::ImageError;
use crate::disk::buffer::{ALIGNMENT, AlignedBuffer};
use crate::disk::guard::GuardedDisk;
use crate::meter::Meter;

/// One write to the disk.
const WRITE: usize = 4 << 20;
/// Zeros in a row that are not worth writing.
const HOLE: usize = 1 << 20;
/// Buffers filled, being written, and free.
const BUFFERS: usize = 4;

/// Something for the disk.
enum Piece {
    Data(u64, AlignedBuffer),
    Zeros(u64, u64),
}

/// Takes unpacked bytes and passes them on in pieces worth a write.
pub(super) struct Output<'a> {
    disk_size: u64,
    sector: usize,
    filled: SyncSender<Piece>,
    free: &'a Receiver<AlignedBuffer>,
    buffer: AlignedBuffer,
    /// Where the buffer's first byte goes.
    offset: u64,
}

/// The writer is gone, and tells why itself.
fn stopped() -> ImageError {
    ImageError::Panicked
}

impl Output<'_> {
    /// Bytes for `offset` of the disk; a multiple of the sector size unless they follow the last ones.
    pub(super) fn put(&mut self, offset: u64, mut bytes: &[u8]) -> Result<(), ImageError> {
        let end = offset.saturating_add(bytes.len() as u64);
        if end > self.disk_size {
            return Err(self.full(end));
        }
        if offset != self.offset + self.buffer.len() as u64 {
            self.flush()?;
            self.offset = offset;
        }
        while !bytes.is_empty() {
            let taken = self.buffer.take(bytes);
            bytes = &bytes[taken..];
            if self.buffer.is_full() {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Nothing but zeros for a range, both ends of which are multiples of the sector size.
    pub(super) fn zeros(&mut self, offset: u64, length: u64) -> Result<(), ImageError> {
        self.flush()?;
        self.filled.send(Piece::Zeros(offset, length)).map_err(|_| stopped())
    }

    /// How large the disk is.
    pub(super) fn disk_size(&self) -> u64 {
        self.disk_size
    }

    /// Bytes a sector of the disk has.
    pub(super) fn sector(&self) -> u64 {
        self.sector as u64
    }

    fn full(&self, needed: u64) -> ImageError {
        ImageError::DiskFull { disk: String::new(), needed, size: self.disk_size }
    }

    fn flush(&mut self) -> Result<(), ImageError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        // an image may end in the middle of a sector, and so may its last cluster
        self.buffer.pad(self.sector);
        let next = self.free.recv().map_err(|_| stopped())?;
        let buffer = std::mem::replace(&mut self.buffer, next);
        let at = self.offset;
        self.offset += buffer.len() as u64;
        self.filled.send(Piece::Data(at, buffer)).map_err(|_| stopped())
    }
}

/// Runs `unpack` on this thread and the disk on another, until both are done.
pub(super) fn run(
    disk: &mut GuardedDisk,
    progress: &Meter,
    unpack: impl FnOnce(&mut Output<'_>) -> Result<(), ImageError>,
) -> Result<(), ImageError> {
    let (disk_size, sector) = (disk.device().size(), disk.device().sector() as usize);
    let (filled, pieces) = sync_channel(BUFFERS);
    let (give_back, free) = sync_channel(BUFFERS);
    for _ in 1..BUFFERS {
        // the channel is as long as there are buffers
        let _ = give_back.try_send(AlignedBuffer::new(WRITE));
    }
    thread::scope(|scope| {
        let writer = scope.spawn(move || write(disk, progress, pieces, give_back));
        let buffer = AlignedBuffer::new(WRITE);
        let sector = sector.clamp(1, ALIGNMENT);
        let mut output = Output { disk_size, sector, filled, free: &free, buffer, offset: 0 };
        let unpacked = unpack(&mut output).and_then(|()| output.flush());
        drop(output);
        let written = writer.join().map_err(|_| ImageError::Panicked)?;
        written.and(unpacked)
    })
}

fn write(
    disk: &mut GuardedDisk,
    progress: &Meter,
    pieces: Receiver<Piece>,
    give_back: SyncSender<AlignedBuffer>,
) -> Result<(), ImageError> {
    let failed = |source| ImageError::Disk { disk: String::new(), source };
    for piece in pieces {
        match piece {
            Piece::Data(offset, mut buffer) => {
                write_data(disk, offset, buffer.bytes()).map_err(failed)?;
                progress.add(buffer.len() as u64);
                buffer.clear();
                // the other end is gone once everything was sent
                let _ = give_back.send(buffer);
            }
            Piece::Zeros(offset, length) => {
                disk.zero(offset, length).map_err(failed)?;
                progress.add(length);
            }
        }
    }
    Ok(())
}

/// Writes what holds data and punches what does not.
fn write_data(disk: &mut GuardedDisk, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
    let mut at = 0;
    let is_hole = |at: usize| {
        let piece = &bytes[at..bytes.len().min(at + HOLE)];
        piece.len() == HOLE && is_zero(piece)
    };
    while at < bytes.len() {
        let hole = is_hole(at);
        let mut end = bytes.len().min(at + HOLE);
        while end < bytes.len() && is_hole(end) == hole {
            end = bytes.len().min(end + HOLE);
        }
        match hole {
            true => disk.zero(offset + at as u64, (end - at) as u64)?,
            false => disk.write_at(offset + at as u64, &bytes[at..end])?,
        }
        at = end;
    }
    Ok(())
}

fn is_zero(bytes: &[u8]) -> bool {
    // in strides, so that the compiler compares many bytes at once and data is told by its first stride
    bytes.chunks(256).all(|stride| stride.iter().fold(0, |seen, byte| seen | byte) == 0)
}
