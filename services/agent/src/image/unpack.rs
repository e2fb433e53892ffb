//! Decompresses gzip, xz and zstd, recognized by their first bytes.

use std::io::{self, BufRead, Read};

use bytes::Bytes;
use flate2::bufread::MultiGzDecoder;
use liblzma::bufread::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};

use super::chunks::Chunks;
use super::download::Opened;
use super::layout::Layout;
use super::output::Output;
use super::{ImageError, qcow2_stream};

/// xz -9 needs 65 MiB to decompress; a stream that needs far more is refused.
const XZ_MEMORY: u64 = 256 << 20;
/// A window of 128 MiB: the size that `zstd --long` writes, and that every zstd accepts without an option.
const ZSTD_WINDOW_LOG: u32 = 27;
const PIECE: usize = 256 << 10;

/// The compression of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Gzip,
    Xz,
    Zstd,
}

impl Compression {
    /// Recognizes the compression by the first bytes (RFC 1952 §2.3.1, the xz format §2.1.1.1, RFC 8878 §3.1.1).
    pub(super) fn of(start: &[u8]) -> Self {
        match start {
            [0x1f, 0x8b, 8, ..] => Compression::Gzip,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Compression::Xz,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
            _ => Compression::None,
        }
    }

    /// Returns the decompressed size, if the server or the first bytes tell it.
    pub(super) fn unpacked_bytes(self, start: &Opened) -> Option<u64> {
        match self {
            Compression::None => start.length(),
            // The first frame's size is a lower bound: an image of several frames turns out larger later.
            Compression::Zstd => {
                zstd::zstd_safe::get_frame_content_size(start.bytes()).ok().flatten()
            }
            Compression::Gzip | Compression::Xz => None,
        }
    }
}

/// Decompresses all chunks into `output`.
///
/// After an error the queue is still read to its end, because the checksum is known only then, and a wrong checksum explains broken data
/// better than the decompressor's error. Only a full disk ends the reading at once.
pub(super) fn run(
    layout: Layout,
    packing: Compression,
    chunks: Chunks,
    output: &mut Output<'_>,
) -> Result<(), ImageError> {
    let mut input = Input { chunks, ahead: Bytes::new() };
    let done = match (layout, packing) {
        (Layout::Qcow2(map), _) => qcow2_stream::write_extents(*map, &mut input.chunks, output),
        (Layout::Linear(_), Compression::None) => pass_on(&mut input, output),
        (Layout::Linear(_), Compression::Gzip) => {
            copy(&mut MultiGzDecoder::new(&mut input), output)
        }
        (Layout::Linear(_), Compression::Xz) => {
            match Stream::new_stream_decoder(XZ_MEMORY, CONCATENATED) {
                Ok(stream) => copy(&mut XzDecoder::new_stream(&mut input, stream), output),
                Err(error) => Err(ImageError::Corrupt(error.into())),
            }
        }
        (Layout::Linear(_), Compression::Zstd) => match zstd::Decoder::with_buffer(&mut input) {
            Ok(mut decoder) => decoder
                .window_log_max(ZSTD_WINDOW_LOG)
                .map_err(ImageError::Corrupt)
                .and_then(|()| copy(&mut decoder, output)),
            Err(error) => Err(ImageError::Corrupt(error)),
        },
    };
    let worth_waiting = !matches!(
        done,
        Err(ImageError::DiskFull { .. } | ImageError::Disk { .. } | ImageError::Panicked)
    );
    while worth_waiting && input.chunks.blocking_recv().is_some() {}
    done
}

/// Copies an uncompressed image to the output, chunk by chunk.
fn pass_on(from: &mut Input, output: &mut Output<'_>) -> Result<(), ImageError> {
    let mut at = 0;
    while let Some(chunk) = from.chunks.blocking_recv() {
        output.put(at, &chunk)?;
        at += chunk.len() as u64;
    }
    Ok(())
}

fn copy(from: &mut impl Read, output: &mut Output<'_>) -> Result<(), ImageError> {
    let mut piece = vec![0; PIECE];
    let mut at = 0;
    loop {
        let read = match from.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(ImageError::Corrupt(error)),
        };
        output.put(at, &piece[..read])?;
        at += read as u64;
    }
}

/// A reader of the queue of chunks.
struct Input {
    chunks: Chunks,
    ahead: Bytes,
}

impl BufRead for Input {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.ahead.is_empty() {
            match self.chunks.blocking_recv() {
                Some(chunk) => self.ahead = chunk,
                None => break,
            }
        }
        Ok(&self.ahead)
    }

    fn consume(&mut self, amount: usize) {
        let _ = self.ahead.split_to(amount);
    }
}

impl Read for Input {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let ahead = self.fill_buf()?;
        let len = ahead.len().min(into.len());
        into[..len].copy_from_slice(&ahead[..len]);
        self.consume(len);
        Ok(len)
    }
}
