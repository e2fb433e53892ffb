//! Sealed secrets, and the places that they are sealed for.

use cluster_core::{ClusterUuid, VmUuid};

/// A sealed secret of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedSecret {
    pub cluster: ClusterUuid,
    pub name: String,
    pub sealed: String,
}

/// The sealed user-data of a VM whose server is not built yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedUserData {
    pub vm: VmUuid,
    pub sealed: String,
}

impl SealedSecret {
    /// Returns the place that the text is bound to: it opens only for this place.
    pub fn place(&self) -> String {
        format!("{}/{}", self.cluster, self.name)
    }
}

impl SealedUserData {
    /// Returns the place that the text is bound to: it opens only for this place.
    pub fn place(&self) -> String {
        SealedUserData::place_of(self.vm)
    }

    /// Returns the place of the user-data of this VM.
    pub fn place_of(vm: VmUuid) -> String {
        format!("vm/{vm}/user-data")
    }
}
