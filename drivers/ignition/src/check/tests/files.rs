//! Files, directories, links, users, groups, and keys that occur twice.

use serde_json::{Value, json};

use super::{check, file};

#[test]
fn directories_and_links_have_paths_and_modes_too() {
    check(
        json!({"storage": {
            "directories": [{"path": "a"}, {"path": "/b", "mode": 4096}],
            "links": [{"path": "c", "target": "/d"}],
        }}),
        &["storage.directories[0].path", "storage.directories[1].mode", "storage.links[0].path"],
    );
    check(json!({"storage": {"directories": [{"path": "/b", "mode": 0}]}}), &[]);
}

#[test]
fn users_and_groups_have_names_that_linux_accepts() {
    for list in ["users", "groups"] {
        let name = |name: Value| json!({"passwd": {list: [{"name": name}]}});
        for good in ["core", "a-b.c_d", &"x".repeat(32)] {
            check(name(json!(good)), &[]);
        }
        for bad in ["", "-a", "a b", "a:b", "a,b", "a/b", "ä", &"x".repeat(33)] {
            check(name(json!(bad)), &[&format!("passwd.{list}[0].name")]);
        }
        check(json!({"passwd": {list: [{}]}}), &[&format!("passwd.{list}[0].name")]);
    }
}

#[test]
fn an_owner_needs_no_more_than_a_number_or_a_name() {
    for owner in ["user", "group"] {
        for good in [json!({"id": 0}), json!({"name": "core"}), json!({"id": 0, "name": ""})] {
            check(file(json!({"path": "/a", owner: good})), &[]);
        }
        check(
            file(json!({"path": "/a", owner: {"id": 0, "name": "core"}})),
            &[&format!("storage.files[0].{owner}")],
        );
    }
}

#[test]
fn only_overwrite_without_a_source_is_a_mistake() {
    for good in [
        json!({"path": "/a", "overwrite": true, "contents": {"source": "data:,"}}),
        json!({"path": "/a", "overwrite": false}),
    ] {
        check(file(good), &[]);
    }
}

#[test]
fn a_hard_link_to_a_directory_is_a_mistake() {
    let link = |hard: bool, target: &str| {
        json!({"storage": {
            "directories": [{"path": "/b"}, {"path": "/c"}],
            "links": [{"path": "/a", "target": target, "hard": hard}],
        }})
    };
    check(link(true, "/c"), &["storage.links[0]"]);
    check(link(false, "/c"), &[]);
    check(link(true, "/d"), &[]);
}

#[test]
fn a_link_without_a_path_leads_nowhere() {
    check(
        json!({"storage": {"files": [{"path": "/a"}], "links": [{"path": "", "target": "/c"}]}}),
        &["storage.links[0].path"],
    );
}

#[test]
fn each_list_has_its_own_key() {
    let twice = |entry: Value| json!([&entry, &entry]);
    let user = |list: &str| json!({"passwd": {"users": [{"name": "a", list: ["b", "b"]}]}});
    let tang = json!({"url": "http://a", "thumbprint": "t"});
    let luks = json!({"name": "a", "device": "/a", "clevis": {"tang": twice(tang)}});
    let source = json!({"source": "data:,"});
    for (config, path) in [
        (json!({"storage": {"directories": twice(json!({"path": "/a"}))}}), "storage.directories"),
        (json!({"storage": {"disks": twice(json!({"device": "/a"}))}}), "storage.disks"),
        (
            json!({"storage": {"filesystems": twice(json!({"device": "/a"}))}}),
            "storage.filesystems",
        ),
        (json!({"storage": {"luks": [luks]}}), "storage.luks[0].clevis.tang"),
        (
            json!({"ignition": {"config": {"merge": twice(source.clone())}}}),
            "ignition.config.merge",
        ),
        (
            json!({"ignition": {"security": {"tls": {"certificateAuthorities": twice(source)}}}}),
            "ignition.security.tls.certificateAuthorities",
        ),
        (json!({"systemd": {"units": twice(json!({"name": "a.service"}))}}), "systemd.units"),
        (user("groups"), "passwd.users[0].groups"),
        (user("sshAuthorizedKeys"), "passwd.users[0].sshAuthorizedKeys"),
    ] {
        check(config, &[&format!("{path}[1]")]);
    }
    check(
        json!({"storage": {"disks": [{"device": "/a", "partitions": twice(json!({"number": 1}))}]}}),
        &["storage.disks[0].partitions[1]"],
    );
    check(
        json!({"kernelArguments": {"shouldExist": ["a"], "shouldNotExist": ["a"]}}),
        &["kernelArguments.shouldNotExist[0]"],
    );
}

#[test]
fn some_lists_may_hold_equal_entries() {
    let system =
        json!({"device": "/a", "format": "xfs", "mountOptions": ["a", "a"], "options": ["b", "b"]});
    check(json!({"storage": {"filesystems": [system]}}), &[]);
    check(file(json!({"path": "/a", "append": [{"source": "data:,"}, {"source": "data:,"}]})), &[]);
}
