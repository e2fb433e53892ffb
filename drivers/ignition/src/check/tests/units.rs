//! Units, drop-ins and their texts.

use serde_json::{Value, json};

use super::{check, check_value};

fn unit(unit: Value) -> Value {
    json!({"systemd": {"units": [unit]}})
}

/// Checks the text of a unit. `want` are the messages about its lines.
#[track_caller]
fn text(text: &str, want: &[&str]) {
    let config = unit(json!({"name": "a.service", "contents": text}));
    let mistakes: Vec<String> = check_value(&config).into_iter().map(|it| it.what).collect();
    assert_eq!(mistakes, want, "{text}");
}

#[test]
fn every_kind_of_unit_has_its_suffix() {
    for kind in [
        "automount",
        "device",
        "mount",
        "path",
        "scope",
        "service",
        "slice",
        "snapshot",
        "socket",
        "swap",
        "target",
        "timer",
    ] {
        check(unit(json!({"name": format!("a.{kind}")})), &[]);
    }
}

#[test]
fn a_unit_name_has_at_most_255_characters() {
    let name = |length: usize| "x".repeat(length - ".service".len()) + ".service";
    check(unit(json!({"name": name(255)})), &[]);
    check(unit(json!({"name": name(256)})), &["systemd.units[0].name"]);
}

#[test]
fn a_mistake_in_a_text_names_its_line() {
    text("[Service]\nExecStart\n", &["line 2: no setting: NAME=VALUE"]);
    text("[Service]\n =b\n", &["line 2: no setting: NAME=VALUE"]);
    text("A=b\n", &["line 1: stands before any section"]);
    text(
        "[Unit]\n[]\nA=b\n",
        &["line 2: no name of a section", "line 3: stands before any section"],
    );
    text("[Unit\nA=b\n", &["line 1: no name of a section", "line 2: stands before any section"]);
    text("[U]\nA=b\n", &[]);
}

#[test]
fn a_backslash_continues_a_setting_and_no_comment() {
    // A comment inside a continued setting does not end the setting.
    text("[Unit]\nA=b\\\n# c\\\nd\n", &[]);
    text("[Unit]\nA=b\\\n# c\nd\n", &["line 4: no setting: NAME=VALUE"]);
    text("[Unit]\nA=b\\\nc\\\nd\n", &[]);
    text("[Unit]\n# c\\\nd\n", &["line 3: no setting: NAME=VALUE"]);
    text("[Unit]\n; c\\\nd\n", &["line 3: no setting: NAME=VALUE"]);
    text("[Unit]\nA=b\\\n\nd\n", &["line 4: no setting: NAME=VALUE"]);
}

#[test]
fn only_an_enabled_unit_needs_a_section_install() {
    let contents = "[Service]\nExecStart=/a\n";
    let installed = format!("{contents} [Install] \nWantedBy=multi-user.target\n");
    for (enabled, contents) in [(true, installed.as_str()), (false, contents)] {
        let one = json!({"name": "a.service", "enabled": enabled, "contents": contents});
        check(unit(one), &[]);
    }
    check(unit(json!({"name": "a.service", "enabled": true})), &[]);
}

#[test]
fn a_drop_in_is_one_conf_file() {
    let dropin = |name: &str| unit(json!({"name": "a.service", "dropins": [{"name": name}]}));
    check(dropin("10-a.conf"), &[]);
    for bad in ["", "a", "a.txt", "b/a.conf", "a\0.conf"] {
        check(dropin(bad), &["systemd.units[0].dropins[0].name"]);
    }
    check(
        unit(json!({"name": "a.service", "dropins": [{"name": "a.conf", "contents": "A=b"}]})),
        &["systemd.units[0].dropins[0].contents"],
    );
}

#[test]
fn no_file_directory_or_link_replaces_a_drop_in() {
    let place = "/etc/systemd/system/a.service.d/b.conf";
    for (list, node) in [
        ("files", json!({"path": place})),
        ("directories", json!({"path": place})),
        ("links", json!({"path": place, "target": "/c"})),
    ] {
        let config = |contents: Value| {
            json!({
                "storage": {list: [&node]},
                "systemd": {"units": [{"name": "a.service", "dropins": [{"name": "b.conf", "contents": contents}]}]},
            })
        };
        check(config(json!("[Service]\nA=b\n")), &[&format!("storage.{list}[0].path")]);
        // A drop-in without text is not written.
        check(config(Value::Null), &[]);
    }
}
