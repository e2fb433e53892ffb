//! Reads files of the image's root file system: ext2, ext3 or ext4, in a library, so that no file system of an image is mounted.

use std::error::Error;
use std::io;
use std::ops::Range;
use std::rc::Rc;

use ext4_view::{Ext4, Ext4Error, Ext4Read, FileType};

use crate::disk::esp::File;
use crate::disk::guard::GuardedDisk;

/// The place of the boot loader for UEFI.
const LOADERS: &str = "/boot/efi/EFI";
/// The configurations of GRUB, by the names of Debian and of Fedora.
const MENUS: [&str; 2] = ["/boot/grub/grub.cfg", "/boot/grub2/grub.cfg"];
/// Files that GRUB expects beside its program, which ironic-python-agent copies from here.
const FOR_GRUB: [(&str, &str); 2] =
    [("grub.cfg", "/boot/grub2/grub.cfg"), ("grubenv", "/boot/grub2/grubenv")];
/// Limits of the boot loader's files.
const DEEPEST: usize = 6;
const MOST_FILES: usize = 1024;
const MOST_BYTES: u64 = 64 << 20;

/// The reasons why the files of an image cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RootFilesError {
    #[error("the image is no ext2, ext3 or ext4 file system that the agent can read")]
    NotExt(#[source] Ext4Error),
    #[error("cannot read {path} in the image")]
    Read { path: String, source: Ext4Error },
    #[error(
        "{path} in the image is too large, or has too many files or a name that FAT does not have"
    )]
    Unusable { path: String },
}

/// The root file system of an image that was written to a disk.
pub(super) struct RootFiles(Ext4);

struct Reader {
    disk: Rc<GuardedDisk>,
    range: Range<u64>,
}

impl Ext4Read for Reader {
    fn read(
        &mut self,
        start: u64,
        into: &mut [u8],
    ) -> Result<(), Box<dyn Error + Send + Sync + 'static>> {
        let end = start.checked_add(into.len() as u64);
        if end.is_none_or(|end| end > self.range.end - self.range.start) {
            return Err(Box::new(io::Error::from(io::ErrorKind::UnexpectedEof)));
        }
        let sector = u64::from(self.disk.device().sector());
        let start = self.range.start + start;
        let (first, last) =
            (start / sector * sector, (start + into.len() as u64).next_multiple_of(sector));
        let mut whole = vec![0; (last - first) as usize];
        self.disk.read_at(first, &mut whole)?;
        let within = (start - first) as usize;
        into.copy_from_slice(&whole[within..within + into.len()]);
        Ok(())
    }
}

impl RootFiles {
    /// Opens the file system in a range of the disk, in bytes.
    pub(super) fn open(disk: Rc<GuardedDisk>, range: Range<u64>) -> Result<Self, RootFilesError> {
        let file_system = Ext4::load(Box::new(Reader { disk, range }));
        file_system.map(RootFiles).map_err(RootFilesError::NotExt)
    }

    /// Returns the id of the file system.
    pub(super) fn id(&self) -> String {
        self.0.uuid().to_string()
    }

    /// Returns the path and the text of GRUB's configuration.
    pub(super) fn menu(&self) -> Result<Option<(&'static str, String)>, RootFilesError> {
        for path in MENUS {
            if self.is_file(path)? {
                let text = self.content(path)?;
                return Ok(Some((path, String::from_utf8_lossy(&text).into_owned())));
            }
        }
        Ok(None)
    }

    /// Returns the files of the boot loader for UEFI, with their paths in the EFI system partition; none if the image has no such folder.
    pub(super) fn loaders(&self) -> Result<Vec<File>, RootFilesError> {
        let mut files = Vec::new();
        if !self.0.exists(LOADERS).map_err(failed(LOADERS))? {
            return Ok(files);
        }
        let mut folders = Vec::new();
        self.collect(LOADERS, "EFI", 0, (&mut files, &mut folders))?;
        for (name, from) in FOR_GRUB {
            if !self.is_file(from)? {
                continue;
            }
            for folder in &folders {
                let path = format!("{folder}/{name}");
                if !files.iter().any(|file: &File| file.path.eq_ignore_ascii_case(&path)) {
                    files.push(File { path, content: self.content(from)? });
                }
            }
        }
        Ok(files)
    }

    /// Collects the files below `from`, and the folders directly below the first.
    fn collect(
        &self,
        from: &str,
        to: &str,
        depth: usize,
        (files, folders): (&mut Vec<File>, &mut Vec<String>),
    ) -> Result<(), RootFilesError> {
        let unusable = || RootFilesError::Unusable { path: from.to_owned() };
        for entry in self.0.read_dir(from).map_err(failed(from))? {
            let entry = entry.map_err(failed(from))?;
            let name = entry.file_name();
            let name = name.as_str().map_err(|_| unusable())?;
            if name == "." || name == ".." {
                continue;
            }
            let path = format!("{from}/{name}");
            // Symbolic links are followed inside the file system.
            let found = self.0.metadata(&*path).map_err(failed(&path))?;
            let target = format!("{to}/{name}");
            if found.is_dir() && depth < DEEPEST {
                if depth == 0 {
                    folders.push(target.clone());
                }
                self.collect(&path, &target, depth + 1, (&mut *files, &mut *folders))?;
            } else if found.file_type() == FileType::Regular {
                let content = self.content(&path)?;
                files.push(File { path: target, content });
                let bytes: u64 = files.iter().map(|file| file.content.len() as u64).sum();
                if files.len() > MOST_FILES || bytes > MOST_BYTES {
                    return Err(unusable());
                }
            }
        }
        Ok(())
    }

    fn is_file(&self, path: &str) -> Result<bool, RootFilesError> {
        match self.0.metadata(path) {
            Ok(found) => Ok(found.file_type() == FileType::Regular),
            Err(Ext4Error::NotFound | Ext4Error::NotADirectory) => Ok(false),
            Err(source) => Err(failed(path)(source)),
        }
    }

    fn content(&self, path: &str) -> Result<Vec<u8>, RootFilesError> {
        let length = self.0.metadata(path).map_err(failed(path))?.len();
        if length > MOST_BYTES {
            return Err(RootFilesError::Unusable { path: path.to_owned() });
        }
        self.0.read(path).map_err(failed(path))
    }
}

fn failed(path: &str) -> impl FnOnce(Ext4Error) -> RootFilesError {
    let path = path.to_owned();
    move |source| RootFilesError::Read { path, source }
}
