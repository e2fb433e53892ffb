//! Fetched and embedded contents, proxies and timeouts.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{check, file, packed, source};
use crate::build::gzip;

fn contents(contents: Value) -> Value {
    file(json!({"path": "/a", "contents": contents}))
}

#[test]
fn every_resource_of_a_config_is_checked() {
    let bad = json!({"source": "ftp://a"});
    for (config, path) in [
        (contents(bad.clone()), "storage.files[0].contents"),
        (file(json!({"path": "/a", "append": [&bad]})), "storage.files[0].append[0]"),
        (
            json!({"storage": {"luks": [{"name": "a", "device": "/a", "keyFile": &bad}]}}),
            "storage.luks[0].keyFile",
        ),
        (json!({"ignition": {"config": {"replace": &bad}}}), "ignition.config.replace"),
        (json!({"ignition": {"config": {"merge": [&bad]}}}), "ignition.config.merge[0]"),
        (
            json!({"ignition": {"security": {"tls": {"certificateAuthorities": [&bad]}}}}),
            "ignition.security.tls.certificateAuthorities[0]",
        ),
    ] {
        check(config, &[&format!("{path}.source")]);
    }
}

#[test]
fn some_resources_need_a_source() {
    for empty in [json!({}), json!({"source": ""})] {
        check(contents(empty.clone()), &[]);
        check(json!({"ignition": {"config": {"replace": &empty}}}), &[]);
        check(
            json!({"ignition": {"config": {"merge": [&empty]}}}),
            &["ignition.config.merge[0].source"],
        );
        check(
            json!({"ignition": {"security": {"tls": {"certificateAuthorities": [&empty]}}}}),
            &["ignition.security.tls.certificateAuthorities[0].source"],
        );
    }
}

#[test]
fn proxies_use_http() {
    let proxy = |field: &str, url: Value| json!({"ignition": {"proxy": {field: url}}});
    for field in ["httpProxy", "httpsProxy"] {
        for url in ["http://proxy:3128", "https://proxy"] {
            check(proxy(field, json!(url)), &[]);
        }
        for url in ["socks5://proxy", "proxy", ""] {
            check(proxy(field, json!(url)), &[&format!("ignition.proxy.{field}")]);
        }
        check(proxy(field, Value::Null), &[]);
    }
}

#[test]
fn timeouts_are_not_negative() {
    for field in ["httpResponseHeaders", "httpTotal"] {
        check(json!({"ignition": {"timeouts": {field: 0}}}), &[]);
        check(
            json!({"ignition": {"timeouts": {field: -1}}}),
            &[&format!("ignition.timeouts.{field}")],
        );
    }
}

#[test]
fn each_scheme_is_fetched() {
    for good in
        ["http://a/b", "gs://a/b", "s3://b/k", "s3://b/k?part=", "arn:aws:s3:::b/k?versionId=1"]
    {
        check(source(good), &[]);
    }
    check(source("arn:aws:s3:::b/k?versionId="), &["storage.files[0].contents.source"]);
}

#[test]
fn only_http_has_headers() {
    let headers = json!([{"name": "X-A", "value": "1"}]);
    check(contents(json!({"source": "http://a/", "httpHeaders": &headers})), &[]);
    for source in ["tftp://a/b", "s3://b/k"] {
        check(
            contents(json!({"source": source, "httpHeaders": &headers})),
            &["storage.files[0].contents.httpHeaders"],
        );
    }
}

#[test]
fn a_header_has_a_token_as_name_and_one_line_as_value() {
    let header = |header: Value| contents(json!({"source": "http://a/", "httpHeaders": [header]}));
    for good in [json!({"name": "X-A!#$%&'*+.^_`|~1", "value": "a b"}), json!({"name": "X"})] {
        check(header(good), &[]);
    }
    let at = |field: &str| format!("storage.files[0].contents.httpHeaders[0].{field}");
    for bad in [json!({"value": "1"}), json!({"name": "", "value": "1"}), json!({"name": "X A"})] {
        check(header(bad), &[&at("name")]);
    }
    for bad in ["", "a\rb", "a\nb", "a\0b"] {
        check(header(json!({"name": "X", "value": bad})), &[&at("value")]);
    }
}

#[test]
fn a_hash_has_hexadecimal_digits_only() {
    let hash =
        |hash: String| contents(json!({"source": "data:,x", "verification": {"hash": hash}}));
    let at = ["storage.files[0].contents.verification.hash"];
    check(hash(format!("sha256-{}", "0g".repeat(32))), &at);
    check(hash(format!("sha256-{}", "0".repeat(65))), &at);
    check(hash(format!("sha512-{}", "0".repeat(64))), &at);
}

#[test]
fn contents_may_have_64_mebibytes() {
    let contents = |length: usize| {
        let source = packed(&vec![0; length]);
        contents(json!({"source": source, "compression": "gzip"}))
    };
    check(contents(64 << 20), &[]);
    check(contents((64 << 20) + 1), &["storage.files[0].contents.source"]);
}

#[test]
fn an_unfinished_archive_is_refused() {
    let mut archive = gzip(b"contents");
    archive.truncate(archive.len() - 4);
    let source = format!("data:;base64,{}", STANDARD.encode(archive));
    check(
        contents(json!({"source": source, "compression": "gzip"})),
        &["storage.files[0].contents.source"],
    );
}
