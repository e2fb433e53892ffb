//! Files for the emulated machines to download. The machines count the bytes of kernels and loaders and run none of them.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use crate::image::ImageOptions;

use super::children::{PROGRAMS, program};

/// The real boot loaders, if Debian's package `ipxe` is installed.
const LOADERS: &str = "/usr/lib/ipxe";

/// The name of the image that is installed.
const IMAGE: &str = "demo.raw.gz";

/// The files that `bedplate dev` reads from the folder `from`.
const READ: [&str; 7] = [
    "baremetald.toml",
    "machines.yaml",
    "rack.yaml",
    "clusterd.toml",
    "template.json",
    "cluster.json",
    "console.toml",
];

/// Returns an error that names the first missing file or program.
pub(super) fn are_there(from: &Path) -> anyhow::Result<()> {
    let missing = |path: &Path| !path.is_file();
    if let Some(path) = READ.map(|name| from.join(name)).into_iter().find(|path| missing(path)) {
        bail!(
            "{} does not exist. Hint: run `bedplate dev` in the root folder of the project, or set --from to its deploy/dev",
            path.display()
        );
    }
    for name in PROGRAMS {
        let path = program(name)?;
        if missing(&path) {
            bail!(
                "{} does not exist. Hint: build it with `cargo build --workspace --bins`",
                path.display()
            );
        }
    }
    Ok(())
}

/// Writes the files and returns the image to install.
pub(super) fn make(state: &Path) -> anyhow::Result<ImageOptions> {
    let files = state.join("files");
    for folder in ["loaders", "images"] {
        fs::create_dir_all(files.join(folder)).context("cannot create the state folder")?;
    }
    for loader in ["undionly.kpxe", "snponly.efi"] {
        let real = Path::new(LOADERS).join(loader);
        let content = fs::read(&real).unwrap_or_else(|_| stand_in(64 << 10));
        write(&files.join("loaders").join(loader), &content)?;
    }
    let built = Path::new("target/ramdisk");
    for (file, size) in [("kernel", 8 << 20), ("ramdisk", 8 << 20)] {
        let content = fs::read(built.join(file)).unwrap_or_else(|_| stand_in(size));
        write(&files.join(file), &content)?;
    }
    let image = image()?;
    write(&files.join("images").join(IMAGE), &image)?;
    Ok(ImageOptions {
        image: Some(format!("http://127.0.0.1:6386/images/{IMAGE}")),
        checksum: Some(format!("sha256:{}", hex::encode(Sha256::digest(&image)))),
        format: Some("raw".to_owned()),
    })
}

/// A compressed disk image of 64 MiB with a boot signature.
fn image() -> anyhow::Result<Vec<u8>> {
    let mut disk = stand_in(64 << 20);
    disk[510..512].copy_from_slice(&[0x55, 0xaa]);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&disk)?;
    Ok(gzip.finish()?)
}

/// `size` bytes that are the same in every run.
fn stand_in(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at / 4096 * 31 + at % 251) as u8).collect()
}

fn write(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

/// Removes a file that an earlier run left, so that a new file proves that this run wrote it.
pub(super) fn remove_file(path: &Path) -> anyhow::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
