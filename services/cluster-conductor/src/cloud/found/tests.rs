//! Objects of services as tables: their words, and the observed states.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::cloud::emulated::{emulated_cloud, new_balancer, new_subnet};

use CloudObjectState::{Deleting, Ready, Working};

/// Reads an object from the JSON of its service.
#[track_caller]
fn read<T: DeserializeOwned>(body: Value) -> T {
    serde_json::from_value(body).unwrap()
}

fn failed(why: &str) -> CloudObjectState {
    CloudObjectState::Failed(why.to_owned())
}

/// An object without addresses and properties.
fn plain(state: CloudObjectState) -> CloudObject {
    CloudObject { state, ..ready("1") }
}

fn with_address(state: CloudObjectState, address: &str) -> CloudObject {
    CloudObject { address: Some(address.parse().unwrap()), ..plain(state) }
}

#[test]
fn a_server_is_judged_by_its_status_and_its_task() {
    let other = |word: &str| ServerState::Other(word.to_owned());
    let error = "Nova reports ERROR";
    let rows = [
        ("BUILD", Working, ServerState::Building),
        ("ACTIVE", Ready, ServerState::On),
        ("SHUTOFF", Ready, ServerState::Off),
        ("ERROR", failed(error), ServerState::Failed(error.to_owned())),
        ("REBOOT", Ready, ServerState::Changing),
        ("HARD_REBOOT", Ready, ServerState::Changing),
        ("RESIZE", Ready, ServerState::Changing),
        ("REVERT_RESIZE", Ready, ServerState::Changing),
        ("MIGRATING", Ready, ServerState::Changing),
        ("REBUILD", Ready, ServerState::Changing),
        ("VERIFY_RESIZE", Ready, ServerState::Resized),
        ("PAUSED", Ready, other("PAUSED")),
        ("SUSPENDED", Ready, other("SUSPENDED")),
        ("SHELVED_OFFLOADED", Ready, other("SHELVED_OFFLOADED")),
        ("UNKNOWN", Ready, other("UNKNOWN")),
        ("RESCUE", Ready, other("RESCUE")),
        ("SOFT_DELETED", Deleting, ServerState::Leaving),
        ("DELETED", Deleting, ServerState::Leaving),
    ];
    for (status, state, is) in rows {
        for (task, is_busy) in [(None, false), (Some("powering-off"), true)] {
            let body = json!({
                "id": "1", "status": status, "OS-EXT-STS:task_state": task,
                "flavor": {"original_name": "small"}
            });
            let flavor = "small".to_owned();
            let facts =
                CloudObjectDetails::Server(ServerDetails { is: is.clone(), is_busy, flavor });
            let want = CloudObject { facts, ..plain(state.clone()) };
            assert_eq!(read::<Server>(body).found(), want, "{status} {task:?}");
        }
        // Nova deletes a server in any status.
        let task = json!({"id": "1", "status": status, "OS-EXT-STS:task_state": "deleting"});
        let found = read::<Server>(task).found();
        let CloudObjectDetails::Server(facts) = found.facts else { panic!("no facts") };
        assert_eq!((found.state, facts.is), (Deleting, ServerState::Leaving), "{status}");
    }
}

#[test]
fn a_failed_server_has_the_message_of_its_fault() {
    let body = json!({"id": "1", "status": "ERROR", "fault": {"message": "no such disk"}});
    let found = read::<Server>(body).found();
    let CloudObjectDetails::Server(facts) = found.facts else { panic!("no facts") };
    assert_eq!(found.state, failed("no such disk"));
    assert_eq!(facts.is, ServerState::Failed("no such disk".to_owned()));
}

#[test]
fn a_broken_volume_of_a_vm_has_failed_and_one_of_kubernetes_can_be_deleted() {
    let error = || failed("Cinder reports error");
    let rows = [
        ("creating", Ready, Working),
        ("downloading", Ready, Working),
        ("available", Ready, Ready),
        ("reserved", Ready, Ready),
        ("in-use", Ready, Ready),
        ("attaching", Working, Ready),
        ("detaching", Working, Ready),
        ("deleting", Deleting, Deleting),
        ("error", Ready, error()),
        ("error_deleting", Ready, Ready),
        ("maintenance", Ready, Ready),
    ];
    for (status, of_kubernetes, of_vm) in rows {
        let found: Volume = read(json!({"id": "1", "status": status}));
        assert_eq!(volume(&found), plain(of_kubernetes), "{status}");
        assert_eq!(found.found(), plain(of_vm), "{status}");
    }
}

#[test]
fn only_error_is_a_failure_of_an_object_of_neutron() {
    let error = || failed("Neutron reports ERROR");
    let rows = [("ACTIVE", Ready), ("DOWN", Ready), ("BUILD", Ready), ("ERROR", error())];
    for (status, state) in rows {
        let body = || json!({"id": "1", "status": status});
        assert_eq!(read::<Network>(body()).found(), plain(state.clone()), "{status}");
        assert_eq!(read::<Router>(body()).found(), plain(state.clone()), "{status}");
        assert_eq!(read::<Port>(body()).found(), plain(state), "{status}");
    }
    assert_eq!(read::<Subnet>(json!({"id": "1"})).found(), plain(Ready));
    assert_eq!(read::<SecurityGroup>(json!({"id": "1"})).found(), plain(Ready));
}

#[test]
fn the_address_of_an_object_of_neutron_is_its_first() {
    let addresses = json!([{"ip_address": "10.0.0.7"}, {"ip_address": "10.0.0.8"}]);
    let port = json!({"id": "1", "status": "DOWN", "fixed_ips": addresses});
    assert_eq!(read::<Port>(port).found(), with_address(Ready, "10.0.0.7"));
    let gateway = json!({"network_id": "n", "external_fixed_ips": addresses});
    let router = json!({"id": "1", "status": "ERROR", "external_gateway_info": gateway});
    let error = failed("Neutron reports ERROR");
    assert_eq!(read::<Router>(router).found(), with_address(error, "10.0.0.7"));
}

#[test]
fn a_floating_ip_without_a_port_has_failed() {
    let rows = [
        (Some("p"), "ACTIVE", Ready),
        (Some("p"), "DOWN", Ready),
        (Some("p"), "ERROR", failed("Neutron reports ERROR")),
        (None, "DOWN", failed("lost its port")),
    ];
    for (port, status, state) in rows {
        let body = json!({
            "id": "1", "floating_ip_address": "192.0.2.7", "status": status, "port_id": port,
            "description": "its name"
        });
        let found: FloatingIp = read(body);
        assert_eq!((found.id(), found.name()), ("1", "its name"));
        assert_eq!(found.found(), with_address(state, "192.0.2.7"), "{status} {port:?}");
    }
}

#[test]
fn a_load_balancer_is_in_progress_until_octavia_has_decided() {
    let rows = [
        ("ACTIVE", Ready),
        ("PENDING_CREATE", Working),
        ("PENDING_UPDATE", Working),
        ("ALLOCATED", Working),
        ("ERROR", failed("Octavia reports ERROR")),
        ("PENDING_DELETE", Deleting),
        ("DELETED", Deleting),
    ];
    for (status, state) in rows {
        let body = json!({"id": "1", "provisioning_status": status, "vip_address": "10.0.0.9"});
        assert_eq!(read::<LoadBalancer>(body).found(), with_address(state, "10.0.0.9"), "{status}");
    }
}

#[test]
fn a_pending_record_is_deleted_or_in_progress_as_its_ledger_entry_says() {
    let error = || failed("Designate reports ERROR");
    let rows = [
        ("ACTIVE", Ready, Ready),
        ("PENDING", Working, Deleting),
        ("ERROR", error(), error()),
        ("DELETED", Deleting, Deleting),
        ("INACTIVE", Working, Working),
        ("NEW", Working, Working),
    ];
    let set = |status: &str, records: &[&str]| -> Recordset {
        let body = json!({
            "id": "1", "name": "a.example.org.", "type": "A", "status": status, "records": records
        });
        read(body)
    };
    let addresses: BTreeSet<IpAddr> = ["10.0.0.1", "10.0.0.2"].map(|it| it.parse().unwrap()).into();
    for (status, state, leaving) in rows {
        let set = set(status, &["10.0.0.2", "10.0.0.1"]);
        let facts = CloudObjectDetails::Addresses(addresses.clone());
        let want = |state| CloudObject { facts: facts.clone(), ..plain(state) };
        assert_eq!(record(&set, false), want(state), "{status}");
        assert_eq!(record(&set, true), want(leaving), "{status}");
    }
    // The records of somebody else are no addresses.
    assert_eq!(record(&set("ACTIVE", &["10.0.0.1", "mail"]), false), plain(Ready));
}

#[tokio::test]
async fn a_load_balancer_is_fetched_by_its_id_until_it_is_deleted() {
    let (emulator, session) = emulated_cloud().await;
    let subnet = new_subnet(&session).await;
    let id = new_balancer((&emulator.cloud, &session), "a", &subnet).await;
    let found = LoadBalancer::show(&session, &id).await.unwrap();
    assert_eq!(found.map(|it| (it.id, it.name)), Some((id.clone(), "a".to_owned())));

    load_balancers::delete(&session, &id).await.unwrap();
    let kind = openstack_emulator::Kind::LoadBalancer;
    emulator.cloud.wait_until(|cloud| cloud.objects(kind).is_empty().then_some(())).await;
    assert_eq!(LoadBalancer::show(&session, &id).await.unwrap(), None);
}
