//! What may be asked of a machine as it is.

use jiff::Timestamp;

use crate::Desire;

use super::{Asker, Errand, ErrandKind, ServerIs, Vm, VmFlavor, VmImage, VmPhase};

/// Why something is not done to a machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VmRefusal {
    /// It is being deleted.
    #[error("it is being deleted")]
    Deleting,
    /// Its lease ended.
    #[error("its lease ended: extend it first")]
    Expired,
    /// Something else is being done to it.
    #[error("{0} is under way: wait until it is done")]
    Busy(ErrandKind),
    /// It is in no state in which that can be done.
    #[error("it is {0}")]
    State(VmPhase),
    /// It boots from a volume.
    #[error("it boots from a volume of its own, of which no snapshot is made")]
    Volume,
    /// It suits the image not.
    #[error(transparent)]
    TooSmall(#[from] NotSmaller),
    /// It boots from its flavor's disk, which does not shrink.
    #[error("its disk of {now} GiB cannot be made smaller: flavor {flavor} has {asked} GiB")]
    Shrinks {
        /// As it is.
        now: u64,
        /// As it would be.
        asked: u64,
        /// By which flavor.
        flavor: String,
    },
}

/// An image wants more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("image {image} needs at least {needs} {of}, and this gives it {given}")]
pub struct NotSmaller {
    /// Which image.
    pub image: String,
    /// How much it needs.
    pub needs: u64,
    /// Of what.
    pub of: &'static str,
    /// How much it would get.
    pub given: u64,
}

impl VmImage {
    /// Whether it runs on that.
    ///
    /// # Errors
    ///
    /// What there is too little of.
    pub fn check(&self, flavor: &VmFlavor, root_volume: Option<u32>) -> Result<(), NotSmaller> {
        let disk = root_volume.map_or(flavor.size.disk_gib, u64::from);
        let few =
            |needs: u64, of, given: u64| NotSmaller { image: self.name.clone(), needs, of, given };
        // A flavor without a disk has one as large as the image.
        let as_large = root_volume.is_none() && disk == 0;
        if disk < self.min_disk_gib && !as_large {
            return Err(few(self.min_disk_gib, "GiB of disk", disk));
        }
        if flavor.size.ram_mib < self.min_ram_mib {
            return Err(few(self.min_ram_mib, "MiB of memory", flavor.size.ram_mib));
        }
        Ok(())
    }
}

impl Vm {
    /// It, with an errand of its owner's.
    ///
    /// # Errors
    ///
    /// As it is, that cannot be done.
    pub fn with_errand(&self, kind: ErrandKind, now: Timestamp) -> Result<Vm, VmRefusal> {
        if self.desire == Desire::Gone {
            return Err(VmRefusal::Deleting);
        }
        if self.is_expired() {
            return Err(VmRefusal::Expired);
        }
        if let Some(under_way) = &self.errand {
            return Err(VmRefusal::Busy(under_way.kind.clone()));
        }
        let is = self.server.as_ref().filter(|_| self.built_at.is_some()).map(|server| &server.is);
        let may = match (&kind, is) {
            (_, None | Some(ServerIs::Leaving)) => false,
            (ErrandKind::RebootHard, Some(_)) => true,
            (_, Some(ServerIs::Failed(_))) => matches!(kind, ErrandKind::Stop),
            (_, Some(_)) => true,
        };
        if !may {
            return Err(VmRefusal::State(self.phase()));
        }
        if let ErrandKind::Resize(flavor) = &kind {
            self.image.check(flavor, self.root_volume)?;
            let (now, asked) = (self.flavor.size.disk_gib, flavor.size.disk_gib);
            if self.root_volume.is_none() && asked < now {
                return Err(VmRefusal::Shrinks { now, asked, flavor: flavor.name.clone() });
            }
        }
        let errand = Some(Errand::new(kind, Asker::Owner, now));
        Ok(Vm { errand, updated_at: Some(now), ..self.clone() })
    }

    /// It, to be deleted.
    pub fn leaving(&self, now: Timestamp) -> Vm {
        Vm { desire: Desire::Gone, errand: None, updated_at: Some(now), ..self.clone() }
    }

    /// Whether a snapshot can be made of it now.
    ///
    /// # Errors
    ///
    /// As it is, there is nothing to make one of.
    pub fn check_snapshot(&self) -> Result<(), VmRefusal> {
        match self.phase() {
            VmPhase::Deleting => Err(VmRefusal::Deleting),
            _ if self.root_volume.is_some() => Err(VmRefusal::Volume),
            VmPhase::Active | VmPhase::Stopped | VmPhase::Busy | VmPhase::Expired
                if self.has_copyable() =>
            {
                Ok(())
            }
            VmPhase::Active
            | VmPhase::Stopped
            | VmPhase::Busy
            | VmPhase::Expired
            | VmPhase::Building
            | VmPhase::Starting
            | VmPhase::Stopping
            | VmPhase::Rebooting
            | VmPhase::Resizing
            | VmPhase::Failed
            | VmPhase::Lost => Err(VmRefusal::State(self.phase())),
        }
    }

    /// Whether there is a server that a copy can be made of.
    pub(super) fn has_copyable(&self) -> bool {
        // An image of it would only name a snapshot in Cinder, for which the volume had to stay.
        if self.root_volume.is_some() {
            return false;
        }
        let is = self.server.as_ref().filter(|_| self.built_at.is_some()).map(|server| &server.is);
        match is {
            None | Some(ServerIs::Failed(_) | ServerIs::Leaving | ServerIs::Building) => false,
            Some(
                ServerIs::On
                | ServerIs::Off
                | ServerIs::Resized
                | ServerIs::Changing
                | ServerIs::Other(_),
            ) => true,
        }
    }
}
