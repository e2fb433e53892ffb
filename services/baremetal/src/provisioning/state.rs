//! The state of the listener's routes.

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::FromRef;
use baremetal_conductor::Conductor;

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
    pub kernel: PathBuf,
    pub ramdisk: PathBuf,
    /// The ramdisk as a CD.
    pub iso: Option<IsoTemplate>,
    /// The folder with iPXE's binaries.
    pub loaders: PathBuf,
    /// The folder with images.
    pub images: Option<PathBuf>,
}
