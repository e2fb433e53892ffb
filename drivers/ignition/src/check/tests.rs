use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::*;

mod disks;
mod files;
mod resources;
mod units;

/// Checks that exactly the paths in `want` have mistakes.
#[track_caller]
fn check(config: Value, want: &[&str]) {
    let mistakes = check_value(&config);
    let paths: Vec<&str> = mistakes.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(paths, want, "{mistakes:?}");
}

fn file(file: Value) -> Value {
    json!({"storage": {"files": [file]}})
}

fn source(source: &str) -> Value {
    file(json!({"path": "/a", "contents": {"source": source}}))
}

#[test]
fn a_built_config_is_checked_like_a_document() {
    let with = |path: &str| {
        let file = crate::File::new(path.to_owned());
        crate::check(&crate::build::config(vec![], vec![file], vec![]))
    };
    assert_eq!(with("/a"), []);
    let mistakes: Vec<String> = with("a").iter().map(ToString::to_string).collect();
    assert_eq!(mistakes, ["storage.files[0].path: `a` is not an absolute path"]);
}

#[test]
fn a_path_is_absolute_and_clean() {
    for good in ["/", "/a", "/a/b.c", "/a/..b"] {
        check(file(json!({"path": good})), &[]);
    }
    for bad in ["", "a", "/a/", "//a", "/a/../b", "/./a", "/a\u{0}"] {
        check(file(json!({"path": bad})), &["storage.files[0].path"]);
    }
}

#[test]
fn a_mode_has_twelve_bits() {
    check(file(json!({"path": "/a", "mode": 0o7777})), &[]);
    check(file(json!({"path": "/a", "mode": 0o10000})), &["storage.files[0].mode"]);
    check(file(json!({"path": "/a", "mode": -1})), &["storage.files[0].mode"]);
}

#[test]
fn a_source_is_a_url_that_ignition_fetches() {
    for good in [
        "data:,a%20b",
        "data:text/plain;base64,YQ==",
        "https://a/b",
        "tftp://a/b",
        "s3://b/k?versionId=1",
    ] {
        check(source(good), &[]);
    }
    for bad in [
        "file:///etc/passwd",
        "a",
        "data:;base64,Y",
        "data:nothing",
        "s3://b/k?versionId=",
        "ftp://a/b",
    ] {
        check(source(bad), &["storage.files[0].contents.source"]);
    }
}

fn packed(contents: &[u8]) -> String {
    format!("data:;base64,{}", STANDARD.encode(crate::build::gzip(contents)))
}

#[test]
fn contents_declared_as_gzip_must_be_gzip() {
    let contents = |source: &str| {
        file(json!({"path": "/a", "contents": {"source": source, "compression": "gzip"}}))
    };
    check(contents("data:,plain"), &["storage.files[0].contents.source"]);
    check(contents(&packed(&[b'x'; 4096])), &[]);
    check(
        file(json!({"path": "/a", "contents": {"source": "data:,x", "compression": "xz"}})),
        &["storage.files[0].contents.compression"],
    );
}

#[test]
fn a_decompression_bomb_is_refused_early() {
    let bomb = packed(&vec![0; 65 << 20]);
    check(
        file(json!({"path": "/a", "contents": {"source": bomb, "compression": "gzip"}})),
        &["storage.files[0].contents.source"],
    );
}

#[test]
fn a_hash_has_its_functions_length() {
    let hash = |hash: String| {
        file(
            json!({"path": "/a", "contents": {"source": "data:,x", "verification": {"hash": hash}}}),
        )
    };
    let at = ["storage.files[0].contents.verification.hash"];
    check(hash(format!("sha256-{}", "0a".repeat(32))), &[]);
    check(hash(format!("sha512-{}", "0A".repeat(64))), &[]);
    check(hash("sha256-00".to_owned()), &at);
    check(hash("00".repeat(32)), &at);
    check(hash(format!("md5-{}", "00".repeat(16))), &at);
    check(
        file(
            json!({"path": "/a", "contents": {"verification": {"hash": format!("sha256-{}", "00".repeat(32))}}}),
        ),
        &at,
    );
}

#[test]
fn headers_need_http_and_no_line_breaks() {
    let at = |source: &str, value: &str| {
        file(
            json!({"path": "/a", "contents": {"source": source, "httpHeaders": [{"name": "X-A", "value": value}]}}),
        )
    };
    check(at("https://a/", "1"), &[]);
    check(at("data:,", "1"), &["storage.files[0].contents.httpHeaders"]);
    check(at("https://a/", "1\r\nHost: b"), &["storage.files[0].contents.httpHeaders[0].value"]);
}

#[test]
fn one_path_cannot_occur_twice() {
    check(
        json!({"storage": {
            "files": [{"path": "/a"}, {"path": "/b"}, {"path": "/a"}],
            "directories": [{"path": "/b"}],
            "links": [{"path": "/c", "target": "/d"}, {"path": "/b", "target": "/d"}],
        }}),
        &["storage.files[1]", "storage.files[2]", "storage.links[1]"],
    );
}

#[test]
fn no_path_leads_through_a_link() {
    check(
        json!({"storage": {"files": [{"path": "/a/b"}], "links": [{"path": "/a", "target": "/c"}]}}),
        &["storage.files[0]"],
    );
    check(
        json!({"storage": {"files": [{"path": "/ab"}], "links": [{"path": "/a", "target": "/c"}]}}),
        &[],
    );
    check(json!({"storage": {"links": [{"path": "/a"}]}}), &["storage.links[0].target"]);
}

#[test]
fn an_owner_is_a_number_or_a_name() {
    check(
        file(json!({"path": "/a", "user": {"id": 1, "name": "core"}})),
        &["storage.files[0].user"],
    );
}

#[test]
fn overwrite_needs_contents() {
    check(file(json!({"path": "/a", "overwrite": true})), &["storage.files[0].overwrite"]);
}

#[test]
fn unit_names_follow_systemd() {
    let unit = |name: &str| json!({"systemd": {"units": [{"name": name}]}});
    for good in ["a.service", "a@b.service", "dev-disk.mount", "a\\x2db.socket"] {
        check(unit(good), &[]);
    }
    for bad in ["a", "a.txt", "", "../a.service", "a b.service", ".service"] {
        check(unit(bad), &["systemd.units[0].name"]);
    }
}

#[test]
fn unit_texts_follow_systemd() {
    let unit = |contents: &str| json!({"systemd": {"units": [{"name": "a.service", "contents": contents}]}});
    for good in [
        "[Service]\nExecStart=/a \\\n  b\n",
        "# a\n; b\n\n[Unit]\nAfter=b\n[X-Ours]\nC=\n",
        "[Unit]\nA=b\\\n# c\\\nd=e\n",
    ] {
        check(unit(good), &[]);
    }
    for bad in ["ExecStart=/a\n", "[Service\nA=b\n", "[Service]\nExecStart\n", "[Service]\n=b\n"] {
        assert!(!check_value(&unit(bad)).is_empty(), "{bad}");
    }
    check(
        json!({"systemd": {"units": [{"name": "a.service", "enabled": true, "contents": "[Service]\nExecStart=/a\n"}]}}),
        &["systemd.units[0].enabled"],
    );
}

#[test]
fn a_file_is_not_also_a_unit() {
    check(
        json!({
            "storage": {"files": [{"path": "/etc/systemd/system/a.service"}]},
            "systemd": {"units": [{"name": "a.service", "contents": "[Service]\nExecStart=/a\n"}]},
        }),
        &["storage.files[0].path"],
    );
}

#[test]
fn partitions_do_not_overlap() {
    let disk = |partitions: Value| json!({"storage": {"disks": [{"device": "/dev/vda", "partitions": partitions}]}});
    check(
        disk(
            json!([{"number": 1, "startMiB": 1, "sizeMiB": 10}, {"number": 2, "startMiB": 11, "sizeMiB": 0}]),
        ),
        &[],
    );
    check(
        disk(
            json!([{"number": 1, "startMiB": 1, "sizeMiB": 10}, {"number": 2, "startMiB": 10, "sizeMiB": 5}]),
        ),
        &["storage.disks[0].partitions[1]"],
    );
    check(
        disk(json!([{"number": 1, "label": "a"}, {"number": 2, "label": "a"}])),
        &["storage.disks[0].partitions[1].label"],
    );
    check(disk(json!([{"sizeMiB": 5}])), &["storage.disks[0].partitions[0]"]);
    check(disk(json!([{"label": "a:b"}])), &["storage.disks[0].partitions[0].label"]);
    check(disk(json!([{"number": 1, "guid": "x"}])), &["storage.disks[0].partitions[0].guid"]);
}

#[test]
fn only_known_file_systems_are_accepted() {
    let system = |system: Value| json!({"storage": {"filesystems": [system]}});
    check(system(json!({"device": "/dev/vda1", "format": "xfs", "label": "root"})), &[]);
    check(
        system(json!({"device": "/dev/vda1", "format": "ntfs"})),
        &["storage.filesystems[0].format"],
    );
    check(
        system(json!({"device": "/dev/vda1", "label": "root"})),
        &["storage.filesystems[0].format"],
    );
    check(
        system(json!({"device": "/dev/vda1", "format": "xfs", "label": "thirteen-long"})),
        &["storage.filesystems[0].label"],
    );
}
