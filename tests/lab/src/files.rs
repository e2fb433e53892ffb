//! Placeholder files for machines to load. Nothing executes these files; only their sizes matter.

use std::io;
use std::path::Path;

/// The marker at the start of the parameter area on a CD, and the size of the area. `images/ramdisk` builds real CDs.
const MARKER: &str = "# bedplate arguments: 4096 bytes from here may be overwritten";
const AREA: usize = 4096;

/// Writes loaders, kernel, ramdisk and CD into `folder`, and an empty folder of images.
pub fn write(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder.join("images"))?;
    std::fs::create_dir_all(folder.join("loaders"))?;
    for loader in ["undionly.kpxe", "snponly.efi"] {
        std::fs::write(folder.join("loaders").join(loader), stand_in(20_000))?;
    }
    std::fs::write(folder.join("kernel"), stand_in(50_000))?;
    std::fs::write(folder.join("ramdisk"), stand_in(50_000))?;
    std::fs::write(folder.join("boot.iso"), cd())
}

/// A CD that contains only the parameter area.
fn cd() -> Vec<u8> {
    let mut cd = vec![0; 32 << 10];
    cd.extend(format!("{MARKER:<AREA$}").bytes());
    cd.resize(96 << 10, 0);
    cd
}

fn stand_in(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}
