//! Actions of servers, and Nova's answers to them.

use openstack_emulator::{End, Kind, Settings};
use reqwest::Method;
use serde_json::{Value, json};

use crate::somebody::{TestUser, alice, fate, shows, text, with};

async fn act(who: &TestUser, server: &str, body: Value) -> (u16, String) {
    let path = format!("/compute/v2.1/servers/{server}/action");
    let (status, answer) = who.ask(Method::POST, &path, body).await;
    let said = answer.as_object().and_then(|fault| fault.values().next());
    let said = said.filter(|_| status >= 400);
    (status, said.map(|fault| text(&fault["message"])).unwrap_or_default())
}

/// Asserts that a server refuses an action because of its status or task.
async fn busy(who: &TestUser, server: &str, body: Value, action: &str, what: &str) {
    let said = format!("Cannot '{action}' instance {server} while it is in {what}");
    assert_eq!(act(who, server, body).await, (409, said));
}

/// A running server of the smallest flavor.
async fn running(alice: &TestUser, more: Value) -> String {
    let (network, _) = alice.network("10.0.0.0/24").await;
    let id = alice.server("own", &network, more).await;
    alice.server_is(&id, "ACTIVE").await;
    id
}

#[tokio::test]
async fn an_action_is_refused_in_the_wrong_status_or_during_another_action() {
    let mut settings = Settings::default();
    settings.times.server_action = 600;
    let (_emulator, alice) = alice(settings).await;
    let id = running(&alice, json!({})).await;
    busy(&alice, &id, json!({"os-start": null}), "start", "vm_state active").await;
    assert_eq!(act(&alice, &id, json!({"os-stop": null})).await.0, 202);
    busy(&alice, &id, json!({"os-stop": null}), "stop", "task_state powering-off").await;
    let server = alice.server_is(&id, "SHUTOFF").await;
    shows(&server, json!({"OS-EXT-STS:vm_state": "stopped", "OS-EXT-STS:power_state": 4}));
    busy(&alice, &id, json!({"reboot": {"type": "SOFT"}}), "reboot", "vm_state stopped").await;
    assert_eq!(act(&alice, &id, json!({"reboot": {"type": "HARD"}})).await.0, 202);
    let server = alice.get(&format!("/compute/v2.1/servers/{id}")).await["server"].clone();
    shows(&server, json!({"status": "HARD_REBOOT", "OS-EXT-STS:task_state": "rebooting_hard"}));
    alice.server_is(&id, "ACTIVE").await;
    assert_eq!(act(&alice, &id, json!({"reboot": {"type": "WARM"}})).await.0, 400);
}

#[tokio::test]
async fn a_stopped_server_is_resized_and_stays_stopped_confirmed_or_reverted() {
    let (_emulator, alice) = alice(Settings::default()).await;
    let id = running(&alice, json!({})).await;
    let same = act(&alice, &id, json!({"resize": {"flavorRef": "1"}})).await;
    assert_eq!(same, (400, "When resizing, instances must change flavor!".to_owned()));
    let none = act(&alice, &id, json!({"resize": {"flavorRef": "none"}})).await;
    assert_eq!(none, (400, "Flavor none could not be found.".to_owned()));
    busy(&alice, &id, json!({"confirmResize": null}), "confirmResize", "vm_state active").await;
    act(&alice, &id, json!({"os-stop": null})).await;
    alice.server_is(&id, "SHUTOFF").await;
    for (end, status, ram) in [("revertResize", 202, 128), ("confirmResize", 204, 512)] {
        assert_eq!(act(&alice, &id, json!({"resize": {"flavorRef": "2"}})).await.0, 202);
        let server = alice.server_is(&id, "VERIFY_RESIZE").await;
        assert_eq!(server["flavor"]["ram"], 512);
        shows(&server, json!({"OS-EXT-STS:power_state": 4}));
        assert_eq!(act(&alice, &id, json!({end: null})).await.0, status);
        assert_eq!(alice.server_is(&id, "SHUTOFF").await["flavor"]["ram"], ram);
    }
    let limits = alice.get("/compute/v2.1/limits").await;
    assert_eq!(limits["limits"]["absolute"]["totalRAMUsed"], 512);
}

#[tokio::test]
async fn a_resize_is_confirmed_once() {
    let mut settings = Settings::default();
    settings.times.server_action = 600;
    let (_emulator, alice) = alice(settings).await;
    let id = running(&alice, json!({})).await;
    assert_eq!(act(&alice, &id, json!({"resize": {"flavorRef": "2"}})).await.0, 202);
    alice.server_is(&id, "VERIFY_RESIZE").await;
    assert_eq!(act(&alice, &id, json!({"confirmResize": null})).await.0, 204);
    for again in ["confirmResize", "revertResize"] {
        let refused = act(&alice, &id, json!({again: null})).await;
        assert_eq!(refused, (400, "Instance has not been resized.".to_owned()));
    }
    alice.server_is(&id, "ACTIVE").await;
    assert_eq!(act(&alice, &id, json!({"resize": {"flavorRef": "3"}})).await.0, 202);
    alice.server_is(&id, "VERIFY_RESIZE").await;
    assert_eq!(act(&alice, &id, json!({"revertResize": null})).await.0, 202);
}

#[tokio::test]
async fn a_resize_to_a_smaller_disk_or_beyond_the_quota_fails() {
    let (_emulator, alice) = alice(Settings::default()).await;
    let id = running(&alice, json!({"flavorRef": "3"})).await;
    // Nova accepts the request, then the hypervisor refuses, and the server keeps its flavor.
    assert_eq!(act(&alice, &id, json!({"resize": {"flavorRef": "1"}})).await.0, 202);
    assert_eq!(alice.server_is(&id, "ACTIVE").await["flavor"]["ram"], 2048);
    let quotas = json!({"quota_set": {"cores": 4}});
    let admin = TestUser::log_in(&alice.cloud, "admin", "admin").await;
    let path = format!("/compute/v2.1/os-quota-sets/{}", alice.project);
    assert_eq!(admin.ask(Method::PUT, &path, quotas).await.0, 200);
    let more = act(&alice, &id, json!({"resize": {"flavorRef": "6"}})).await;
    assert_eq!(
        more,
        (403, "Quota exceeded for cores: Requested 7, but already used 1 of 4 cores".to_owned())
    );
}

#[tokio::test]
async fn an_image_of_a_server_is_queued_saved_and_active() {
    let mut settings = Settings::default();
    settings.times.image_import = 800;
    let (_emulator, alice) = alice(settings).await;
    let id = running(&alice, json!({})).await;
    let path = format!("/compute/v2.1/servers/{id}/action");
    let made = alice.make(&path, json!({"createImage": {"name": "kept"}})).await;
    let image = format!("/image/v2/images/{}", text(&made["image_id"]));
    let seen = alice.get(&image).await;
    shows(&seen, json!({"status": "queued", "size": null, "visibility": "private"}));
    shows(&seen, json!({"image_type": "snapshot", "instance_uuid": id, "min_disk": 1}));
    busy(
        &alice,
        &id,
        json!({"createImage": {"name": "again"}}),
        "createImage",
        "task_state image_snapshot",
    )
    .await;
    let is = async |wanted: &str| {
        alice
            .cloud
            .wait_until(|cloud| {
                let all = cloud.objects(Kind::Image);
                all.iter()
                    .any(|one| one.text("name") == "kept" && one.text("status") == wanted)
                    .then_some(())
            })
            .await;
    };
    is("saving").await;
    is("active").await;
    assert_eq!(alice.get(&image).await["size"], 1 << 20);
    assert_eq!(act(&alice, &id, json!({"os-stop": null})).await.0, 202);
    assert_eq!(alice.delete(&image).await, 204);
}

#[tokio::test]
async fn an_image_that_fails_is_deleted_by_nova() {
    let (_emulator, alice) = alice(Settings::default()).await;
    alice.cloud.set_fate(fate(Kind::Image, "kept", End::Error("no space left".into())));
    let id = running(&alice, json!({})).await;
    assert_eq!(act(&alice, &id, json!({"createImage": {"name": "kept"}})).await.0, 202);
    alice
        .cloud
        .wait_until(|cloud| {
            let gone = cloud.objects(Kind::Image).iter().all(|one| one.text("name") != "kept");
            gone.then_some(())
        })
        .await;
    assert_eq!(alice.server_is(&id, "ACTIVE").await["OS-EXT-STS:task_state"], Value::Null);
}

#[tokio::test]
async fn the_image_of_a_boot_volume_has_no_bytes_and_its_snapshot_holds_the_volume() {
    let (_emulator, alice) = alice(Settings::default()).await;
    let boot = json!({
        "boot_index": 0, "source_type": "image", "destination_type": "volume", "uuid": alice.image(), "volume_size": 3, "delete_on_termination": true,
    });
    let id = running(&alice, json!({"imageRef": "", "block_device_mapping_v2": [boot]})).await;
    let path = format!("/compute/v2.1/servers/{id}/action");
    let made = alice.make(&path, json!({"createImage": {"name": "kept"}})).await;
    let image = alice.get(&format!("/image/v2/images/{}", text(&made["image_id"]))).await;
    shows(&image, json!({"status": "active", "size": 0, "bdm_v2": "True"}));
    let mapping: Value =
        serde_json::from_str(image["block_device_mapping"].as_str().unwrap()).unwrap();
    let snapshots = alice.get("/volume/v3/snapshots/detail").await["snapshots"].clone();
    assert_eq!(snapshots[0]["name"], "snapshot for kept");
    shows(&mapping[0], json!({"snapshot_id": snapshots[0]["id"], "boot_index": 0}));
    assert_eq!(mapping[0]["volume_size"], 3);
    // The server is deleted, but Cinder keeps its volume because the volume has a snapshot.
    assert_eq!(alice.delete(&format!("/compute/v2.1/servers/{id}")).await, 204);
    alice.cloud.wait_until(|cloud| cloud.objects(Kind::Server).is_empty().then_some(())).await;
    let volumes = alice.get("/volume/v3/volumes/detail").await["volumes"].clone();
    assert_eq!(
        (volumes.as_array().unwrap().len(), &volumes[0]["status"]),
        (1, &json!("available"))
    );
}

#[tokio::test]
async fn a_flavor_or_volume_that_is_too_small_for_the_image_is_refused() {
    let (_emulator, alice) = alice(Settings::default()).await;
    let body = json!({"name": "large", "min_disk": 10, "min_ram": 512, "disk_format": "raw", "container_format": "bare"});
    let image = text(&alice.make("/image/v2/images", body).await["id"]);
    let path = format!("/image/v2/images/{image}/file");
    assert_eq!(alice.ask(Method::PUT, &path, json!("bytes")).await.0, 204);
    let volume = |size: u32| json!([{"boot_index": 0, "source_type": "image", "destination_type": "volume", "uuid": image, "volume_size": size}]);
    for (more, said) in [
        (json!({"flavorRef": "1"}), "Flavor's memory is too small for requested image."),
        (
            json!({"flavorRef": "2"}),
            "Flavor's disk is too small for requested image. Flavor disk is 5368709120 bytes, minimum size is 10737418240 bytes.",
        ),
        (
            json!({"flavorRef": "2", "imageRef": "", "block_device_mapping_v2": volume(9)}),
            "Volume is smaller than the minimum size specified in image metadata. Volume size is 9663676416 bytes, minimum size is 10737418240 bytes.",
        ),
        (json!({"flavorRef": "3"}), ""),
    ] {
        let server = with(json!({"name": "own", "networks": "none", "imageRef": image}), &more);
        let body = json!({"server": server});
        let (status, answer) = alice.ask(Method::POST, "/compute/v2.1/servers", body).await;
        assert_eq!(status, if said.is_empty() { 202 } else { 400 }, "{more}: {answer}");
        assert_eq!(answer["badRequest"]["message"].as_str().unwrap_or_default(), said);
    }
}

#[tokio::test]
async fn a_console_has_a_new_token_each_time_and_diagnostics_are_for_administrators() {
    let (_emulator, alice) = alice(Settings::default()).await;
    let id = running(&alice, json!({})).await;
    let path = format!("/compute/v2.1/servers/{id}/remote-consoles");
    let novnc = json!({"remote_console": {"protocol": "vnc", "type": "novnc"}});
    let url = async || text(&alice.make(&path, novnc.clone()).await["remote_console"]["url"]);
    let first = url().await;
    assert!(first.contains("/vnc_auto.html?path=%3Ftoken%3D"), "{first}");
    assert_ne!(first, url().await);
    let spice = json!({"remote_console": {"protocol": "spice", "type": "spice-html5"}});
    let (status, answer) = alice.ask(Method::POST, &path, spice).await;
    assert_eq!(
        (status, &answer["badRequest"]["message"]),
        (400, &json!("Unavailable console type spice-html5."))
    );
    let unknown = json!({"remote_console": {"protocol": "telnet", "type": "novnc"}});
    assert_eq!(alice.ask(Method::POST, &path, unknown).await.0, 400);
    let old = alice
        .client
        .post(format!("{}{path}", alice.cloud.url()))
        .header("x-auth-token", &alice.token);
    let old = old.header("openstack-api-version", "compute 2.5").json(&novnc);
    assert_eq!(old.send().await.unwrap().status(), 404, "consoles came with 2.6");

    let path = format!("/compute/v2.1/servers/{id}/diagnostics");
    assert_eq!(alice.ask(Method::GET, &path, Value::Null).await.0, 403);
    let admin = TestUser::log_in(&alice.cloud, "admin", "admin").await;
    let seen = admin.get(&path).await;
    shows(&seen, json!({"state": "running", "num_cpus": 1, "num_nics": 1}));
    act(&alice, &id, json!({"os-stop": null})).await;
    alice.server_is(&id, "SHUTOFF").await;
    let (status, answer) = admin.ask(Method::GET, &path, Value::Null).await;
    assert_eq!(status, 409, "{answer}");
}
