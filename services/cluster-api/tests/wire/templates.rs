//! Cluster templates.

use crate::api::Api;

#[tokio::test]
async fn a_template_is_answered_as_magnum_does() {
    let api = Api::start().await;
    // All fields that `openstack coe cluster template create` sends, unset fields as null, and `cluster_distro`, which others send.
    let body = r#"{
        "name": "t", "image_id": "fcos", "keypair_id": "key", "external_network_id": "public",
        "coe": "kubernetes", "fixed_network": null, "fixed_subnet": null, "network_driver": "flannel",
        "volume_driver": "cinder", "driver": null, "cluster_distro": "fedora-coreos",
        "dns_nameserver": "192.0.2.1,192.0.2.2", "flavor_id": "m1.large",
        "master_flavor_id": "m1.small", "docker_volume_size": 20, "docker_storage_driver": null, "http_proxy": null,
        "https_proxy": null, "no_proxy": null, "labels": {"kube_tag": "v1.32.1", "auto_healing_enabled": false},
        "tls_disabled": false, "public": false, "registry_enabled": false, "insecure_registry": null,
        "server_type": "vm", "master_lb_enabled": true
    }"#;
    let made = api.post("/v1/clustertemplates", body).await.has(201);
    let id = made.json()["uuid"].as_str().unwrap().to_owned();
    let want = format!(
        r#"{{
            "uuid": "{id}", "name": "t", "coe": "kubernetes", "image_id": "fcos", "flavor_id": "m1.large",
            "master_flavor_id": "m1.small", "dns_nameserver": "192.0.2.1,192.0.2.2", "keypair_id": "key",
            "external_network_id": "public", "fixed_network": null, "fixed_subnet": null, "network_driver": "flannel",
            "volume_driver": "cinder", "apiserver_port": null, "docker_volume_size": 20,
            "docker_storage_driver": "overlay2", "cluster_distro": "fedora-coreos", "http_proxy": null,
            "https_proxy": null, "no_proxy": null, "registry_enabled": false, "insecure_registry": null,
            "labels": {{"kube_tag": "v1.32.1", "auto_healing_enabled": "false"}}, "tls_disabled": false,
            "public": false, "hidden": false, "tags": null, "driver": null, "server_type": "vm",
            "master_lb_enabled": true, "floating_ip_enabled": true, "project_id": "default", "user_id": "anonymous",
            "created_at": "2026-01-02T03:04:05.000006+00:00", "updated_at": null,
            "links": [
                {{"href": "http://api:9511/v1/clustertemplates/{id}", "rel": "self"}},
                {{"href": "http://api:9511/clustertemplates/{id}", "rel": "bookmark"}}
            ]
        }}"#
    );
    made.is(&want);
    api.get(&format!("/v1/clustertemplates/{id}")).await.has(200).is(&want);
    api.get("/v1/clustertemplates/t").await.has(200).is(&want);
    api.get("/v1/clustertemplates")
        .await
        .has(200)
        .is(&format!(r#"{{"clustertemplates": [{want}]}}"#));
}

#[tokio::test]
async fn an_impossible_template_is_refused_by_field() {
    let api = Api::start().await;
    let check = async |more: &str, words: &str| {
        let body = format!(r#"{{"image_id": "i", "coe": "kubernetes"{more}}}"#);
        api.post("/v1/clustertemplates", &body).await.refuses(400, words);
    };
    let refused = "labels/coredns_tag: its version is set by kube_tag; remove it";
    check(r#", "labels": {"coredns_tag": "1.9.4"}"#, refused).await;
    check(
        r#", "labels": {"kubeproxy_options": "--v=2"}"#,
        "labels/kubeproxy_options: --v is not supported: the configuration of kube-proxy has no field for it",
    )
    .await;
    check(
        r#", "labels": {"flannel_network_cidr": "10.200.0.0/24"}"#,
        "labels/flannel_network_cidr: must have a prefix of 8 to 22 bits",
    )
    .await;
    check(
        r#", "labels": {"prometheus_monitoring": true}"#,
        "labels/prometheus_monitoring: clusterd does not install it; install it in the cluster and remove the label",
    )
    .await;
    check(r#", "cluster_distro": "ubuntu""#, "cluster_distro: only fedora-coreos is supported")
        .await;
    check(r#", "tls_disabled": true"#, "tls_disabled: Kubernetes always uses TLS").await;
    check(
        r#", "name": "1st""#,
        "name: \"1st\" is not a valid name: use at most 242 letters, digits, '_', '.' and '-', \
                                 begin with a letter, and do not use a UUID",
    )
    .await;
    check(r#", "network_driver": "cilium""#, "network_driver: must be flannel or calico").await;
    let calico = "network_driver: clusterd does not install calico; choose flannel, or set the label pod_network=routes";
    check(r#", "network_driver": "calico""#, calico).await;
    check(r#", "dns_nameserver": "here""#, "dns_nameserver: must be addresses separated by commas")
        .await;
    check(r#", "apiserver_port": 80"#, "apiserver_port: must be between 1024 and 65535").await;
    api.post("/v1/clustertemplates", r#"{"coe": "kubernetes"}"#)
        .await
        .refuses(400, "image_id: is required");
    api.post("/v1/clustertemplates", r#"{"image_id": "i", "coe": "swarm"}"#)
        .await
        .refuses(400, "coe: only kubernetes is supported");
    api.post("/v1/clustertemplates", r#"{"image_id": "i"}"#).await.refuses(400, "coe: is required");
}

#[tokio::test]
async fn a_template_is_changed_by_json_patch() {
    let api = Api::start().await;
    api.template("t", r#", "labels": {"kube_tag": "v1.32.1"}"#).await;
    let patch = r#"[
        {"op": "replace", "path": "/name", "value": "u"}, {"op": "add", "path": "/labels/dns_zone", "value": "k8s.example"},
        {"op": "remove", "path": "/external_network_id"}, {"op": "replace", "path": "/master_lb_enabled", "value": "False"}
    ]"#;
    let changed = api.patch("/v1/clustertemplates/t", patch).await.has(200).json();
    assert_eq!(
        (&changed["name"], &changed["external_network_id"]),
        (&"u".into(), &serde_json::Value::Null)
    );
    assert_eq!(
        changed["labels"],
        serde_json::json!({"kube_tag": "v1.32.1", "dns_zone": "k8s.example"})
    );
    assert_eq!(
        (&changed["master_lb_enabled"], &changed["flavor_id"]),
        (&false.into(), &"m1.large".into())
    );
    assert_eq!(changed["updated_at"], "2026-01-02T03:04:05.000006+00:00");

    let check = async |patch: &str, words: &str| {
        api.patch("/v1/clustertemplates/u", patch).await.refuses(400, words);
    };
    check(r#"[{"op": "replace", "path": "/uuid", "value": "x"}]"#, "uuid: cannot be changed").await;
    check(r#"[{"op": "remove", "path": "/image_id"}]"#, "image_id: is required").await;
    check(
        r#"[{"op": "add", "path": "/labels/coredns_tag", "value": "1.9.4"}]"#,
        "labels/coredns_tag: its version is set by kube_tag; remove it",
    )
    .await;
    check(r#"[{"op": "add", "path": "/public", "value": [1]}]"#, "public: must be true or false")
        .await;
}

#[tokio::test]
async fn a_template_in_use_cannot_be_deleted() {
    let api = Api::start().await;
    api.small().await;
    let id = api.get("/v1/clustertemplates/t").await.json()["uuid"].as_str().unwrap().to_owned();
    api.delete("/v1/clustertemplates/t")
        .await
        .refuses(400, &format!("ClusterTemplate {id} is referenced by one or multiple clusters."));
    api.template("u", "").await;
    api.delete("/v1/clustertemplates/u").await.has(204);
    api.get("/v1/clustertemplates/u").await.refuses(404, "ClusterTemplate u could not be found.");
    api.delete("/v1/clustertemplates/u")
        .await
        .refuses(404, "ClusterTemplate u could not be found.");
}

#[tokio::test]
async fn a_template_name_is_unique() {
    let api = Api::start().await;
    api.template("t", "").await;
    let body = r#"{"name": "t", "image_id": "i", "coe": "kubernetes"}"#;
    api.post("/v1/clustertemplates", body).await.refuses(409, "name: \"t\" is already in use");
}

#[tokio::test]
async fn a_template_without_a_name_gets_one() {
    let api = Api::start().await;
    let body = r#"{"name": null, "image_id": "i", "coe": "kubernetes"}"#;
    let made = api.post("/v1/clustertemplates", body).await.has(201).json();
    assert!(made["name"].as_str().unwrap().starts_with("template-"), "{made}");
}
