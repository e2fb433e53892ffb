use serde_json::{Value, json};

use super::*;

/// Checks a part of a config, without the fields that are null.
#[track_caller]
fn check(part: &impl serde::Serialize, want: Value) {
    let mut part = serde_json::to_value(part).expect("a part is JSON");
    crate::user_data::drop_nulls(&mut part);
    assert_eq!(part, want);
}

/// Checks the fields that a change adds to an empty config.
#[track_caller]
fn changed(change: impl FnOnce(&mut Config), mut want: Value) {
    let mut config = Config::default();
    change(&mut config);
    want["ignition"]["version"] = json!(crate::SPEC);
    check(&config, want);
}

#[test]
fn text_stays_readable_and_bytes_become_base64() {
    let inlined = |contents: &[u8], source: &str| {
        check(&inline(contents), json!({"source": source, "compression": ""}));
    };
    inlined(b"", "data:,");
    inlined(b"a-z._~/:+=,@ 1%\n#", "data:,a-z._~/:+=,@%201%25%0A%23");
    inlined("ä".as_bytes(), "data:,%C3%A4");
    inlined(&[0xff, 0xfe], "data:;base64,//4=");
}

#[test]
fn fetched_contents_have_a_hash() {
    check(
        &remote("https://a/b", "0a"),
        json!({"source": "https://a/b", "verification": {"hash": "sha256-0a"}}),
    );
    check(&header("X-A", "1"), json!({"name": "X-A", "value": "1"}));
}

#[test]
fn files_and_links_replace_what_the_image_has() {
    let contents = json!({"source": "data:,x", "compression": ""});
    let made = file("/a", 0o640, inline(b"x"));
    check(&made, json!({"path": "/a", "mode": 416, "overwrite": true, "contents": &contents}));
    check(
        &owned_by_group(made, "etcd"),
        json!({"path": "/a", "mode": 416, "overwrite": true, "contents": contents, "group": {"name": "etcd"}}),
    );
    check(&directory("/a", 0o700), json!({"path": "/a", "mode": 448}));
    check(&link("/a", "/b"), json!({"path": "/a", "target": "/b", "overwrite": true}));
}

#[test]
fn units_are_enabled_or_masked() {
    check(&unit("a.service", "x"), json!({"name": "a.service", "contents": "x", "enabled": true}));
    check(&enabled("a.service"), json!({"name": "a.service", "enabled": true}));
    check(&masked("a.service"), json!({"name": "a.service", "mask": true}));
    let one = with_dropin(enabled("a.service"), "1.conf", "x");
    check(
        &with_dropin(one, "2.conf", "y"),
        json!({"name": "a.service", "enabled": true, "dropins": [
            {"name": "1.conf", "contents": "x"}, {"name": "2.conf", "contents": "y"}]}),
    );
}

#[test]
fn a_config_has_only_lists_with_entries() {
    check(
        &config(vec![], vec![], vec![]),
        json!({"ignition": {"version": crate::SPEC}, "storage": {}, "systemd": {}}),
    );
    check(
        &config(vec![Directory::new("/a".to_owned())], vec![], vec![enabled("b.service")]),
        json!({
            "ignition": {"version": crate::SPEC},
            "storage": {"directories": [{"path": "/a"}]},
            "systemd": {"units": [{"name": "b.service", "enabled": true}]},
        }),
    );
    check(
        &config(vec![], vec![File::new("/a".to_owned())], vec![]),
        json!({"ignition": {"version": crate::SPEC}, "storage": {"files": [{"path": "/a"}]}, "systemd": {}}),
    );
}

#[test]
fn a_config_gets_arguments_keys_and_a_base() {
    changed(|config| kernel_arguments(config, vec![]), json!({}));
    changed(
        |config| kernel_arguments(config, vec!["a=b".to_owned()]),
        json!({"kernelArguments": {"shouldExist": ["a=b"]}}),
    );
    changed(
        |config| {
            authorized_keys(config, "core", &["k1".to_owned(), "k2".to_owned()]);
            authorized_keys(config, "root", &[]);
        },
        json!({"passwd": {"users": [
            {"name": "core", "sshAuthorizedKeys": ["k1", "k2"]}, {"name": "root", "sshAuthorizedKeys": []}]}}),
    );
    changed(
        |config| {
            merge_from(config, remote("https://a", "0a"));
            merge_from(config, inline(b""));
        },
        json!({"ignition": {"config": {"merge": [
            {"source": "https://a", "verification": {"hash": "sha256-0a"}},
            {"source": "data:,", "compression": ""}]}}}),
    );
}
