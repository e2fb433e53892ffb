//! Makes a disk boot by BIOS, with the GRUB of the ramdisk. No program of the installed system runs for that.
//!
//! The ramdisk has GRUB's first sector and its core, with all modules that a usual configuration names (`images/ramdisk/lib.sh`). The core
//! runs the commands in sector 2040 of the disk, which start the menu of the installed system.

use std::io;

use super::guard::GuardedDisk;
use crate::root::Root;

/// The files of the ramdisk.
const FIRST: &str = "/lib/grub/boot.img";
const CORE: &str = "/lib/grub/core.img";
const SECTOR: u64 = 512;
/// The sector with the commands, between the partition table and the first partition.
const COMMANDS: u64 = 2040;
/// The first bytes of the first sector are code; then come the signature of the disk and the partition table.
const CODE: usize = 440;
/// Fields of the first sector (GRUB, `include/grub/i386/pc/boot.h`): the number of the core's first sector, and code that distrusts the
/// number of the drive, which two one-byte instructions without effect replace on a disk.
const KERNEL_SECTOR: usize = 0x5c;
const DRIVE_CHECK: usize = 0x66;
/// The list of sectors at the end of the core's first sector (GRUB, `include/grub/offsets.h`): start, length, and segment in memory.
const BLOCK_LIST: usize = 500;
const SEGMENT: u16 = 0x820;

/// GRUB's two parts.
pub struct Grub {
    first: Vec<u8>,
    core: Vec<u8>,
}

impl Grub {
    /// Reads GRUB from the ramdisk.
    pub fn read(root: &Root) -> io::Result<Self> {
        let (first, core) = (std::fs::read(root.path(FIRST))?, std::fs::read(root.path(CORE))?);
        if first.len() as u64 != SECTOR || core.len() as u64 <= SECTOR {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "its files have a wrong size"));
        }
        Ok(Grub { first, core })
    }

    /// Writes GRUB to a disk with sectors of 512 bytes: the core to the sectors from `start` to `end`, and the commands that it runs.
    pub fn install(
        mut self,
        disk: &mut GuardedDisk,
        (start, end): (u64, u64),
        commands: &str,
    ) -> io::Result<()> {
        let sectors = (self.core.len() as u64).div_ceil(SECTOR);
        if sectors > end.min(start + u64::from(u16::MAX)) - start
            || (start..start + sectors).contains(&COMMANDS)
            || commands.len() as u64 > SECTOR
        {
            return Err(io::Error::other("there is no room for GRUB before the first partition"));
        }
        self.core.resize((sectors * SECTOR) as usize, 0);
        let list = &mut self.core[BLOCK_LIST..BLOCK_LIST + 12];
        list[..8].copy_from_slice(&(start + 1).to_le_bytes());
        list[8..10].copy_from_slice(&(sectors as u16 - 1).to_le_bytes());
        list[10..].copy_from_slice(&SEGMENT.to_le_bytes());
        disk.write_at(start * SECTOR, &self.core)?;

        let mut text = commands.as_bytes().to_vec();
        text.resize(SECTOR as usize, b'\n');
        disk.write_at(COMMANDS * SECTOR, &text)?;

        self.first[KERNEL_SECTOR..KERNEL_SECTOR + 8].copy_from_slice(&start.to_le_bytes());
        self.first[DRIVE_CHECK..DRIVE_CHECK + 2].copy_from_slice(&[0x90, 0x90]);
        let mut sector = vec![0; SECTOR as usize];
        disk.read_at(0, &mut sector)?;
        sector[..CODE].copy_from_slice(&self.first[..CODE]);
        disk.write_at(0, &sector)
    }
}

/// Returns the commands that start the menu in this file of the file system with this id.
pub fn commands(file_system: &str, menu: &str) -> String {
    let folder = menu.rsplit_once('/').map_or("", |(folder, _)| folder);
    format!(
        "search --no-floppy --fs-uuid --set=root {file_system}\nset prefix=($root){folder}\nconfigfile ($root){menu}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::super::device::Device;
    use super::*;

    fn grub(core_sectors: usize) -> Grub {
        Grub { first: vec![0xb0; 512], core: vec![0xc0; core_sectors * 512 - 100] }
    }

    fn disk() -> (crate::scratch::Folder, GuardedDisk) {
        let folder = crate::scratch::Folder::new();
        let path = folder.path().join("disk");
        std::fs::write(&path, []).unwrap();
        let mut disk = GuardedDisk::guard(Device::open(&path, 8 << 20, 512).unwrap()).unwrap();
        disk.write_at(0, &[0xdd; 512]).unwrap();
        (folder, disk)
    }

    #[test]
    fn each_part_names_the_sectors_of_the_next() {
        let (_folder, mut disk) = disk();
        grub(5).install(&mut disk, (1, 2040), "normal").unwrap();
        let mut read = vec![0; 2048 * 512];
        disk.read_at(0, &mut read).unwrap();
        assert_eq!(read[KERNEL_SECTOR..KERNEL_SECTOR + 8], 1_u64.to_le_bytes());
        assert_eq!(read[CODE..512], [0xdd; 72], "the partition table");
        assert_eq!(read[512 + BLOCK_LIST..1024], [2, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0x20, 8]);
        assert_eq!((read[1024], read[6 * 512 - 101], read[6 * 512 - 100]), (0xc0, 0xc0, 0));
        assert!(read[2040 * 512..].starts_with(b"normal\n\n"));
    }

    #[test]
    fn a_core_without_room_is_an_error() {
        let (_folder, mut disk) = disk();
        grub(2039).install(&mut disk, (1, 2040), "").unwrap();
        assert!(grub(2040).install(&mut disk, (1, 2048), "").is_err());
        grub(2048).install(&mut disk, (2048, 4096), "").unwrap();
        assert!(grub(2049).install(&mut disk, (2048, 4096), "").is_err());
        assert!(grub(1).install(&mut disk, (1, 2040), &"x".repeat(513)).is_err());
    }

    #[test]
    fn the_menu_is_searched_by_the_id_of_its_file_system() {
        let want = "search --no-floppy --fs-uuid --set=root 1-2\nset prefix=($root)/boot/grub\nconfigfile ($root)/boot/grub/grub.cfg\n";
        assert_eq!(commands("1-2", "/boot/grub/grub.cfg"), want);
    }
}
