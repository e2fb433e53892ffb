//! Hypervisor profiles: created from the form and from a document, changed, deleted, and used by a bring-up.

use crate::fixture::{Auth, ConsoleFixture};

/// The fields that the form requires.
fn fields() -> Vec<(&'static str, &'static str)> {
    vec![
        ("name", "kvm"),
        ("kind", "cloud-init"),
        ("image", "http://images.example/host.raw"),
        ("checksum", "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
        ("auth_url", "http://keystone.example:5000/v3"),
        ("username", "nova"),
        ("password", "canary-1"),
        ("transport_url", "rabbit://nova:canary-2@bus/"),
        ("network", "physnet1"),
        ("bridge", "br-ex"),
        ("tunnels", "on"),
        ("availability_zone", "rack"),
        ("aggregate", "fixed"),
        ("aggregate_name", "gpu"),
    ]
}

#[tokio::test]
async fn a_profile_is_created_from_the_form_and_shown_without_secrets() {
    let given = ConsoleFixture::start(Auth::None).await;
    let mut browser = given.browser();
    browser.get("/profiles").await.has(200).says("No hypervisor profiles");
    let wrong: Vec<_> = fields()
        .into_iter()
        .map(|it| if it.0 == "bridge" { ("bridge", "-x") } else { it })
        .collect();
    let refused = browser.fill("/profiles/new", "/profiles/new", &wrong).await.has(400);
    let refused = refused.says("bridge_mappings.physnet1.bridge").says("value=\"kvm\"");
    assert!(!refused.text.contains("canary"), "{}", refused.text);

    let made = browser.fill("/profiles/new", "/profiles/new", &fields()).await;
    assert_eq!(made.leads(), "/profiles/kvm");
    let shown = browser.get("/profiles/kvm").await.has(200);
    assert!(!shown.text.contains("canary"), "{}", shown.text);
    shown.says("by rack").says("gpu").says("br-ex").says("******");
    browser.get("/profiles").await.has(200).says("href=\"/profiles/kvm\"");
    let twice = browser.fill("/profiles/new", "/profiles/new", &fields()).await.has(409);
    twice.says("is already in use");

    // Registries keep the checksums of their images.
    let image = |image: &'static str| {
        let others =
            fields().into_iter().filter(|it| !["name", "image", "checksum"].contains(&it.0));
        [("name", "from-registry"), ("image", image)].into_iter().chain(others).collect::<Vec<_>>()
    };
    let url = image("http://images.example/host.raw");
    let refused = browser.fill("/profiles/new", "/profiles/new", &url).await.has(400);
    refused.says("checksum: required with an image at a URL");
    let registry = image("oci://registry.example/host:1");
    let made = browser.fill("/profiles/new", "/profiles/new", &registry).await;
    assert_eq!(made.leads(), "/profiles/from-registry");

    // The shown document can be sent back and keeps the secrets.
    let document = browser.get("/profiles/kvm").await.text;
    let document = document.split("spellcheck=\"false\">").nth(1).unwrap();
    let document = document.split("</textarea>").next().unwrap();
    let document = document.replace("&quot;", "\"").replace("br-ex", "br-lan");
    let written = browser.fill("/profiles/kvm", "/profiles/kvm", &[("document", &document)]).await;
    assert_eq!(written.leads(), "/profiles/kvm");
    browser.get("/profiles/kvm").await.has(200).says("br-lan");
    let broken = [("document", "name: kvm\nkind: [")];
    browser.fill("/profiles/kvm", "/profiles/kvm", &broken).await.has(400).says("document: ");

    browser.fill("/profiles/kvm", "/profiles/kvm/delete", &[("name", "other")]).await.has(400);
    let gone = browser.fill("/profiles/kvm", "/profiles/kvm/delete", &[("name", "kvm")]).await;
    assert_eq!(gone.leads(), "/profiles");
    browser.get("/profiles/kvm").await.has(404);
}

#[tokio::test]
async fn a_profile_is_created_from_a_document_and_offered_to_racks() {
    let given = ConsoleFixture::start(Auth::None).await;
    let mut browser = given.browser();
    let document = "name: gpu\nkind: cloud-init\n\
        instance_info: {image_source: 'http://i/x', image_checksum: 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'}\n\
        settings:\n  keystone: {auth_url: 'http://k:5000/v3', username: nova, password: canary-1}\n  \
        message_bus: {transport_url: 'rabbit://nova:canary-2@bus/'}\n  hugepages: [{size: 1G, count: 4}]\n";
    let made = browser.upload("/profiles/new", "/profiles/new", "gpu.yaml", document).await;
    assert_eq!(made.leads(), "/profiles/gpu");
    browser.get("/profiles/gpu").await.has(200).says("hugepages.0.count");

    let rack = "name,position,mac,bmc_type,bmc_address\nr1u1,1,52:54:00:00:00:01,fake,\n";
    let fields = [("manifest", rack), ("format", "csv"), ("rack", "r1"), ("reach", "enrolled")];
    browser
        .fill("/bring-up", "/bring-up/check", &fields)
        .await
        .has(200)
        .says("<option>gpu</option>");
    browser.fill("/bring-up", "/bring-up/enroll", &fields).await;
    browser.get("/racks/r1").await.has(200).says("<option>gpu</option>");
    // This baremetald is configured without a cloud and refuses.
    let up = [("reach", "available"), ("profile", "gpu"), ("name", "r1")];
    let refused = browser.fill("/racks/r1", "/racks/r1/up", &up).await.has(400);
    refused.says("no cloud is configured");
}
