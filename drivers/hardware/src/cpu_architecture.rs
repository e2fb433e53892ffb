//! The architecture of a machine's processors.

use std::fmt;

use serde::Deserialize;

/// An architecture whose machines can be booted, by its name in Linux (`uname -m`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
pub enum CpuArchitecture {
    #[serde(rename = "x86_64")]
    X86_64,
    #[serde(rename = "aarch64")]
    Aarch64,
}

impl CpuArchitecture {
    /// Returns the architecture with this name; `None` for any other name.
    pub fn from_name(name: &str) -> Option<Self> {
        [CpuArchitecture::X86_64, CpuArchitecture::Aarch64]
            .into_iter()
            .find(|known| known.as_str() == name)
    }

    /// The name of the architecture.
    pub const fn as_str(self) -> &'static str {
        match self {
            CpuArchitecture::X86_64 => "x86_64",
            CpuArchitecture::Aarch64 => "aarch64",
        }
    }
}

impl fmt::Display for CpuArchitecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
