//! Which build of iPXE a machine's firmware can run.

use dhcp::{Architecture, BootFile, Client, ClientKind};
use url::Url;

/// A build of iPXE from Debian's package `ipxe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loader {
    /// For a PC BIOS: uses the network driver of the PXE ROM that loaded it.
    Undionly,
    /// For 64-bit x86 UEFI: uses the firmware's network driver.
    ///
    /// `ipxe.efi` brings drivers of its own instead, which then fight with the firmware's.
    Snponly,
}

impl Loader {
    /// Every build, to be served under its [`file_name`](Loader::file_name).
    pub const ALL: [Loader; 2] = [Loader::Undionly, Loader::Snponly];

    /// The build for this firmware; `None` if Debian has none.
    pub const fn for_architecture(architecture: Architecture) -> Option<Self> {
        match architecture {
            Architecture::X86Bios => Some(Loader::Undionly),
            Architecture::X64Uefi => Some(Loader::Snponly),
            Architecture::X86Uefi
            | Architecture::Arm32Uefi
            | Architecture::Arm64Uefi
            | Architecture::Riscv64Uefi
            | Architecture::Other(_) => None,
        }
    }

    /// What firmware that is not iPXE yet has to load to become it: by TFTP, or for HTTP boot the
    /// same file under `base`, whose path has to end in a slash.
    ///
    /// `None` for whoever needs no loader, or none we have.
    pub fn boot_file(client: &Client, base: &Url) -> Option<BootFile> {
        let loader = Loader::for_architecture(client.architecture?)?;
        match client.kind {
            ClientKind::Pxe => Some(BootFile::Tftp { name: loader.file_name().to_owned() }),
            ClientKind::Http => Some(BootFile::Http { url: base.join(loader.file_name()).ok()? }),
            ClientKind::Ipxe | ClientKind::Other => None,
        }
    }

    /// Its name in Debian, and ours on TFTP and HTTP.
    pub const fn file_name(self) -> &'static str {
        match self {
            Loader::Undionly => "undionly.kpxe",
            Loader::Snponly => "snponly.efi",
        }
    }

    /// Where Debian's package puts it.
    pub const fn debian_path(self) -> &'static str {
        match self {
            Loader::Undionly => "/usr/lib/ipxe/undionly.kpxe",
            Loader::Snponly => "/usr/lib/ipxe/snponly.efi",
        }
    }
}
