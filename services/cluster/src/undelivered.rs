//! Records notices that could not be sent as events of the cluster or VM that they are about.

use cluster_conductor::Conductor;
use cluster_core::{Event, Severity, VmEvent};
use cluster_store::{AnyEvent, Store, StoreError};
use jiff::Timestamp;
use notices::{Notice, RecordGivenUp};
use tracing::warn;

const REASON: &str = "NoticeGivenUp";

/// Records a notice that the outbox gave up as an event.
pub(crate) struct UndeliveredAsEvent {
    pub(crate) store: Store,
    pub(crate) conductor: Conductor,
}

impl RecordGivenUp for UndeliveredAsEvent {
    fn may_send(&self) -> bool {
        self.conductor.has_task("notices")
    }

    async fn given_up(&self, letter: i64, notice: &Notice, why: &str) -> Result<(), StoreError> {
        warn!(notice.id = %notice.id, "gave up sending the notice of {}: {why}", notice.event);
        let said = event_for(notice, why, Timestamp::now());
        match self.store.give_up_letter(letter, said.as_ref()).await {
            // The cluster or VM was deleted, so the event has no owner. The notice is removed from the outbox without an event.
            Err(StoreError::NoOwner { .. }) => self.store.give_up_letter(letter, None).await,
            written => written,
        }
    }
}

/// Returns the event, or `None` if the subject of the notice has no events.
fn event_for(notice: &Notice, why: &str, at: Timestamp) -> Option<AnyEvent> {
    let message = format!("gave up sending the notice {:?}: {why}", notice.event);
    let id = &notice.about.id;
    match notice.about.kind.as_str() {
        "cluster" => {
            let (cluster, severity) = (id.parse().ok()?, Severity::Warning);
            let reason = REASON.to_owned();
            let event = Event { id: None, cluster, at, severity, reason, message };
            Some(AnyEvent::Cluster(event))
        }
        "machine" => {
            let vm = id.parse().ok()?;
            Some(AnyEvent::Vm(VmEvent::new(vm, Severity::Warning, REASON, message, at)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use notices::NoticeSubject;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_notice_about_a_cluster_or_vm_becomes_its_event() {
        let notice = |kind: &str| Notice {
            id: Uuid::nil(),
            at: Timestamp::UNIX_EPOCH,
            event: "lease.ends".to_owned(),
            subject: String::new(),
            text: String::new(),
            project_id: None,
            about: NoticeSubject {
                kind: kind.to_owned(),
                id: Uuid::nil().to_string(),
                name: String::new(),
            },
            details: Default::default(),
        };
        let said = |kind: &str| event_for(&notice(kind), "why", Timestamp::UNIX_EPOCH);
        let message = "gave up sending the notice \"lease.ends\": why";
        assert!(matches!(said("cluster"), Some(AnyEvent::Cluster(it)) if it.message == message));
        assert!(matches!(said("machine"), Some(AnyEvent::Vm(it)) if it.message == message));
        assert!(said("node").is_none());
    }
}
