//! The sectors that partition tables are read from.

use std::io;

use super::device::Device;
use super::guard::GuardedDisk;

/// A source of partition tables. Offsets and lengths are multiples of the sector size.
pub trait Blocks {
    /// Size in bytes.
    fn size(&self) -> u64;
    /// Size of a logical sector in bytes.
    fn sector(&self) -> u64;
    /// Fills `bytes` with the data at `offset`.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;
}

impl Blocks for Device {
    fn size(&self) -> u64 {
        Device::size(self)
    }

    fn sector(&self) -> u64 {
        u64::from(Device::sector(self))
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        Device::read_at(self, offset, bytes)
    }
}

impl Blocks for GuardedDisk {
    fn size(&self) -> u64 {
        self.device().size()
    }

    fn sector(&self) -> u64 {
        u64::from(self.device().sector())
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        GuardedDisk::read_at(self, offset, bytes)
    }
}
