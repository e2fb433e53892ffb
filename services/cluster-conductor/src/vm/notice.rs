//! The notices about the lease of a VM.

use cluster_core::{LeaseNotice, Vm};
use jiff::Timestamp;
use newtype_uuid::GenericUuid;
use notices::{Letter, Notice, NoticeSubject, ReceiverKinds};
use serde_json::{Map, Value};
use uuid::Uuid;

/// Returns the letters about stages of a VM's lease: to the administrator's webhook, and to the VM's contact address.
pub(super) fn letters(
    addressees: ReceiverKinds,
    (vm, notices): (&Vm, &[LeaseNotice]),
    now: Timestamp,
) -> Vec<Letter> {
    let letters =
        |lease_notice| addressees.letters(&notice(vm, lease_notice, now), vm.notify.as_ref());
    notices.iter().flat_map(letters).collect()
}

fn notice(vm: &Vm, lease_notice: &LeaseNotice, now: Timestamp) -> Notice {
    let happens_at =
        lease_notice.happens_at.map(|at| ("happens_at".to_owned(), Value::from(at.to_string())));
    let until = vm.lease.as_ref().map(|lease| lease.until.to_string());
    let until = until.map(|until| ("lease_until".to_owned(), Value::from(until)));
    let owner = ("user_id".to_owned(), Value::from(vm.user.as_str()));
    let ways = "Extend the lease with bedplate vm extend, undo its end with bedplate vm undo, or use PUT /bedplate/v1/machines/ID/lease.";
    Notice {
        id: Uuid::new_v4(),
        at: now,
        event: lease_notice.event.to_owned(),
        subject: format!("VM {}: {}", vm.name, lease_notice.message),
        text: format!("VM {} ({}): {}.\n\n{ways}", vm.name, vm.id, lease_notice.message),
        project_id: Some(vm.project.clone()),
        about: NoticeSubject {
            kind: "machine".to_owned(),
            id: vm.id.into_untyped_uuid().to_string(),
            name: vm.name.to_string(),
        },
        details: Map::from_iter(happens_at.into_iter().chain(until).chain([owner])),
    }
}
