//! Fast track: the ramdisk of work that is over stays on, and the next work uses its agent without a boot, as with Ironic's `fast_track`.

use hardware::PowerState;
use serde_json::Value;

use crate::{Node, RequestRefused, State, Task, Work};

/// The key of `driver_info` by which a node differs from the configuration.
const KEY: &str = "fast_track";

impl Node {
    /// Returns whether the ramdisk stays on when an inspection or a cleaning of this node is over; `configured` is the service's setting.
    ///
    /// The networks of Neutron change only while a machine is off. An agent that somebody else boots gets its token during the work that waits
    /// for it. A retired node gets no more work.
    pub fn keeps_ramdisk(&self, configured: bool) -> bool {
        let wanted = self.driver_info.get(KEY).and_then(flag).unwrap_or(configured);
        wanted
            && self.uses_agent()
            && !self.switches_networks()
            && !self.is_booted_by_others()
            && self.retired.is_none()
    }

    /// Returns whether the ramdisk of earlier work may still run on the machine of this node, which has no work.
    pub fn may_run_idle_ramdisk(&self, configured: bool) -> bool {
        let is_between = matches!(self.provision_state, State::Manageable | State::Available);
        self.work.is_none() && is_between && self.keeps_ramdisk(configured)
    }

    /// Returns whether the current task is the last of the ramdisk, and the ramdisk stays on for other work.
    pub(crate) fn leaves_ramdisk_on(&self, configured: bool) -> bool {
        self.work.as_ref().is_some_and(Work::has_done_with_ramdisk)
            && self.keeps_ramdisk(configured)
    }

    /// Returns whether the current task begins a boot of the ramdisk that an agent of earlier work makes needless.
    pub fn may_use_idle_ramdisk(&self, configured: bool) -> bool {
        self.work.as_ref().is_some_and(Work::begins_first_boot) && self.keeps_ramdisk(configured)
    }
}

impl Work {
    /// Returns whether the current task switches the machine off for the first boot of the ramdisk, after which an agent is awaited. The BMC was
    /// not asked yet.
    fn begins_first_boot(&self) -> bool {
        let rest = self.tasks.get(self.cursor..).unwrap_or_default();
        rest.starts_with(&Task::boot_and(Task::AwaitAgent))
            && self.last_boot().is_none()
            && self.asked_at.is_none()
    }

    /// Returns whether the current task is the last of the ramdisk in an inspection or a cleaning: the next one switches the machine off.
    fn has_done_with_ramdisk(&self) -> bool {
        let rest = self.tasks.get(self.cursor + 1..).unwrap_or_default();
        self.last_boot().is_some() && matches!(rest, [Task::Power(PowerState::Off), Task::BootDisk])
    }
}

/// Checks the key `fast_track` of `driver_info`.
pub(crate) fn check_fast_track(node: &Node) -> Result<(), RequestRefused> {
    match node.driver_info.get(KEY) {
        Some(value) if flag(value).is_none() && !value.is_null() => Err(RequestRefused::Field {
            field: format!("driver_info.{KEY}"),
            problem: "must be true or false".to_owned(),
        }),
        Some(_) | None => Ok(()),
    }
}

/// Reads a flag as Ironic does (oslo.utils, `bool_from_string` with `strict`).
pub(crate) fn flag(value: &Value) -> Option<bool> {
    let text = match value {
        Value::Bool(flag) => return Some(*flag),
        Value::String(text) => text.trim().to_ascii_lowercase(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    match &*text {
        "1" | "t" | "true" | "on" | "y" | "yes" => Some(true),
        "0" | "f" | "false" | "off" | "n" | "no" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::{BootInterface, DeployInterface, Driver, NetworkInterface, NodeUuid, WorkUuid};

    fn node() -> Node {
        let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        node.provision_state = State::Available;
        node
    }

    #[test]
    fn a_node_may_differ_from_the_configuration() {
        for configured in [true, false] {
            assert_eq!(node().keeps_ramdisk(configured), configured);
            let with = |value: Value| {
                let mut node = node();
                node.driver_info.insert(KEY.to_owned(), value);
                (node.keeps_ramdisk(configured), check_fast_track(&node).is_ok())
            };
            assert_eq!(with(json!(true)), (true, true));
            assert_eq!(with(json!("Yes")), (true, true));
            assert_eq!(with(json!(0)), (false, true));
            assert_eq!(with(json!("off")), (false, true));
            assert_eq!(with(json!(null)), (configured, true));
            for wrong in [json!("maybe"), json!(2), json!([true])] {
                assert_eq!(with(wrong.clone()), (configured, false), "{wrong}");
            }
        }
    }

    #[test]
    fn a_ramdisk_stays_on_only_if_the_next_work_can_use_it() {
        let check = |change: fn(&mut Node)| {
            let mut node = node();
            change(&mut node);
            assert!(!node.keeps_ramdisk(true));
        };
        check(|node| node.driver = Driver::FakeHardware);
        check(|node| node.interfaces.deploy = Some(DeployInterface::Fake));
        check(|node| node.interfaces.network = Some(NetworkInterface::Neutron));
        check(|node| node.retired = Some(String::new()));
        check(|node| {
            node.interfaces.boot = Some(BootInterface::VirtualMedia);
            node.driver_info.insert("deploy_iso".to_owned(), "http://h/i".into());
        });
    }

    #[test]
    fn an_idle_ramdisk_runs_only_between_two_works() {
        let mut idle = node();
        assert!(idle.may_run_idle_ramdisk(true) && !idle.may_run_idle_ramdisk(false));
        idle.provision_state = State::Active;
        assert!(!idle.may_run_idle_ramdisk(true));
        idle.provision_state = State::Manageable;
        assert!(idle.may_run_idle_ramdisk(true));
        idle.work = Some(Work::new(WorkUuid::nil(), Vec::new(), Timestamp::UNIX_EPOCH));
        assert!(!idle.may_run_idle_ramdisk(true));
    }

    #[test]
    fn only_the_first_boot_of_work_is_needless() {
        let boot = Task::boot_and(Task::AwaitAgent);
        let at = |cursor, tasks: Vec<Task>| {
            let work = Work::new(WorkUuid::nil(), tasks, Timestamp::UNIX_EPOCH);
            let mut node = node();
            node.work = Some(Work { cursor, ..work });
            node
        };
        assert!(at(0, boot.to_vec()).may_use_idle_ramdisk(true));
        assert!(!at(0, boot.to_vec()).may_use_idle_ramdisk(false));
        assert!(!at(1, boot.to_vec()).may_use_idle_ramdisk(true), "it is off already");
        assert!(!at(4, [boot.clone(), boot.clone()].concat()).may_use_idle_ramdisk(true));
        let inspection = Task::boot_and(Task::AwaitInventory).to_vec();
        assert!(!at(0, inspection).may_use_idle_ramdisk(true), "the agent looks when it starts");
        let clean = [Task::Power(PowerState::Off), Task::BootDisk];
        assert!(!at(0, [&[Task::TryBmc], &clean[..]].concat()).leaves_ramdisk_on(true));
        assert!(at(3, [&boot[..], &clean].concat()).leaves_ramdisk_on(true));
        assert!(!at(2, [&boot[..], &clean].concat()).leaves_ramdisk_on(true));
        let mut asked = at(0, boot.to_vec());
        asked.work.as_mut().unwrap().asked_at = Some(Timestamp::UNIX_EPOCH);
        assert!(!asked.may_use_idle_ramdisk(true));
    }
}
