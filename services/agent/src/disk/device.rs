//! A disk that is read and written without the page cache.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::fs::{FallocateFlags, OFlags, fallocate};
use rustix::io::Errno;

use super::buffer::{AlignedBuffer, is_aligned};

/// A disk, or a file in its place. Offsets and lengths are multiples of the sector size.
#[derive(Debug)]
pub struct Device {
    file: File,
    path: PathBuf,
    size: u64,
    sector: u32,
    /// The fastest way of zeroing that has not failed yet.
    zeroing: AtomicU8,
}

/// Frees the blocks, which read as zeros afterwards (`BLKDISCARD` if the disk guarantees that).
const PUNCH: u8 = 0;
/// Makes the disk write zeros (`BLKZEROOUT`); if the disk cannot, the kernel does.
const ZERO_RANGE: u8 = 1;
/// The agent writes the zeros itself.
const WRITE: u8 = 2;

const CHUNK: usize = 1 << 20;

impl Device {
    /// Opens a disk of `size` bytes with logical sectors of `sector` bytes.
    ///
    /// A block device is opened exclusively, which fails for a disk that is mounted or part of an assembled RAID.
    pub fn open(path: &Path, size: u64, sector: u32) -> io::Result<Self> {
        let block = path.metadata()?.file_type().is_block_device();
        let exclusive = if block { OFlags::EXCL } else { OFlags::empty() };
        let file = open_direct(path, OpenOptions::new().read(true).write(true), exclusive)?;
        if !block && file.metadata()?.len() < size {
            file.set_len(size)?;
        }
        Ok(Device { file, path: path.to_owned(), size, sector, zeroing: AtomicU8::new(PUNCH) })
    }

    /// Opens a disk only to read, which is also possible while the disk is in use.
    pub fn open_shared(path: &Path, size: u64, sector: u32) -> io::Result<Self> {
        let file = open_direct(path, OpenOptions::new().read(true), OFlags::empty())?;
        Ok(Device { file, path: path.to_owned(), size, sector, zeroing: AtomicU8::new(PUNCH) })
    }

    /// Gives up the exclusive claim, so that a program can claim the disk.
    pub fn unclaim(&mut self) -> io::Result<()> {
        let options = &mut OpenOptions::new();
        self.file = open_direct(&self.path, options.read(true).write(true), OFlags::empty())?;
        Ok(())
    }

    /// The path of the disk.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Size of a logical sector in bytes.
    pub fn sector(&self) -> u32 {
        self.sector
    }

    /// Writes `bytes` at `offset`.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.check(offset, bytes.len() as u64)?;
        if is_aligned(bytes) {
            return self.file.write_all_at(bytes, offset);
        }
        let mut bounce = AlignedBuffer::new(CHUNK.min(bytes.len()));
        for (at, piece) in bytes.chunks(CHUNK).enumerate() {
            bounce.clear();
            bounce.take(piece);
            self.file.write_all_at(bounce.bytes(), offset + (at * CHUNK) as u64)?;
        }
        Ok(())
    }

    /// Fills `bytes` with the data at `offset`.
    pub fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.check(offset, bytes.len() as u64)?;
        for (at, piece) in bytes.chunks_mut(CHUNK).enumerate() {
            let mut bounce = AlignedBuffer::new(piece.len());
            self.file.read_exact_at(bounce.whole_mut(), offset + (at * CHUNK) as u64)?;
            piece.copy_from_slice(bounce.bytes());
        }
        Ok(())
    }

    /// Makes `length` bytes from `offset` read as zeros, in the fastest way that the disk supports.
    pub fn zero(&self, offset: u64, length: u64) -> io::Result<()> {
        self.check(offset, length)?;
        if length == 0 {
            return Ok(());
        }
        loop {
            let way = self.zeroing.load(Ordering::Relaxed);
            let flags = match way {
                PUNCH => FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
                ZERO_RANGE => FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE,
                WRITE.. => return self.write_zeros(offset, length),
            };
            match fallocate(&self.file, flags, offset, length) {
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::NODEV) => {
                    self.zeroing.store(way + 1, Ordering::Relaxed)
                }
                done => return done.map_err(io::Error::from),
            }
        }
    }

    fn write_zeros(&self, offset: u64, length: u64) -> io::Result<()> {
        let mut zeros = AlignedBuffer::new(CHUNK);
        zeros.whole_mut().fill(0);
        let mut at = offset;
        while at < offset + length {
            let len = (offset + length - at).min(CHUNK as u64);
            self.file.write_all_at(&zeros.bytes()[..len as usize], at)?;
            at += len;
        }
        Ok(())
    }

    /// Waits until all written data is on the medium.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    fn check(&self, offset: u64, length: u64) -> io::Result<()> {
        let sector = u64::from(self.sector.max(1));
        let inside = offset.checked_add(length).is_some_and(|end| end <= self.size);
        if inside && offset.is_multiple_of(sector) && length.is_multiple_of(sector) {
            return Ok(());
        }
        let text = format!("{length} bytes at {offset} do not fit {}", self.path.display());
        Err(io::Error::new(io::ErrorKind::InvalidInput, text))
    }
}

/// Opens a disk for direct I/O, without the page cache.
fn open_direct(path: &Path, options: &mut OpenOptions, flags: OFlags) -> io::Result<File> {
    match options.custom_flags((flags | OFlags::DIRECT).bits() as i32).open(path) {
        // Some file systems have no direct I/O. A file on such a file system can still stand in for a disk.
        Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
            options.custom_flags(flags.bits() as i32).open(path)
        }
        opened => opened,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeroing_changes_only_its_range() {
        let folder = crate::scratch::Folder::new();
        let path = folder.path().join("disk");
        std::fs::write(&path, vec![0xaa; 3 * CHUNK]).unwrap();
        let device = Device::open(&path, 3 * CHUNK as u64, 512).unwrap();
        // The second range needs two writes, and its end is not the end of a chunk.
        for range in [CHUNK..2 * CHUNK, CHUNK / 2..2 * CHUNK - 4096] {
            for way in [PUNCH, ZERO_RANGE, WRITE] {
                device.zeroing.store(way, Ordering::Relaxed);
                device.write_at(0, &vec![0xaa; 3 * CHUNK]).unwrap();
                device.zero(range.start as u64, range.len() as u64).unwrap();
                let mut read = vec![1; 3 * CHUNK];
                device.read_at(0, &mut read).unwrap();
                assert!(read[..range.start].iter().all(|byte| *byte == 0xaa));
                assert!(read[range.clone()].iter().all(|byte| *byte == 0));
                assert!(read[range.end..].iter().all(|byte| *byte == 0xaa));
            }
        }
    }

    #[test]
    fn the_agent_writes_zeros_if_the_disk_and_the_kernel_cannot() {
        // A character device has no fallocate(2), and each write to this one fails with ENOSPC.
        let path = Path::new("/dev/full");
        let file = OpenOptions::new().write(true).open(path).unwrap();
        let zeroing = AtomicU8::new(PUNCH);
        let device = Device { file, path: path.to_owned(), size: 4096, sector: 512, zeroing };
        device.zero(0, 0).unwrap();
        let error = device.zero(0, 4096).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::NOSPC.raw_os_error()));
        assert_eq!(device.zeroing.into_inner(), WRITE, "the other ways are not tried again");
    }

    #[test]
    fn long_data_is_written_and_read_at_its_place() {
        let folder = crate::scratch::Folder::new();
        let path = folder.path().join("disk");
        std::fs::write(&path, []).unwrap();
        let size = 4 * CHUNK as u64;
        let device = Device::open(&path, size, 512).unwrap();
        let mut data: Vec<u8> = (0..2 * CHUNK + 4097).map(|at| (at / 512 % 251) as u8).collect();
        let at = usize::from(is_aligned(&data));
        data.truncate(at + 2 * CHUNK + 4096);
        let unaligned = &data[at..];
        device.write_at(4096, unaligned).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len() as u64, size, "a short file becomes as long as the disk");
        assert!(bytes[4096..].starts_with(unaligned));
        assert!(bytes[4096 + unaligned.len()..].iter().all(|byte| *byte == 0));
        let mut read = vec![1; unaligned.len()];
        device.read_at(4096, &mut read).unwrap();
        assert!(read == unaligned);
    }

    #[test]
    fn a_disk_is_opened_for_direct_access_if_its_file_system_can() {
        let folder = crate::scratch::Folder::new();
        let path = folder.path().join("disk");
        std::fs::write(&path, [0; 8192]).unwrap();
        let direct = OFlags::DIRECT.bits() as i32;
        let can = OpenOptions::new().read(true).custom_flags(direct).open(&path).is_ok();
        let device = Device::open(&path, 4096, 512).unwrap();
        let flags = rustix::fs::fcntl_getfl(&device.file).unwrap();
        assert_eq!(flags.contains(OFlags::DIRECT), can);
        assert_eq!(path.metadata().unwrap().len(), 8192, "a longer file is not cut");
        // A character device has no direct I/O.
        Device::open(Path::new("/dev/null"), 0, 512).unwrap();
    }

    #[test]
    fn nothing_is_written_past_the_end_or_across_sectors() {
        let folder = crate::scratch::Folder::new();
        let path = folder.path().join("disk");
        std::fs::write(&path, [0; 8192]).unwrap();
        let device = Device::open(&path, 8192, 512).unwrap();
        for (offset, length) in [(8192, 512), (7680, 1024), (100, 512), (0, 100), (512, 513)] {
            let text = format!("{length} bytes at {offset} do not fit {}", path.display());
            let error = device.write_at(offset, &vec![0; length]).unwrap_err();
            assert_eq!(error.to_string(), text);
            let error = device.read_at(offset, &mut vec![0; length]).unwrap_err();
            assert_eq!(error.to_string(), text);
            assert_eq!(device.zero(offset, length as u64).unwrap_err().to_string(), text);
        }
        assert!(device.zero(u64::MAX - 511, 512).is_err());
        device.write_at(7680, &[1; 512]).unwrap();
    }
}
