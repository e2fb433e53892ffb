//! A cluster may only use images and networks that belong to its project or are shared.

use cluster_core::Ident;
use cluster_store::Scope;
use serde_json::{Value, json};

use crate::service::{Answer, Service};

async fn image(service: &Service, name: &str, called: &str, visibility: &str) -> String {
    let body = json!({"name": called, "visibility": visibility, "disk_format": "qcow2", "container_format": "bare"});
    let made = service.make(name, "/image/v2/images", "", &body).await;
    made["id"].as_str().unwrap().to_owned()
}

async fn network(service: &Service, name: &str, called: &str, shared: bool) -> (String, String) {
    let mut body = json!({"network": {"name": called}});
    if shared {
        body["network"]["shared"] = json!(true);
    }
    let network = service.make(name, "/network/v2.0/networks", "network", &body).await;
    let network = network["id"].as_str().unwrap().to_owned();
    let body = json!({"subnet": {"name": called, "network_id": network, "cidr": "10.9.0.0/24", "ip_version": 4}});
    let subnet = service.make(name, "/network/v2.0/subnets", "subnet", &body).await;
    (network, subnet["id"].as_str().unwrap().to_owned())
}

async fn template(service: &Service, name: &str, fields: Value) -> Answer {
    let mut body = json!({"coe": "kubernetes", "flavor_id": "m1.small", "image_id": "for-all"});
    for (field, value) in fields.as_object().unwrap() {
        body[field] = value.clone();
    }
    service.ask_as(name, "POST", "/v1/clustertemplates", &body).await
}

/// Checks that the answer is a refusal that names the field.
#[track_caller]
fn refuses(answer: Answer, field: &str) {
    let answer = answer.has(400);
    let said = answer.json()["errors"][0]["detail"].as_str().unwrap().to_owned();
    assert!(said.starts_with(&format!("{field}: the cloud has no")), "{said}");
    assert!(said.ends_with("that this project may use"), "{said}");
}

#[tokio::test]
async fn a_project_may_use_its_own_and_shared_objects() {
    for service in Service::clusters_in_clouds().await {
        let for_all = image(&service, "project-a-admin", "for-all", "public").await;
        let a = image(&service, "project-a-member", "mine", "private").await;
        let b = image(&service, "project-b-member", "mine", "private").await;
        let c = image(&service, "project-b-member", "given", "community").await;
        // A newer private image with the same name as the public one.
        image(&service, "project-b-member", "for-all", "private").await;
        let ours = network(&service, "project-a-member", "net-a", false).await;
        let theirs = network(&service, "project-b-member", "net-b", false).await;
        let shared = network(&service, "project-b-admin", "net-s", true).await;
        let member = "project-a-member";

        for (named, id) in
            [("mine", &a), (&a, &a), ("for-all", &for_all), (&for_all, &for_all), (&c, &c)]
        {
            let made = template(&service, member, json!({"image_id": named})).await.has(201).json();
            assert_eq!(made["image_id"], named, "the answer shows the image as it was given");
            let ident: Ident = made["uuid"].as_str().unwrap().parse().unwrap();
            let found = service.store().await.find_templates(&ident, &Scope::All).await.unwrap();
            assert_eq!(found[0].blueprint.image, *id, "{named}");
        }
        for named in [b.as_str(), "given", "none", "7c9e6679-7425-40de-944b-e07fc1f90ae7"] {
            refuses(template(&service, member, json!({"image_id": named})).await, "image_id");
        }
        for (network, subnet) in
            [("net-a", ours.1.as_str()), (&ours.0, "net-a"), (&shared.0, &shared.1)]
        {
            let fields = json!({"fixed_network": network, "fixed_subnet": subnet});
            template(&service, member, fields).await.has(201);
        }
        // A network for pods must belong to the project; a shared network is refused.
        for (network, status) in [(&ours.0, 201), (&shared.0, 400)] {
            let fields = json!({"fixed_network": network, "labels": {"pod_network": "routes"}});
            let reported = template(&service, member, fields).await.has(status).json();
            let said = reported["errors"][0]["detail"].as_str().unwrap_or("labels.pod_network");
            assert!(said.starts_with("labels.pod_network"), "{said}");
        }
        for named in [theirs.0.as_str(), "net-b"] {
            refuses(
                template(&service, member, json!({"fixed_network": named})).await,
                "fixed_network",
            );
        }
        let fields = json!({"fixed_network": ours.0, "fixed_subnet": theirs.1});
        refuses(template(&service, member, fields).await, "fixed_subnet");
        refuses(
            template(&service, member, json!({"external_network_id": ours.0})).await,
            "external_network_id",
        );
        let fields = json!({"labels": {"dns_zone": "none.example"}});
        refuses(template(&service, member, fields).await, "labels.dns_zone");
    }
}

#[tokio::test]
async fn a_name_with_a_slash_is_a_name_not_an_id() {
    for service in Service::clusters_in_clouds().await {
        image(&service, "project-a-admin", "for-all", "public").await;
        let member = "project-a-member";
        let own = image(&service, member, "debian/12", "private").await;
        let made = template(&service, member, json!({"image_id": "debian/12"})).await.has(201);
        let ident: Ident = made.json()["uuid"].as_str().unwrap().parse().unwrap();
        let found = service.store().await.find_templates(&ident, &Scope::All).await.unwrap();
        assert_eq!(found[0].blueprint.image, own);
        for (field, setting) in [
            ("image_id", "image_id"),
            ("fixed_network", "fixed_network"),
            ("fixed_subnet", "fixed_subnet"),
        ] {
            for named in ["a/b", "/", ".."] {
                refuses(template(&service, member, json!({field: named})).await, setting);
            }
        }
    }
}

#[tokio::test]
async fn a_cluster_gets_the_key_of_its_callers_keypair() {
    for service in Service::clusters_in_clouds().await {
        image(&service, "project-a-admin", "for-all", "public").await;
        let (member, manager) = ("project-a-member", "project-a-manager");
        for (name, called, key) in [
            (member, "laptop", "ssh-ed25519 AAAA laptop"),
            (member, "station", "ecdsa-sha2-nistp256 AAAA station"),
            (manager, "theirs", "ssh-ed25519 AAAA theirs"),
        ] {
            let pair = json!({"keypair": {"name": called, "public_key": key}});
            service.ask_cloud(name, "POST", "/compute/v2.1/os-keypairs", &pair).await.has(200);
        }
        // A template names a keypair that each of its users has, so the keypair is looked up for a cluster only.
        let fields = json!({"name": "t", "keypair_id": "laptop"});
        template(&service, member, fields).await.has(201);
        let store = service.store().await;
        for (more, key) in [
            (json!({}), "ssh-ed25519 AAAA laptop"),
            (json!({"keypair": "station"}), "ecdsa-sha2-nistp256 AAAA station"),
        ] {
            let mut body = json!({"cluster_template_id": "t"});
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let made = service.ask_as(member, "POST", "/v1/clusters", &body).await.has(202).json();
            let ident: Ident = made["uuid"].as_str().unwrap().parse().unwrap();
            let found = store.find_clusters(&ident, &Scope::All).await.unwrap();
            assert_eq!(found[0].ssh_key.as_deref(), Some(key));
        }
        // The keypair of another user of the same project is not the caller's.
        let body = json!({"cluster_template_id": "t", "keypair": "theirs"});
        for path in ["/v1/clusters", "/bedplate/v1/plan"] {
            let answer = service.ask_as(member, "POST", path, &body).await.has(404);
            assert!(answer.text.contains("keypair: Nova has no keypair"), "{}", answer.text);
        }
        let body = json!({"cluster_template_id": "t"});
        service.ask_as(manager, "POST", "/v1/clusters", &body).await.has(404);
        let body = json!({"cluster_template_id": "t", "keypair": "theirs"});
        service.ask_as(manager, "POST", "/v1/clusters", &body).await.has(202);
    }
}

#[tokio::test]
async fn only_an_administrator_changes_the_image_of_a_public_template() {
    for service in Service::clusters_in_clouds().await {
        for called in ["for-all", "another"] {
            image(&service, "project-a-admin", called, "public").await;
        }
        let member = "project-a-member";
        let made = template(&service, member, json!({"name": "t"})).await.has(201).json();
        let path = format!("/v1/clustertemplates/{}", made["uuid"].as_str().unwrap());
        let patch =
            |field: &str, value: Value| json!([{"op": "replace", "path": field, "value": value}]);
        let image = patch("/image_id", json!("another"));
        service.ask_as(member, "PATCH", &path, &image).await.has(200);
        let publish = patch("/public", json!(true));
        service.ask_as("project-a-admin", "PATCH", &path, &publish).await.has(200);

        let image = patch("/image_id", json!("for-all"));
        service.ask_as(member, "PATCH", &path, &image).await.has(403);
        service.ask_as("project-a-admin", "PATCH", &path, &image).await.has(200);
        service.ask_as(member, "PATCH", &path, &patch("/name", json!("u"))).await.has(200);
        let withdraw = patch("/public", json!(false));
        service.ask_as(member, "PATCH", &path, &withdraw).await.has(403);
        service.ask_as("project-a-admin", "PATCH", &path, &withdraw).await.has(200);
    }
}

#[tokio::test]
async fn a_shared_image_can_be_used_once_accepted() {
    for service in Service::clusters_in_clouds().await {
        let shared = image(&service, "project-b-member", "shared", "shared").await;
        let [a, l, _] = service.projects.clone();
        let members = format!("/image/v2/images/{shared}/members");
        let body = json!({"member": a});
        service.ask_cloud("project-b-member", "POST", &members, &body).await.has(200);

        let named = json!({"image_id": shared});
        refuses(template(&service, "project-a-member", named.clone()).await, "image_id");
        let (own, accepted) = (format!("{members}/{a}"), json!({"status": "accepted"}));
        // Another project cannot accept the image in place of its member.
        service.ask_cloud("project-b-member", "PUT", &own, &accepted).await.has(403);
        service.ask_cloud("project-a-member", "PUT", &own, &accepted).await.has(200);
        let made = template(&service, "project-a-member", named.clone()).await.has(201).json();
        assert_eq!(made["image_id"], shared.as_str());
        refuses(template(&service, "project-l-member", named.clone()).await, "image_id");
        service
            .ask_cloud("project-l-member", "PUT", &format!("{members}/{l}"), &accepted)
            .await
            .has(404);

        service.ask_cloud("project-b-member", "DELETE", &own, &Value::Null).await.has(204);
        refuses(template(&service, "project-a-member", named).await, "image_id");
    }
}

#[tokio::test]
async fn no_request_may_use_objects_of_another_project() {
    for service in Service::clusters_in_clouds().await {
        image(&service, "project-a-admin", "for-all", "public").await;
        let b = image(&service, "project-b-member", "theirs", "private").await;
        let (network, subnet) = network(&service, "project-b-member", "net-b", false).await;
        let member = "project-a-member";
        let made = template(&service, member, json!({"name": "t"})).await.has(201).json();
        let path = format!("/v1/clustertemplates/{}", made["uuid"].as_str().unwrap());
        for (field, value) in [("image_id", &b), ("fixed_network", &network)] {
            let body = json!([{"op": "replace", "path": format!("/{field}"), "value": value}]);
            refuses(service.ask_as(member, "PATCH", &path, &body).await, field);
        }
        let shown = service.ask_as(member, "GET", &path, &Value::Null).await.json();
        assert_eq!(shown["image_id"], made["image_id"]);

        let body =
            json!({"cluster_template_id": "t", "fixed_network": network, "fixed_subnet": subnet});
        refuses(service.ask_as(member, "POST", "/v1/clusters", &body).await, "fixed_network");
        refuses(service.ask_as(member, "POST", "/bedplate/v1/plan", &body).await, "fixed_network");
        let body = json!({"cluster_template_id": "t", "name": "c"});
        service.ask_as(member, "POST", "/v1/clusters", &body).await.has(202);
        let body = json!({"name": "g", "image_id": b});
        let path = "/v1/clusters/c/nodegroups";
        refuses(service.ask_as(member, "POST", path, &body).await, "image_id");
        let body = json!({"name": "g", "image_id": "for-all"});
        service.ask_as(member, "POST", path, &body).await.has(202);
    }
}

#[tokio::test]
async fn without_an_answer_of_the_cloud_no_object_can_be_used() {
    for service in Service::clusters_in_clouds().await {
        service.stop_answering("/image/");
        let answer = template(&service, "project-a-member", json!({"image_id": "for-all"})).await;
        assert!(answer.has(503).text.contains("image_id: cannot check in the cloud"));
    }
}
