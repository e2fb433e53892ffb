//! The import of a Magnum's templates.

use serde_json::json;

use crate::api::Api;

const ID: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";

fn template() -> serde_json::Value {
    // As Magnum shows a template of its Heat driver.
    json!({
        "uuid": ID, "name": "small", "coe": "kubernetes", "image_id": "fcos", "flavor_id": "m1.large",
        "master_flavor_id": null, "dns_nameserver": "8.8.8.8", "keypair_id": "ops", "external_network_id": "public",
        "fixed_network": null, "fixed_subnet": null, "network_driver": "flannel", "volume_driver": null,
        "apiserver_port": null, "docker_volume_size": null, "docker_storage_driver": "overlay2",
        "cluster_distro": "fedora-coreos", "http_proxy": null, "https_proxy": null, "no_proxy": null,
        "registry_enabled": false, "insecure_registry": null, "labels": {"kube_tag": "v1.32.1", "note": "ours"},
        "tls_disabled": false, "public": true, "hidden": false, "tags": null, "driver": null, "server_type": "vm",
        "master_lb_enabled": true, "floating_ip_enabled": true, "project_id": "default", "user_id": "u-1",
        "created_at": "2024-05-06T07:08:09+00:00", "updated_at": "2024-06-01T00:00:00+00:00", "links": []
    })
}

#[tokio::test]
async fn a_template_keeps_its_id_its_owner_and_its_times() {
    let api = Api::start().await;
    let path = format!("/bedplate/v1/import/clustertemplates/{ID}");
    let body = template().to_string();
    api.put(&format!("{path}?dry_run=true"), &body).await.has(200).is(r#"{"result": "checked"}"#);
    api.get(&format!("/v1/clustertemplates/{ID}")).await.has(404);
    api.put(&path, &body).await.has(200).is(r#"{"result": "imported"}"#);
    api.put(&path, &body).await.has(200).is(r#"{"result": "present"}"#);
    let shown = api.get("/v1/clustertemplates/small").await.has(200).json();
    for field in ["uuid", "image_id", "labels", "public", "user_id", "master_lb_enabled"] {
        assert_eq!(shown[field], template()[field], "{field}");
    }
    assert_eq!(shown["created_at"], "2024-05-06T07:08:09.000000+00:00");
    let cluster = format!(r#"{{"name": "c", "cluster_template_id": "{ID}"}}"#);
    api.post("/v1/clusters", &cluster).await.has(202);
}

#[tokio::test]
async fn a_template_that_clusterd_cannot_use_is_refused_by_field() {
    let api = Api::start().await;
    let other = "00000000-0000-0000-0000-000000000007";
    let path = format!("/bedplate/v1/import/clustertemplates/{ID}");
    let check = async |field: &str, value: serde_json::Value, why: &str| {
        let mut body = template();
        body[field] = value;
        api.put(&path, &body.to_string()).await.refuses(400, why);
    };
    check("uuid", json!(other), "uuid: must be the UUID of the path").await;
    check("project_id", json!(null), "project_id: is required").await;
    check("coe", json!("swarm"), "coe: only kubernetes is supported").await;
    check("driver", json!("k8s"), "driver: must be null: there is only one driver").await;
    let why = "labels/coredns_tag: its version is set by kube_tag; remove it";
    check("labels", json!({"coredns_tag": "1.9.4"}), why).await;
    api.get("/v1/clustertemplates").await.is(r#"{"clustertemplates": []}"#);

    api.template("small", "").await;
    let used = api.put(&path, &template().to_string()).await;
    used.refuses(409, "name: \"small\" is already in use");
}
