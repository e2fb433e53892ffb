//! Writes a qcow2 image while it is downloaded once from beginning to end.
//!
//! The agent first fetches the tables, by range requests, to learn the place of each run of the file on the disk. Then the file is
//! downloaded once, and every run is written to its place when it arrives. The checksum covers only this second reading. So each table is
//! compared with its first reading when it arrives again: otherwise a server could send other tables for range requests and pass the
//! checksum.

use std::io::Read;
use std::ops::Range;

use bytes::{Buf, Bytes};
use flate2::bufread::DeflateDecoder;
use ring::digest::{SHA256, digest};

use super::ImageError;
use super::chunks::Chunks;
use super::download::{Opened, Source};
use super::output::Output;
use super::qcow2::{Compression, Content, Extent, Header, Map, Qcow2Error};

/// Fetches the tables of the image that `opened` began to download.
pub(super) async fn read_map(
    source: &Source,
    opened: &Opened,
    disk_size: u64,
    disk_name: &str,
) -> Result<Map, ImageError> {
    let header = Header::parse(opened.bytes())?;
    if header.virtual_size() > disk_size {
        // Checked before the tables are fetched, because their length depends on the virtual size.
        let needed = header.virtual_size();
        return Err(ImageError::DiskFull { disk: disk_name.to_owned(), needed, size: disk_size });
    }
    let l1 = header.l1_range();
    let mut map = Map::new(header);
    let mut tables = Vec::new();
    if !l1.is_empty() {
        let ranges = [l1];
        source
            .pieces(opened, &ranges, |_, bytes| -> Result<(), ImageError> {
                tables = map.add_l1(bytes)?;
                Ok(())
            })
            .await?;
    }
    let ranges: Vec<Range<u64>> = tables.iter().map(|(range, _)| range.clone()).collect();
    source
        .pieces(opened, &ranges, |at, bytes| -> Result<(), ImageError> {
            let (range, indices) = &tables[at];
            Ok(map.add_l2(range.start, bytes, indices)?)
        })
        .await?;
    Ok(map)
}

/// Writes every run of the file to its place, and zeros to the other ranges.
pub(super) fn write_extents(
    mut map: Map,
    chunks: &mut Chunks,
    output: &mut Output<'_>,
) -> Result<(), ImageError> {
    let extents = map.in_file_order().to_vec();
    let mut window = Window { chunks, bytes: Vec::new(), start: 0, ended: false };
    let mut cluster = vec![0; map.header().cluster() as usize];
    for extent in extents {
        let bytes = window.at(&extent);
        place(&map, &extent, bytes, &mut cluster, output)?;
    }

    let sector = output.sector();
    for gap in map.gaps() {
        let end = gap.end.next_multiple_of(sector).min(output.disk_size());
        output.zeros(gap.start, end - gap.start)?;
    }
    Ok(())
}

fn place(
    map: &Map,
    extent: &Extent,
    bytes: &[u8],
    cluster: &mut [u8],
    output: &mut Output<'_>,
) -> Result<(), ImageError> {
    let whole = bytes.len() == extent.length as usize;
    match extent.what {
        Content::Table(number) => {
            match map.digest(number) == Some(digest(&SHA256, bytes).as_ref()) {
                true => Ok(()),
                false => Err(ImageError::Changed),
            }
        }
        Content::Data(guest) => {
            let length = (map.virtual_size() - guest).min(u64::from(extent.length));
            match (whole, bytes.is_empty()) {
                (true, _) => output.put(guest, &bytes[..length as usize]),
                (false, true) => Err(Qcow2Error::BehindEnd(extent.host).into()),
                // A file may end in the middle of its last cluster; the rest of the cluster is zero.
                (false, false) => {
                    let mut padded = bytes.to_vec();
                    padded.resize(length as usize, 0);
                    output.put(guest, &padded)
                }
            }
        }
        Content::Compressed(guest) => {
            inflate(map.header().compression(), bytes, cluster)
                .map_err(|_| Qcow2Error::Cluster(extent.host))?;
            let length = (map.virtual_size() - guest).min(cluster.len() as u64);
            output.put(guest, &cluster[..length as usize])
        }
    }
}

/// Decompresses one cluster; the bytes after it in `bytes` belong to the next cluster.
fn inflate(compression: Compression, bytes: &[u8], cluster: &mut [u8]) -> std::io::Result<()> {
    match compression {
        Compression::Zlib => DeflateDecoder::new(bytes).read_exact(cluster),
        Compression::Zstd => zstd::Decoder::with_buffer(bytes)?.read_exact(cluster),
    }
}

/// The part of the file that is in memory.
struct Window<'a> {
    chunks: &'a mut Chunks,
    bytes: Vec<u8>,
    /// Position of `bytes` in the file.
    start: u64,
    ended: bool,
}

impl Window<'_> {
    /// Returns the bytes of a run, or fewer at the end of the file. Runs come in rising order and may overlap.
    fn at(&mut self, extent: &Extent) -> &[u8] {
        let skip = extent.host.saturating_sub(self.start);
        let kept = self.bytes.len() as u64;
        if skip < kept {
            // Moving the rest of the buffer is cheap once most of the buffer is used.
            if skip > kept / 2 {
                self.bytes.drain(..skip as usize);
                self.start += skip;
            }
        } else {
            self.bytes.clear();
            self.start += kept;
            self.skip(skip - kept);
        }
        let from = (extent.host.saturating_sub(self.start)) as usize;
        let want = from + extent.length as usize;
        while self.bytes.len() < want {
            match self.next() {
                Some(chunk) => self.bytes.extend_from_slice(&chunk),
                None => break,
            }
        }
        let end = want.min(self.bytes.len());
        &self.bytes[from.min(end)..end]
    }

    fn skip(&mut self, mut bytes: u64) {
        while bytes > 0 {
            let Some(mut chunk) = self.next() else { return };
            let passed = bytes.min(chunk.len() as u64);
            chunk.advance(passed as usize);
            self.bytes.extend_from_slice(&chunk);
            self.start += passed;
            bytes -= passed;
        }
    }

    fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        let chunk = self.chunks.blocking_recv();
        self.ended = chunk.is_none();
        chunk
    }
}
