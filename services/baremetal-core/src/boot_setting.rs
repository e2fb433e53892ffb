//! Requests to change how the firmware of a machine boots.

use hardware::{BootSetting, BootSettings};
use jiff::Timestamp;
use lease::RequiredState;

use crate::{
    BootSettingRequest, BootSettingStage, Failure, HistoryEntry, Node, Reason, RequestRefused,
};

const VERB: &str = "change a boot setting";

/// Requests a change of a boot setting. As in Ironic, the request is accepted before the driver is asked. If the driver of the node cannot
/// change such a setting, the request fails at once: the node has the failure, and its setting stays.
///
/// After a failure, the end of a lease waits before the next attempt, and a drain tells its obstacle again. Repeated requests would prolong
/// both, so requests are refused meanwhile.
pub fn request_boot_setting(
    node: &Node,
    wanted: BootSetting,
    now: Timestamp,
) -> Result<(Node, HistoryEntry), RequestRefused> {
    if node.provision_state.is_busy() {
        return Err(RequestRefused::Locked { node: node.label(), state: node.provision_state });
    }
    check_unchanging(node)?;
    check_stays(node, VERB)?;
    if !node.management_interface().is_redfish() {
        let cause = cannot(node, wanted);
        let failure = Failure::new(Reason::Unsupported, cause);
        let event = failure.to_string();
        let after = Node { failure: Some(failure), ..node.clone() };
        let entry = HistoryEntry::failed(node, &after, event, now);
        return Ok((after, entry));
    }
    let request = BootSettingRequest { wanted, stage: BootSettingStage::Asking, since: now };
    // A new operation clears the failure of the last one, as in Ironic.
    let after = Node { boot_setting_request: Some(request), failure: None, ..node.clone() };
    let event = format!("a change of the {wanted} requested");
    let entry = HistoryEntry::changed(node, &after, event, now);
    Ok((after, entry))
}

/// Returns why the driver of a node, or the management interface that the node uses, cannot carry out a change.
fn cannot(node: &Node, wanted: BootSetting) -> String {
    let interface = node.management_interface().as_str();
    if node.driver.speaks_redfish() {
        return format!(
            "cannot change the {wanted}: the management interface {interface} does not support it"
        );
    }
    format!("cannot change the {wanted}: driver {} does not support it", node.driver)
}

/// Refuses a request to a node whose lease has ended, or whose compute host is drained. `verb` names the request.
pub(crate) fn check_stays(node: &Node, verb: &'static str) -> Result<(), RequestRefused> {
    if node.wanted_by_lease() != RequiredState::AsRequested {
        return Err(RequestRefused::LeaseEnded { node: node.label(), verb });
    }
    if let Some(leaving) = node.leaving.as_ref().filter(|leaving| leaving.is_waiting()) {
        return Err(RequestRefused::Leaving {
            node: node.label(),
            host: leaving.host.clone(),
            then: leaving.then.as_str(),
            verb,
        });
    }
    Ok(())
}

/// Refuses a request to a node whose boot setting is being changed, because the change may restart the machine, or whose BMC may have
/// another password than the record.
pub(crate) fn check_unchanging(node: &Node) -> Result<(), RequestRefused> {
    if let Some(request) = &node.boot_setting_request {
        let wanted = request.wanted;
        return Err(RequestRefused::BootSetting { node: node.label(), wanted });
    }
    let Some(rotation) = &node.password_rotation else { return Ok(()) };
    let advice = match rotation.is_in_progress() {
        true => "try again when it is done",
        false => "request the change again, or enter the password in driver_info",
    };
    Err(RequestRefused::Password { node: node.label(), advice })
}

impl Node {
    /// Returns the node with the boot settings that its BMC reports. A BMC that reports no boot mode leaves the mode that an inspection found.
    pub fn with_boot_settings(&self, settings: BootSettings) -> Node {
        Node {
            boot_mode: settings.mode.or(self.boot_mode),
            secure_boot: settings.secure_boot,
            ..self.clone()
        }
    }

    /// Whether [`Node::with_boot_settings`] would change nothing.
    pub fn has_boot_settings(&self, settings: BootSettings) -> bool {
        settings.mode.is_none_or(|mode| self.boot_mode == Some(mode))
            && self.secure_boot == settings.secure_boot
    }
}

#[cfg(test)]
mod tests {
    use hardware::{BootMode, PowerChange};

    use super::*;
    use crate::drain_request::tests::{leaving, off};
    use crate::lending::tests::{ended, lent};
    use crate::{
        DrainStage, Driver, ManagementInterface, NodeUuid, State, Verb, WorkUuid, request_power,
        request_verb,
    };

    const T0: Timestamp = Timestamp::UNIX_EPOCH;

    fn redfish() -> Node {
        let node = Node::new(NodeUuid::nil(), Driver::Redfish, T0);
        Node { provision_state: State::Enroll, ..node }
    }

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
    fn a_request_to_a_redfish_node_waits_in_the_record_and_locks_the_node() {
        let wanted = BootSetting::SecureBoot(true);
        let node = Node { failure: Some(Failure::new(Reason::Aborted, "x")), ..redfish() };
        let (after, entry) = request_boot_setting(&node, wanted, T0).unwrap();
        let stage = BootSettingStage::Asking;
        let request = BootSettingRequest { wanted, stage, since: T0 };
        assert_eq!((&after.boot_setting_request, &after.failure), (&Some(request), &None));
        assert_eq!(entry.event, "a change of the secure boot to on requested");
        let locked = request_boot_setting(&after, wanted, T0).unwrap_err();
        let words = "is locked while a change of the secure boot to on is in progress; try again when it is done";
        assert!(locked.to_string().ends_with(words), "{locked}");
        let power = request_power(&after, PowerChange::On, T0);
        assert_eq!(power, Err(locked.clone()));
        let verb = request_verb(&after, Verb::Manage, WorkUuid::nil(), T0);
        assert_eq!(verb.map(|_| ()), Err(locked));
    }

    #[test]
    fn a_node_whose_machine_is_managed_by_a_person_cannot_change_its_settings() {
        let mut node = redfish();
        node.interfaces.management = Some(ManagementInterface::Noop);
        let (after, _) = request_boot_setting(&node, BootSetting::SecureBoot(true), T0).unwrap();
        let words = "cannot change the secure boot to on: the management interface noop does not support it";
        assert_eq!(after.failure.map(|failure| failure.cause).as_deref(), Some(words));
    }

    #[test]
    fn the_mode_of_an_inspection_stays_if_the_bmc_reports_none() {
        let node = Node { boot_mode: Some(BootMode::Uefi), ..redfish() };
        let none = BootSettings { mode: None, secure_boot: Some(true) };
        assert!(!node.has_boot_settings(none));
        let after = node.with_boot_settings(none);
        assert_eq!((after.boot_mode, after.secure_boot), (Some(BootMode::Uefi), Some(true)));
        assert!(after.has_boot_settings(none));
        let bios = BootSettings { mode: Some(BootMode::Bios), secure_boot: None };
        assert!(!after.has_boot_settings(bios));
        let after = after.with_boot_settings(bios);
        assert_eq!((after.boot_mode, after.secure_boot), (Some(BootMode::Bios), None));
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
