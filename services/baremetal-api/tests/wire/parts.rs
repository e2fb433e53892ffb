//! No answer holds a long list in memory: every list of the API is read and written in parts, or is bounded.

use std::collections::BTreeSet;

use axum::body::Body;
use baremetal_core::{
    Allocation, AllocationState, AllocationUuid, Chassis, DeployTemplate, Discovery, DiscoveryId,
    Driver, HistoryEntry, InspectionRule, Node, NodeIdent, NodeLease, NodePool, NodeUuid, Port,
    PortGroup, PortUuid, Reservation, ReservationRequest, Runbook, State, Stored, VolumeConnector,
    VolumeTarget, WorkUuid,
};
use baremetal_store::ReserveOutcome;
use hardware::{MacAddress, PowerState};
use http::Request;
use jiff::Timestamp;
use lease::Lease;
use openstack_api::conformance::{MemoryBound, check_list, lists};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::api::{Api, ID, NEWEST};

use MemoryBound::{AtMost, ByDriver, InParts};

const GROUP: &str = "7c0d9a4e-3b1f-4b0f-8a77-1f5e2d6c9b01";
const CHASSIS: &str = "5b1f2f0e-6a4b-4b0a-9a55-2f7a8e0c1d22";

/// More than the first part of a list has.
const MANY: u64 = 40;

/// The lists of the API, and how each stays small in memory.
const LISTS: &[(&str, MemoryBound)] = &[
    ("/bedplate/v1/audit", InParts),
    ("/bedplate/v1/conductors", AtMost(4, "one for each host that ran baremetald")),
    ("/bedplate/v1/discoveries", InParts),
    ("/bedplate/v1/hypervisor-profiles", InParts),
    ("/bedplate/v1/keys", AtMost(16, "an administrator adds keys, and retires them")),
    ("/bedplate/v1/nodes/{node}/event-log", ByDriver("the newest 1000 entries at most")),
    ("/bedplate/v1/nodes/{node}/sensors", ByDriver("drivers read 4096 records at most")),
    ("/bedplate/v1/policy", AtMost(200, "one row for each route of the program")),
    ("/bedplate/v1/racks", InParts),
    ("/bedplate/v1/reservations", InParts),
    ("/bedplate/v1/webhooks", AtMost(16, "the configuration names them")),
    ("/v1/allocations", InParts),
    ("/v1/chassis", InParts),
    ("/v1/chassis/detail", InParts),
    ("/v1/chassis/{chassis}/nodes", InParts),
    ("/v1/chassis/{chassis}/nodes/detail", InParts),
    ("/v1/conductors", AtMost(4, "one for each host that ran baremetald")),
    ("/v1/deploy_templates", InParts),
    ("/v1/drivers", AtMost(5, "the drivers of the program")),
    ("/v1/inspection_rules", InParts),
    ("/v1/nodes", InParts),
    ("/v1/nodes/detail", InParts),
    ("/v1/nodes/{node}/bios", AtMost(4096, "a step records no more settings")),
    ("/v1/nodes/{node}/children", AtMost(1000, "the ids of one page of nodes")),
    ("/v1/nodes/{node}/firmware", AtMost(2, "BIOS and BMC")),
    ("/v1/nodes/{node}/history", InParts),
    (
        "/v1/nodes/{node}/management/boot_device/supported",
        ByDriver("the kinds of boot devices that the program knows"),
    ),
    ("/v1/nodes/{node}/management/indicators", ByDriver("the indicators that the program knows")),
    ("/v1/nodes/{node}/portgroups", InParts),
    ("/v1/nodes/{node}/portgroups/detail", InParts),
    ("/v1/nodes/{node}/ports", InParts),
    ("/v1/nodes/{node}/ports/detail", InParts),
    ("/v1/nodes/{node}/traits", AtMost(50, "a node has no more traits")),
    ("/v1/nodes/{node}/vifs", AtMost(0, "noop has none; otherwise one for each port of the node")),
    ("/v1/nodes/{node}/volume/connectors", InParts),
    ("/v1/nodes/{node}/volume/targets", InParts),
    ("/v1/portgroups", InParts),
    ("/v1/portgroups/detail", InParts),
    ("/v1/portgroups/{portgroup}/ports", InParts),
    ("/v1/ports", InParts),
    ("/v1/ports/detail", InParts),
    ("/v1/runbooks", InParts),
    ("/v1/runbooks/{runbook}/traits", AtMost(50, "a runbook has no more traits")),
    ("/v1/shards", InParts),
    ("/v1/volume/connectors", InParts),
    ("/v1/volume/targets", InParts),
];

fn mac(number: u64) -> MacAddress {
    format!("52:54:00:00:01:{number:02x}").parse().unwrap()
}

fn extra() -> Map<String, Value> {
    Map::from_iter([("notes".to_owned(), json!("x".repeat(20_000)))])
}

fn noon() -> Timestamp {
    "2026-01-02T03:04:05.000006Z".parse().unwrap()
}

fn chassis() -> Stored<Chassis> {
    Stored::new(CHASSIS.parse().unwrap(), Chassis::default(), noon())
}

fn of(node: NodeUuid) -> PortGroup {
    PortGroup { node, extra: extra(), ..PortGroup::default() }
}

/// A runbook with as many traits as possible.
fn runbook(name: String) -> Runbook {
    let traits = (0..50).map(|number| format!("CUSTOM_{number}")).collect();
    Runbook { name, traits, extra: extra(), ..Runbook::default() }
}

fn allocation(name: &str) -> Allocation {
    Allocation {
        id: AllocationUuid::new_v4(),
        version: 1,
        created_at: noon(),
        updated_at: None,
        name: Some(name.parse().unwrap()),
        state: AllocationState::Allocating,
        last_error: None,
        node: None,
        resource_class: Some("gpu".to_owned()),
        traits: BTreeSet::new(),
        candidate_nodes: Vec::new(),
        extra: Map::new(),
        owner: None,
        reservation: None,
    }
}

/// Many of everything that callers, machines and time can make many of.
async fn with_many() -> Api {
    let api = Api::start().await;
    api.enroll("").await;
    let parent: NodeIdent = ID.parse().unwrap();
    let parent = api.store.find_node(&parent).await.unwrap().unwrap();
    let happened = |_: u64| HistoryEntry::changed(&parent, &parent, "x".repeat(20_000), noon());
    let history: Vec<HistoryEntry> = (0..MANY).map(happened).collect();
    let parent = api.store.update_node(&parent, &history).await.unwrap();
    let chassis = chassis();
    api.store.insert_resource(&chassis).await.unwrap();
    let group = Stored::new(GROUP.parse().unwrap(), of(parent.id), noon());
    api.store.insert_resource(&group).await.unwrap();
    let traits: Vec<String> = (0..50).map(|number| format!("CUSTOM_{number}")).collect();
    let traits = json!({"traits": traits}).to_string();
    api.send("PUT", &format!("/v1/nodes/{ID}/traits"), NEWEST, &traits).await.has(204);
    for number in 0..MANY {
        let node = Node {
            extra: extra(),
            shard: Some(format!("s{number}")),
            chassis: Some(chassis.id),
            provision_state: State::Available,
            power_state: Some(PowerState::Off),
            resource_class: Some("gpu".to_owned()),
            ..Node::new(NodeUuid::new_v4(), Driver::FakeHardware, noon())
        };
        api.store.insert_node(&node).await.unwrap();
        let described = Chassis { description: None, extra: extra() };
        let more = Stored::new(Uuid::new_v4(), described, noon());
        api.store.insert_resource(&more).await.unwrap();
        let more = Stored::new(Uuid::new_v4(), of(parent.id), noon());
        api.store.insert_resource(&more).await.unwrap();
        insert_volumes(&api, parent.id, number).await;
        insert_steps_and_rules(&api, number).await;
        let child = Node::new(NodeUuid::new_v4(), Driver::FakeHardware, noon());
        let child = Node { parent_node: Some(parent.id), ..child };
        api.store.insert_node(&child).await.unwrap();
        let port = Port::new(PortUuid::new_v4(), parent.id, mac(number), noon());
        let port = Port { extra: extra(), portgroup: Some(group.id), ..port };
        api.store.insert_port(&port).await.unwrap();
        let found = Discovery {
            id: DiscoveryId::Machine(mac(number)),
            first_seen_at: noon(),
            last_seen_at: noon(),
            data: Some(json!("x".repeat(200_000))),
            node: None,
        };
        api.store.save_discovery(&found).await.unwrap();
        let name = format!("r{number}");
        let rack = json!({"description": "x".repeat(20_000), "goal": null});
        api.store.insert_rack(&name, &rack).await.unwrap();
        let profile = json!({
            "name": format!("p{number}"), "kind": "cloud-init", "description": "x".repeat(2_000),
            "instance_info": {"image_source": "http://i/x", "image_checksum": "a".repeat(64)},
            "settings": {
                "keystone": {"auth_url": "http://k:5000/v3", "username": "nova", "password": "canary-1"},
                "message_bus": {"transport_url": "rabbit://nova:canary-2@bus/"},
            },
        });
        let path = "/bedplate/v1/hypervisor-profiles";
        api.send("POST", path, NEWEST, &profile.to_string()).await.has(201);
    }
    reserve_all(&api).await;
    api
}

async fn insert_volumes(api: &Api, node: NodeUuid, number: u64) {
    let (kind, connector_id) = ("iqn".to_owned(), number.to_string());
    let connector = VolumeConnector { node, kind, connector_id, extra: extra() };
    api.store.insert_resource(&Stored::new(Uuid::new_v4(), connector, noon())).await.unwrap();
    let boot_index = i64::try_from(number).unwrap();
    let target = VolumeTarget { node, boot_index, extra: extra(), ..VolumeTarget::default() };
    api.store.insert_resource(&Stored::new(Uuid::new_v4(), target, noon())).await.unwrap();
}

async fn insert_steps_and_rules(api: &Api, number: u64) {
    let runbook = runbook(format!("r{number}"));
    api.store.insert_resource(&Stored::new(Uuid::new_v4(), runbook, noon())).await.unwrap();
    let name = format!("CUSTOM_{number}");
    let template = DeployTemplate { name, ..DeployTemplate::default() };
    api.store.insert_resource(&Stored::new(Uuid::new_v4(), template, noon())).await.unwrap();
    let rule = InspectionRule::default();
    api.store.insert_resource(&Stored::new(Uuid::new_v4(), rule, noon())).await.unwrap();
}

/// Reserves each free node, and records as many allocations that found none.
async fn reserve_all(api: &Api) {
    let lasts = "1d".parse().unwrap();
    for number in 0..MANY {
        let reservation = Some(Reservation { user: None, image: "http://i/x".to_owned() });
        let wanted = Allocation { reservation, ..allocation(&format!("r{number}")) };
        let lending = NodeLease {
            lease: Lease::new(noon(), lasts),
            by: String::new(),
            notify: None,
            reserved: true,
            drain: None,
        };
        let order =
            ReservationRequest { instance_info: Map::new(), lending, work: WorkUuid::new_v4() };
        let pool = NodePool::Lendable(None);
        let made = api.store.reserve(&wanted, &pool, &order, 1000, noon()).await.unwrap();
        assert!(matches!(made, ReserveOutcome::Done(_)), "{made:?}");
    }
    for number in 0..MANY {
        let in_vain = Allocation { extra: extra(), ..allocation(&format!("a{number}")) };
        api.store.allocate(&in_vain, &NodePool::Lendable(None), noon()).await.unwrap();
    }
}

#[tokio::test]
async fn every_list_is_read_in_parts_or_bounded() {
    let api = with_many().await;
    let document = api.get("/openapi.json").await.json();
    let known: BTreeSet<String> = LISTS.iter().map(|(path, _)| (*path).to_owned()).collect();
    assert_eq!(lists(&document), known, "say of each list how it stays small in memory");
    for (path, kept) in LISTS {
        let request = Request::get(
            path.replace("{node}", ID)
                .replace("{chassis}", CHASSIS)
                .replace("{portgroup}", GROUP)
                .replace("{runbook}", "r0"),
        )
        .header("host", "api:6385");
        let request = request.header("x-openstack-ironic-api-version", NEWEST);
        check_list(path, *kept, api.open(request.body(Body::empty()).unwrap()).await).await;
    }
}
