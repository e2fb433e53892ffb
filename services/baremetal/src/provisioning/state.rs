//! The state of the listener's routes.

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::FromRef;
use baremetal_conductor::Conductor;
use hardware::CpuArchitecture;
use pxe::Loader;

use super::downloads::Downloads;
use super::iso::IsoTemplate;

/// The state of the listener's routes.
#[derive(Clone)]
pub struct Provisioning {
    /// Answers machines and agents.
    pub conductor: Conductor,
    /// The files that are the same for every machine.
    pub files: Arc<Files>,
}

impl FromRef<Provisioning> for Conductor {
    fn from_ref(provisioning: &Provisioning) -> Conductor {
        provisioning.conductor.clone()
    }
}

/// The files that are the same for every machine. They contain no secrets.
pub struct Files {
    pub ramdisk: RamdiskFiles,
    /// The ramdisk for 64-bit ARM.
    pub ramdisk_of_arm: Option<RamdiskFiles>,
    /// The ramdisk as a CD.
    pub iso: Option<IsoTemplate>,
    /// The ramdisk for 64-bit ARM as a CD.
    pub iso_of_arm: Option<IsoTemplate>,
    /// The builds of iPXE.
    pub loaders: Vec<(Loader, PathBuf)>,
    /// The folder with images.
    pub images: Option<PathBuf>,
    /// Limits the downloads of kernels and ramdisks.
    pub downloads: Downloads,
}

impl Files {
    /// Returns the ramdisk for this architecture as a CD.
    pub(super) fn iso_for(&self, architecture: CpuArchitecture) -> Option<&IsoTemplate> {
        match architecture {
            CpuArchitecture::X86_64 => self.iso.as_ref(),
            CpuArchitecture::Aarch64 => self.iso_of_arm.as_ref(),
        }
    }
}

/// A ramdisk and its kernel.
pub struct RamdiskFiles {
    pub kernel: PathBuf,
    pub ramdisk: PathBuf,
}
