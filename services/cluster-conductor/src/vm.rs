//! Machines that people ask for: their turns, their snapshots', and what the API asks about them.
//!
//! Nova's list of what it took up for a server tells whether a request arrived. A snapshot counts as made when its image can be used; images
//! are found by a name that derives from the snapshot's id, and a second one of that name goes. The copy of a machine whose lease ended is
//! tried again, more and more seldom, and kept for a while once the machine is gone.

mod data;
mod idle;
mod notice;
mod order;
mod snapshot;
mod turn;

use cluster_core::{Backoff, SnapshotRules, Vm, VmRules};
use jiff::SignedDuration;
use lease::Ladder;
use openstack::Session;
use openstack::compute::consoles::{self, ConsoleKind};
use url::Url;

pub use order::{OfferedImage, VmError, VmFound, VmOrder};
pub(crate) use snapshot::turn as snapshot_turn;
pub(crate) use turn::turn;

use crate::Conductor;
use crate::handle::World;
use crate::tenancy::TenancyError;

/// What people may ask for, and what becomes of it.
#[derive(Clone, Debug)]
pub struct VmSettings {
    /// What comes before the end of a lease and after it.
    pub ladder: Ladder,
    /// What machines may boot besides their owners' snapshots.
    pub images: Vec<OfferedImage>,
    /// The network that they are on if nobody says so: id or name.
    pub network: Option<String>,
    /// The network that floating addresses are of: id or name.
    pub external_network: Option<String>,
    /// The DNS zone that they have names in.
    pub zone: Option<String>,
    /// How long the copy of a machine whose lease ended is kept once the machine is deleted.
    pub keep_copies: SignedDuration,
    /// How often it is looked whether they are used.
    pub idle_every: SignedDuration,
    /// After what time a machine is shut off again that did not go off when its lease ended.
    pub ends_again_after: SignedDuration,
}

impl Default for VmSettings {
    fn default() -> Self {
        VmSettings {
            ladder: Ladder::default(),
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

impl World {
    /// Ourselves where machines of a project are, and in our own; nothing, where there is no cloud. `place` is the cloud's project that one
    /// is in already.
    pub(crate) async fn session_for(
        &self,
        project: &str,
        place: Option<&str>,
    ) -> Result<Option<(Session, &Session)>, TenancyError> {
        let Some(premises) = &self.cloud else { return Ok(None) };
        let place = match place {
            Some(place) => place.to_owned(),
            None => premises.place_of(project).await?,
        };
        Ok(Some((premises.enter(&place).await?, premises.own())))
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
    /// What people may ask for.
    pub fn vm_settings(&self) -> &VmSettings {
        &self.world.settings.vms
    }

    /// An address that shows the console of a machine to whoever has it, for some minutes. It is a secret.
    ///
    /// # Errors
    ///
    /// When there is none, or the cloud cannot be asked.
    pub async fn console(&self, of: &Vm, kind: ConsoleKind) -> Result<Url, VmError> {
        let place = of.cloud_project.as_deref();
        let sessions = self.world.session_for(&of.project, place).await?;
        let (session, _) = sessions.ok_or(VmError::NoCloud)?;
        let server = of.server.as_ref().ok_or(VmError::NoServer)?;
        Ok(consoles::url(&session, &server.id, kind).await?)
    }
}
