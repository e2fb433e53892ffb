//! Parses `instance_info`: the image and the config drive that a node is installed with.

use std::fmt;

use agent_protocol::{ChecksumAlgorithm, DiskFormat};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{BootInterface, Node, Port, RequestRefused};

/// An image to install, with its checksum.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    /// An `http` or `https` URL.
    pub url: String,
    pub algorithm: ChecksumAlgorithm,
    /// The checksum of the bytes as served, in lower-case hexadecimal, as long as `algorithm` requires.
    pub value: String,
    /// The format of the image after decompression.
    pub format: DiskFormat,
    /// A PEM certificate of a CA that signs the image server's certificate, trusted in addition to the usual CAs.
    pub ca: Option<String>,
    pub config_drive: Option<ConfigDrive>,
}

/// The config drive, which the machine reads at its first boot.
#[derive(Clone, PartialEq)]
pub enum ConfigDrive {
    /// A file system image in base64, optionally compressed with gzip.
    Encoded(String),
    /// The parts from which the conductor builds an image: `meta_data`, `user_data`, `network_data`, `vendor_data`.
    Parts(Map<String, Value>),
}

impl fmt::Debug for ConfigDrive {
    /// Prints nothing of the content, because a config drive holds secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConfigDrive(…)")
    }
}

/// Checks that `node` has everything that its installation needs. A node without an agent needs nothing, and Glance knows what its images
/// need.
pub fn check_deploy(node: &Node) -> Result<(), RequestRefused> {
    match (node.uses_agent(), glance_image(node)) {
        (false, _) => Ok(()),
        (true, Some(_)) => config_drive_of(node).map(drop),
        (true, None) => image(node).map(drop),
    }
}

/// Returns the id of the image in Glance that `node` is to be installed with, as `ID` or `glance://ID`; `None` if its image is elsewhere.
pub fn glance_image(node: &Node) -> Option<Uuid> {
    let source = node.instance_info.get("image_source")?.as_str()?;
    Uuid::try_parse(source.strip_prefix("glance://").unwrap_or(source)).ok()
}

/// Checks that the ramdisk can reach the machine of `node`, which has these `ports`.
pub fn check_boot(node: &Node, ports: &[Port]) -> Result<(), RequestRefused> {
    match node.boot_interface() {
        BootInterface::Fake | BootInterface::VirtualMedia => Ok(()),
        BootInterface::Ipxe | BootInterface::HttpIpxe
            if ports.iter().any(|port| port.pxe_enabled) =>
        {
            Ok(())
        }
        BootInterface::Ipxe | BootInterface::HttpIpxe => {
            let problem =
                "no port has pxe_enabled; network boot needs one to recognize the machine";
            Err(RequestRefused::Field { field: "ports".to_owned(), problem: problem.to_owned() })
        }
    }
}

/// Returns the image that `node` is to be installed with, or the field that is missing or wrong.
pub fn image(node: &Node) -> Result<Image, RequestRefused> {
    let url = image_url(node)?;
    let (algorithm, value) = checksum(node)?;
    let format = match text(node, "image_disk_format")? {
        Some("raw") => DiskFormat::Raw,
        Some("qcow2") => DiskFormat::Qcow2,
        Some(other) => {
            let other: String = other.chars().take(32).collect();
            return Err(refuse("image_disk_format", format!("{other:?} is neither raw nor qcow2")));
        }
        None => match url.split(['?', '#']).next() {
            Some(path) if path.ends_with(".qcow2") => DiskFormat::Qcow2,
            Some(_) | None => DiskFormat::Raw,
        },
    };
    let ca = text(node, "image_ca")?.map(str::to_owned);
    if ca.as_ref().is_some_and(|pem| !pem.contains("-----BEGIN CERTIFICATE-----")) {
        return Err(refuse("image_ca", "not a PEM certificate".to_owned()));
    }
    let url = url.to_owned();
    Ok(Image { url, algorithm, value, format, ca, config_drive: config_drive_of(node)? })
}

fn image_url(node: &Node) -> Result<&str, RequestRefused> {
    let field = "image_source";
    let url = text(node, field)?.ok_or_else(|| {
        refuse(field, "missing; set it to the http or https URL of a whole-disk image".into())
    })?;
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let Some(rest) = rest else {
        return Err(refuse(field, "must be an http or https URL".to_owned()));
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or("");
    if host.is_empty() || host.starts_with(':') {
        return Err(refuse(field, "the URL names no host".to_owned()));
    }
    if !url.bytes().all(|byte| byte.is_ascii_graphic()) || url.len() > 2048 {
        return Err(refuse(
            field,
            "a URL has up to 2048 visible ASCII characters and no blanks".to_owned(),
        ));
    }
    Ok(url)
}

/// Returns the checksum from `image_os_hash_algo` and `image_os_hash_value`, or from `image_checksum`, whose length tells the algorithm.
fn checksum(node: &Node) -> Result<(ChecksumAlgorithm, String), RequestRefused> {
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
    let Some((field, value)) = given else {
        let problem = "missing; an image is installed only with a known checksum";
        return Err(refuse("image_os_hash_value", problem.to_owned()));
    };
    if !value.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(refuse(field, "not hexadecimal".to_owned()));
    }
    let by_length = match value.len() {
        64 => ChecksumAlgorithm::Sha256,
        128 => ChecksumAlgorithm::Sha512,
        other => {
            let problem = format!("has {other} digits; sha256 has 64 and sha512 has 128");
            return Err(refuse(field, problem));
        }
    };
    if algorithm.is_some_and(|named| named != by_length) {
        return Err(refuse(field, "the length does not match image_os_hash_algo".to_owned()));
    }
    Ok((by_length, value.to_ascii_lowercase()))
}

/// Returns the config drive of `node`.
pub fn config_drive_of(node: &Node) -> Result<Option<ConfigDrive>, RequestRefused> {
    match node.instance_info.get("configdrive") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => parse_config_drive(value).map(Some),
    }
}

/// Parses a config drive from a request: base64 text, or an object with its parts.
pub fn parse_config_drive(value: &Value) -> Result<ConfigDrive, RequestRefused> {
    let field = "configdrive";
    match value {
        Value::String(text) if text.starts_with("http://") || text.starts_with("https://") => {
            Err(refuse(field, "must be the config drive itself, not a URL".to_owned()))
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
            Err(refuse(field, "must be base64 text or an object".to_owned()))
        }
    }
}

/// Returns a text of `instance_info`. The empty text counts as missing.
fn text<'a>(node: &'a Node, key: &str) -> Result<Option<&'a str>, RequestRefused> {
    match node.instance_info.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(_) => Err(refuse(key, "must be text".to_owned())),
    }
}

fn refuse(key: &str, problem: String) -> RequestRefused {
    RequestRefused::Field { field: format!("instance_info.{key}"), problem }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::{Driver, NodeUuid, PortUuid};

    fn node(info: Value) -> Node {
        let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        node.instance_info = info.as_object().expect("an object").clone();
        node
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
        assert_eq!(read.algorithm, ChecksumAlgorithm::Sha256);
        assert_eq!(read.value, "a".repeat(64));

        let read = image(&node(
            json!({"image_source": "http://images/debian.raw.zst", "image_checksum": "b".repeat(128)}),
        ))
        .expect("an image");
        assert_eq!((read.format, read.algorithm), (DiskFormat::Raw, ChecksumAlgorithm::Sha512));
    }

    #[test]
    fn a_wrong_image_field_is_refused_with_its_name() {
        let url = "http://images/x";
        check(
            json!({}),
            "instance_info.image_source: missing; set it to the http or https URL of a whole-disk image",
        );
        for bad in ["file:///etc/shadow", "ftp://h/x", "b7f1b8a4-6c2b-4a1e-8b57-6a1d4f6c2a11"] {
            check(
                json!({"image_source": bad}),
                "instance_info.image_source: must be an http or https URL",
            );
        }
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
        info["configdrive"] = json!("http://h/drive");
        check(info, "instance_info.configdrive: must be the config drive itself, not a URL");
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
        for bad in ["http://h/drive", "https://h/drive"] {
            let said = refused(&json!(bad));
            assert_eq!(
                said,
                "instance_info.configdrive: must be the config drive itself, not a URL"
            );
        }
        for bad in ["", "a b", "ä", "ftp://h"] {
            assert_eq!(refused(&json!(bad)), "instance_info.configdrive: not base64");
        }
        for bad in [json!(null), json!(true), json!(1), json!([])] {
            let said = refused(&bad);
            assert_eq!(said, "instance_info.configdrive: must be base64 text or an object");
        }
    }

    #[test]
    fn a_network_boot_needs_a_port_that_boots() {
        let mut machine = node(json!({}));
        let port = |pxe_enabled| {
            let mac = hardware::MacAddress::new([2, 0, 0, 0, 0, 1]);
            let port = Port::new(PortUuid::nil(), NodeUuid::nil(), mac, Timestamp::UNIX_EPOCH);
            Port { pxe_enabled, ..port }
        };
        for boot in [BootInterface::Ipxe, BootInterface::HttpIpxe] {
            machine.interfaces.boot = Some(boot);
            assert!(check_boot(&machine, &[]).is_err());
            assert!(check_boot(&machine, &[port(false)]).is_err());
            assert_eq!(check_boot(&machine, &[port(false), port(true)]), Ok(()));
        }
        for boot in [BootInterface::Fake, BootInterface::VirtualMedia] {
            machine.interfaces.boot = Some(boot);
            assert_eq!(check_boot(&machine, &[]), Ok(()));
        }
    }

    #[test]
    fn a_node_without_a_machine_needs_no_image() {
        let mut fake = node(json!({}));
        fake.driver = Driver::FakeHardware;
        assert_eq!(check_deploy(&fake), Ok(()));
        assert!(check_deploy(&node(json!({}))).is_err());
    }

    #[test]
    fn an_image_in_glance_is_named_by_its_id() {
        let id = "b7f1b8a4-6c2b-4a1e-8b57-6a1d4f6c2a11";
        for source in [id.to_owned(), format!("glance://{id}")] {
            let machine = node(json!({"image_source": source}));
            assert_eq!(glance_image(&machine).map(|it| it.to_string()).as_deref(), Some(id));
            assert_eq!(check_deploy(&machine), Ok(()));
            let drive = node(json!({"image_source": source, "configdrive": "http://h/drive"}));
            assert!(check_deploy(&drive).is_err());
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
