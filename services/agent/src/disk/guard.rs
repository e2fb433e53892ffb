//! Keeps a disk unbootable until what was written to it is proven right.
//!
//! The first and the last MiB hold everything firmware starts from: boot sector, both partition tables, and
//! the file system of an image without partitions. They are zeroed before anything is written, what an image
//! has there is kept in memory, and only [`GuardedDisk::release`] puts it on the disk: the end first, the
//! beginning last. A failure, or a power cut at any moment before, leaves a disk that starts nothing.

use std::io;
use std::ops::Range;

use super::device::Device;

/// What is held back at either end.
pub const EDGE: u64 = 1 << 20;

/// A disk whose ends are in memory.
#[derive(Debug)]
pub struct GuardedDisk {
    device: Device,
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl GuardedDisk {
    /// Zeroes both ends of the disk and holds them back from now on.
    pub fn begin(device: Device) -> io::Result<Self> {
        let size = device.size();
        if size < 4 * EDGE {
            let text = format!("{} is smaller than 4 MiB", device.path().display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let tail = EDGE + size % EDGE;
        let guarded =
            GuardedDisk { device, head: vec![0; EDGE as usize], tail: vec![0; tail as usize] };
        guarded.device.zero(0, EDGE)?;
        guarded.device.zero(guarded.tail_start(), tail)?;
        guarded.device.sync()?;
        Ok(guarded)
    }

    /// The disk itself.
    pub fn device(&self) -> &Device {
        &self.device
    }

    fn tail_start(&self) -> u64 {
        self.device.size() - self.tail.len() as u64
    }

    /// Cuts a range where the held-back ends begin and stop.
    fn parts(&self, offset: u64, length: u64) -> [Range<u64>; 3] {
        let end = offset.saturating_add(length);
        let (head, tail) = (EDGE, self.tail_start());
        [
            offset.min(head)..end.min(head),
            offset.clamp(head, tail)..end.clamp(head, tail),
            offset.max(tail)..end.max(tail),
        ]
    }

    /// Writes `bytes` at `offset`; what falls on the ends stays in memory.
    pub fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.check(offset, bytes.len() as u64)?;
        let of = |part: &Range<u64>| (part.start - offset) as usize..(part.end - offset) as usize;
        let [head, middle, tail] = self.parts(offset, bytes.len() as u64);
        if !head.is_empty() {
            self.head[head.start as usize..head.end as usize].copy_from_slice(&bytes[of(&head)]);
        }
        if !middle.is_empty() {
            self.device.write_at(middle.start, &bytes[of(&middle)])?;
        }
        if !tail.is_empty() {
            let base = self.tail_start();
            self.tail[(tail.start - base) as usize..(tail.end - base) as usize]
                .copy_from_slice(&bytes[of(&tail)]);
        }
        Ok(())
    }

    /// Zeroes a range; what falls on the ends is zeroed in memory.
    pub fn zero(&mut self, offset: u64, length: u64) -> io::Result<()> {
        self.check(offset, length)?;
        let [head, middle, tail] = self.parts(offset, length);
        if !head.is_empty() {
            self.head[head.start as usize..head.end as usize].fill(0);
        }
        if !middle.is_empty() {
            self.device.zero(middle.start, middle.end - middle.start)?;
        }
        if !tail.is_empty() {
            let base = self.tail_start();
            self.tail[(tail.start - base) as usize..(tail.end - base) as usize].fill(0);
        }
        Ok(())
    }

    /// Reads what the disk will hold once released.
    pub fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.check(offset, bytes.len() as u64)?;
        let of = |part: &Range<u64>| (part.start - offset) as usize..(part.end - offset) as usize;
        let [head, middle, tail] = self.parts(offset, bytes.len() as u64);
        if !head.is_empty() {
            bytes[of(&head)].copy_from_slice(&self.head[head.start as usize..head.end as usize]);
        }
        if !middle.is_empty() {
            self.device.read_at(middle.start, &mut bytes[of(&middle)])?;
        }
        if !tail.is_empty() {
            let base = self.tail_start();
            bytes[of(&tail)].copy_from_slice(
                &self.tail[(tail.start - base) as usize..(tail.end - base) as usize],
            );
        }
        Ok(())
    }

    /// Puts the ends on the disk: from here on it can be booted.
    pub fn release(self) -> io::Result<()> {
        self.device.sync()?;
        self.device.write_at(self.tail_start(), &self.tail)?;
        self.device.sync()?;
        self.device.write_at(0, &self.head)?;
        self.device.sync()
    }

    fn check(&self, offset: u64, length: u64) -> io::Result<()> {
        if offset.checked_add(length).is_some_and(|end| end <= self.device.size()) {
            return Ok(());
        }
        let text = format!("{length} bytes at {offset} are past the end of the disk");
        Err(io::Error::new(io::ErrorKind::InvalidInput, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 5 * EDGE + 4096;

    fn disk() -> (crate::scratch::Folder, std::path::PathBuf, GuardedDisk) {
        let folder = crate::scratch::Folder::new();
        let path = folder.path().join("disk");
        std::fs::write(&path, vec![0xaa; SIZE as usize]).unwrap();
        let guarded = GuardedDisk::begin(Device::open(&path, SIZE, 512).unwrap()).unwrap();
        (folder, path, guarded)
    }

    #[test]
    fn the_ends_stay_blank_until_released() {
        let (_folder, path, mut guarded) = disk();
        guarded.write_at(0, &vec![0xbb; SIZE as usize]).unwrap();
        let now = std::fs::read(&path).unwrap();
        assert!(now[..EDGE as usize].iter().all(|byte| *byte == 0));
        assert!(now[(SIZE - EDGE) as usize..].iter().all(|byte| *byte == 0));
        assert!(now[EDGE as usize..4 * EDGE as usize].iter().all(|byte| *byte == 0xbb));

        guarded.release().unwrap();
        assert!(std::fs::read(&path).unwrap().iter().all(|byte| *byte == 0xbb));
    }

    #[test]
    fn what_is_held_back_can_be_read() {
        let (_folder, _path, mut guarded) = disk();
        guarded.write_at(EDGE - 512, &[0xcc; 1024]).unwrap();
        let mut read = [0; 1024];
        guarded.read_at(EDGE - 512, &mut read).unwrap();
        assert_eq!(read, [0xcc; 1024]);
        guarded.zero(EDGE - 512, 1024).unwrap();
        guarded.read_at(EDGE - 512, &mut read).unwrap();
        assert_eq!(read, [0; 1024]);
    }
}
