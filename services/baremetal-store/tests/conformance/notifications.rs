//! Notifications are written in the transaction of the change that they report.

use baremetal_core::{
    Allocation, AllocationUuid, Chassis, InspectionRule, Node, NodePool, State, Stored,
};
use baremetal_store::{SeenPower, Store, StoreError, Subscription, Subscriptions};
use hardware::PowerState;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use spans::{KeptSpans, SpanKind};
use uuid::Uuid;

use crate::machine::port;
use crate::scratch::{at, bare_node, named, on_both};

on_both! { Store:
    changes_of_a_node_are_told_in_their_order
    a_refused_change_is_not_told
    without_webhooks_nothing_is_written
    parts_and_resources_are_told
    an_event_names_the_trace_of_the_change
}

/// The store with a webhook that gets these types, or all.
fn with_webhook(store: Store, kinds: &[&str]) -> Store {
    let kinds = kinds.iter().map(|raw| raw.parse().unwrap()).collect();
    let webhook = Subscription { webhook: "cmdb".to_owned(), kinds };
    store.with_subscriptions(Subscriptions::new("/baremetald/r1".to_owned(), vec![webhook]))
}

/// Takes all events out of the outbox, and returns their bodies in the order in which they are sent.
async fn take_all(store: &Store) -> Vec<Value> {
    let mut all = Vec::new();
    loop {
        let due =
            store.webhook_outbox().due("cmdb", Timestamp::MAX, SignedDuration::ZERO, 100).await;
        let due = due.unwrap();
        if due.is_empty() {
            return all;
        }
        for event in due {
            all.push(serde_json::from_str(&event.body).unwrap());
            store.webhook_outbox().remove(event.seq).await.unwrap();
        }
    }
}

/// The types of all events, without `baremetal.` at their beginning.
async fn kinds(store: &Store) -> Vec<String> {
    let kind = |event: &Value| event["type"].as_str().unwrap().replacen("baremetal.", "", 1);
    take_all(store).await.iter().map(kind).collect()
}

async fn changes_of_a_node_are_told_in_their_order(store: Store) {
    let store = with_webhook(store, &[]);
    let node = named("r1u7");
    store.insert_node(&node).await.unwrap();
    let owned = Node { owner: Some("p".to_owned()), ..node };
    let owned = store.update_node(&owned, &[]).await.unwrap();
    let seen = [SeenPower::of(&owned, PowerState::On)];
    store.record_power(&seen, at(1)).await.unwrap();
    let known = Node { version: owned.version + 1, power_state: Some(PowerState::On), ..owned };
    let moved = Node { provision_state: State::Manageable, ..known };
    let moved = store.update_node(&moved, &[]).await.unwrap();
    store.delete_node(&moved).await.unwrap();
    let all = take_all(&store).await;
    let kinds: Vec<&str> = all.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "baremetal.node.create.end",
            "baremetal.node.update.end",
            "baremetal.node.power_state_corrected.success",
            "baremetal.node.provision_set.success",
            "baremetal.node.delete.end",
        ]
    );
    for event in &all {
        assert_eq!(event["subject"], moved.id.to_string());
        assert_eq!(event["source"], "/baremetald/r1");
    }
}

async fn a_refused_change_is_not_told(store: Store) {
    let store = with_webhook(store, &[]);
    let node = named("r1u7");
    store.insert_node(&node).await.unwrap();
    let renamed = Node { owner: Some("p".to_owned()), ..node.clone() };
    store.update_node(&renamed, &[]).await.unwrap();
    assert_eq!(kinds(&store).await, ["node.create.end", "node.update.end"]);
    assert!(matches!(store.update_node(&renamed, &[]).await, Err(StoreError::Stale)));
    assert!(store.insert_node(&node).await.is_err());
    assert!(matches!(store.delete_node(&node).await, Err(StoreError::Stale)));
    let seen = [SeenPower::of(&node, PowerState::On)];
    assert_eq!(store.record_power(&seen, at(1)).await.unwrap(), 0);
    assert_eq!(kinds(&store).await, [""; 0]);
}

async fn without_webhooks_nothing_is_written(store: Store) {
    store.insert_node(&named("r1u7")).await.unwrap();
    assert_eq!(store.webhook_outbox().backlogs().await.unwrap(), []);
    let store = with_webhook(store, &["baremetal.port.*"]);
    store.insert_node(&bare_node()).await.unwrap();
    assert_eq!(store.webhook_outbox().backlogs().await.unwrap(), []);
}

async fn parts_and_resources_are_told(store: Store) {
    let store = with_webhook(store, &[]);
    let node = named("r1u7");
    store.insert_node(&node).await.unwrap();
    let port = port(&node, 7);
    store.insert_port(&port).await.unwrap();
    let port = store.update_port(&port).await.unwrap();
    store.delete_port(&port).await.unwrap();
    assert_eq!(kinds(&store).await, ["node.create.end", "port.create.end", "port.delete.end"]);

    let chassis = Stored::new(Uuid::new_v4(), Chassis::default(), at(0));
    store.insert_resource(&chassis).await.unwrap();
    let chassis = store.update_resource(&chassis).await.unwrap();
    assert!(store.delete_resource(&chassis).await.unwrap());
    let rule = Stored::new(Uuid::new_v4(), InspectionRule::default(), at(0));
    store.insert_resource(&rule).await.unwrap();
    store.delete_resources::<InspectionRule>().await.unwrap();
    let told = kinds(&store).await;
    for kind in ["chassis.create.end", "chassis.update.end", "chassis.delete.end"] {
        assert!(told.iter().any(|it| it == kind), "{told:?}");
    }
    assert!(told.iter().any(|it| it == "inspectionrule.delete.end"), "{told:?}");

    // No node is available, so the allocation fails.
    let allocation = Allocation {
        resource_class: Some("c".to_owned()),
        ..Allocation::new(AllocationUuid::new_v4(), at(0))
    };
    let failed = store.allocate(&allocation, &NodePool::All, at(0)).await.unwrap();
    store.delete_allocation(&failed, None, at(1)).await.unwrap();
    assert_eq!(kinds(&store).await, ["allocation.create.end", "allocation.delete.end"]);
}

async fn an_event_names_the_trace_of_the_change(store: Store) {
    let store = with_webhook(store, &[]);
    let request = KeptSpans::default().tracer(1.0).begin(None, SpanKind::Server, || "request");
    request.run(store.insert_node(&named("r1u7"))).await.unwrap();
    let all = take_all(&store).await;
    assert_eq!(all[0]["traceparent"], request.context().unwrap().traceparent());
}
