//! A boot of the ramdisk whose outcome the service missed, because the service restarted, or its database was away: the machine boots the
//! ramdisk again.

use jiff::Timestamp;

use crate::{AgentCommand, Event, HistoryEntry, IllegalEvent, Node, Task, Work, WorkUuid};

/// How many times one work repeats the boot of the ramdisk. Without a bound, a service that restarts again and again would power-cycle the
/// machine for ever.
pub(crate) const MOST_REPEATED_BOOTS: u32 = 5;

impl Work {
    /// Whether the service may have missed a part of the boot that is waited for, and may repeat that boot.
    ///
    /// A machine that asked for its address or its boot script while the service or its database was down boots its disk, and its agent never reports.
    pub(crate) fn missed_boot(&self, watching_since: Timestamp) -> bool {
        self.switched_on_at.is_some_and(|at| at < watching_since)
            && self.repeated_boots < MOST_REPEATED_BOOTS
    }

    /// Whether the service restarted after it had sent the agent the rescue password, and may repeat the boot.
    pub(crate) fn lost_rescue(&self, watching_since: Timestamp) -> bool {
        self.task() == Some(&Task::Agent(AgentCommand::FinalizeRescue))
            && self.intent.is_some()
            && self.task_started_at < watching_since
            && self.repeated_boots < MOST_REPEATED_BOOTS
    }
}

/// Why a machine boots the ramdisk again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootAgain {
    /// The service or its database was away during the boot, and no agent reported.
    Missed,
    /// The service restarted while the agent was given the rescue password. The agent ends after this command, so nobody can tell whether the
    /// password is set.
    RescueUnknown,
}

impl BootAgain {
    const fn as_str(self) -> &'static str {
        match self {
            BootAgain::Missed => {
                "the service or its database was away during the boot, and no agent reported"
            }
            BootAgain::RescueUnknown => {
                "the service restarted while the rescue password was set, and the agent does not answer"
            }
        }
    }
}

/// The node once it is to boot the ramdisk again: at the task that switches its machine off, before the network boot is set.
///
/// `work` replaces the id of the work: the capability and the token of the missed boot derive from the old id and are refused from now on.
pub fn boot_again(
    node: &Node,
    work: WorkUuid,
    why: BootAgain,
    now: Timestamp,
) -> Result<(Node, HistoryEntry), IllegalEvent> {
    let mut again = node.clone();
    if let Some(repeated) = &mut again.work {
        let boot = repeated.last_boot();
        repeated.id = work;
        // The machine is switched off right before each boot of the ramdisk.
        repeated.cursor = boot.map_or(repeated.cursor, |boot| boot.saturating_sub(1));
        repeated.task_started_at = now;
        repeated.intent = None;
        repeated.asked_at = None;
        repeated.switched_on_at = None;
        repeated.repeated_boots += 1;
    }
    again.provision_state = node.provision_state.on(Event::Resume)?;
    again.provision_updated_at = Some(now);
    let event = format!("{}: the machine boots the ramdisk again", why.as_str());
    let entry = HistoryEntry::changed(node, &again, event, now);
    Ok((again, entry))
}
