//! Parses `instance_info`: the image and the config drive that a node is installed with.

use std::fmt;

use agent_protocol::{ChecksumAlgorithm, DiskFormat};
use jiff::Timestamp;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::checksum_file::algorithm_of;
use crate::image_url::{check_source, check_url};
use crate::{Driver, Node, NodeUuid, RequestRefused};

/// An image to install, with its checksum.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    /// An `http` or `https` URL, or [`FILE_SCHEME`](crate::FILE_SCHEME) and the path of a file on the host of the service.
    pub url: String,
    /// The checksum of the bytes as served.
    pub checksum: ImageChecksum,
    /// The format of the image after decompression.
    pub format: DiskFormat,
    /// A PEM certificate of a CA that signs the image server's certificate, trusted in addition to the usual CAs.
    pub ca: Option<String>,
    pub config_drive: Option<ConfigDrive>,
}

/// The checksum of an image, or the file that contains the checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageChecksum {
    Value {
        algorithm: ChecksumAlgorithm,
        /// Lower-case hexadecimal, as long as `algorithm` requires.
        value: String,
    },
    /// The `http` or `https` URL of a file of checksums, such as `SHA256SUMS`.
    File {
        url: String,
        /// The algorithm whose checksum counts, or `None` for any.
        algorithm: Option<ChecksumAlgorithm>,
    },
}

/// The config drive, which the machine reads at its first boot.
#[derive(Clone, PartialEq)]
pub enum ConfigDrive {
    /// A file system image in base64, optionally compressed with gzip.
    Encoded(String),
    /// The `http` or `https` URL of a file with such text.
    Url(String),
    /// The parts from which the conductor builds an image: `meta_data`, `user_data`, `network_data`, `vendor_data`.
    Parts(Map<String, Value>),
}

impl fmt::Debug for ConfigDrive {
    /// Prints nothing of the content, because a config drive holds secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConfigDrive(…)")
    }
}

/// Returns a node that has only this image and no machine: [`crate::check_deploy`] checks on it an image that no node has yet.
pub fn node_with_image(instance_info: &Map<String, Value>) -> Node {
    let any = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
    Node { instance_info: instance_info.clone(), ..any }
}

/// Returns the id of the image in Glance that `node` is to be installed with, as `ID` or `glance://ID`; `None` if its image is elsewhere.
pub fn glance_image(node: &Node) -> Option<Uuid> {
    let source = node.instance_info.get("image_source")?.as_str()?;
    Uuid::try_parse(source.strip_prefix("glance://").unwrap_or(source)).ok()
}

/// Returns the image that `node` is to be installed with, or the field that is missing or wrong.
pub fn image(node: &Node) -> Result<Image, RequestRefused> {
    let url = image_url(node)?;
    let checksum = checksum(node)?.ok_or_else(|| {
        let problem = "missing; an image is installed only with a known checksum";
        refuse("image_os_hash_value", problem.to_owned())
    })?;
    let by_name = || match url.split(['?', '#']).next() {
        Some(path) if path.ends_with(".qcow2") => DiskFormat::Qcow2,
        Some(_) | None => DiskFormat::Raw,
    };
    let format = disk_format(node)?.unwrap_or_else(by_name);
    let (url, ca) = (url.to_owned(), image_ca(node)?);
    Ok(Image { url, checksum, format, ca, config_drive: config_drive_of(node)? })
}

/// Returns the format that the node names for its image.
pub(crate) fn disk_format(node: &Node) -> Result<Option<DiskFormat>, RequestRefused> {
    match text(node, "image_disk_format")? {
        None => Ok(None),
        Some("raw") => Ok(Some(DiskFormat::Raw)),
        Some("qcow2") => Ok(Some(DiskFormat::Qcow2)),
        Some(other) => {
            let other: String = other.chars().take(32).collect();
            Err(refuse("image_disk_format", format!("{other:?} is neither raw nor qcow2")))
        }
    }
}

/// Returns the certificate of the CA that signs the image server's certificate, in PEM.
pub(crate) fn image_ca(node: &Node) -> Result<Option<String>, RequestRefused> {
    let ca = text(node, "image_ca")?;
    if ca.is_some_and(|pem| !pem.contains("-----BEGIN CERTIFICATE-----")) {
        return Err(refuse("image_ca", "not a PEM certificate".to_owned()));
    }
    Ok(ca.map(str::to_owned))
}

fn image_url(node: &Node) -> Result<&str, RequestRefused> {
    let field = "image_source";
    let url = text(node, field)?.ok_or_else(|| {
        refuse(field, "missing; set it to the http or https URL of an image".into())
    })?;
    check_source(url).map_err(|problem| refuse(field, problem.to_owned()))?;
    Ok(url)
}

/// Returns the checksum from `image_os_hash_algo` and `image_os_hash_value`, or from `image_checksum`, whose length tells the algorithm. Each
/// value may be the URL of a file of checksums instead.
pub(crate) fn checksum(node: &Node) -> Result<Option<ImageChecksum>, RequestRefused> {
    let algorithm = match text(node, "image_os_hash_algo")? {
        None => None,
        Some("sha256") => Some(ChecksumAlgorithm::Sha256),
        Some("sha512") => Some(ChecksumAlgorithm::Sha512),
        Some(other) => {
            let other: String = other.chars().take(32).collect();
            let problem = format!("{other:?} is neither sha256 nor sha512");
            return Err(refuse("image_os_hash_algo", problem));
        }
    };
    let given = match text(node, "image_os_hash_value")? {
        Some(value) => Some(("image_os_hash_value", value)),
        None => text(node, "image_checksum")?.map(|value| ("image_checksum", value)),
    };
    let Some((field, value)) = given else { return Ok(None) };
    if value.starts_with("http://") || value.starts_with("https://") {
        check_url(value).map_err(|problem| refuse(field, problem.to_owned()))?;
        return Ok(Some(ImageChecksum::File { url: value.to_owned(), algorithm }));
    }
    if !value.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(refuse(field, "neither hexadecimal nor an http or https URL".to_owned()));
    }
    let Some(by_length) = algorithm_of(value.len()) else {
        let digits = value.len();
        let problem = format!("has {digits} digits; sha256 has 64 and sha512 has 128");
        return Err(refuse(field, problem));
    };
    if algorithm.is_some_and(|named| named != by_length) {
        return Err(refuse(field, "the length does not match image_os_hash_algo".to_owned()));
    }
    let value = value.to_ascii_lowercase();
    Ok(Some(ImageChecksum::Value { algorithm: by_length, value }))
}

/// Returns the config drive of the node, if it has one.
pub fn config_drive_of(node: &Node) -> Result<Option<ConfigDrive>, RequestRefused> {
    match node.instance_info.get("configdrive") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => parse_config_drive(value).map(Some),
    }
}

/// Parses a config drive from a request: base64 text, the URL of such text, or an object with its parts.
pub fn parse_config_drive(value: &Value) -> Result<ConfigDrive, RequestRefused> {
    let field = "configdrive";
    match value {
        Value::String(text) if text.starts_with("http://") || text.starts_with("https://") => {
            check_url(text).map_err(|problem| refuse(field, problem.to_owned()))?;
            Ok(ConfigDrive::Url(text.clone()))
        }
        Value::String(text) => {
            let base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=\r\n".contains(&byte);
            if text.is_empty() || !text.bytes().all(base64) {
                return Err(refuse(field, "not base64".to_owned()));
            }
            Ok(ConfigDrive::Encoded(text.clone()))
        }
        Value::Object(parts) => {
            let known = ["meta_data", "user_data", "network_data", "vendor_data"];
            match parts.keys().find(|key| !known.contains(&key.as_str())) {
                None => Ok(ConfigDrive::Parts(parts.clone())),
                Some(key) => {
                    let key: String = key.chars().take(32).collect();
                    Err(refuse(field, format!("unknown part {key:?}")))
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            Err(refuse(field, "must be base64 text, a URL or an object".to_owned()))
        }
    }
}

/// Returns a text of `instance_info`. The empty text counts as missing.
pub(crate) fn text<'a>(node: &'a Node, key: &str) -> Result<Option<&'a str>, RequestRefused> {
    match node.instance_info.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(_) => Err(refuse(key, "must be text".to_owned())),
    }
}

/// The refusal of a field of `instance_info`.
pub(crate) fn refuse(key: &str, problem: String) -> RequestRefused {
    RequestRefused::Field { field: format!("instance_info.{key}"), problem }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::check_deploy;

    fn node(info: Value) -> Node {
        node_with_image(info.as_object().expect("an object"))
    }

    #[track_caller]
    fn check(info: Value, want: &str) {
        let got = image(&node(info)).expect_err("a refusal");
        assert_eq!(got.to_string(), want);
    }

    #[test]
    fn an_image_needs_a_url_and_a_checksum() {
        let sum = "A".repeat(64);
        let read = image(&node(json!({
            "image_source": "https://images/debian.qcow2?x=1", "image_os_hash_algo": "sha256", "image_os_hash_value": sum,
        })))
        .expect("an image");
        assert_eq!(read.format, DiskFormat::Qcow2);
        let value = |algorithm, value: String| ImageChecksum::Value { algorithm, value };
        assert_eq!(read.checksum, value(ChecksumAlgorithm::Sha256, "a".repeat(64)));

        let read = image(&node(
            json!({"image_source": "http://images/debian.raw.zst", "image_checksum": "b".repeat(128)}),
        ))
        .expect("an image");
        assert_eq!(read.format, DiskFormat::Raw);
        assert_eq!(read.checksum, value(ChecksumAlgorithm::Sha512, "b".repeat(128)));
    }

    #[test]
    fn a_checksum_can_be_in_a_file() {
        let sums = "https://images/SHA512SUMS";
        let mut info = json!({"image_source": "http://images/x.raw", "image_checksum": sums});
        let file = |algorithm| ImageChecksum::File { url: sums.to_owned(), algorithm };
        assert_eq!(image(&node(info.clone())).unwrap().checksum, file(None));
        info["image_os_hash_algo"] = json!("sha512");
        info["image_os_hash_value"] = json!(sums);
        let sha512 = file(Some(ChecksumAlgorithm::Sha512));
        assert_eq!(image(&node(info.clone())).unwrap().checksum, sha512);
        info["image_os_hash_value"] = json!("https:///SHA512SUMS");
        check(info.clone(), "instance_info.image_os_hash_value: the URL names no host");
        info["image_os_hash_value"] = json!("ftp://images/SHA512SUMS");
        let neither =
            "instance_info.image_os_hash_value: neither hexadecimal nor an http or https URL";
        check(info, neither);
    }

    #[test]
    fn a_wrong_image_field_is_refused_with_its_name() {
        let url = "http://images/x";
        check(
            json!({}),
            "instance_info.image_source: missing; set it to the http or https URL of an image",
        );
        for bad in ["ftp://h/x", "b7f1b8a4-6c2b-4a1e-8b57-6a1d4f6c2a11"] {
            check(
                json!({"image_source": bad}),
                "instance_info.image_source: must be an http or https URL",
            );
        }
        check(
            json!({"image_source": "file://srv/x"}),
            "instance_info.image_source: must have an absolute path: file:///FOLDER/NAME",
        );
        check(
            json!({"image_source": "http:///x"}),
            "instance_info.image_source: the URL names no host",
        );
        check(
            json!({"image_source": "http://h/x\ny"}),
            "instance_info.image_source: a URL has up to 2048 visible ASCII characters and no blanks",
        );
        check(json!({"image_source": 5}), "instance_info.image_source: must be text");
        check(
            json!({"image_source": url}),
            "instance_info.image_os_hash_value: missing; an image is installed only with a known checksum",
        );
        check(
            json!({"image_source": url, "image_checksum": "0".repeat(32)}),
            "instance_info.image_checksum: has 32 digits; sha256 has 64 and sha512 has 128",
        );
        check(
            json!({"image_source": url, "image_os_hash_algo": "md5"}),
            "instance_info.image_os_hash_algo: \"md5\" is neither sha256 nor sha512",
        );
        check(
            json!({"image_source": url, "image_os_hash_algo": "sha512", "image_os_hash_value": "0".repeat(64)}),
            "instance_info.image_os_hash_value: the length does not match image_os_hash_algo",
        );
        let good =
            |more: Value| json!({"image_source": url, "image_checksum": "0".repeat(64), "x": more});
        let mut info = good(json!(1));
        info["image_disk_format"] = json!("vmdk");
        check(info, "instance_info.image_disk_format: \"vmdk\" is neither raw nor qcow2");
        let mut info = good(json!(1));
        info["configdrive"] = json!("http:///drive");
        check(info, "instance_info.configdrive: the URL names no host");
        let mut info = good(json!(1));
        info["configdrive"] = json!({"meta": {}});
        check(info, "instance_info.configdrive: unknown part \"meta\"");
    }

    #[test]
    fn a_url_of_an_image_has_at_most_2048_characters() {
        let read = |length: usize| {
            let url = format!("http://h/{}", "x".repeat(length - "http://h/".len()));
            image(&node(json!({"image_source": url, "image_checksum": "0".repeat(64)})))
        };
        assert!(read(2048).is_ok() && read(2049).is_err());
    }

    #[test]
    fn a_config_drive_is_base64_or_has_known_parts() {
        let parts =
            json!({"meta_data": {}, "user_data": "", "network_data": {}, "vendor_data": {}});
        for good in [json!("YWI+/=="), json!("YWI=\r\n"), parts, json!({})] {
            assert!(parse_config_drive(&good).is_ok(), "{good}");
        }
        let refused = |bad: &Value| parse_config_drive(bad).unwrap_err().to_string();
        let url = "https://h/drive";
        assert_eq!(parse_config_drive(&json!(url)), Ok(ConfigDrive::Url(url.to_owned())));
        let said = refused(&json!("http:///drive"));
        assert_eq!(said, "instance_info.configdrive: the URL names no host");
        for bad in ["", "a b", "ä", "ftp://h"] {
            assert_eq!(refused(&json!(bad)), "instance_info.configdrive: not base64");
        }
        for bad in [json!(null), json!(true), json!(1), json!([])] {
            let said = refused(&bad);
            assert_eq!(said, "instance_info.configdrive: must be base64 text, a URL or an object");
        }
    }

    #[test]
    fn an_image_in_glance_is_named_by_its_id() {
        let id = "b7f1b8a4-6c2b-4a1e-8b57-6a1d4f6c2a11";
        for source in [id.to_owned(), format!("glance://{id}")] {
            let machine = node(json!({"image_source": source}));
            assert_eq!(glance_image(&machine).map(|it| it.to_string()).as_deref(), Some(id));
            assert_eq!(check_deploy(&machine), Ok(()));
            let drive = |drive| node(json!({"image_source": source, "configdrive": drive}));
            assert_eq!(check_deploy(&drive("http://h/drive")), Ok(()));
            assert!(check_deploy(&drive("ftp://h/drive")).is_err());
        }
        for source in ["http://images/x", "glance://x", "debian"] {
            let machine = node(json!({"image_source": source}));
            assert_eq!(glance_image(&machine), None, "{source}");
            assert!(check_deploy(&machine).is_err(), "{source}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(source: String, sum: String, drive: String) {
            let info = json!({"image_source": source, "image_checksum": sum, "configdrive": drive});
            let _ = image(&node(info));
        }
    }
}
