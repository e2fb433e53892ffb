//! Collects decompressed bytes into large writes.

use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::ImageError;
use crate::disk::buffer::{ALIGNMENT, AlignedBuffer};
use crate::disk::guard::GuardedDisk;
use crate::meter::ProgressMeter;

/// The size of one write to the disk.
const WRITE: usize = 4 << 20;
/// The smallest run of zeros that is punched instead of written.
const HOLE: usize = 1 << 20;
/// The number of buffers: being filled, being written, and free.
const BUFFERS: usize = 4;

/// A unit of work for the disk thread.
enum Piece {
    Data(u64, AlignedBuffer),
    Zeros(u64, u64),
}

/// Takes decompressed bytes and passes them on in large pieces.
pub(super) struct Output<'a> {
    /// Size of the range of the disk that the image is written to. Offsets are relative to the range.
    disk_size: u64,
    sector: usize,
    filled: SyncSender<Piece>,
    free: &'a Receiver<AlignedBuffer>,
    buffer: AlignedBuffer,
    /// Position of the buffer's first byte.
    offset: u64,
}

/// The disk thread has ended; its own error explains why.
fn stopped() -> ImageError {
    ImageError::Panicked
}

impl Output<'_> {
    /// Takes bytes for `offset`, which is a multiple of the sector size unless the bytes follow the previous ones.
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

    /// Zeroes a range whose ends are multiples of the sector size.
    pub(super) fn zeros(&mut self, offset: u64, length: u64) -> Result<(), ImageError> {
        self.flush()?;
        self.filled.send(Piece::Zeros(offset, length)).map_err(|_| stopped())
    }

    /// Size of the range in bytes.
    pub(super) fn disk_size(&self) -> u64 {
        self.disk_size
    }

    /// Size of a sector of the disk in bytes.
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
        // An image, and its last cluster, may end in the middle of a sector.
        self.buffer.pad(self.sector);
        let next = self.free.recv().map_err(|_| stopped())?;
        let buffer = std::mem::replace(&mut self.buffer, next);
        let at = self.offset;
        self.offset += buffer.len() as u64;
        self.filled.send(Piece::Data(at, buffer)).map_err(|_| stopped())
    }
}

/// Runs `unpack` on this thread and the writes to a range of the disk on another, until both have ended.
pub(super) fn run(
    disk: &mut GuardedDisk,
    range: Range<u64>,
    progress: &ProgressMeter,
    unpack: impl FnOnce(&mut Output<'_>) -> Result<(), ImageError>,
) -> Result<(), ImageError> {
    let (disk_size, sector) = (range.end - range.start, disk.device().sector() as usize);
    let (filled, pieces) = sync_channel(BUFFERS);
    let (give_back, free) = sync_channel(BUFFERS);
    for _ in 1..BUFFERS {
        // The channel has space for all buffers.
        let _ = give_back.try_send(AlignedBuffer::new(WRITE));
    }
    thread::scope(|scope| {
        let writer = scope.spawn(move || write((disk, range.start), progress, pieces, give_back));
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
    (disk, base): (&mut GuardedDisk, u64),
    progress: &ProgressMeter,
    pieces: Receiver<Piece>,
    give_back: SyncSender<AlignedBuffer>,
) -> Result<(), ImageError> {
    let failed = |source| ImageError::Disk { disk: String::new(), source };
    for piece in pieces {
        match piece {
            Piece::Data(offset, mut buffer) => {
                write_data(disk, base + offset, buffer.bytes()).map_err(failed)?;
                progress.add(buffer.len() as u64);
                buffer.clear();
                // The receiver has ended once everything was sent.
                let _ = give_back.send(buffer);
            }
            Piece::Zeros(offset, length) => {
                disk.zero(base + offset, length).map_err(failed)?;
                progress.add(length);
            }
        }
    }
    Ok(())
}

/// Writes ranges with data, and punches holes for long runs of zeros.
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
    // The strides let the compiler compare many bytes at once, and data is usually recognized in the first stride.
    bytes.chunks(256).all(|stride| stride.iter().fold(0, |seen, byte| seen | byte) == 0)
}
