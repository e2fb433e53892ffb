//! VMs: their turns, the turns of their snapshots, and the API's questions about them.
//!
//! Nova's list of a server's requests tells whether a request arrived. A snapshot counts as made when its image is active; images are found
//! by a name that contains the snapshot's id, and a second image of the name is deleted. The snapshot of an ended lease is retried with
//! growing waiting times, and kept for a while after its VM is deleted.

mod calls;
mod cloud_work;
mod notice;
mod resolve_request;
mod snapshot;
mod turn;

use cluster_core::{UserData, Vm, VmUuid};
use openstack::compute::consoles::{self, ConsoleKind};
use url::Url;

pub use resolve_request::{ResolvedVmObjects, VmError, VmRequestObjects};
pub(crate) use snapshot::turn as snapshot_turn;
pub(crate) use turn::turn;

use crate::cluster_secrets::KeysError;
use crate::{Conductor, vm_user_data};

impl Conductor {
    /// Seals the owner's user-data for a VM. Returns the part for the record, and the sealed text.
    pub fn seal_user_data(
        &self,
        vm: VmUuid,
        user_data: &[u8],
    ) -> Result<(UserData, String), KeysError> {
        vm_user_data::seal(&self.context.keyring, vm, user_data)
    }

    /// Returns the URL of a VM's console, which is valid for some minutes. The URL is a secret: it grants access to anybody.
    ///
    /// # Errors
    ///
    /// When the VM has no server, or the cloud does not answer.
    pub async fn console(&self, of: &Vm, kind: ConsoleKind) -> Result<Url, VmError> {
        let place = of.cloud_project.as_deref();
        let sessions = self.context.session_for(&of.project, place).await?;
        let (session, _) = sessions.ok_or(VmError::NoCloud)?;
        let server = of.server.as_ref().ok_or(VmError::NoServer)?;
        Ok(consoles::url(&session, &server.id, kind).await?)
    }
}
