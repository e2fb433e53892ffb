//! The revisions of a cluster's certificate authorities.
//!
//! A revision numbers the set of CAs that all members must hold. A rotation is four revisions. The procedure is "Manual Rotation of
//! CA Certificates" in the documentation of Kubernetes.

use serde::{Deserialize, Serialize};

/// The number of revisions in a rotation.
const STEPS: u32 = 4;

/// The certificate authorities of a cluster, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaRevision {
    /// The revision that all members must hold.
    pub revision: u32,
    /// The last revision that completed a rotation; equal to `revision` when no rotation is in progress.
    pub settled: u32,
}

/// The purpose of a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotationStep {
    /// Members trust the new CAs besides the old CAs; the old CAs still sign.
    TrustBoth,
    /// The new CAs sign: the control plane gets new certificates.
    NewSigns,
    /// Kubelets get certificates from the new CAs.
    KubeletsAsk,
    /// Members no longer trust the old CAs.
    TrustNew,
}

impl CaRevision {
    /// Whether no rotation is in progress.
    pub fn is_settled(self) -> bool {
        self.revision == self.settled
    }

    /// Returns the purpose of the current revision. After a rotation this is `TrustNew`.
    pub fn step(self) -> RotationStep {
        match self.revision % STEPS {
            1 => RotationStep::TrustBoth,
            2 => RotationStep::NewSigns,
            3 => RotationStep::KubeletsAsk,
            _ => RotationStep::TrustNew,
        }
    }

    /// Returns the generation of the CAs that sign, counted from 0, and the generation that is trusted besides.
    pub fn generations(self) -> (u32, Option<u32>) {
        let old = self.revision / STEPS;
        match self.step() {
            RotationStep::TrustBoth => (old, Some(old + 1)),
            RotationStep::NewSigns | RotationStep::KubeletsAsk => (old + 1, Some(old)),
            RotationStep::TrustNew => (old, None),
        }
    }

    /// Returns the CAs of a cluster that has no members yet: the next generation, without a rotation.
    pub fn replaced(self) -> CaRevision {
        let revision = self.revision + STEPS;
        CaRevision { revision, settled: revision }
    }

    /// Whether the step changes the CAs that pods trust, so that they must be restarted.
    pub fn has_to_renew(self) -> bool {
        matches!(self.step(), RotationStep::TrustBoth | RotationStep::TrustNew)
    }
}

impl RotationStep {
    /// Returns the name of the step in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            RotationStep::TrustBoth => "TrustBoth",
            RotationStep::NewSigns => "NewSigns",
            RotationStep::KubeletsAsk => "KubeletsAsk",
            RotationStep::TrustNew => "TrustNew",
        }
    }

    /// Describes the step for people.
    pub fn describe(self) -> &'static str {
        match self {
            RotationStep::TrustBoth => {
                "members learn to trust the new certificate authorities besides the old ones"
            }
            RotationStep::NewSigns => {
                "the control plane gets certificates from the new certificate authorities"
            }
            RotationStep::KubeletsAsk => {
                "kubelets get certificates from the new certificate authorities"
            }
            RotationStep::TrustNew => "members stop trusting the old certificate authorities",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_restarted_when_the_trusted_authorities_change() {
        let renews = (1..=8).filter(|revision| {
            CaRevision { revision: *revision, ..CaRevision::default() }.has_to_renew()
        });
        assert_eq!(Vec::from_iter(renews), [1, 4, 5, 8]);
    }
}
