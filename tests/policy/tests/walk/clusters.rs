//! The routes of clusterd.

use cluster_core::{
    FlavorSize, Owner, Snapshot, SnapshotOrigin, SnapshotUuid, UserDataFormat, Vm, VmFlavor,
    VmImage, VmUuid,
};
use jiff::Timestamp;
use lease::Lease;
use newtype_uuid::GenericUuid;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::service::{Cloud, Service};
use crate::walk::StepSubject::{self, List, Nobodys, Persons, PersonsList, Project, Thing};
use crate::walk::{OWNER, ResourceIds, Step, WITH_KEYSTONE, walk};

#[tokio::test]
async fn every_route_of_clusters_enforces_its_row() {
    everybody_tries(Cloud::emulated().await, 1).await;
}

#[tokio::test]
async fn routes_of_clusters_enforce_their_rows_with_a_given_keystone() {
    let Some(cloud) = Cloud::given() else { return };
    everybody_tries(cloud, WITH_KEYSTONE).await;
}

async fn everybody_tries(cloud: Cloud, every: usize) {
    let service = Service::clusters(cloud).await;
    let owner = service.projects[0].clone();
    let template = async || {
        let body = json!({"image_id": "i", "coe": "kubernetes", "flavor_id": "f"});
        let template = service.ask_as(OWNER, "POST", "/v1/clustertemplates", &body).await;
        template.has(201).json()["uuid"].as_str().unwrap().to_owned()
    };
    let make = async |step: &Step| {
        let mut made = ResourceIds::from([("project", owner.clone())]);
        if step.needs("cluster") {
            let body = json!({"cluster_template_id": template().await});
            let cluster = service.ask_as(OWNER, "POST", "/v1/clusters", &body).await;
            let cluster = cluster.has(202).json()["uuid"].as_str().unwrap().to_owned();
            made.insert("cluster", cluster);
        }
        if step.needs("template") {
            // A template without clusters, so that it may be deleted.
            made.insert("template", template().await);
        }
        if step.needs("machine") || step.needs("snapshot") {
            let (machine, snapshot) = lent(&service, &owner).await;
            made.extend([("machine", machine), ("snapshot", snapshot)]);
        }
        made
    };
    walk(&service, &steps(), every, make).await;
    service.end().await;
}

/// Stores a VM of one person in this project and its snapshot, and returns their ids. Both are written directly to clusterd's database,
/// because there is no cloud to create them in.
async fn lent(service: &Service, project: &str) -> (String, String) {
    let store = service.store().await;
    let (vm, snapshot) = (VmUuid::from_untyped_uuid(Uuid::new_v4()), Uuid::new_v4());
    let snapshot = SnapshotUuid::from_untyped_uuid(snapshot);
    let now = Timestamp::now();
    let image = VmImage {
        id: "i".to_owned(),
        name: "i".to_owned(),
        user_data_format: UserDataFormat::CloudInit,
        min_disk_gib: 0,
        min_ram_mib: 0,
    };
    let size = FlavorSize { vcpus: 1, ram_mib: 512, disk_gib: 5, gpus: 0 };
    let flavor = VmFlavor { id: "f".to_owned(), name: "f".to_owned(), size };
    let owner = Owner::new(project, service.user_id(OWNER));
    let name = |of: &str, id: &str| format!("{of}-{}", &id[..8]).parse().unwrap();
    let own = (image, flavor, "n".to_owned());
    let vm = Vm::new(vm, owner, name("vm", &vm.to_string()), own, now);
    let vm = Vm { lease: Some(Lease::new(now, "30d".parse().unwrap())), ..vm };
    store.insert_vm(&vm, None, &[], None).await.unwrap();
    let name = name("kept", &snapshot.to_string());
    let snapshot = Snapshot::new(snapshot, &vm, name, SnapshotOrigin::Asked, now);
    store.insert_snapshot(&snapshot, &[], None).await.unwrap();
    (vm.id.to_string(), snapshot.id.to_string())
}

#[rustfmt::skip]
fn steps() -> Vec<Step> {
    let step = |about: StepSubject, method, path, body| Step { method, path, body, about };
    let nothing = || Value::Null;
    let one = |method, path, body| step(Thing, method, path, body);
    let see = |path| step(Thing, "GET", path, Value::Null);
    let look = |path| step(Nobodys, "GET", path, Value::Null);
    let own = |method, path, body| step(Persons, method, path, body);
    vec![
        look("/"),
        look("/v1"),
        look("/openapi.json"),
        look("/bedplate/v1/policy"),
        look("/bedplate/v1/audit"),
        look("/bedplate/v1/audit/verify"),

        step(List, "GET", "/v1/clustertemplates", nothing()),
        step(List, "GET", "/v1/clustertemplates/detail", nothing()),
        step(Nobodys, "POST", "/v1/clustertemplates", json!({"image_id": "i", "coe": "kubernetes", "flavor_id": "f"})),
        step(Nobodys, "PUT", "/bedplate/v1/import/clustertemplates/{template}", json!({"uuid": "{template}"})),
        see("/v1/clustertemplates/{template}"),
        one("PATCH", "/v1/clustertemplates/{template}", json!([{"op": "replace", "path": "/flavor_id", "value": "g"}])),
        one("DELETE", "/v1/clustertemplates/{template}", nothing()),

        step(List, "GET", "/v1/clusters", nothing()),
        step(List, "GET", "/v1/clusters/detail", nothing()),
        one("POST", "/v1/clusters", json!({"cluster_template_id": "{template}"})),
        see("/v1/clusters/{cluster}"),
        one("PATCH", "/v1/clusters/{cluster}", json!([{"op": "replace", "path": "/node_count", "value": 2}])),
        one("DELETE", "/v1/clusters/{cluster}", nothing()),
        one("POST", "/v1/clusters/{cluster}/actions/resize", json!({"node_count": 2})),
        one("POST", "/v1/clusters/{cluster}/actions/upgrade", json!({"cluster_template": "{template}"})),
        one("POST", "/bedplate/v1/clusters/{cluster}/upgrade", json!({"cluster_template": "{template}"})),
        one("POST", "/bedplate/v1/clusters/{cluster}/upgrade/plan", json!({"cluster_template": "{template}"})),
        one("POST", "/bedplate/v1/clusters/{cluster}/upgrade/pause", nothing()),
        one("POST", "/bedplate/v1/clusters/{cluster}/upgrade/resume", nothing()),
        one("POST", "/bedplate/v1/clusters/{cluster}/upgrade/rollback", nothing()),
        see("/v1/clusters/{cluster}/nodegroups"),
        one("POST", "/v1/clusters/{cluster}/nodegroups", json!({"name": "more"})),
        see("/v1/clusters/{cluster}/nodegroups/{nodegroup}"),
        one("PATCH", "/v1/clusters/{cluster}/nodegroups/{nodegroup}", json!([{"op": "replace", "path": "/max_node_count", "value": 9}])),
        one("DELETE", "/v1/clusters/{cluster}/nodegroups/{nodegroup}", nothing()),

        one("POST", "/v1/certificates", json!({"cluster_uuid": "{cluster}", "csr": "none"})),
        see("/v1/certificates/{cluster}"),
        one("PATCH", "/v1/certificates/{cluster}", nothing()),
        one("PATCH", "/v1/credentials/{cluster}", nothing()),

        look("/v1/quotas"),
        step(Nobodys, "POST", "/v1/quotas", json!({"project_id": "{project}", "resource": "Cluster", "hard_limit": 100000})),
        step(Project, "GET", "/v1/quotas/{project}/{resource}", nothing()),
        step(Project, "PATCH", "/v1/quotas/{project}/{resource}", json!({"hard_limit": 100000})),
        step(Project, "DELETE", "/v1/quotas/{project}/{resource}", nothing()),
        look("/bedplate/v1/quotas"),
        step(Project, "PUT", "/bedplate/v1/quotas/{project}", json!({"clusters": 100000})),
        step(Project, "PUT", "/bedplate/v1/quotas/{project}/users/{user}", json!({"clusters": 100000})),
        step(Project, "PATCH", "/bedplate/v1/quotas/{project}", json!({"clusters": 100000})),
        step(Project, "PATCH", "/bedplate/v1/quotas/{project}/users/{user}", json!({"clusters": 100000})),
        look("/v1/stats"),
        look("/v1/mservices"),

        see("/bedplate/v1/clusters/{cluster}"),
        see("/bedplate/v1/clusters/{cluster}/machines"),
        see("/bedplate/v1/clusters/{cluster}/ledger"),
        one("DELETE", "/bedplate/v1/clusters/{cluster}/ledger", nothing()),
        see("/bedplate/v1/clusters/{cluster}/kubeconfig"),
        see("/bedplate/v1/clusters/{cluster}/backups"),
        one("POST", "/bedplate/v1/clusters/{cluster}/backups", nothing()),
        see("/bedplate/v1/clusters/{cluster}/backups/{backup}"),
        one("DELETE", "/bedplate/v1/clusters/{cluster}/backups/{backup}", nothing()),
        see("/bedplate/v1/clusters/{cluster}/restore"),
        one("POST", "/bedplate/v1/clusters/{cluster}/restore", json!({})),
        see("/bedplate/v1/clusters/{cluster}/events"),
        see("/bedplate/v1/clusters/{cluster}/lease"),
        one("PUT", "/bedplate/v1/clusters/{cluster}/lease", json!({"for": "1d"})),
        one("POST", "/bedplate/v1/clusters/{cluster}/lease/undo", json!({})),
        one("POST", "/bedplate/v1/plan", json!({"cluster_template_id": "{template}"})),
        see("/bedplate/v1/clusters/{cluster}/plan"),
        one("PUT", "/bedplate/v1/clusters/{cluster}/nodegroups/{nodegroup}/ignition", json!({"ignition": {"version": "3.4.0"}})),
        one("DELETE", "/bedplate/v1/clusters/{cluster}/nodegroups/{nodegroup}/ignition", nothing()),
        look("/bedplate/v1/health"),
        look("/bedplate/v1/webhooks"),
        look("/bedplate/v1/hosts"),
        look("/bedplate/v1/hosts/{host}"),
        look("/bedplate/v1/places/{thing}"),
        look("/bedplate/v1/conductors"),
        look("/bedplate/v1/conductors/{hostname}"),
        step(Nobodys, "PUT", "/bedplate/v1/conductors/{hostname}/drain", nothing()),
        step(Nobodys, "DELETE", "/bedplate/v1/conductors/{hostname}/drain", nothing()),
        look("/bedplate/v1/drains"),
        step(Nobodys, "PUT", "/bedplate/v1/drains/{host}", json!({"force": []})),
        look("/bedplate/v1/drains/{host}"),
        look("/bedplate/v1/drains/{host}/check"),
        step(Nobodys, "DELETE", "/bedplate/v1/drains/{host}", nothing()),
        look("/bedplate/v1/keys"),
        step(Nobodys, "POST", "/bedplate/v1/keys/rotate", nothing()),
        step(Nobodys, "DELETE", "/bedplate/v1/keys/{key}", nothing()),

        step(PersonsList, "GET", "/bedplate/v1/machines", nothing()),
        step(Nobodys, "POST", "/bedplate/v1/machines", json!({"image": "i", "flavor": "f"})),
        look("/bedplate/v1/machines/idle"),
        look("/bedplate/v1/images"),
        own("GET", "/bedplate/v1/machines/{machine}", nothing()),
        own("GET", "/bedplate/v1/machines/{machine}/events", nothing()),
        own("GET", "/bedplate/v1/machines/{machine}/snapshots", nothing()),
        own("POST", "/bedplate/v1/machines/{machine}/snapshots", json!({})),
        own("PUT", "/bedplate/v1/machines/{machine}/lease", json!({"for": "40d"})),
        own("POST", "/bedplate/v1/machines/{machine}/lease/undo", nothing()),
        own("POST", "/bedplate/v1/machines/{machine}/actions", json!({"action": "start"})),
        own("POST", "/bedplate/v1/machines/{machine}/console", json!({})),
        own("DELETE", "/bedplate/v1/machines/{machine}", nothing()),
        step(PersonsList, "GET", "/bedplate/v1/snapshots", nothing()),
        own("GET", "/bedplate/v1/snapshots/{snapshot}", nothing()),
        own("DELETE", "/bedplate/v1/snapshots/{snapshot}", nothing()),
    ]
}
