//! No response holds a long list in memory: every list of the API is read and written in parts, or is bounded.

use std::collections::BTreeSet;

use axum::body::Body;
use cluster_core::{
    ClusterUuid, Event, FlavorSize, Ident, LedgerEntry, LedgerState, LedgerUuid, MOST_GROUPS,
    Owner, Severity, Snapshot, SnapshotOrigin, SnapshotUuid, UserDataFormat, Vm, VmEvent, VmFlavor,
    VmImage, VmUuid,
};
use cluster_store::{Scope, VmChange, VmScope};
use http::Request;
use jiff::Timestamp;
use newtype_uuid::GenericUuid;
use openstack_api::conformance::{MemoryBound, check_list, lists};
use openstack_emulator::{Emulator, Settings};
use uuid::Uuid;

use crate::api::{Api, NEWEST};

use MemoryBound::{AtMost, ByDriver, InParts};

/// More than the first part of a list has, and no more than a project may have.
const MANY: usize = 18;

/// The lists of the API, and how each stays small in memory.
const LISTS: &[(&str, MemoryBound)] = &[
    ("/bedplate/v1/audit", InParts),
    (
        "/bedplate/v1/clusters/{cluster}/backups",
        AtMost(
            100,
            "the API admits 20 requested ones, and the schedule keeps as many as configured",
        ),
    ),
    ("/bedplate/v1/clusters/{cluster}/events", InParts),
    ("/bedplate/v1/clusters/{cluster}/ledger", InParts),
    ("/bedplate/v1/clusters/{cluster}/machines", InParts),
    ("/bedplate/v1/conductors", AtMost(4, "one for each host that ran clusterd")),
    ("/bedplate/v1/drains", AtMost(4, "one for each compute host of the cloud")),
    ("/bedplate/v1/hosts", AtMost(4, "the compute hosts of the cloud")),
    ("/bedplate/v1/images", AtMost(4, "the images that the operator offers")),
    ("/bedplate/v1/keys", AtMost(16, "an administrator adds keys, and retires them")),
    ("/bedplate/v1/machines", InParts),
    ("/bedplate/v1/machines/idle", InParts),
    ("/bedplate/v1/machines/{machine}/events", InParts),
    ("/bedplate/v1/machines/{machine}/snapshots", InParts),
    ("/bedplate/v1/places/{thing}", ByDriver("the servers of the cloud with one name or tag")),
    ("/bedplate/v1/policy", AtMost(150, "one row for each route of the program")),
    ("/bedplate/v1/snapshots", InParts),
    ("/bedplate/v1/webhooks", AtMost(16, "the configuration names them")),
    ("/v1/clusters", InParts),
    ("/v1/clusters/detail", InParts),
    ("/v1/clusters/{cluster}/nodegroups", AtMost(MOST_GROUPS, "a cluster has no more groups")),
    ("/v1/clustertemplates", InParts),
    ("/v1/clustertemplates/detail", InParts),
    ("/v1/mservices", AtMost(4, "one for each host that ran clusterd")),
    ("/v1/quotas", AtMost(1000, "the store reads no more")),
];

fn noon() -> Timestamp {
    "2026-01-02T03:04:05.000006Z".parse().unwrap()
}

fn vm(name: &str) -> Vm {
    let image = VmImage {
        id: "i".to_owned(),
        name: "debian".to_owned(),
        user_data_format: UserDataFormat::CloudInit,
        min_disk_gib: 0,
        min_ram_mib: 0,
    };
    let size = FlavorSize { vcpus: 1, ram_mib: 512, disk_gib: 5, gpus: 0 };
    let flavor = VmFlavor { id: "f".to_owned(), name: "small".to_owned(), size };
    let owner = Owner::new("default", "anonymous");
    let what = (image, flavor, "net".to_owned());
    Vm::new(VmUuid::new_v4(), owner, name.parse().unwrap(), what, noon())
}

/// Many of everything that callers, clouds and time can make many of.
async fn with_many(api: &Api) {
    for number in 0..MANY {
        api.template(&format!("t{number}"), "").await;
        let workers = if number == 0 { MANY } else { 1 };
        api.post(
            "/v1/clusters",
            &format!(
                r#"{{"name": "c{number}", "cluster_template_id": "t{number}", "node_count": {workers}}}"#
            ),
        )
        .await
        .has(202);
        let quota = format!(r#"{{"project_id": "p{number}", "hard_limit": 5}}"#);
        api.post("/v1/quotas", &quota).await.has(201);
        let one = vm(&format!("vm{number}"));
        api.store.insert_vm(&one, None, &[], None).await.unwrap();
    }
    let ident: Ident = "c0".parse().unwrap();
    let cluster = api.store.find_clusters(&ident, &Scope::All).await.unwrap().remove(0);
    let long = "x".repeat(20_000);
    let event = |_| Event {
        id: None,
        cluster: cluster.id,
        at: noon(),
        severity: Severity::Info,
        reason: "Told".to_owned(),
        message: long.clone(),
    };
    let events: Vec<Event> = (0..MANY).map(event).collect();
    api.store.append_events(cluster.id, &events).await.unwrap();
    let lines: Vec<_> = (0..MANY).map(|number| line(cluster.id, number)).collect();
    api.store.save_ledger(&lines).await.unwrap();

    let ident: Ident = "vm0".parse().unwrap();
    let vm = api.store.find_vms(&ident, &VmScope::All).await.unwrap().remove(0);
    let events: Vec<VmEvent> =
        (0..MANY).map(|_| VmEvent::info(&vm, "Told", long.clone(), noon())).collect();
    let change = VmChange { events, ..VmChange::of(vm.clone()) };
    let vm = api.store.change_vm(&change).await.unwrap();
    for number in 0..MANY {
        let name = format!("s{number}").parse().unwrap();
        let kept = Snapshot::new(SnapshotUuid::new_v4(), &vm, name, SnapshotOrigin::Asked, noon());
        api.store.insert_snapshot(&kept, &[], None).await.unwrap();
    }
}

fn line(of: ClusterUuid, number: usize) -> LedgerEntry {
    LedgerEntry {
        id: LedgerUuid::from_untyped_uuid(Uuid::new_v4()),
        of: of.into(),
        kind: format!("volume/{number}"),
        name: format!("v{number}"),
        cloud_id: None,
        state: LedgerState::Intended,
        created_at: noon(),
        updated_at: None,
    }
}

#[tokio::test]
async fn every_list_is_read_in_parts_or_bounded() {
    let emulator = Emulator::start(Settings::default()).await.unwrap();
    let api = Api::of_administrators(&emulator.cloud).await;
    with_many(&api).await;
    let document = api.get("/openapi.json").await.json();
    let known: BTreeSet<String> = LISTS.iter().map(|(path, _)| (*path).to_owned()).collect();
    assert_eq!(lists(&document), known, "say of each list how it stays small in memory");
    for (path, kept) in LISTS {
        let asked = path.replace("{cluster}", "c0").replace("{machine}", "vm0");
        let request = Request::get(asked.replace("{thing}", "vm0")).header("host", "api:9511");
        let request = request.header("openstack-api-version", NEWEST);
        check_list(path, *kept, api.open(request.body(Body::empty()).unwrap()).await).await;
    }
}
