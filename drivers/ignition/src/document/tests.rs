use proptest::prelude::*;

use super::*;

#[track_caller]
fn refused(text: &str, want: &str) {
    let refused = Document::parse(text, Limits::default()).unwrap_err();
    assert_eq!(refused.to_string(), want);
}

#[test]
fn a_valid_document_is_taken_as_it_is() {
    let text = r#"{"ignition":{"version":"3.1.0"},"storage":{"files":[{"path":"/a","mode":420,"contents":{"source":"data:,x"}}]}}"#;
    let document = Document::parse(text, Limits::default()).unwrap();
    assert_eq!(document.version(), "3.1.0");
    assert_eq!(document.config().unwrap().ignition.version.as_deref(), Some("3.3.0"));
    assert_eq!(
        serde_json::from_str::<Value>(&document.json()).unwrap(),
        serde_json::from_str::<Value>(text).unwrap()
    );
    assert!(!format!("{document:?}").contains("data:"));
}

#[test]
fn a_later_version_is_taken_and_cannot_be_merged() {
    let text = r#"{"ignition":{"version":"3.4.0"},"storage":{"luks":[{"name":"a","device":"/dev/vda","discard":true}]}}"#;
    let document = Document::parse(text, Limits::default()).unwrap();
    assert!(document.config().is_none());
}

#[test]
fn a_mistake_is_reported_with_its_path() {
    refused("{", "the document is not JSON: line 1, column 1");
    refused("{}", "ignition.version: a version is missing, such as 3.3.0");
    refused(
        r#"{"ignition":{"version":"2.2.0"}}"#,
        "ignition.version: specification 2 is of the old CoreOS; Fedora CoreOS reads 3",
    );
    refused(r#"{"ignition":{"version":"3.99.0"}}"#, "ignition.version: not one of 3.0.0 to 3.6.0");
    refused(
        r#"{"ignition":{"version":"3.3.0"},"storage":{"files":[{"path":"/a"},{"path":"/b","mode":"0644"}]}}"#,
        "storage.files[1].mode: the value has the wrong type",
    );
    refused(
        r#"{"ignition":{"version":"3.3.0"},"storage":{"files":[{"path":"/a","contents":{"sauce":"data:,x"}}]}}"#,
        "storage.files[0].contents.sauce: version 3.3.0 of the specification has no such field",
    );
    refused(
        r#"{"ignition":{"version":"3.3.0"},"storage":{"files":[{"path":"a"},{"path":"/b","mode":99999}]}}"#,
        "storage.files[0].path: `a` is not an absolute path; \
         storage.files[1].mode: not a mode: use a decimal number from 0 to 4095 (7777 in octal)",
    );
}

#[test]
fn a_field_of_a_later_version_is_unknown_to_an_earlier() {
    refused(
        r#"{"ignition":{"version":"3.3.0"},"storage":{"luks":[{"name":"a","device":"/dev/vda","discard":true}]}}"#,
        "storage.luks[0].discard: version 3.3.0 of the specification has no such field",
    );
}

#[test]
fn a_document_has_a_size_limit() {
    let limits = Limits { bytes: 100, entries: 2 };
    let parse = |text: &str| Document::parse(text, limits);
    assert!(matches!(
        parse(&" ".repeat(101)),
        Err(DocumentError::TooLong { length: 101, most: 100 })
    ));
    assert!(matches!(parse(r#"{"a":[1,[2,3]]}"#), Err(DocumentError::TooMany { most: 2 })));
    assert!(Document::parse(&"[".repeat(100_000), Limits::default()).is_err());
}

#[test]
fn a_document_as_large_as_the_limits_is_taken() {
    let text = r#"{"ignition":{"version":"3.3.0"},"passwd":{"users":[{"name":"a","groups":["b","c"]},{"name":"d"}]}}"#;
    let limits = Limits { bytes: text.len(), entries: 4 };
    assert!(Document::parse(text, limits).is_ok());
    let entries = limits.entries - 1;
    let refused = Document::parse(text, Limits { entries, ..limits }).unwrap_err();
    assert!(matches!(refused, DocumentError::TooMany { most: 3 }));
    let bytes = limits.bytes - 1;
    let refused = Document::parse(text, Limits { bytes, ..limits }).unwrap_err();
    assert!(matches!(refused, DocumentError::TooLong { .. }));
    assert_eq!(Limits::default(), Limits { bytes: 1_048_576, entries: 4096 });
}

#[test]
fn a_version_decides_which_fields_there_are() {
    let parse = |version: &str, storage: &str| {
        let text = format!(r#"{{"ignition":{{"version":"{version}"}},"storage":{{{storage}}}}}"#);
        Document::parse(&text, Limits::default())
    };
    let discard = r#""luks":[{"name":"a","device":"/a","discard":true}]"#;
    for (version, is_merged) in [
        ("3.0.0", true),
        ("3.1.0", true),
        ("3.2.0", true),
        ("3.3.0", true),
        ("3.4.0", false),
        ("3.5.0", false),
        ("3.6.0", false),
    ] {
        let plain = parse(version, "").unwrap();
        assert_eq!((plain.version(), plain.config().is_some()), (version, is_merged));
        assert_eq!(parse(version, discard).is_ok(), !is_merged, "{version}");
    }
    let cex = r#""luks":[{"name":"a","device":"/a","cex":{"enabled":true}}]"#;
    assert!(parse("3.4.0", cex).is_err() && parse("3.6.0", cex).is_ok());
}

#[test]
fn an_unknown_field_may_be_null() {
    let text = r#"{"ignition":{"version":"3.3.0"},"storage":{"sauce":null}}"#;
    assert!(Document::parse(text, Limits::default()).is_ok());
    refused(
        r#"{"ignition":{"version":"3.3.0"},"sauce":1}"#,
        "sauce: version 3.3.0 of the specification has no such field",
    );
    refused(
        r#"{"ignition":{"version":"1.0.0"}}"#,
        "ignition.version: specification 2 is of the old CoreOS; Fedora CoreOS reads 3",
    );
}

proptest! {
    #[test]
    fn no_text_panics(text in ".{0,200}") {
        let _ = Document::parse(&text, Limits::default());
    }

    #[test]
    fn no_changed_byte_panics(place in 0_usize..200, byte in any::<char>()) {
        let text = r#"{"ignition":{"version":"3.3.0"},"storage":{"files":[{"path":"/a","mode":420,"contents":{"source":"data:;base64,YQ==","compression":"gzip"}}]},"systemd":{"units":[{"name":"a.service"}]}}"#;
        let mut changed: Vec<char> = text.chars().collect();
        let place = place % changed.len();
        changed[place] = byte;
        let _ = Document::parse(&changed.into_iter().collect::<String>(), Limits::default());
    }
}
