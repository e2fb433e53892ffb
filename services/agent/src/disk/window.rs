//! A range of a disk as a file, for code that reads or makes a file system in it.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;

use super::blocks::Blocks;
use super::guard::GuardedDisk;

/// The unit in which the disk is read. Multiples of every sector size.
const BLOCK: u64 = 64 << 10;
/// The most bytes of a range that are kept in memory. File systems for boot loaders need a fraction.
const MOST_KEPT: u64 = 192 << 20;
/// The most bytes that are read through one window, so that a damaged file system with a loop ends in an error.
const MOST_READ: u64 = 1 << 30;

/// A range of a disk. Writes stay in memory until [`Window::into_changes`].
pub struct Window<'a, D> {
    disk: &'a D,
    range: Range<u64>,
    position: u64,
    blocks: BTreeMap<u64, Vec<u8>>,
    changed: Vec<u64>,
    left: u64,
}

/// Bytes to write to a disk, each with its place on the disk.
pub struct Changes(Vec<(u64, Vec<u8>)>);

impl Changes {
    /// Writes everything to the disk.
    pub fn write(&self, disk: &mut GuardedDisk) -> io::Result<()> {
        self.0.iter().try_for_each(|(at, bytes)| disk.write_at(*at, bytes))
    }
}

impl<'a, D: Blocks> Window<'a, D> {
    /// Opens a range, in bytes, whose ends are multiples of the sector size and inside the disk.
    pub fn new(disk: &'a D, range: Range<u64>) -> io::Result<Self> {
        if range.start > range.end || range.end > disk.size() {
            let text = format!("the bytes {range:?} are not on the disk");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let (blocks, changed) = (BTreeMap::new(), Vec::new());
        Ok(Window { disk, range, position: 0, blocks, changed, left: MOST_READ })
    }

    /// Returns the written blocks.
    pub fn into_changes(mut self) -> Changes {
        let start = self.range.start;
        let block = |at: u64| Some((start + at * BLOCK, self.blocks.remove(&at)?));
        Changes(self.changed.drain(..).filter_map(block).collect())
    }

    fn length(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Returns the part of the block at the position, up to `wanted` bytes, and moves the position behind the part.
    fn next(&mut self, wanted: usize) -> io::Result<(u64, &mut [u8])> {
        let (number, within) = (self.position / BLOCK, (self.position % BLOCK) as usize);
        let length = BLOCK.min(self.length() - number * BLOCK) as usize;
        let taken = wanted.min(length - within);
        self.left = self.left.checked_sub(taken as u64).ok_or_else(too_much)?;
        if !self.blocks.contains_key(&number) {
            if (self.blocks.len() as u64 + 1) * BLOCK > MOST_KEPT {
                return Err(too_much());
            }
            let mut bytes = vec![0; length];
            self.disk.read_at(self.range.start + number * BLOCK, &mut bytes)?;
            self.blocks.insert(number, bytes);
        }
        self.position += taken as u64;
        let block = self.blocks.get_mut(&number).ok_or_else(too_much)?;
        Ok((number, &mut block[within..within + taken]))
    }

    fn rest(&self) -> u64 {
        self.length().saturating_sub(self.position)
    }
}

fn too_much() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the file system is damaged or too large")
}

impl<D: Blocks> Read for Window<'_, D> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let wanted = into.len().min(usize::try_from(self.rest()).unwrap_or(usize::MAX));
        if wanted == 0 {
            return Ok(0);
        }
        let (_, part) = self.next(wanted)?;
        into[..part.len()].copy_from_slice(part);
        Ok(part.len())
    }
}

impl<D: Blocks> Write for Window<'_, D> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let wanted = bytes.len().min(usize::try_from(self.rest()).unwrap_or(usize::MAX));
        if wanted == 0 {
            return Ok(0);
        }
        let (number, part) = self.next(wanted)?;
        part.copy_from_slice(&bytes[..part.len()]);
        let written = part.len();
        if let Err(at) = self.changed.binary_search(&number) {
            self.changed.insert(at, number);
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<D: Blocks> Seek for Window<'_, D> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(offset) => self.length().checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        let before = || io::Error::new(io::ErrorKind::InvalidInput, "a position before the start");
        self.position = target.ok_or_else(before)?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::super::gpt::tests::Memory;
    use super::*;

    #[test]
    fn writes_stay_in_memory_and_are_read_back() {
        let disk = Memory((0..4 << 20).map(|at: u32| (at / 512) as u8).collect());
        let mut window = Window::new(&disk, 512..(3 << 20) + 1024).unwrap();
        window.seek(SeekFrom::Start(BLOCK - 2)).unwrap();
        window.write_all(b"four").unwrap();
        window.seek(SeekFrom::Current(-6)).unwrap();
        let mut read = [0; 8];
        window.read_exact(&mut read).unwrap();
        assert_eq!(&read, &[128, 128, b'f', b'o', b'u', b'r', 129, 129]);

        assert_eq!(window.seek(SeekFrom::End(-1)).unwrap(), (3 << 20) + 511);
        assert_eq!(window.read(&mut read).unwrap(), 1);
        assert_eq!(window.read(&mut read).unwrap(), 0);
        assert_eq!(window.write(b"x").unwrap(), 0);
        assert!(window.seek(SeekFrom::Current(-(4 << 20))).is_err());

        let Changes(changes) = window.into_changes();
        let places: Vec<_> = changes.iter().map(|(at, bytes)| (*at, bytes.len())).collect();
        assert_eq!(places, [(512, BLOCK as usize), (512 + BLOCK, BLOCK as usize)]);
        assert!(changes[0].1.ends_with(b"fo") && changes[1].1.starts_with(b"ur"));
    }

    #[test]
    fn a_range_outside_the_disk_is_an_error() {
        let disk = Memory(vec![0; 1 << 20]);
        assert!(Window::new(&disk, 512..(1 << 20) + 512).is_err());
    }

    #[test]
    fn reading_without_end_is_an_error() {
        let disk = Memory(vec![0; 1 << 20]);
        let mut window = Window::new(&disk, 0..1 << 20).unwrap();
        let mut piece = vec![0; BLOCK as usize];
        let reads = (0..=MOST_READ / BLOCK).find_map(|_| {
            window.rewind().ok()?;
            window.read_exact(&mut piece).err()
        });
        assert_eq!(reads.unwrap().to_string(), "the file system is damaged or too large");
    }
}
