//! The system architecture that a client reports.

use std::fmt;

use hardware::CpuArchitecture;

/// The client's system architecture (option 93, RFC 4578 §2.1, and IANA's registry of RFC 5970 §3.3).
///
/// The registry has a second number for each UEFI that boots from HTTP. Both numbers map to one variant here, and
/// [`ClientKind`](crate::ClientKind) tells the boot protocols apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Architecture {
    X86Bios,
    X86Uefi,
    X64Uefi,
    Arm32Uefi,
    Arm64Uefi,
    Riscv64Uefi,
    /// An architecture without a variant, by its number.
    Other(u16),
}

impl Architecture {
    /// Returns the architecture with this number.
    pub const fn from_code(code: u16) -> Self {
        match code {
            0 | 20 => Architecture::X86Bios,
            6 | 15 => Architecture::X86Uefi,
            // RFC 4578 says 7 is byte code and 9 is x64; its erratum 4625 swaps the two, and firmware sends either.
            7 | 9 | 16 => Architecture::X64Uefi,
            10 | 18 => Architecture::Arm32Uefi,
            11 | 19 => Architecture::Arm64Uefi,
            27 | 28 => Architecture::Riscv64Uefi,
            other => Architecture::Other(other),
        }
    }
}

impl Architecture {
    /// Returns the architecture of the processors on which this firmware starts an operating system.
    pub const fn cpu(self) -> Option<CpuArchitecture> {
        match self {
            Architecture::X86Bios | Architecture::X64Uefi => Some(CpuArchitecture::X86_64),
            Architecture::Arm64Uefi => Some(CpuArchitecture::Aarch64),
            Architecture::X86Uefi
            | Architecture::Arm32Uefi
            | Architecture::Riscv64Uefi
            | Architecture::Other(_) => None,
        }
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Architecture::X86Bios => "x86 BIOS",
            Architecture::X86Uefi => "x86 UEFI",
            Architecture::X64Uefi => "x64 UEFI",
            Architecture::Arm32Uefi => "ARM UEFI",
            Architecture::Arm64Uefi => "ARM64 UEFI",
            Architecture::Riscv64Uefi => "RISC-V UEFI",
            Architecture::Other(code) => return write!(f, "architecture {code}"),
        })
    }
}
