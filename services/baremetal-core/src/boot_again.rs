//! A boot of the ramdisk that the service missed, because the service restarted, or its database was away, while the machine booted: the machine
//! boots the ramdisk again.

use jiff::Timestamp;

use crate::{Event, HistoryEntry, IllegalEvent, Node, Work, WorkUuid};

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
}

/// The node once it is to boot the ramdisk again: at the task that switches its machine off, before the network boot is set.
///
/// `work` replaces the id of the work: the capability and the token of the missed boot derive from the old id and are refused from now on.
pub fn boot_again(
    node: &Node,
    work: WorkUuid,
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
    let event = "the service or its database was away during the boot, and no agent reported: the machine boots the ramdisk again";
    let entry = HistoryEntry::changed(node, &again, event.to_owned(), now);
    Ok((again, entry))
}
