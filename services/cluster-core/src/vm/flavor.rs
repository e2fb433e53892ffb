//! The flavor of a VM.

use serde::{Deserialize, Serialize};

use crate::FlavorSize;

/// The flavor of a VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmFlavor {
    /// The id of the flavor in the cloud.
    pub id: String,
    pub name: String,
    /// The size at the time of the request; a later change of the flavor does not change the VM's quota use.
    pub size: FlavorSize,
}
