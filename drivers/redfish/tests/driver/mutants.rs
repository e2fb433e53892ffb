//! Mutates the resource trees: the driver must answer or report an error for every mutation, without a panic and without an endless loop.

use std::collections::BTreeMap;
use std::time::Duration;

use bmc::IdentifyLight;
use hardware::{BootDevice, BootOverride, Persistence, PowerChange};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};
use redfish::Auth;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::fixture::{Fixture, silent};

const TREES: [&str; 3] = [
    include_str!("trees/dell.json"),
    include_str!("trees/hpe.json"),
    include_str!("trees/supermicro.json"),
];

/// More requests than one inventory of a full server takes.
const MOST_REQUESTS: usize = 3000;

/// Values of other types, or of other resources, that may replace a property.
fn odd_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,40}".prop_map(Value::from),
        Just(json!({"@odata.id": "/redfish/v1"})),
        Just(json!({"@odata.id": "/redfish/v1/Systems"})),
        Just(json!("/redfish/v1/Systems")),
        Just(json!({"@odata.id": "http://10.9.9.9/"})),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(".{0,12}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Returns every place in `value`, depth first.
fn places(value: &mut Value) -> Vec<&mut Value> {
    match value {
        Value::Array(items) => items.iter_mut().flat_map(inside).collect(),
        Value::Object(members) => members.values_mut().flat_map(inside).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// Returns `value` itself if it is a leaf, otherwise every place in it.
fn inside(value: &mut Value) -> Vec<&mut Value> {
    let is_leaf = match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty() || members.contains_key("@odata.id"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    };
    if is_leaf { vec![value] } else { places(value) }
}

fn mutated(tree: &str, mutations: Vec<(Index, Value)>) -> String {
    let tree: BTreeMap<String, Value> = serde_json::from_str(tree).unwrap();
    let mut tree = Value::Object(tree.into_iter().collect());
    for (index, odd) in mutations {
        let mut places = places(&mut tree);
        if !places.is_empty() {
            *places.swap_remove(index.index(places.len())) = odd;
        }
    }
    tree.to_string()
}

/// Uses every capability of the driver.
async fn exercise(tree: String) -> usize {
    let fixture = Fixture::serve(&tree, silent).await;
    let bmc = fixture.bmc(Auth::Auto);
    let (device, persistence) = (BootDevice::Cdrom, Persistence::Once);
    let (media, sensors) = (bmc.media.unwrap(), bmc.sensors.unwrap());
    // Errors are allowed; only panics and endless loops are failures.
    drop(bmc.inspection.unwrap().inventory().await);
    drop(bmc.power.state().await);
    drop(bmc.power.request(PowerChange::ForceRestart).await);
    drop(bmc.boot.get().await);
    drop(bmc.boot.set(BootOverride { device, persistence, mode: None }).await);
    drop(media.insert(&fixture.address).await);
    drop(media.eject().await);
    drop(sensors.readings().await);
    drop(sensors.event_log(3).await);
    drop(sensors.identify(IdentifyLight::On).await);
    fixture.asked().len()
}

#[test]
fn no_mutation_of_a_tree_breaks_the_driver() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner =
        TestRunner::new(Config { cases: 24, failure_persistence: None, ..Config::default() });
    let mutations = prop::collection::vec((any::<Index>(), odd_value()), 1..12);
    let outcome = runner.run(&(0..TREES.len(), mutations), |(tree, mutations)| {
        let tree = mutated(TREES[tree], mutations);
        let exercised = async { timeout(Duration::from_secs(30), exercise(tree)).await };
        let asked = runtime.block_on(exercised).map_err(|_| TestCaseError::fail("too slow"))?;
        prop_assert!(asked < MOST_REQUESTS, "{} requests", asked);
        Ok(())
    });
    outcome.unwrap();
}

#[tokio::test]
async fn a_log_whose_pages_go_round_in_circles_ends() {
    let circle =
        json!({"Members": [{"Id": "1", "Message": "again"}], "Members@odata.nextLink": "/log"});
    let tree = json!({
        "/redfish/v1": {"Systems": {"@odata.id": "/systems"}},
        "/systems": {"Members": [{"@odata.id": "/s"}]},
        "/s": {"LogServices": {"@odata.id": "/logs"}},
        "/logs": {"Members": [{"Id": "SEL", "Entries": {"@odata.id": "/log"}}]},
        "/log": circle,
    });
    let fixture = Fixture::serve(&tree.to_string(), silent).await;
    let log = fixture.bmc(Auth::Basic).sensors.unwrap().event_log(2).await.unwrap();
    assert_eq!(log.len(), 2);
    assert_eq!(fixture.count("GET", "/log"), 64);
}
