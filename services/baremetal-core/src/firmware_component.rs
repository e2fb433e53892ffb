//! The components of a machine with firmware of their own, as the BMC reports their versions.

use hardware::Firmware;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A component with firmware of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirmwareComponent {
    /// `bios` or `bmc`.
    pub component: String,
    /// The version that was read first.
    pub initial_version: String,
    /// The version that was read last.
    pub current_version: String,
    /// The version that replaced another one, if any did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_version_flashed: Option<String>,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
}

impl FirmwareComponent {
    /// Returns the components once these versions were read at `now`. A component that the BMC does not report any more is kept, as in
    /// Ironic.
    pub(crate) fn read_again(
        known: &[FirmwareComponent],
        read: &[Firmware],
        now: Timestamp,
    ) -> Vec<FirmwareComponent> {
        let mut components = known.to_vec();
        for Firmware { component, version } in read {
            let known = components.iter_mut().find(|known| known.component == *component);
            match known {
                Some(known) if known.current_version == *version => {}
                Some(known) => {
                    known.current_version.clone_from(version);
                    known.last_version_flashed = Some(version.clone());
                    known.updated_at = Some(now);
                }
                None => components.push(FirmwareComponent {
                    component: component.clone(),
                    initial_version: version.clone(),
                    current_version: version.clone(),
                    last_version_flashed: None,
                    created_at: now,
                    updated_at: None,
                }),
            }
        }
        components
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_changed_version_is_told_apart_from_the_first() {
        let (first, later) =
            (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH + Duration::from_secs(9));
        let read = |component: &str, version: &str| Firmware {
            component: component.to_owned(),
            version: version.to_owned(),
        };
        let again = FirmwareComponent::read_again;
        let known = again(&[], &[read("bios", "1.0"), read("bmc", "2.0")], first);
        assert_eq!(again(&known, &[read("bios", "1.0")], later), known);
        let known = again(&known, &[read("bmc", "2.1")], later);
        let [bios, bmc] = &known[..] else { panic!("{known:?}") };
        assert_eq!((&*bios.current_version, bios.updated_at), ("1.0", None));
        assert_eq!((&*bmc.initial_version, &*bmc.current_version), ("2.0", "2.1"));
        assert_eq!(bmc.last_version_flashed.as_deref(), Some("2.1"));
        assert_eq!((bmc.created_at, bmc.updated_at), (first, Some(later)));
    }
}
