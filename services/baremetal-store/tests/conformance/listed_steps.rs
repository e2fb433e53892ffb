//! The steps that agents listed.

use baremetal_core::{
    Interface, ListedSteps, OfferedStep, StepArgument, StepKind, StepName, StepRunner,
};
use baremetal_store::{Store, StoreError};

use crate::scratch::{at, bare_node, on_both};

on_both! { Store:
    a_list_replaces_the_earlier_list_of_its_kind
    deleting_a_node_deletes_its_lists
}

fn listed(kind: StepKind, step: &str, seconds: i64) -> ListedSteps {
    let argument = StepArgument { description: "the \u{20ac} sign".to_owned(), is_required: true };
    let offered = OfferedStep {
        runner: StepRunner::Agent,
        name: StepName { interface: Interface::Raid, step: step.to_owned() },
        priority: 9,
        args: [("settings".to_owned(), argument)].into(),
        reboots: true,
        needs_ramdisk: true,
    };
    ListedSteps { kind, listed_at: at(seconds), steps: vec![offered] }
}

async fn a_list_replaces_the_earlier_list_of_its_kind(store: Store) {
    let [node, other] = [bare_node(), bare_node()];
    for node in [&node, &other] {
        store.insert_node(node).await.unwrap();
        store.keep_listed_steps(node.id, &listed(StepKind::Clean, "a", 1)).await.unwrap();
    }
    store.keep_listed_steps(node.id, &listed(StepKind::Deploy, "b", 2)).await.unwrap();
    store.keep_listed_steps(node.id, &listed(StepKind::Clean, "c", 3)).await.unwrap();

    let clean = store.find_listed_steps(node.id, StepKind::Clean).await.unwrap();
    assert_eq!(clean, Some(listed(StepKind::Clean, "c", 3)));
    let deploy = store.find_listed_steps(node.id, StepKind::Deploy).await.unwrap();
    assert_eq!(deploy, Some(listed(StepKind::Deploy, "b", 2)));
    assert_eq!(store.find_listed_steps(node.id, StepKind::Service).await.unwrap(), None);
    let of_other = store.find_listed_steps(other.id, StepKind::Clean).await.unwrap();
    assert_eq!(of_other, Some(listed(StepKind::Clean, "a", 1)));
}

async fn deleting_a_node_deletes_its_lists(store: Store) {
    let node = bare_node();
    let list = listed(StepKind::Clean, "a", 1);
    let refused = store.keep_listed_steps(node.id, &list).await;
    assert!(matches!(refused, Err(StoreError::NoOwner { owner: "node", .. })), "{refused:?}");
    store.insert_node(&node).await.unwrap();
    store.keep_listed_steps(node.id, &list).await.unwrap();
    store.delete_node(&node).await.unwrap();
    assert_eq!(store.find_listed_steps(node.id, StepKind::Clean).await.unwrap(), None);
}
