//! Hosts and their drains. No conductor runs here, so a drain stays as it was decided.

use cluster_core::{Ident, LedgerEntry, LedgerState, LedgerUuid, NodeGroup};
use cluster_store::{ClusterChange, Scope};
use newtype_uuid::GenericUuid;
use openstack::compute::{flavors, servers};
use openstack::image::images;
use openstack::{CloudConfig, Session};
use openstack_emulator::{Cloud, Emulator, Settings};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::api::Api;

fn session(cloud: &Cloud, user: &str) -> Session {
    let config = CloudConfig::from_clouds_yaml(&cloud.clouds_yaml(), Some(user)).unwrap();
    Session::new(config).unwrap()
}

/// Creates a server with this name on any host. Returns its id and its host.
async fn server(session: &Session, name: &str) -> (String, String) {
    let flavor = flavors::find(session, "m1.nano").await.unwrap().unwrap();
    let image = images::find(session, "cirros").await.unwrap().remove(0);
    let new = servers::NewServer {
        name: name.to_owned(),
        tags: Vec::new(),
        flavor_id: flavor.id,
        boot: servers::Boot::Image { id: image.id },
        disks: Vec::new(),
        ports: Vec::new(),
        user_data: None,
        config_drive: servers::ConfigDrive::default(),
        key_name: None,
        availability_zone: None,
        server_group: None,
        hints: Default::default(),
        metadata: Default::default(),
    };
    let id = servers::create(session, &new).await.unwrap();
    loop {
        let found = servers::show(session, &id).await.unwrap().unwrap();
        if let Some(host) = found.host.filter(|_| found.status == servers::ServerStatus::Active) {
            return (id, host);
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// A cluster with three control-plane members that are Kubernetes nodes, on the servers with these ids.
async fn of_three(api: &Api, on: &[String]) -> Uuid {
    api.template("t", "").await;
    let id: Uuid = api.cluster("blue", r#", "master_count": 3"#).await.parse().unwrap();
    let found = api.store.find_clusters(&Ident::Id(id), &Scope::All).await.unwrap();
    let mut cluster = found.into_iter().next().unwrap();
    let groups = api.store.groups_of(cluster.id).await.unwrap();
    let masters: Vec<_> = NodeGroup::refs(&groups[0]).collect();
    cluster.nodes = masters.iter().cloned().collect();
    let lines = masters.iter().zip(on).map(|(machine, server)| LedgerEntry {
        id: LedgerUuid::from_untyped_uuid(Uuid::new_v4()),
        of: cluster.id.into(),
        kind: format!("server/{machine}"),
        name: format!("blue-{machine}"),
        cloud_id: Some(server.clone()),
        state: LedgerState::Present,
        created_at: cluster.created_at,
        updated_at: None,
    });
    api.store.save_ledger(&lines.collect::<Vec<_>>()).await.unwrap();
    api.store.change_cluster(&ClusterChange::of(cluster)).await.unwrap();
    id
}

#[tokio::test]
async fn a_host_shows_its_members_and_is_drained_unless_a_quorum_would_be_lost() {
    let emulator = Emulator::start(Settings::default()).await.unwrap();
    let admin = session(&emulator.cloud, "admin");
    let mut on = Vec::new();
    for number in 0..4 {
        on.push(server(&admin, &format!("s{number}")).await);
    }
    let [(one, first), (two, second), (three, _), (_, fourth)] = on.as_slice() else { panic!() };
    assert!(first != second && fourth != first && fourth != second, "{on:?}");
    let api = Api::of_administrators(&emulator.cloud).await;
    let id = of_three(&api, &[one.clone(), two.clone(), three.clone()]).await;

    let reported = api.get(&format!("/bedplate/v1/hosts/{first}")).await.has(200).json();
    let machine = json!({
        "machine": "default-master-0", "name": "s0", "role": "control-plane", "is_etcd_member": true,
        "server_id": one, "status": "ACTIVE",
    });
    let members = ["default-master-0", "default-master-1", "default-master-2"];
    let cluster = json!({
        "uuid": id, "name": "blue", "project_id": "default", "machines": [machine],
        "etcd": {"members": members, "needed": 2, "away": []},
    });
    let want = json!({
        "host": first, "service": {"status": "enabled", "state": "up", "disabled_reason": null},
        "clusters": [cluster], "machines": [], "foreign": 0, "drain": null,
    });
    assert_eq!(reported, want);
    let others = api.get(&format!("/bedplate/v1/hosts/{fourth}")).await.has(200).json();
    assert_eq!((&others["foreign"], &others["clusters"]), (&json!(1), &json!([])));

    let path = |host: &str| format!("/bedplate/v1/drains/{host}");
    let check = |host: &str| format!("{}/check", path(host));
    let unasked = api.get(&check(first)).await.has(200).json();
    assert_eq!(unasked, json!({"host": first, "drain": null}));
    api.get(&path(first)).await.has(404);
    let granted = api.put(&path(first), "").await.has(202).json();
    assert_eq!(api.get(&check(first)).await.has(200).json()["drain"], granted);
    let want = json!({
        "host": first, "state": "draining", "asked_at": "2026-01-02T03:04:05.000006Z", "asked_by": "anonymous", "forced": [],
        "left": [], "foreign": 0, "problem": null,
    });
    assert_eq!(granted["asked_at"].as_str().map(|at| &at[..19]), Some("2026-01-02T03:04:05"));
    let without = |mut shown: Value| {
        shown.as_object_mut().unwrap().remove("asked_at");
        shown
    };
    assert_eq!(without(granted.clone()), without(want));
    api.put(&path(first), "{}").await.has(202);
    api.get(&check(second)).await.has(409);
    api.get(&format!("{}?force=blue", check(second))).await.has(200);
    api.get(&format!("{}?force=nobody", check(second))).await.has(400);
    api.get(&path(second)).await.has(404);
    api.put(&path(second), "").await.refuses(
        409,
        &format!(
            "host {second} cannot be drained now: cluster blue ({id}) would have 1 of its 3 etcd members and needs 2: on this host: \
             default-master-1; the drain of {first} moves default-master-0; wait, or name in force each cluster that may lose its quorum"
        ),
    );
    api.get(&path(second)).await.refuses(404, &format!("Drain {second} could not be found."));
    let unknown = r#"{"force": ["green"]}"#;
    api.put(&path(second), unknown).await.refuses(400, "force: Cluster green could not be found.");
    let forced = api.put(&path(second), r#"{"force": ["blue"]}"#).await.has(202).json();
    assert_eq!(forced["forced"], json!([id]));
    let all = api.get("/bedplate/v1/drains").await.has(200).json();
    assert_eq!(all["drains"].as_array().unwrap().len(), 2);
    let listed = api.get("/bedplate/v1/hosts").await.has(200).json();
    let listed = listed["hosts"].as_array().unwrap();
    let drain_of = |name: &str| {
        let host = listed.iter().find(|host| host["host"] == name).expect("every host is listed");
        assert_eq!(host["service"]["state"], "up", "{host}");
        host["drain"]["state"].clone()
    };
    let drains = [first, second, fourth].map(|host| drain_of(host));
    assert_eq!(drains, [json!("draining"), json!("draining"), json!(null)]);
    assert_eq!(api.delete(&path(first)).await.has(202).json()["state"], "ending");
    api.put(&path("nowhere"), "").await.refuses(404, "Host nowhere could not be found.");
    api.delete(&path("nowhere")).await.refuses(404, "Drain nowhere could not be found.");
}

#[tokio::test]
async fn the_place_of_a_cluster_or_server_is_found() {
    let emulator = Emulator::start(Settings::default()).await.unwrap();
    let admin = session(&emulator.cloud, "admin");
    let (own, host) = server(&admin, "s0").await;
    let api = Api::of_administrators(&emulator.cloud).await;
    let id = of_three(&api, std::slice::from_ref(&own)).await;
    let place = json!({"places": [{
        "server_id": own, "name": "s0", "status": "ACTIVE", "host": host,
        "cluster": {"uuid": id, "name": "blue", "project_id": "default"},
        "machine": "default-master-0", "role": "control-plane", "is_etcd_member": true, "own": null,
    }]});
    for thing in [&own, "s0"] {
        let reported = api.get(&format!("/bedplate/v1/places/{thing}")).await.has(200).json();
        assert_eq!(reported, place);
    }
    let none = api.get("/bedplate/v1/places/nothing").await.has(200).json();
    assert_eq!(none, json!({"places": []}));
}

#[tokio::test]
async fn hosts_are_unknown_without_a_cloud_or_the_role_admin() {
    let api = Api::start().await;
    let why = "clusterd has no cloud configured, so it knows no hosts";
    api.get("/bedplate/v1/hosts/h1").await.refuses(409, why);
    api.put("/bedplate/v1/drains/h1", "").await.refuses(409, why);
    let emulator = Emulator::start(Settings::default()).await.unwrap();
    let api = Api::in_cloud(&emulator.cloud).await;
    let said = api.get("/bedplate/v1/hosts/compute-1").await.has(503).json();
    assert!(said["errors"][0]["detail"].as_str().unwrap().contains("grant it the role admin"));
    api.get("/bedplate/v1/hosts/a%20b").await.refuses(404, "Host a b could not be found.");
}

#[tokio::test]
async fn a_name_that_no_path_can_hold_is_no_host() {
    let emulator = Emulator::start(Settings::default()).await.unwrap();
    let api = Api::of_administrators(&emulator.cloud).await;
    for (spelled, name) in [("%2e", "."), ("%2e%2e", ".."), ("a%2fb", "a/b"), ("a%3fb", "a?b")] {
        let why = format!("Host {name} could not be found.");
        let path = format!("/bedplate/v1/drains/{spelled}");
        api.get(&format!("/bedplate/v1/hosts/{spelled}")).await.refuses(404, &why);
        api.get(&path).await.refuses(404, &why);
        api.get(&format!("{path}/check")).await.refuses(404, &why);
        api.put(&path, "").await.refuses(404, &why);
        api.delete(&path).await.refuses(404, &why);
        let places = api.get(&format!("/bedplate/v1/places/{spelled}")).await.has(200).json();
        assert_eq!(places, json!({"places": []}));
    }
}
