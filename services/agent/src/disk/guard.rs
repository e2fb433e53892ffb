//! Keeps a disk unbootable until its content has been verified.
//!
//! The first and the last MiB of a disk hold everything that firmware starts from: the boot sector, both partition tables, and the file
//! system of an image without partitions. These ends are zeroed before anything is written. The image's data for the ends stays in memory,
//! and only [`GuardedDisk::release`] writes it to the disk, the end first and the beginning last. So a failure or a power cut at any
//! earlier moment leaves a disk that cannot be booted.

use std::io;
use std::ops::Range;

use super::device::Device;

/// Size of each end that is held back, in bytes.
pub const EDGE: u64 = 1 << 20;

/// A disk whose ends are held in memory.
#[derive(Debug)]
pub struct GuardedDisk {
    device: Device,
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl GuardedDisk {
    /// Zeroes both ends of the disk and holds later writes to them back.
    pub fn guard(device: Device) -> io::Result<Self> {
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

    /// The device itself, without the guard.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Gives up the exclusive claim of the disk, so that a program can claim it.
    pub fn unclaim(&mut self) -> io::Result<()> {
        self.device.unclaim()
    }

    fn tail_start(&self) -> u64 {
        self.device.size() - self.tail.len() as u64
    }

    /// Splits a range at the borders of the held-back ends.
    fn parts(&self, offset: u64, length: u64) -> [Range<u64>; 3] {
        let end = offset.saturating_add(length);
        let (head, tail) = (EDGE, self.tail_start());
        [
            offset.min(head)..end.min(head),
            offset.clamp(head, tail)..end.clamp(head, tail),
            offset.max(tail)..end.max(tail),
        ]
    }

    /// Writes `bytes` at `offset`; the part in the ends stays in memory.
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

    /// Zeroes a range; the part in the ends is zeroed in memory.
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

    /// Reads the data that the disk will hold once released.
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

    /// Writes the ends to the disk, which makes the disk bootable.
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
        let guarded = GuardedDisk::guard(Device::open(&path, SIZE, 512).unwrap()).unwrap();
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
    fn the_held_back_ends_can_be_read() {
        let (_folder, _path, mut guarded) = disk();
        guarded.write_at(EDGE - 512, &[0xcc; 1024]).unwrap();
        let mut read = [0; 1024];
        guarded.read_at(EDGE - 512, &mut read).unwrap();
        assert_eq!(read, [0xcc; 1024]);
        guarded.zero(EDGE - 512, 1024).unwrap();
        guarded.read_at(EDGE - 512, &mut read).unwrap();
        assert_eq!(read, [0; 1024]);
    }

    #[test]
    fn reads_and_writes_across_the_borders_act_as_on_one_disk() {
        let (_folder, path, mut guarded) = disk();
        let mut model = vec![0xaa; SIZE as usize];
        let tail = 4 * EDGE;
        model[..EDGE as usize].fill(0);
        model[tail as usize..].fill(0);
        let ranges = [
            (0, 512),
            (1024, 1024),
            (EDGE - 512, 1024),
            (2 * EDGE, 4096),
            (tail - 512, 1024),
            (tail + 512, 1024),
            (SIZE - 1024, 1024),
            (EDGE - 4096, tail - EDGE + 8192),
        ];
        for (step, (offset, length)) in ranges.into_iter().enumerate() {
            let range = offset as usize..(offset + length) as usize;
            let data: Vec<u8> = (0..length).map(|at| (at / 256 + step as u64) as u8).collect();
            guarded.write_at(offset, &data).unwrap();
            model[range.clone()].copy_from_slice(&data);
            let mut read = vec![1; range.len()];
            guarded.read_at(offset, &mut read).unwrap();
            assert!(read == data, "{length} bytes at {offset}");

            guarded.zero(offset + 512, length - 512).unwrap();
            model[range][512..].fill(0);
            let mut read = vec![1; SIZE as usize];
            guarded.read_at(0, &mut read).unwrap();
            assert!(read == model, "{length} bytes at {offset}");
        }
        guarded.release().unwrap();
        assert!(std::fs::read(&path).unwrap() == model);
    }

    #[test]
    fn nothing_is_read_or_written_past_the_end() {
        let (_folder, _path, mut guarded) = disk();
        let text = format!("1024 bytes at {} are past the end of the disk", SIZE - 512);
        let mut bytes = [0; 1024];
        assert_eq!(guarded.write_at(SIZE - 512, &bytes).unwrap_err().to_string(), text);
        assert_eq!(guarded.read_at(SIZE - 512, &mut bytes).unwrap_err().to_string(), text);
        assert_eq!(guarded.zero(SIZE - 512, 1024).unwrap_err().to_string(), text);
        guarded.zero(SIZE - 1024, 1024).unwrap();
    }

    #[test]
    fn the_smallest_disk_has_4_mib() {
        let folder = crate::scratch::Folder::new();
        let path = folder.path().join("disk");
        std::fs::write(&path, []).unwrap();
        let guard = |size| GuardedDisk::guard(Device::open(&path, size, 512).unwrap());
        let error = guard(4 * EDGE - 512).unwrap_err();
        assert!(error.to_string().ends_with("is smaller than 4 MiB"), "{error}");
        guard(4 * EDGE).unwrap().release().unwrap();
    }
}
