//! Images that a project shares with another.

use openstack_emulator::Settings;
use reqwest::Method;
use serde_json::{Value, json};

use crate::somebody::{TestUser, alice, shows, text};

const IMAGES: &str = "/image/v2/images";

/// The names in a list of images.
async fn listed(who: &TestUser, query: &str) -> Vec<String> {
    let all = who.get(&format!("{IMAGES}?{query}")).await;
    all["images"].as_array().unwrap().iter().map(|image| text(&image["name"])).collect()
}

#[tokio::test]
async fn members_see_a_shared_image_and_list_it_after_they_accepted_it() {
    let (emulator, alice) = alice(Settings::default()).await;
    let bob = TestUser::log_in(&emulator.cloud, "bob", "tenant-b").await;
    let made = alice.make(IMAGES, json!({"name": "ours"})).await;
    assert_eq!(made["visibility"], "shared");
    let image = format!("{IMAGES}/{}", text(&made["id"]));
    let (members, own) = (format!("{image}/members"), format!("{image}/members/{}", bob.project));
    let say = async |who: &TestUser, status: &str| {
        who.ask(Method::PUT, &own, json!({"status": status})).await.0
    };
    assert_eq!(bob.ask(Method::GET, &image, Value::Null).await.0, 404);
    assert_eq!(bob.ask(Method::GET, &members, Value::Null).await.0, 404);

    let member = alice.make(&members, json!({"member": bob.project})).await;
    shows(&member, json!({"status": "pending", "member_id": bob.project}));
    assert_eq!(alice.ask(Method::POST, &members, json!({"member": bob.project})).await.0, 409);
    assert_eq!(bob.get(&image).await["name"], "ours");
    assert!(!listed(&bob, "").await.contains(&"ours".to_owned()));
    assert_eq!(listed(&bob, "visibility=shared&member_status=pending").await, ["ours"]);

    // Only the member may accept, and only the owner may add members.
    assert_eq!(say(&alice, "accepted").await, 403);
    assert_eq!(say(&bob, "soon").await, 400);
    assert_eq!(say(&bob, "accepted").await, 200);
    assert!(listed(&bob, "").await.contains(&"ours".to_owned()));
    assert_eq!(bob.ask(Method::POST, &members, json!({"member": "other"})).await.0, 403);
    assert_eq!(bob.ask(Method::DELETE, &image, Value::Null).await.0, 403);
    assert_eq!(alice.get(&members).await["members"][0]["status"], "accepted");

    assert_eq!(alice.delete(&own).await, 204);
    assert_eq!(bob.ask(Method::GET, &image, Value::Null).await.0, 404);
}

#[tokio::test]
async fn only_shared_images_have_members() {
    let (emulator, alice) = alice(Settings::default()).await;
    let bob = TestUser::log_in(&emulator.cloud, "bob", "tenant-b").await;
    let made = alice.make(IMAGES, json!({"name": "mine", "visibility": "private"})).await;
    let image = format!("{IMAGES}/{}", text(&made["id"]));
    let member = json!({"member": bob.project});
    let (status, said) = alice.ask(Method::POST, &format!("{image}/members"), member).await;
    assert_eq!(status, 403);
    assert!(said.to_string().contains("Only shared images have members"), "{said}");
}
