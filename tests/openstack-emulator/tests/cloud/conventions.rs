//! Pages, microversions, error envelopes, and refusals.

use openstack_emulator::{Kind, Settings};
use reqwest::Method;
use serde_json::{Value, json};

use crate::somebody::{TestUser, alice, client, text};

#[tokio::test]
async fn pages_link_to_each_other_until_the_last() {
    let (emulator, alice) = alice(Settings::default()).await;
    let many: Vec<Value> = (0..7).map(|number| json!({"name": format!("n{number}")})).collect();
    alice.make("/network/v2.0/networks", json!({"networks": many})).await;
    let mut path = "/network/v2.0/networks?limit=3&router:external=false".to_owned();
    let mut pages = Vec::new();
    loop {
        let page = alice.get(&path).await;
        pages.push(page["networks"].as_array().unwrap().len());
        let Some(next) = page["networks_links"][0]["href"].as_str() else { break };
        path = next
            .strip_prefix(&emulator.cloud.url())
            .expect("a link leads to where the client asked")
            .to_owned();
    }
    assert_eq!(pages, [3, 3, 1]);
    let (status, body) =
        alice.ask(Method::GET, "/network/v2.0/networks?colour=red", Value::Null).await;
    assert_eq!((status, body["NeutronError"]["type"].as_str()), (400, Some("HTTPBadRequest")));
}

#[tokio::test]
async fn a_microversion_decides_what_is_shown_and_one_too_new_is_refused() {
    let (emulator, alice) = alice(Settings::default()).await;
    let (network, _) = alice.network("10.0.0.0/24").await;
    let id = alice.server("v", &network, json!({"tags": ["t"]})).await;
    let look = async |version: &str| {
        let url = format!("{}/compute/v2.1/servers/{id}", emulator.cloud.url());
        let request = client().get(url).header("x-auth-token", &alice.token);
        let answer = request
            .header("openstack-api-version", format!("compute {version}"))
            .send()
            .await
            .unwrap();
        let shown = answer.headers()["openstack-api-version"].to_str().unwrap().to_owned();
        (answer.status().as_u16(), shown, answer.json::<Value>().await.unwrap())
    };
    let (_, shown, old) = look("2.1").await;
    assert_eq!(shown, "compute 2.1");
    assert!(old["server"]["tags"].is_null() && old["server"]["flavor"]["id"] == "1", "{old}");
    let (_, shown, new) = look("latest").await;
    assert_eq!(shown, "compute 2.96");
    assert_eq!(
        (&new["server"]["tags"], &new["server"]["flavor"]["original_name"]),
        (&json!(["t"]), &json!("m1.nano"))
    );
    let (status, _, body) = look("2.999").await;
    assert_eq!(status, 406, "{body}");
}

#[tokio::test]
async fn each_service_says_not_found_in_its_own_way() {
    let (_emulator, alice) = alice(Settings::default()).await;
    let missing = async |path: &str| {
        let (status, body) = alice.ask(Method::GET, path, Value::Null).await;
        assert_eq!(status, 404, "{path}");
        body
    };
    assert_eq!(missing("/compute/v2.1/servers/x").await["itemNotFound"]["code"], 404);
    assert_eq!(missing("/network/v2.0/ports/x").await["NeutronError"]["type"], "PortNotFound");
    assert_eq!(
        missing("/load-balancer/v2/lbaas/pools/x").await["faultstring"],
        "Pool x not found."
    );
    assert_eq!(missing("/dns/v2/zones/x").await["type"], "zone_not_found");
    assert_eq!(
        missing(&format!("/volume/v3/{}/volumes/x", alice.project)).await["itemNotFound"]["message"],
        "Volume x could not be found."
    );
    assert!(text(&missing("/image/v2/images/x").await).contains("No image found with ID x"));
    let user = format!("/identity/v3/users/{}/application_credentials/x", user(&alice).await);
    assert_eq!(missing(&user).await["error"]["title"], "Not Found");
}

async fn user(somebody: &TestUser) -> String {
    let client = client();
    let url = format!("{}/auth/tokens", somebody.cloud.auth_url());
    let request = client
        .get(url)
        .header("x-auth-token", &somebody.token)
        .header("x-subject-token", &somebody.token);
    let body: Value = request.send().await.unwrap().json().await.unwrap();
    text(&body["token"]["user"]["id"])
}

#[tokio::test]
async fn an_object_in_use_cannot_be_deleted() {
    let (emulator, alice) = alice(Settings::default()).await;
    let (network, subnet) = alice.network("10.0.0.0/24").await;
    let port = alice.make("/network/v2.0/ports", json!({"port": {"network_id": network}})).await;
    let port = text(&port["port"]["id"]);
    let (status, body) =
        alice.ask(Method::DELETE, &format!("/network/v2.0/networks/{network}"), Value::Null).await;
    assert_eq!((status, body["NeutronError"]["type"].as_str()), (409, Some("NetworkInUse")));
    let (status, body) =
        alice.ask(Method::DELETE, &format!("/network/v2.0/subnets/{subnet}"), Value::Null).await;
    assert_eq!((status, body["NeutronError"]["type"].as_str()), (409, Some("SubnetInUse")));
    let server = json!({"name": "v", "flavorRef": "1", "imageRef": alice.image(), "networks": [{"port": port}]});
    alice.make("/compute/v2.1/servers", json!({"server": server})).await;
    let (status, body) =
        alice.ask(Method::POST, "/compute/v2.1/servers", json!({"server": server})).await;
    assert_eq!(
        (status, body["conflictingRequest"]["message"].as_str()),
        (409, Some(format!("Port {port} is still in use.").as_str()))
    );

    // Deleting the server detaches its port, and then everything can be deleted.
    let id = emulator.cloud.objects(Kind::Server)[0].id.clone();
    assert_eq!(alice.delete(&format!("/compute/v2.1/servers/{id}")).await, 204);
    emulator.cloud.wait_until(|cloud| cloud.objects(Kind::Server).is_empty().then_some(())).await;
    assert_eq!(alice.get(&format!("/network/v2.0/ports/{port}")).await["port"]["device_id"], "");
    assert_eq!(alice.delete(&format!("/network/v2.0/ports/{port}")).await, 204);
    assert_eq!(alice.delete(&format!("/network/v2.0/networks/{network}")).await, 204);
    assert_eq!(emulator.cloud.objects_of(&alice.project), []);
}

#[tokio::test]
async fn others_see_nothing_and_readers_change_nothing() {
    let (emulator, alice) = alice(Settings::default()).await;
    let bob = TestUser::log_in(&emulator.cloud, "bob", "tenant-b").await;
    let (network, _) = alice.network("10.0.0.0/24").await;
    let server = alice.server("v", &network, json!({})).await;
    for path in
        [format!("/compute/v2.1/servers/{server}"), format!("/network/v2.0/networks/{network}")]
    {
        assert_eq!(bob.ask(Method::GET, &path, Value::Null).await.0, 404);
        assert_eq!(bob.delete(&path).await, 404);
    }
    assert_eq!(bob.get("/compute/v2.1/servers/detail").await["servers"], json!([]));
    assert_eq!(bob.ask(Method::GET, "/placement/resource_providers", Value::Null).await.0, 403);
}

#[tokio::test]
async fn user_data_is_base64_and_no_longer_than_nova_takes() {
    let (_emulator, alice) = alice(Settings::default()).await;
    let body = |data: &str| json!({"server": {"name": "v", "flavorRef": "1", "imageRef": alice.image(), "networks": "none", "user_data": data}});
    let status =
        async |data: &str| alice.ask(Method::POST, "/compute/v2.1/servers", body(data)).await.0;
    assert_eq!(status("not base64!").await, 400);
    assert_eq!(status(&"A".repeat(65536)).await, 400);
    assert_eq!(status(&"A".repeat(65532)).await, 202);
}

#[tokio::test]
async fn allocation_candidates_change_with_the_usage() {
    let (emulator, alice) = alice(Settings::default()).await;
    let admin = TestUser::log_in(&emulator.cloud, "admin", "admin").await;
    let fits = async |resources: &str| {
        let found =
            admin.get(&format!("/placement/allocation_candidates?resources={resources}")).await;
        found["allocation_requests"].as_array().unwrap().len()
    };
    assert_eq!(
        (fits("VCPU:1,MEMORY_MB:1024").await, fits("VCPU:1,PGPU:1").await, fits("VCPU:65").await),
        (4, 1, 0)
    );
    let (network, _) = alice.network("10.0.0.0/24").await;
    let gpu = alice.server("gpu", &network, json!({"flavorRef": "g1"})).await;
    alice.server_is(&gpu, "ACTIVE").await;
    assert_eq!((fits("PGPU:3").await, fits("PGPU:4").await), (1, 0), "one of four is taken");
}

#[tokio::test]
async fn an_application_credential_is_limited_by_its_access_rules() {
    let (_emulator, alice) = alice(Settings::default()).await;
    let path = format!("/identity/v3/users/{}/application_credentials", user(&alice).await);
    let rules = json!([{"service": "network", "method": "GET", "path": "/v2.0/networks/{id}"}]);
    let body =
        json!({"application_credential": {"name": "little", "secret": "s", "access_rules": rules}});
    let made = alice.make(&path, body).await;
    let id = &made["application_credential"]["id"];
    let identity = json!({"methods": ["application_credential"], "application_credential": {"id": id, "secret": "s"}});
    let url = format!("{}/auth/tokens", alice.cloud.auth_url());
    let body = json!({"auth": {"identity": identity}});
    let answer = client().post(url).json(&body).send().await.unwrap();
    let token = answer.headers()["x-subject-token"].to_str().unwrap().to_owned();
    let (network, _) = alice.network("10.0.0.0/24").await;
    let little = TestUser { token, ..alice };
    little.get(&format!("/network/v2.0/networks/{network}")).await;
    for other in ["/network/v2.0/networks", "/compute/v2.1/servers"] {
        assert_eq!(little.ask(Method::GET, other, Value::Null).await.0, 401, "{other}");
    }
    assert_eq!(little.delete(&format!("/network/v2.0/networks/{network}")).await, 401);
}
