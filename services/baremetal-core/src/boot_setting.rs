//! Requests to change how the firmware of a machine boots.

use std::fmt;

use hardware::BootMode;
use jiff::Timestamp;
use lease::RequiredState;

use crate::{Failure, HistoryEntry, Node, Reason, RequestRefused};

/// A setting of the firmware that operators change on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootSetting {
    Mode(BootMode),
    /// Whether the firmware starts only signed programs.
    SecureBoot(bool),
}

impl fmt::Display for BootSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BootSetting::Mode(mode) => write!(f, "boot mode to {}", mode.as_str()),
            BootSetting::SecureBoot(true) => f.write_str("secure boot to on"),
            BootSetting::SecureBoot(false) => f.write_str("secure boot to off"),
        }
    }
}

/// Requests a change of a boot setting. As in Ironic, the request is accepted before the driver is asked. No driver here can change such a
/// setting, so the request fails at once: the node has the failure, and its setting stays.
///
/// After a failure, the end of a lease waits before the next attempt, and a drain tells its obstacle again. Repeated requests would prolong
/// both, so requests are refused meanwhile.
pub fn request_boot_setting(
    node: &Node,
    wanted: BootSetting,
    now: Timestamp,
) -> Result<(Node, HistoryEntry), RequestRefused> {
    const VERB: &str = "change a boot setting";
    if node.provision_state.is_busy() {
        return Err(RequestRefused::Locked { node: node.label(), state: node.provision_state });
    }
    if node.wanted_by_lease() != RequiredState::AsRequested {
        return Err(RequestRefused::LeaseEnded { node: node.label(), verb: VERB });
    }
    if let Some(leaving) = node.leaving.as_ref().filter(|leaving| leaving.is_waiting()) {
        return Err(RequestRefused::Leaving {
            node: node.label(),
            host: leaving.host.clone(),
            then: leaving.then.as_str(),
            verb: VERB,
        });
    }
    let cause = format!("cannot change the {wanted}: driver {} does not support it", node.driver);
    let failure = Failure::new(Reason::Unsupported, cause);
    let event = failure.to_string();
    let after = Node { failure: Some(failure), ..node.clone() };
    let entry = HistoryEntry::failed(node, &after, event, now);
    Ok((after, entry))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drain_request::tests::{leaving, off};
    use crate::lending::tests::{ended, lent};
    use crate::{DrainStage, Driver, NodeUuid, State};

    const T0: Timestamp = Timestamp::UNIX_EPOCH;

    #[test]
    fn a_request_is_accepted_and_fails() {
        let node = Node::new(NodeUuid::nil(), Driver::FakeHardware, T0);
        let wanted = BootSetting::Mode(BootMode::Uefi);
        let (after, entry) = request_boot_setting(&node, wanted, T0).unwrap();
        let words = "cannot change the boot mode to uefi: driver fake-hardware does not support it. \
             Hint: change the setting in the machine's firmware setup.";
        assert_eq!(entry.event, words);
        assert_eq!(after.failure.as_ref().map(ToString::to_string).as_deref(), Some(words));
        assert_eq!(Node { failure: None, ..after }, node);
    }

    #[test]
    fn a_request_does_not_disturb_work_the_end_of_a_lease_or_a_drain() {
        let request = |node: &Node| request_boot_setting(node, BootSetting::SecureBoot(true), T0);
        assert!(request(&lent(State::Active)).is_ok());
        let busy = request(&lent(State::Deploying));
        assert!(matches!(busy, Err(RequestRefused::Locked { .. })), "{busy:?}");
        let over = request(&ended(State::Active));
        assert!(matches!(over, Err(RequestRefused::LeaseEnded { .. })), "{over:?}");
        let drained = Some(leaving(off(), DrainStage::Wanted));
        let drained = request(&Node { leaving: drained, ..lent(State::Active) });
        assert!(matches!(drained, Err(RequestRefused::Leaving { .. })), "{drained:?}");
    }
}
