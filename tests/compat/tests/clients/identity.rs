//! Tests of `openstack --os-cloud …`: the services in a cloud's catalogue, with its tokens; and services with their own passwords.

use std::time::Duration;

use compat::wait::wait_for;
use compat::{Cloud, CommandLine, Service};
use serde_json::json;

const TEMPLATE: &[&str] = &[
    "coe",
    "cluster",
    "template",
    "create",
    "t",
    "--coe",
    "kubernetes",
    "--image",
    "fcos",
    "--flavor",
    "m1.large",
    "--external-network",
    "public",
];

#[test]
fn clusters_belong_to_the_project_that_created_them() {
    let mut cloud = Cloud::start();
    let service = Service::clusters_with(&cloud.keystone());
    cloud.register("container-infra", &format!("{}/v1", service.url));
    cloud.user("carol", "tenant-a", &["reader"]);
    cloud.forget_password("alice");
    let (mut alice, mut bob) = (cloud.client("alice"), cloud.client("bob"));
    let (mut carol, mut admin) = (cloud.client("carol"), cloud.client("admin"));

    alice.done(TEMPLATE);
    let said = alice.done(&["coe", "cluster", "create", "c", "--cluster-template", "t"]);
    assert!(said.contains("accepted"), "{said}");
    let project = alice.json(&["token", "issue"])["project_id"].clone();
    let mine = alice.json(&["coe", "cluster", "template", "show", "t"]);
    assert_eq!(mine["project_id"], project);

    assert_eq!(bob.json(&["coe", "cluster", "list"]), json!([]));
    let refused = bob.refused(&["coe", "cluster", "show", "c"]);
    assert!(refused.contains("could not be found"), "{refused}");
    assert_eq!(carol.json(&["coe", "cluster", "list"])[0]["name"], "c");
    let refused = carol.refused(&["coe", "cluster", "delete", "c"]);
    assert!(refused.contains("role member"), "{refused}");
    assert_eq!(admin.json(&["coe", "cluster", "list"])[0]["name"], "c");
    assert_eq!(admin.json(&["coe", "service", "list"])[0]["binary"], "magnum-conductor");
    cloud.client("alice-forgetful").refused(&["coe", "cluster", "list"]);
    alice.done(&["coe", "cluster", "delete", "c"]);
}

#[test]
fn a_cluster_is_created_with_the_keypair_of_its_creator() {
    let mut cloud = Cloud::start();
    let file = cloud.clouds_yaml();
    let own = format!("[cloud]\nclouds_yaml = {file:?}\nname = 'clusterd'\n");
    let service = Service::clusters_with(&format!("{}{own}", cloud.keystone()));
    cloud.register("container-infra", &format!("{}/v1", service.url));
    cloud.user("clusterd", "tenant-a", &["member", "load-balancer_member"]);
    let (mut alice, mut bob) = (cloud.client("alice"), cloud.client("bob"));
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key.pub");
    std::fs::write(&key, "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8x laptop\n").unwrap();
    let key = key.display().to_string();
    alice.done(&["keypair", "create", "--public-key", &key, "laptop"]);
    bob.done(&["keypair", "create", "--public-key", &key, "theirs"]);

    let template: Vec<&str> =
        TEMPLATE.iter().map(|word| if *word == "fcos" { "fedora-coreos" } else { *word }).collect();
    let create = ["coe", "cluster", "create", "c", "--cluster-template", "t", "--keypair"];
    // clusterd sees soon that it may work in the project.
    wait_for("a template", Duration::from_secs(30), || {
        (alice.run(&template).code == 0).then_some(())
    });
    let refused = alice.refused(&[&create[..], &["theirs"]].concat());
    assert!(refused.contains("theirs"), "{refused}");
    alice.done(&[&create[..], &["laptop"]].concat());
    assert_eq!(alice.json(&["coe", "cluster", "show", "c"])["keypair"], "laptop");
}

#[test]
fn nodes_are_shown_to_administrators_and_owners() {
    let mut cloud = Cloud::start();
    let service = Service::machines_with(&cloud.keystone());
    cloud.register("baremetal", &service.url);
    cloud.system("admin");
    let (mut admin, mut alice) = (cloud.client("admin"), cloud.client("alice"));

    admin.done(&["baremetal", "node", "create", "--driver", "fake-hardware", "--name", "n"]);
    admin.done(&["baremetal", "node", "manage", "n", "--wait", "60"]);
    let listed =
        cloud.client("admin-system").json(&["baremetal", "node", "list", "--fields", "name"]);
    assert_eq!(listed, json!([{"name": "n"}]));
    assert_eq!(alice.json(&["baremetal", "node", "list"]), json!([]));
    let refused = alice.refused(&["baremetal", "node", "power", "on", "n"]);
    assert!(refused.contains("could not be found"), "{refused}");

    let project = alice.json(&["token", "issue"])["project_id"].clone();
    let project = project.as_str().expect("a token's project has an id");
    admin.done(&["baremetal", "node", "set", "n", "--owner", project]);
    let names = alice.json(&["baremetal", "node", "list", "--fields", "name"]);
    assert_eq!(names, json!([{"name": "n"}]));
    alice.done(&["baremetal", "node", "power", "on", "n"]);
    let refused = alice.refused(&["baremetal", "node", "delete", "n"]);
    assert!(refused.contains("only operators may do this"), "{refused}");
    let refused = cloud.client("bob").refused(&["baremetal", "node", "show", "n"]);
    assert!(refused.contains("could not be found"), "{refused}");
    admin.done(&["baremetal", "node", "delete", "n"]);
}

#[test]
fn a_service_without_a_cloud_has_its_own_passwords() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("htpasswd");
    // The canary by libxcrypt's bcrypt, and with " of bob" at its end by argon2-cffi's argon2id.
    let bcrypt = "$2b$04$9PJhBhcXWIeBYt0sOo1NUeMyXrmClCPDYPQ9iFJSJCn09NZyg1pwC";
    let argon2id =
        "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$5YxJtJIrT6CqUq9x1QXYO29mRJMhrgLFhnuk7UM5VpQ";
    std::fs::write(&file, format!("ann:{bcrypt}\nbob:{argon2id}\n")).unwrap();
    let tables = format!("auth = 'http_basic'\nhtpasswd = {file:?}\n");
    let (machines, coe) = (Service::machines_with(&tables), Service::clusters_with(&tables));
    let (machines, clusters) = (machines.url.as_str(), format!("{}/v1", coe.url));
    let anns = left::canary::HTPASSWD;
    let bobs = format!("{anns} of bob");
    for (user, password) in [("ann", anns), ("bob", &bobs)] {
        let ask = |url: &str, area| CommandLine::with_password(url, area, user, password);
        assert_eq!(ask(machines, "baremetal").json(&["node", "list"]), json!([]));
        assert_eq!(ask(&clusters, "coe").json(&["cluster", "list"]), json!([]));
    }
    for (user, password) in [("ann", bobs.as_str()), ("carol", anns)] {
        let ask = |url: &str, area| CommandLine::with_password(url, area, user, password);
        let refused = ask(machines, "baremetal").refused(&["node", "list"]);
        assert!(refused.contains("401"), "{refused}");
        ask(&clusters, "coe").refused(&["cluster", "list"]);
    }
}
