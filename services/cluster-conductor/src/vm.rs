//! VMs: their turns, the turns of their snapshots, and the API's questions about them.
//!
//! Nova's list of a server's requests tells whether a request arrived. A snapshot counts as made when its image is active; images are found
//! by a name that contains the snapshot's id, and a second image of the name is deleted. The snapshot of an ended lease is retried with
//! growing waiting times, and kept for a while after its VM is deleted.

mod data;
mod idle;
mod notice;
mod resolve_request;
mod snapshot;
mod turn;

use cluster_core::{Backoff, SnapshotRules, Vm, VmRules};
use jiff::SignedDuration;
use lease::LeaseSchedule;
use openstack::Session;
use openstack::compute::consoles::{self, ConsoleKind};
use url::Url;

pub use resolve_request::{OfferedImage, ResolvedVmObjects, VmError, VmRequestObjects};
pub(crate) use snapshot::turn as snapshot_turn;
pub(crate) use turn::turn;

use crate::Conductor;
use crate::handle::ConductorContext;
use crate::tenancy::TenancyError;

/// The settings of VMs.
#[derive(Clone, Debug)]
pub struct VmSettings {
    /// When the stages of a lease are due.
    pub ladder: LeaseSchedule,
    /// The images that VMs may boot besides snapshots.
    pub images: Vec<OfferedImage>,
    /// The default network: id or name.
    pub network: Option<String>,
    /// The network of floating IPs: id or name.
    pub external_network: Option<String>,
    /// The DNS zone of VM names.
    pub zone: Option<String>,
    /// How long the snapshot of an ended lease is kept after its VM is deleted.
    pub keep_copies: SignedDuration,
    /// How often to check whether VMs are idle.
    pub idle_every: SignedDuration,
    /// How long to wait before a VM that did not switch off at the end of its lease is switched off again.
    pub ends_again_after: SignedDuration,
}

impl Default for VmSettings {
    fn default() -> Self {
        VmSettings {
            ladder: LeaseSchedule::default(),
            images: Vec::new(),
            network: None,
            external_network: None,
            zone: None,
            keep_copies: SignedDuration::from_hours(30 * 24),
            idle_every: SignedDuration::from_mins(15),
            ends_again_after: SignedDuration::from_mins(15),
        }
    }
}

impl ConductorContext {
    /// Returns the session in the project of a VM, and the one in clusterd's own project; `None` without a cloud. `place` is the recorded
    /// project of an existing VM.
    pub(crate) async fn session_for(
        &self,
        project: &str,
        place: Option<&str>,
    ) -> Result<Option<(Session, &Session)>, TenancyError> {
        let Some(cloud_access) = &self.cloud else { return Ok(None) };
        let place = match place {
            Some(place) => place.to_owned(),
            None => cloud_access.place_of(project).await?,
        };
        Ok(Some((cloud_access.enter(&place).await?, cloud_access.own())))
    }

    fn vm_rules(&self) -> VmRules {
        VmRules {
            ladder: self.settings.vms.ladder.clone(),
            lands_within: self.settings.repair.lands_within,
            ends_again_after: self.settings.vms.ends_again_after,
        }
    }

    fn snapshot_rules(&self) -> SnapshotRules {
        SnapshotRules {
            keep: self.settings.vms.keep_copies,
            backoff: self.backoff(),
            lands_within: self.settings.repair.lands_within,
        }
    }

    pub(crate) fn backoff(&self) -> Backoff {
        self.settings.repair.backoff
    }
}

impl Conductor {
    /// Returns the settings of VMs.
    pub fn vm_settings(&self) -> &VmSettings {
        &self.context.settings.vms
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
