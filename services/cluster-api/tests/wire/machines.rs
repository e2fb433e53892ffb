//! VMs, compared with literal JSON.

use cluster_core::{Ident, ServerObservation, ServerState, Vm, VmPhase};
use cluster_store::{VmChange, VmScope};
use openstack::network::networks::{self, NewNetwork};
use openstack::{CloudConfig, Session};
use openstack_emulator::{Emulator, Settings};
use serde_json::{Value, json};

use crate::api::Api;

const MACHINES: &str = "/bedplate/v1/machines";

/// The API with a cloud that has the network `lab`. No conductor runs.
struct ApiFixture {
    api: Api,
    network: String,
    image: String,
    _emulator: Emulator,
}

impl ApiFixture {
    async fn start() -> ApiFixture {
        let emulator = Emulator::start(Settings::default()).await.unwrap();
        let yaml = emulator.cloud.clouds_yaml();
        let alice = CloudConfig::from_clouds_yaml(&yaml, Some("alice")).unwrap();
        let alice = Session::new(alice).unwrap();
        let new = NewNetwork { name: "lab".to_owned(), ..NewNetwork::default() };
        let network = networks::create(&alice, &new).await.unwrap().id;
        let images = emulator.cloud.objects(openstack_emulator::Kind::Image);
        let image = images.iter().find(|image| image.text("name") == "cirros").unwrap().id.clone();
        let api = Api::in_cloud(&emulator.cloud).await;
        ApiFixture { api, network, image, _emulator: emulator }
    }

    async fn ask(&self, more: Value) -> Value {
        let mut body = json!({"name": "lab-1", "image": "cirros", "flavor": "m1.small"});
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        self.api.post(MACHINES, &body.to_string()).await.has(202).json()
    }

    async fn refuses(&self, status: u16, body: Value, why: &str) {
        let said = self.api.post(MACHINES, &body.to_string()).await.has(status).json();
        let said = said["errors"][0]["detail"].as_str().unwrap().to_owned();
        assert!(said.contains(why), "{said}");
    }

    async fn vm(&self) -> Vm {
        let ident: Ident = "lab-1".parse().unwrap();
        self.api.store.find_vms(&ident, &VmScope::All).await.unwrap().remove(0)
    }

    /// Records a server in this state, as the conductor would.
    async fn is(&self, is: ServerState) {
        let vm = self.vm().await;
        let since = vm.created_at;
        let server = ServerObservation {
            id: "server-1".to_owned(),
            is,
            since,
            flavor: "m1.small".to_owned(),
        };
        let address = Some("10.7.0.9".parse().unwrap());
        let vm = Vm { built_at: Some(since), server: Some(server), address, action: None, ..vm };
        self.api.store.change_vm(&VmChange::of(vm)).await.unwrap();
    }

    async fn act(&self, body: Value) -> crate::api::Answer {
        self.api.post(&format!("{MACHINES}/lab-1/actions"), &body.to_string()).await
    }
}

#[tokio::test]
async fn a_requested_vm_is_recorded_and_shown() {
    let given = ApiFixture::start().await;
    let more = json!({"root_volume_gib": 25, "lease": "14d", "notify": "ann@example.org", "user_data": "I2Nsb3VkLWNvbmZpZwo="});
    let made = given.ask(more).await;
    let want = json!({
        "uuid": made["uuid"], "name": "lab-1", "project_id": "default", "user_id": "anonymous",
        "status": "BUILDING", "status_reason": null, "next_action": "",
        "image": "cirros", "image_id": given.image, "flavor": "m1.small", "flavor_id": "3",
        "vcpus": 1, "ram_mib": 2048, "disk_gib": 25, "gpus": 0, "root_volume_gib": 25, "ssh_keys": [],
        "network_id": given.network, "availability_zone": null, "address": null,
        "floating_ip_enabled": false, "floating_ip": null, "dns_name": "lab-1.vms.example", "has_user_data": true,
        "server_id": null, "off_by_lease": false, "notify": "ann@example.org",
        "lease": {
            "since": "2026-01-02T03:04:05.000006+00:00", "until": "2026-01-16T03:04:05.000006+00:00", "ended_at": null, "deleted_at": null,
            "next": {"step": "warn", "at": "2026-01-09T03:04:05.000006+00:00"},
        },
        "created_at": "2026-01-02T03:04:05.000006+00:00", "updated_at": null,
    });
    assert_eq!(made, want);
    let path = format!("{MACHINES}/{}", made["uuid"].as_str().unwrap());
    assert_eq!(given.api.get(&path).await.has(200).json(), made);
    let listed = given.api.get(MACHINES).await.has(200).json();
    assert_eq!(listed, json!({"machines": [made]}));
    let events = given.api.get(&format!("{path}/events")).await.has(200).json();
    assert_eq!(events["events"][0]["reason"], "CreateRequested");
    // User data is never shown.
    assert!(!given.api.get(&path).await.text.contains("I2Nsb3Vk"));
}

#[tokio::test]
async fn an_invalid_request_is_refused_by_field_and_records_nothing() {
    let given = ApiFixture::start().await;
    let body = |more: Value| {
        let mut body = json!({"name": "lab-1", "image": "cirros", "flavor": "m1.small"});
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        body
    };
    for (more, why) in [
        (json!({"colour": "red"}), "colour: unknown field"),
        (json!({"name": "Lab_1"}), "name: must be a DNS label"),
        (
            json!({"image": "windows"}),
            "image: \"windows\" is neither an offered image nor a usable snapshot",
        ),
        // The image exists in the cloud, and the operator does not offer it.
        (
            json!({"image": "fedora-coreos"}),
            "image: \"fedora-coreos\" is neither an offered image nor a usable snapshot",
        ),
        (json!({"flavor": "huge"}), "flavor: the cloud has no \"huge\""),
        (json!({"flavor": "m1.nano"}), "needs at least 5 GiB of disk"),
        (json!({"network": "theirs"}), "the cloud has no \"theirs\" that this project may use"),
        (json!({"network": "a/b"}), "the cloud has no \"a/b\" that this project may use"),
        (
            json!({"image": "a/b"}),
            "image: \"a/b\" is neither an offered image nor a usable snapshot",
        ),
        (json!({"flavor": "a/b"}), "flavor: the cloud has no \"a/b\""),
        (json!({"ssh_keys": ["ssh-rsa x"]}), "ssh_keys: each key must be a public key"),
        (json!({"user_data": "{{ x }}"}), "user_data: is not valid base64"),
        (
            json!({"notify": "ann@example.org"}),
            "notify: needs lease: a VM without a lease sends no notices",
        ),
        (
            json!({"lease": "14d", "notify": "ann@x.org\r\nBcc: eve@x.org"}),
            "notify: must be exactly one mail address",
        ),
        (json!({"lease": "soon"}), "lease: must be a length of time"),
        (json!({"lease": "1s"}), "lease: a lease lasts at least 1h"),
        (json!({"root_volume_gib": -1}), "root_volume_gib: must be a whole number"),
    ] {
        given.refuses(400, body(more), why).await;
    }
    assert_eq!(given.api.get(MACHINES).await.json(), json!({"machines": []}));
    given.ask(json!({})).await;
    given.refuses(409, body(json!({})), "name: \"lab-1\" is already in use").await;
}

#[tokio::test]
async fn an_action_is_refused_in_the_wrong_state() {
    let given = ApiFixture::start().await;
    given.ask(json!({})).await;
    given.act(json!({"action": "stop"})).await.has(409);
    given.is(ServerState::On).await;
    let asked = given.act(json!({"action": "stop"})).await.has(202).json();
    assert_eq!(asked["status"], "STOPPING");
    let busy = given.act(json!({"action": "reboot", "hard": true})).await.has(409).json();
    assert_eq!(busy["errors"][0]["detail"], "stop is in progress: wait until it is done");
    given.is(ServerState::Off).await;
    assert_eq!(given.vm().await.phase(), VmPhase::Stopped);
    given.act(json!({"action": "resize", "flavor": "m1.tiny"})).await.has(400);
    given.act(json!({"action": "resize", "flavor": "none"})).await.has(400);
    let asked = given.act(json!({"action": "resize", "flavor": "m1.medium"})).await.has(202).json();
    assert_eq!((&asked["status"], &asked["flavor"]), (&json!("RESIZING"), &json!("m1.small")));
    given.act(json!({"action": "fly"})).await.has(400);
    given.act(json!({"action": "start", "hard": true})).await.has(400);
}

#[tokio::test]
async fn a_lease_is_extended_from_now_and_undone_only_once_it_ended() {
    let given = ApiFixture::start().await;
    given.ask(json!({"lease": "2d"})).await;
    let lease = format!("{MACHINES}/lab-1/lease");
    let put = async |body: Value| given.api.put(&lease, &body.to_string()).await;
    let longer = put(json!({"for": "14d"})).await.has(200).json();
    assert_eq!(longer["lease"]["until"], "2026-01-16T03:04:05.000006+00:00");
    let same = put(json!({"for": "3d"})).await.has(200).json();
    assert_eq!(
        same["lease"]["until"], longer["lease"]["until"],
        "less than there is changes nothing"
    );
    let until = put(json!({"until": "2026-01-20T00:00:00Z"})).await.has(200).json();
    assert_eq!(until["lease"]["until"], "2026-01-20T00:00:00.000000+00:00");
    put(json!({"for": "14d", "until": "2026-01-20T00:00:00Z"})).await.has(400);
    put(json!({"for": "99999d"})).await.has(400);
    put(json!({"by": "me"})).await.has(400);
    let undone = given.api.post(&format!("{lease}/undo"), "{}").await.has(409).json();
    assert_eq!(undone["errors"][0]["detail"], "the lease has not ended: there is nothing to undo");
}

#[tokio::test]
async fn a_snapshot_is_listed_and_outlives_its_vm() {
    let given = ApiFixture::start().await;
    let vm = given.ask(json!({})).await;
    let path = format!("{MACHINES}/lab-1/snapshots");
    given.api.post(&path, "{}").await.has(409);
    given.is(ServerState::On).await;
    let kept = given.api.post(&path, r#"{"name": "before"}"#).await.has(202).json();
    let want = json!({
        "uuid": kept["uuid"], "name": "before", "project_id": "default", "user_id": "anonymous", "machine_id": vm["uuid"], "machine": "lab-1",
        "status": "wanted", "status_reason": null, "lease_ended": false, "size_gib": 20, "image_id": null,
        "created_at": "2026-01-02T03:04:05.000006+00:00", "made_at": null, "keep_until": null,
    });
    assert_eq!(kept, want);
    given.api.post(&path, r#"{"name": "before"}"#).await.has(409);
    given.api.post(&path, r#"{"name": "No"}"#).await.has(400);
    assert_eq!(given.api.get(&path).await.json(), json!({"snapshots": [kept]}));
    assert_eq!(given.api.get("/bedplate/v1/snapshots").await.json(), json!({"snapshots": [kept]}));
    let one =
        given.api.send("DELETE", "/bedplate/v1/snapshots/before", "", "").await.has(202).json();
    assert_eq!(one["status"], "leaving");
    let gone = given.api.send("DELETE", &format!("{MACHINES}/lab-1"), "", "").await.has(202).json();
    assert_eq!(gone["status"], "DELETING");
    given.act(json!({"action": "start"})).await.has(409);
}

#[tokio::test]
async fn offered_images_are_listed_with_their_requirements() {
    let given = ApiFixture::start().await;
    let reported = given.api.get("/bedplate/v1/images").await.has(200).json();
    let image = json!({"id": given.image, "name": "cirros", "user_data_format": "cloud-init", "min_ram_mib": 0, "min_disk_gib": 5});
    assert_eq!(reported, json!({"images": [image]}));
}
