//! User data for Nova: at most 64 KiB of base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ignition_config::v3_3::{Config, Ignition, IgnitionConfig, Resource};
use serde_json::Value;

use crate::Document;
use crate::build::gzip;

/// The most bytes of base64 that Nova accepts, the size of its database column (nova/api/openstack/compute/schemas/servers.py,
/// `user_data`).
pub const NOVA_LIMIT: usize = 65_535;

/// A config as text, for the field `user_data`. `Debug` prints only the length, because the config holds secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct UserData(String);

/// The config is longer than Nova accepts.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "the user data has {length} bytes of base64, and Nova takes {NOVA_LIMIT}: serve the config over HTTPS and hand out a claim"
)]
pub struct TooLong {
    /// Length of the base64 text in bytes.
    pub length: usize,
}

impl UserData {
    /// Encodes the config as JSON; fails if the result is longer than Nova accepts.
    pub fn from_config(config: &Config) -> Result<Self, TooLong> {
        UserData::of_text(json(config))
    }

    /// Encodes a caller's config, compressed if it would be too long otherwise.
    pub fn from_document(document: &Document) -> Result<Self, TooLong> {
        UserData::of_text(document.json())
            .or_else(|_| UserData::from_config(&packed(&document.json())))
    }

    fn of_text(text: String) -> Result<Self, TooLong> {
        let length = base64_length(text.len());
        if length > NOVA_LIMIT { Err(TooLong { length }) } else { Ok(UserData(text)) }
    }

    /// The JSON text that the machine receives.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The JSON text in base64, as Nova's API requires.
    pub fn base64(&self) -> String {
        STANDARD.encode(&self.0)
    }
}

impl std::fmt::Debug for UserData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "UserData({} bytes)", self.0.len())
    }
}

/// Encodes the config as JSON without null fields.
pub fn json(config: &Config) -> String {
    let mut value = serde_json::to_value(config).expect("a config has nothing that JSON lacks");
    drop_nulls(&mut value);
    value.to_string()
}

/// Removes null fields: the types of `ignition-config` write some absent fields as null.
pub(crate) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(entries) => entries.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns a small config that contains `config` compressed with gzip and replaces itself by it. Ignition does not decompress user data, so
/// `ignition.config.replace` is the way to compress a config.
pub fn compress(config: &Config) -> Config {
    packed(&json(config))
}

/// The inner config may have a later version than the outer one: Ignition reads the version of each separately.
fn packed(text: &str) -> Config {
    let packed = STANDARD.encode(gzip(text.as_bytes()));
    let replace = Resource {
        source: Some(format!("data:;base64,{packed}")),
        compression: Some("gzip".to_owned()),
        ..Resource::default()
    };
    let config = IgnitionConfig { replace: Some(replace), merge: None };
    let version = Some(crate::SPEC.to_owned());
    Config {
        ignition: Ignition { config: Some(config), version, ..Ignition::default() },
        ..Config::default()
    }
}

fn base64_length(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{config, file, inline};

    #[test]
    fn the_limit_counts_base64() {
        assert_eq!(base64_length(0), 0);
        assert_eq!(base64_length(1), 4);
        assert_eq!(base64_length(49_149), 65_532);
        let text = "x".repeat(49_000);
        let mut long = config(vec![], vec![file("/a", 0o644, inline(b""))], vec![]);
        let set = |config: &mut Config, text: &str| {
            let files = config.storage.as_mut().and_then(|it| it.files.as_mut());
            let contents = files.and_then(|it| it[0].contents.as_mut());
            contents.expect("it has contents").source = Some(format!("data:,{text}"));
        };
        set(&mut long, &text);
        let refused = UserData::from_config(&long).unwrap_err();
        assert!(refused.length > NOVA_LIMIT, "{refused}");
        set(&mut long, &text[..48_000]);
        assert!(UserData::from_config(&long).unwrap().base64().len() <= NOVA_LIMIT);
    }

    #[test]
    fn nova_gets_the_text_in_base64() {
        for (bytes, length) in [(2, 4), (3, 4), (4, 8), (6, 8)] {
            assert_eq!(base64_length(bytes), length);
        }
        let data = UserData::from_config(&Config::default()).unwrap();
        assert_eq!(data.text(), r#"{"ignition":{"version":"3.3.0"}}"#);
        assert_eq!(STANDARD.decode(data.base64()).unwrap(), data.text().as_bytes());
    }

    #[test]
    fn null_fields_are_not_written() {
        let mut value =
            serde_json::json!({"a": null, "b": [{"c": null, "d": 1}, null], "e": {"f": null}});
        drop_nulls(&mut value);
        assert_eq!(value, serde_json::json!({"b": [{"d": 1}, null], "e": {}}));
    }

    #[test]
    fn a_config_that_is_too_long_may_fit_compressed() {
        let files = (0..100)
            .map(|n| file(&format!("/etc/long-name-of-a-file-{n}"), 0o600, inline(&[b'x'; 500])));
        let config = config(vec![], files.collect(), vec![]);
        let small = UserData::from_config(&compress(&config)).unwrap();
        assert!(small.text().len() < json(&config).len() / 4);
        assert!(!format!("{small:?}").contains("data:"));
    }

    #[test]
    fn a_compressed_config_replaces_itself_by_the_whole_config() {
        let config = config(vec![], vec![file("/a", 0o600, inline(b"x"))], vec![]);
        let small = compress(&config);
        assert_eq!(small.ignition.version.as_deref(), Some(crate::SPEC));
        let replace = small.ignition.config.unwrap().replace.unwrap();
        assert_eq!(replace.compression.as_deref(), Some("gzip"));
        let source = replace.source.unwrap();
        let packed = STANDARD.decode(source.strip_prefix("data:;base64,").unwrap()).unwrap();
        let text = std::io::read_to_string(flate2::read::GzDecoder::new(&packed[..])).unwrap();
        assert_eq!(text, json(&config));
    }

    #[test]
    fn a_callers_config_is_compressed_only_if_too_long() {
        let document = |length: usize| {
            let file = format!(
                r#"{{"path":"/a","contents":{{"source":"data:,{}"}}}}"#,
                "x".repeat(length)
            );
            let text =
                format!(r#"{{"ignition":{{"version":"3.4.0"}},"storage":{{"files":[{file}]}}}}"#);
            Document::parse(&text, crate::Limits::default()).unwrap()
        };
        let short = UserData::from_document(&document(10)).unwrap();
        assert_eq!(short.text(), document(10).json());
        let long = UserData::from_document(&document(100_000)).unwrap();
        assert!(long.text().contains("\"compression\":\"gzip\"") && long.text().len() < 2000);
    }
}
