//! The builds of iPXE, chosen by a machine's firmware.

use dhcp::{Architecture, BootFile, Client, ClientKind};
use url::Url;

/// A build of iPXE from Debian's package `ipxe`. The build for ARM is in the package since Debian 13.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loader {
    /// For a PC BIOS: uses the network driver of the PXE ROM that loaded it.
    Undionly,
    /// For 64-bit x86 UEFI: uses the firmware's network driver.
    ///
    /// The other build, `ipxe.efi`, has its own drivers, which conflict with the firmware's.
    Snponly,
    /// For 64-bit ARM UEFI.
    Arm64,
}

impl Loader {
    /// The builds for x86. Each build is served under its [`file_name`](Loader::file_name).
    pub const X86: [Loader; 2] = [Loader::Undionly, Loader::Snponly];

    /// Returns the build for this firmware; `None` if Debian has none.
    pub const fn for_architecture(architecture: Architecture) -> Option<Self> {
        match architecture {
            Architecture::X86Bios => Some(Loader::Undionly),
            Architecture::X64Uefi => Some(Loader::Snponly),
            Architecture::Arm64Uefi => Some(Loader::Arm64),
            Architecture::X86Uefi
            | Architecture::Arm32Uefi
            | Architecture::Riscv64Uefi
            | Architecture::Other(_) => None,
        }
    }

    /// Returns the file by which firmware loads iPXE: by TFTP, or for HTTP boot the same file under `base`, whose path must end in a slash.
    ///
    /// `None` for a client that is iPXE already or does not boot, and for firmware without a build.
    pub fn boot_file(client: &Client, base: &Url) -> Option<BootFile> {
        let loader = Loader::for_architecture(client.architecture?)?;
        match client.kind {
            ClientKind::Pxe => Some(BootFile::Tftp { name: loader.file_name().to_owned() }),
            ClientKind::Http => Some(BootFile::Http { url: base.join(loader.file_name()).ok()? }),
            ClientKind::Ipxe | ClientKind::Other => None,
        }
    }

    /// Name of the file in Debian's package, and in our TFTP and HTTP services.
    pub const fn file_name(self) -> &'static str {
        match self {
            Loader::Undionly => "undionly.kpxe",
            Loader::Snponly => "snponly.efi",
            Loader::Arm64 => "ipxe-arm64.efi",
        }
    }

    /// Path of the file in Debian's package.
    pub const fn debian_path(self) -> &'static str {
        match self {
            Loader::Undionly => "/usr/lib/ipxe/undionly.kpxe",
            Loader::Snponly => "/usr/lib/ipxe/snponly.efi",
            Loader::Arm64 => "/usr/lib/ipxe/ipxe-arm64.efi",
        }
    }
}
