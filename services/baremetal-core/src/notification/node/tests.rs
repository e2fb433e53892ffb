use expect_test::{Expect, expect};
use hardware::PowerChange;
use jiff::Timestamp;

use super::*;
use crate::{Driver, Maintenance, NodeUuid, PowerRequest, WorkUuid};

const T0: Timestamp = Timestamp::UNIX_EPOCH;

fn node() -> Node {
    Node::new(NodeUuid::nil(), Driver::Redfish, T0)
}

/// Asserts the types of the notifications about a change, with their levels if they are not `info`.
#[track_caller]
fn check(before: &Node, after: &Node, want: Expect) {
    let all = node_notifications(Some(before), Some(after));
    let types = all.iter().map(|it| match it.level {
        EventLevel::Info => it.kind.clone(),
        EventLevel::Error => format!("{} (error)", it.kind),
    });
    want.assert_eq(&types.collect::<Vec<_>>().join(", "));
}

fn data(notification: &Notification) -> &Value {
    &notification.data["ironic_object.data"]
}

fn working(state: State, tasks: Vec<Task>) -> Node {
    let work = Some(Work::new(WorkUuid::nil(), tasks, T0));
    Node { provision_state: state, work, ..node() }
}

#[test]
fn a_new_node_and_a_deleted_one_are_told() {
    let created = node_notifications(None, Some(&node()));
    assert_eq!((created.len(), created[0].kind.as_str()), (1, "baremetal.node.create.end"));
    assert_eq!(created[0].object, node().id.to_string());
    assert_eq!(created[0].data["ironic_object.name"], "NodeCRUDPayload");
    assert_eq!(created[0].data["ironic_object.version"], "1.15");
    let deleted = node_notifications(Some(&node()), None);
    assert_eq!(deleted[0].kind, "baremetal.node.delete.end");
}

#[test]
fn changes_of_fields_are_told_and_others_are_not() {
    let same = Node { version: 2, updated_at: Some(T0), ..node() };
    check(&node(), &same, expect![""]);
    check(
        &node(),
        &Node { owner: Some("p".to_owned()), ..node() },
        expect!["baremetal.node.update.end"],
    );
    let maintained = Node { maintenance: Some(Maintenance::requested(None)), ..node() };
    check(&node(), &maintained, expect!["baremetal.node.maintenance_set.end"]);
    let shown = Node { console_enabled: true, ..node() };
    check(&node(), &shown, expect!["baremetal.node.console_set.end"]);
}

#[test]
fn a_request_for_power_begins_and_ends() {
    let request = Some(PowerRequest::new(PowerChange::On, T0));
    let off = Node { power_state: Some(PowerState::Off), ..node() };
    let asked = Node { power_request: request, ..off.clone() };
    check(&off, &asked, expect!["baremetal.node.power_set.start"]);
    let on = Node { power_state: Some(PowerState::On), ..off.clone() };
    check(&asked, &on, expect!["baremetal.node.power_set.end"]);
    check(&asked, &off, expect!["baremetal.node.power_set.error (error)"]);
    let begun = node_notifications(Some(&off), Some(&asked));
    assert_eq!(data(&begun[0])["to_power"], "power on");
}

#[test]
fn a_task_of_the_work_changes_power_too() {
    let tasks = vec![Task::Power(PowerState::Off), Task::Power(PowerState::On), Task::AwaitAgent];
    let first = working(State::Cleaning, tasks);
    let at = |cursor: usize, power: PowerState| {
        let work = first.work.clone().map(|work| Work { cursor, ..work });
        Node { work, power_state: Some(power), ..first.clone() }
    };
    let change = (at(0, PowerState::Off), at(1, PowerState::Off));
    check(
        &change.0,
        &change.1,
        expect!["baremetal.node.power_set.end, baremetal.node.power_set.start"],
    );
    check(&change.1, &at(2, PowerState::On), expect!["baremetal.node.power_set.end"]);
}

#[test]
fn another_power_state_without_a_request_is_a_correction() {
    let off = Node { power_state: Some(PowerState::Off), ..node() };
    let on = Node { power_state: Some(PowerState::On), ..node() };
    check(&off, &on, expect!["baremetal.node.power_state_corrected.success"]);
    check(&node(), &on, expect!["baremetal.node.power_state_corrected.success"]);
    check(&on, &node(), expect![""]);
    let corrected = node_notifications(Some(&off), Some(&on));
    assert_eq!(data(&corrected[0])["from_power"], "power off");
}

#[test]
fn provision_states_begin_go_on_and_end_as_in_ironic() {
    let at = |state: State| Node { provision_state: state, ..node() };
    for (from, to, want) in [
        (State::Manageable, State::Inspecting, expect!["baremetal.node.provision_set.start"]),
        (State::Inspecting, State::InspectWait, expect!["baremetal.node.provision_set.success"]),
        (State::Inspecting, State::Manageable, expect!["baremetal.node.provision_set.end"]),
        (State::Available, State::Manageable, expect!["baremetal.node.provision_set.success"]),
        (State::Cleaning, State::CleanHold, expect!["baremetal.node.provision_set.end"]),
        (State::CleanHold, State::CleanWait, expect!["baremetal.node.provision_set.start"]),
        (
            State::Deploying,
            State::DeployFailed,
            expect!["baremetal.node.provision_set.error (error)"],
        ),
        // One write made two changes.
        (State::Enroll, State::Manageable, expect!["baremetal.node.provision_set.success"]),
    ] {
        check(&at(from), &at(to), want);
    }
}

#[test]
fn the_event_is_the_cause_of_the_change() {
    let event = |before: &Node, after: &Node| {
        let told = node_notifications(Some(before), Some(after));
        data(told.last().unwrap())["event"].clone()
    };
    let at = |state: State| Node { provision_state: state, ..node() };
    assert_eq!(event(&at(State::Active), &at(State::Deleting)), "delete");
    assert_eq!(event(&at(State::Cleaning), &at(State::Manageable)), "manage");
    assert_eq!(event(&at(State::Deleting), &at(State::Cleaning)), "clean");
    assert_eq!(event(&at(State::Enroll), &at(State::Available)), Value::Null);
    let cleaning = working(State::Cleaning, Vec::new());
    let by_hand = cleaning.work.clone().map(|work| Work { by_hand: true, ..work });
    let by_hand = Node { work: by_hand, ..cleaning.clone() };
    assert_eq!(event(&at(State::Manageable), &cleaning), "provide");
    assert_eq!(event(&at(State::Manageable), &by_hand), "clean");
}

#[test]
fn no_payload_has_a_secret() {
    let mut node = node();
    for (field, key) in [("driver", "redfish_password"), ("instance", "configdrive")] {
        let place = if field == "driver" { &mut node.driver_info } else { &mut node.instance_info };
        place.insert(key.to_owned(), json!({"a": "s3cret"}));
    }
    node.instance_info.insert("image_url".to_owned(), "http://s3cret".into());
    node.extra.insert("deep".to_owned(), json!([{"api_token": "s3cret", "n": null}]));
    let told = node_notifications(None, Some(&node));
    let text = told[0].data.to_string();
    assert!(!text.contains("s3cret"), "{text}");
    assert_eq!(data(&told[0])["driver_info"]["redfish_password"], "******");
    assert_eq!(data(&told[0])["instance_info"]["image_url"], "******");
}

#[test]
fn a_payload_has_the_fields_of_its_version() {
    let told = node_notifications(None, Some(&node()));
    let names: Vec<&str> = data(&told[0]).as_object().unwrap().keys().map(String::as_str).collect();
    expect![[r#"
        bios_interface boot_interface boot_mode chassis_uuid clean_step conductor_group
        console_enabled console_interface created_at deploy_interface deploy_step description
        disable_power_off driver driver_info extra fault inspect_interface inspection_finished_at
        inspection_started_at instance_info instance_uuid last_error lessee maintenance
        maintenance_reason management_interface name network_interface owner power_interface
        power_state properties protected protected_reason provision_state provision_updated_at
        raid_interface rescue_interface resource_class retired retired_reason secure_boot
        storage_interface target_power_state target_provision_state traits updated_at uuid
        vendor_interface
    "#]]
    .assert_eq(&wrapped(&names));
    assert_eq!(data(&told[0])["created_at"], "1970-01-01T00:00:00Z");
}

/// The words in lines of at most 90 characters.
fn wrapped(words: &[&str]) -> String {
    let mut lines = vec![String::new()];
    for word in words {
        let last = lines.last_mut().unwrap();
        if last.len() + word.len() >= 90 {
            lines.push((*word).to_owned());
        } else {
            last.push_str(if last.is_empty() { "" } else { " " });
            last.push_str(word);
        }
    }
    lines.join("\n") + "\n"
}
