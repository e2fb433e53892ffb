//! Tests of the details that clients rely on without documentation: headers, envelopes, links, status codes, as bytes.

use compat::Service;
use compat::wire::{Reply, Request, VERSION_HEADER};
use serde_json::{Value, json};

fn post_node(service: &Service, body: &Value) -> Reply {
    Request::new("POST", "/v1/nodes").version("latest").json(body).send(&service.url)
}

fn node(service: &Service, name: &str) -> String {
    let made = post_node(service, &json!({"driver": "fake-hardware", "name": name})).expect(201);
    made.json()["uuid"].as_str().expect("a uuid").to_owned()
}

fn patch(service: &Service, node: &str, body: &Value) -> Reply {
    Request::new("PATCH", &format!("/v1/nodes/{node}"))
        .version("latest")
        .json(body)
        .send(&service.url)
}

#[test]
fn the_root_lists_the_versions() {
    let service = Service::start();
    let root = Request::new("GET", "/").send(&service.url).expect(200);
    assert_eq!(
        root.header("content-type").map(|value| value.starts_with("application/json")),
        Some(true)
    );
    let root = root.json();
    let default = &root["default_version"];
    assert_eq!(default["id"], "v1");
    assert_eq!(default["status"], "CURRENT");
    assert_eq!(default["min_version"], "1.1");
    let newest = default["version"].as_str().and_then(|text| text.strip_prefix("1."));
    let newest: u32 = newest.and_then(|minor| minor.parse().ok()).expect("a version 1.N");
    assert!(newest >= 95, "baremetal-operator and Nova ask for more than 1.{newest}");
    assert_eq!(default["links"], json!([{"href": format!("{}/v1/", service.url), "rel": "self"}]));
    assert_eq!(root["versions"], json!([default]));
    assert!(root["name"].is_string() && root["description"].is_string(), "{root}");
}

#[test]
fn version_one_names_its_resources() {
    let service = Service::start();
    let v1 = service.ask("GET", "/v1").expect(200).json();
    assert_eq!(v1["id"], "v1");
    assert_eq!(v1["version"]["id"], "v1");
    assert_eq!(v1["version"]["min_version"], "1.1");
    assert_eq!(v1["version"]["status"], "CURRENT");
    for resource in ["nodes", "ports", "drivers", "conductors"] {
        assert_eq!(
            v1[resource][0],
            json!({"href": format!("{}/v1/{resource}/", service.url), "rel": "self"})
        );
    }
    assert_eq!(service.ask("GET", "/v1/").expect(200).json(), v1);
}

#[test]
fn every_answer_names_its_version() {
    let service = Service::start();
    for (asked, path) in
        [(None, "/v1/nodes"), (Some("1.50"), "/v1/nodes"), (Some("1.80"), "/v1/nodes/none")]
    {
        let mut request = Request::new("GET", path);
        if let Some(version) = asked {
            request = request.version(version);
        }
        let reply = request.send(&service.url);
        assert_eq!(
            reply.header(&VERSION_HEADER.to_ascii_lowercase()),
            Some(asked.unwrap_or("1.1")),
            "{path}"
        );
        assert_eq!(reply.header("x-openstack-ironic-api-minimum-version"), Some("1.1"));
        let newest = reply.header("x-openstack-ironic-api-maximum-version").expect("a maximum");
        assert!(newest.starts_with("1."), "{newest}");
        let id = reply.header("openstack-request-id").expect("a request id");
        assert!(id.starts_with("req-"), "{id}");
        assert_eq!(reply.header("x-openstack-request-id"), Some(id));
    }
    let latest = service.ask("GET", "/v1/nodes");
    assert_eq!(
        latest.header(&VERSION_HEADER.to_ascii_lowercase()),
        latest.header("x-openstack-ironic-api-maximum-version")
    );
}

#[test]
fn a_version_out_of_range_is_406_with_what_renegotiation_needs() {
    let service = Service::start();
    for version in ["1.999", "2.1"] {
        let reply =
            Request::new("GET", "/v1/nodes").version(version).send(&service.url).expect(406);
        assert_eq!(reply.header("x-openstack-ironic-api-minimum-version"), Some("1.1"));
        assert!(reply.header("x-openstack-ironic-api-maximum-version").is_some());
        let error = reply.error();
        assert!(error["title"].is_string() && error["description"].is_string(), "{error}");
        assert_eq!(error["code"], 406);
    }
    let reply = Request::new("GET", "/v1/nodes").version("newest").send(&service.url);
    assert!((400..500).contains(&reply.status), "{reply:?}");
}

#[test]
fn an_error_is_json_in_a_json_string() {
    let service = Service::start();
    let reply = service.ask("GET", "/v1/nodes/nowhere").expect(404);
    assert_eq!(
        reply.error(),
        json!({"faultcode": "Client", "faultstring": "Node nowhere could not be found.", "debuginfo": null})
    );
    for path in ["/v1/nothing", "/v2/nodes"] {
        let reply = service.ask("GET", path).expect(404);
        assert!(!reply.body.is_empty(), "{path}");
    }
}

#[test]
fn a_created_node_has_its_location() {
    let service = Service::start();
    let made = post_node(&service, &json!({"driver": "fake-hardware", "name": "made"})).expect(201);
    let node = made.json();
    let uuid = node["uuid"].as_str().expect("a uuid");
    assert_eq!(made.header("location"), Some(&*format!("{}/v1/nodes/{uuid}", service.url)));
    assert_eq!(
        node["links"],
        json!([
            {"href": format!("{}/v1/nodes/{uuid}", service.url), "rel": "self"},
            {"href": format!("{}/nodes/{uuid}", service.url), "rel": "bookmark"},
        ])
    );
    // openstacksdk reads these as ISO 8601 with an offset.
    let created = node["created_at"].as_str().expect("a time");
    assert!(created.contains('T') && created.ends_with("+00:00"), "{created}");
    assert_eq!(node["updated_at"], Value::Null);
}

#[test]
fn links_hold_the_host_the_client_used() {
    let service = Service::start();
    node(&service, "linked");
    let reply = Request::new("GET", "/v1/nodes/linked")
        .version("latest")
        .header("X-Forwarded-Proto", "https")
        .send(&service.url)
        .expect(200)
        .json();
    let href = reply["links"][0]["href"].as_str().expect("a link");
    assert!(href.starts_with(&service.url), "a header anybody can send changed {href}");
}

#[test]
fn following_next_visits_every_node_once() {
    let service = Service::start();
    let mut made: Vec<String> =
        (0..5).map(|number| node(&service, &format!("page-{number}"))).collect();
    let mut seen = Vec::new();
    let mut next = Some(format!("{}/v1/nodes?limit=2&fields=uuid,name&sort_key=name", service.url));
    let mut pages = 0;
    while let Some(url) = next {
        let path =
            url.strip_prefix(&service.url).expect("next is an absolute URL of the same service");
        let page = service.ask("GET", path).expect(200).json();
        let nodes = page["nodes"].as_array().expect("a list");
        assert!(nodes.len() <= 2);
        seen.extend(nodes.iter().map(|node| node["uuid"].as_str().expect("a uuid").to_owned()));
        next = page["next"].as_str().map(str::to_owned);
        if let Some(next) = &next {
            assert!(
                next.contains("limit=2")
                    && next.contains("marker=")
                    && next.contains("sort_key=name"),
                "{next}"
            );
        }
        pages += 1;
    }
    assert_eq!(pages, 3);
    seen.sort();
    made.sort();
    assert_eq!(seen, made);
}

#[test]
fn a_list_shows_few_fields_by_default() {
    let service = Service::start();
    node(&service, "listed");
    let keys = |path: &str| {
        let list = service.ask("GET", path).expect(200).json();
        let node = list["nodes"][0].as_object().expect("a node").clone();
        node.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(
        keys("/v1/nodes"),
        ["instance_uuid", "links", "maintenance", "name", "power_state", "provision_state", "uuid"]
    );
    assert_eq!(keys("/v1/nodes?fields=uuid,driver"), ["driver", "links", "uuid"]);
    let detail = keys("/v1/nodes/detail");
    assert_eq!(keys("/v1/nodes?detail=True"), detail);
    for key in
        ["driver_info", "properties", "traits", "conductor", "resource_class", "deploy_interface"]
    {
        assert!(detail.iter().any(|known| known == key), "no {key}");
    }
    // A real Ironic answers 500.
    if service.is_ours() {
        service.ask("GET", "/v1/nodes?fields=uuid,colour").expect(400);
    }
    service.ask("GET", "/v1/nodes?detail=True&fields=uuid").expect(400);
    service.ask("GET", "/v1/nodes?limit=-1").expect(400);
    service.ask("GET", "/v1/nodes?limit=many").expect(400);
    service.ask("GET", "/v1/nodes?sort_dir=up").expect(400);
    service.ask("GET", "/v1/nodes?marker=00000000-0000-4000-8000-000000000000").expect(404);
}

#[test]
fn a_patch_is_forgiving_about_add_and_replace() {
    let service = Service::start();
    node(&service, "patched");
    let after = |body: Value| patch(&service, "patched", &body).expect(200).json();

    // "replace" of an unset field, "add" of a set one.
    assert_eq!(
        after(json!([{"op": "replace", "path": "/description", "value": "one"}]))["description"],
        "one"
    );
    assert_eq!(
        after(json!([{"op": "add", "path": "/description", "value": "two"}]))["description"],
        "two"
    );
    assert_eq!(
        after(json!([{"op": "add", "path": "/extra/a", "value": 1}]))["extra"],
        json!({"a": 1})
    );
    assert_eq!(
        after(json!([{"op": "add", "path": "/extra/a", "value": {"b": 2}}]))["extra"],
        json!({"a": {"b": 2}})
    );
    assert_eq!(
        after(json!([{"op": "add", "path": "/extra/a/c", "value": 3}]))["extra"],
        json!({"a": {"b": 2, "c": 3}})
    );
    // "remove" restores the default.
    let removed = after(
        json!([{"op": "remove", "path": "/description"}, {"op": "remove", "path": "/extra"}]),
    );
    assert_eq!((&removed["description"], &removed["extra"]), (&Value::Null, &json!({})));
    // A patch is applied completely or not at all.
    patch(
        &service,
        "patched",
        &json!([
            {"op": "add", "path": "/description", "value": "three"},
            {"op": "add", "path": "/colour", "value": "red"},
        ]),
    )
    .expect(400);
    let node = service.ask("GET", "/v1/nodes/patched").json();
    assert_eq!(node["description"], Value::Null);

    for refused in [
        json!([{"op": "replace", "path": "/uuid", "value": "00000000-0000-4000-8000-000000000000"}]),
        json!([{"op": "replace", "path": "/provision_state", "value": "active"}]),
        json!([{"op": "replace", "path": "/driver", "value": null}]),
        json!([{"op": "remove", "path": "/driver"}]),
        json!([{"op": "remove", "path": "/extra/absent"}]),
        json!([{"op": "paint", "path": "/extra/a", "value": 1}]),
        json!([{"op": "add", "value": 1}]),
        json!({"description": "not a patch"}),
        json!("nor this"),
    ] {
        let reply = patch(&service, "patched", &refused);
        assert_eq!(reply.status, 400, "{refused}: {}", reply.body);
    }
}

#[test]
fn a_duplicate_is_409() {
    let service = Service::start();
    let uuid = node(&service, "taken");
    let again =
        post_node(&service, &json!({"driver": "fake-hardware", "name": "taken"})).expect(409);
    assert_eq!(again.error()["faultcode"], "Client");
    post_node(&service, &json!({"driver": "fake-hardware", "uuid": uuid})).expect(409);
    node(&service, "other");
    patch(&service, "other", &json!([{"op": "replace", "path": "/name", "value": "taken"}]))
        .expect(409);

    let port = json!({"address": "52:54:00:bb:00:01", "node_uuid": uuid});
    let post = Request::new("POST", "/v1/ports").version("latest").json(&port);
    post.send(&service.url).expect(201);
    post.send(&service.url).expect(409);
}

#[test]
fn a_verb_is_accepted_or_refused_at_once() {
    let service = Service::start();
    node(&service, "asked");
    let put = |path: &str, body: Value| {
        Request::new("PUT", &format!("/v1/nodes/asked/{path}"))
            .version("latest")
            .json(&body)
            .send(&service.url)
    };
    put("states/provision", json!({"target": "active"})).expect(400);
    put("states/provision", json!({"target": "explode"})).expect(400);
    put("states/provision", json!({})).expect(400);
    put("states/power", json!({"target": "warp"})).expect(400);
    put("management/boot_device", json!({"boot_device": "wanboot"})).expect(400);
    let accepted = put("states/provision", json!({"target": "manage"})).expect(202);
    assert_eq!(accepted.body, "");
    compat::wait::wait_for("manageable", std::time::Duration::from_secs(30), || {
        let states = service.ask("GET", "/v1/nodes/asked/states").expect(200).json();
        (states["provision_state"] == "manageable").then_some(())
    });
    let gone = service.ask("DELETE", "/v1/nodes/asked").expect(204);
    assert_eq!(gone.body, "");
}

#[test]
fn bad_input_is_a_client_error_that_names_the_field() {
    let service = Service::start();
    for (body, field) in [
        (json!({"driver": "fake-hardware", "colour": "red"}), "colour"),
        (json!({"driver": 5}), "driver"),
        (json!({}), "driver"),
        (json!({"driver": "fake-hardware", "properties": "many"}), "properties"),
        (json!({"driver": "fake-hardware", "name": ["a"]}), "name"),
        (
            json!({"driver": "fake-hardware", "extra": null, "automated_clean": "perhaps"}),
            "automated_clean",
        ),
        (json!({"driver": "fake-hardware", "deploy_interface": "magic"}), "magic"),
        (json!({"driver": "fake-hardware", "uuid": "one"}), "uuid"),
        (json!({"driver": "fake-hardware", "resource_class": "x".repeat(100)}), "resource_class"),
    ] {
        let reply = post_node(&service, &body);
        assert_eq!(reply.status, 400, "{body}: {}", reply.body);
        let said = reply.error()["faultstring"].to_string();
        // A real Ironic names only the value in some of these.
        assert!(!service.is_ours() || said.contains(field), "{body}: {said}");
    }
    // Every request above was refused.
    assert_eq!(service.ask("GET", "/v1/nodes").json()["nodes"], json!([]));
}

#[test]
fn hostile_input_is_a_client_error() {
    let service = Service::start();
    // A real Ironic answers 500 or drops the connection.
    if !service.is_ours() {
        return;
    }
    let raw = |body: &[u8]| {
        let request = Request::new("POST", "/v1/nodes")
            .version("latest")
            .header("Content-Type", "application/json");
        request.body(body).send(&service.url).status
    };
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(raw(deep.as_bytes()), 400);
    assert_eq!(raw(b"{\"driver\": "), 400);
    assert_eq!(raw(b"{\"driver\": \"\xff\xfe\"}"), 400);
    assert_eq!(raw(b"[]"), 400);
    assert_eq!(raw(&vec![b' '; 64 << 20]), 413);
    let wide = format!("/v1/nodes/{}", "x".repeat(60_000));
    let status = service.ask("GET", &wide).status;
    assert!((400..500).contains(&status), "{status}");
    assert_eq!(service.ask("GET", "/v1/nodes/%ff%fe").status / 100, 4);
    assert_eq!(service.ask("GET", "/v1/nodes").status, 200);
}

#[test]
fn the_api_describes_itself() {
    let service = Service::start();
    if !service.is_ours() {
        return;
    }
    let described = Request::new("GET", "/openapi.json").send(&service.url).expect(200).json();
    assert!(
        described["openapi"].as_str().is_some_and(|version| version.starts_with("3.")),
        "{}",
        described["openapi"]
    );
    for (path, method) in [
        ("/v1/nodes", "post"),
        ("/v1/nodes/{node_ident}", "patch"),
        ("/v1/nodes/{node_ident}/states/provision", "put"),
        ("/v1/ports", "get"),
        ("/v1/drivers", "get"),
        ("/v1/conductors", "get"),
    ] {
        let found =
            described["paths"].as_object().expect("paths").iter().any(|(known, methods)| {
                // The names of parameters do not matter.
                let plain = |path: &str| {
                    path.split('/')
                        .map(|part| if part.starts_with('{') { "{}" } else { part })
                        .collect::<Vec<_>>()
                        .join("/")
                };
                plain(known) == plain(path) && methods.get(method).is_some()
            });
        assert!(found, "{method} {path} is not described");
    }
}
