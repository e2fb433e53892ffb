//! Parses the image in an OCI registry that a node is to be installed with.

use std::fmt;

use agent_protocol::DiskFormat;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::instance::{checksum, disk_format, image_ca, refuse, text};
use crate::{Node, OCI_SCHEME, OciReference, OciRegistry, RequestRefused};

/// An image in an OCI registry, as a node names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OciImage {
    pub reference: OciReference,
    /// The login at the registry; without one, the registry is asked anonymously.
    pub secret: Option<PullSecret>,
    /// A PEM certificate of a CA that signs the registry's certificate, trusted in addition to the usual CAs.
    pub ca: Option<String>,
    /// The format of the disk. An annotation of the manifest comes before it.
    pub format: Option<DiskFormat>,
    /// The architecture of the machine, which chooses among the manifests of an index.
    pub architecture: Option<String>,
}

/// The key of `instance_info` and `driver_info` with the login at a registry.
pub const PULL_SECRET: &str = "image_pull_secret";

/// The login at a registry, from `image_pull_secret`.
#[derive(Clone, PartialEq, Eq)]
pub struct PullSecret {
    /// The object that has the secret: `instance_info` or `driver_info`.
    pub object: &'static str,
    /// Empty for a secret that needs no user name.
    pub user: String,
    pub password: String,
}

impl fmt::Debug for PullSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PullSecret(…)")
    }
}

impl PullSecret {
    /// Reads a secret in the forms that Ironic documents (`doc/source/admin/oci-container-registry.rst`): `USER:PASSWORD`, or the value of
    /// `auth` in Docker's `config.json`, which is `USER:PASSWORD` in base64. Any other text is a password without a user name, as in Ironic.
    fn parse(object: &'static str, text: &str) -> PullSecret {
        let decoded = || String::from_utf8(STANDARD.decode(text).ok()?).ok();
        let login = match text.contains(':') {
            true => Some(text.to_owned()),
            false => decoded(),
        };
        match login.as_deref().and_then(|login| login.split_once(':')) {
            Some((user, password)) => {
                let (user, password) = (user.to_owned(), password.to_owned());
                PullSecret { object, user, password }
            }
            None => PullSecret { object, user: String::new(), password: text.to_owned() },
        }
    }
}

impl OciImage {
    /// Returns whether the login of `driver_info` is used for the image, as in Ironic: the image has no login of its own. Unlike in Ironic, the
    /// operator names the `registries` that may get the login, because the lessee of a node chooses the registry of the image.
    pub fn wants_operators_secret(&self, registries: &[OciRegistry]) -> bool {
        let registry = &self.reference.registry;
        self.secret.is_none() && registries.iter().any(|known| known.is(registry))
    }

    /// Returns the image with the login of `driver_info`. The CA that the lessee named is not trusted with this login.
    pub fn with_operators_secret(self, secret: &str) -> OciImage {
        OciImage { secret: Some(PullSecret::parse("driver_info", secret)), ca: None, ..self }
    }
}

/// Refuses a login in `driver_info` that no registry would get.
///
/// # Errors
///
/// `registries`, which may get the login, is empty.
pub fn check_operators_secret(
    node: &Node,
    registries: &[OciRegistry],
) -> Result<(), RequestRefused> {
    let secret = node.driver_info.get(PULL_SECRET);
    let is_set = secret.is_some_and(|secret| !secret.is_null() && secret != "");
    if !is_set || !registries.is_empty() {
        return Ok(());
    }
    let problem = "no registry may get it; name the registries with images.pull_secret_registries in the configuration of the service, or \
                   set instance_info.image_pull_secret";
    let field = format!("driver_info.{PULL_SECRET}");
    Err(RequestRefused::Field { field, problem: problem.to_owned() })
}

/// Returns the image in an OCI registry that `node` is to be installed with, `None` if its image is elsewhere, or the field that is wrong.
///
/// A checksum has to be well-formed, and is otherwise ignored, as in Ironic: the registry's digests tell the checksum, and a reference with
/// a digest fixes it.
pub fn oci_image(node: &Node) -> Result<Option<OciImage>, RequestRefused> {
    let field = "image_source";
    let Some(source) = text(node, field)?.filter(|source| source.starts_with(OCI_SCHEME)) else {
        return Ok(None);
    };
    let reference = OciReference::parse(source).map_err(|problem| refuse(field, problem))?;
    checksum(node)?;
    let architecture = node.properties.get("cpu_arch").and_then(Value::as_str);
    Ok(Some(OciImage {
        reference,
        secret: text(node, PULL_SECRET)?.map(|it| PullSecret::parse("instance_info", it)),
        ca: image_ca(node)?,
        format: disk_format(node)?,
        architecture: architecture.filter(|name| !name.is_empty()).map(str::to_owned),
    }))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::{Driver, NodeUuid, check_deploy};

    fn node(info: Value) -> Node {
        let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        node.instance_info = info.as_object().expect("an object").clone();
        node
    }

    #[test]
    fn a_reference_alone_is_enough_to_deploy() {
        let mut machine = node(json!({"image_source": "oci://registry.example:5000/debian:12"}));
        assert_eq!(check_deploy(&machine), Ok(()));
        let image = oci_image(&machine).unwrap().unwrap();
        let OciImage { reference, secret, ca, format, architecture } = image;
        assert_eq!(reference.to_string(), "oci://registry.example:5000/debian:12");
        assert_eq!((secret, ca, format, architecture), (None, None, None, None));

        machine.properties.insert("cpu_arch".to_owned(), json!("x86_64"));
        let more = json!({
            "image_source": "oci://h/debian", "image_pull_secret": "ann:sesame", "image_disk_format": "qcow2",
            "image_ca": "-----BEGIN CERTIFICATE-----", "image_checksum": "A".repeat(64),
        });
        machine.instance_info = more.as_object().unwrap().clone();
        assert_eq!(check_deploy(&machine), Ok(()));
        let image = oci_image(&machine).unwrap().unwrap();
        assert_eq!(image.secret.as_ref().map(|it| &*it.user), Some("ann"));
        assert_eq!(image.format, Some(DiskFormat::Qcow2));
        assert_eq!(image.architecture.as_deref(), Some("x86_64"));
        assert!(!format!("{image:?}").contains("sesame"), "{image:?}");
    }

    #[test]
    fn a_wrong_field_is_refused_with_its_name() {
        let good = "oci://h/debian:12";
        for (info, want) in [
            (json!({"image_source": "oci://h"}), "instance_info.image_source: names no repository"),
            (
                json!({"image_source": "oci:///a:1"}),
                "instance_info.image_source: must name a registry",
            ),
            (
                json!({"image_source": good, "image_pull_secret": ["a"]}),
                "instance_info.image_pull_secret: must be text",
            ),
            (
                json!({"image_source": good, "image_disk_format": "vmdk"}),
                "instance_info.image_disk_format: \"vmdk\" is neither",
            ),
            (json!({"image_source": good, "image_ca": "x"}), "instance_info.image_ca: not a PEM"),
            (
                json!({"image_source": good, "image_os_hash_algo": "sha512", "image_os_hash_value": "0".repeat(64)}),
                "instance_info.image_os_hash_value: the length does not match",
            ),
            (
                json!({"image_source": good, "image_checksum": "0".repeat(32)}),
                "instance_info.image_checksum: has 32 digits",
            ),
            (
                json!({"image_source": good, "configdrive": "http:///drive"}),
                "instance_info.configdrive: the URL names no host",
            ),
        ] {
            let why = check_deploy(&node(info.clone())).unwrap_err().to_string();
            assert!(why.starts_with(want), "{why}: {info}");
        }
    }

    #[test]
    fn the_login_of_the_operator_goes_only_to_registries_that_the_operator_names() {
        let image = |host: &str, own: Option<&str>| {
            let info = json!({
                "image_source": format!("oci://{host}/a:1"), "image_pull_secret": own,
                "image_ca": "-----BEGIN CERTIFICATE-----",
            });
            oci_image(&node(info)).unwrap().unwrap()
        };
        let known: OciRegistry = "Registry.example:5000".to_owned().try_into().unwrap();
        let known = [known];
        let named = image("registry.example:5000", None);
        assert!(named.wants_operators_secret(&known) && !named.wants_operators_secret(&[]));
        assert!(!image("registry.example:5000", Some("own")).wants_operators_secret(&known));
        for other in ["registry.example", "registry.example:443", "evil.example:5000"] {
            assert!(!image(other, None).wants_operators_secret(&known), "{other}");
        }
        let OciImage { secret, ca, .. } = named.with_operators_secret("ann:sesame");
        let secret = secret.unwrap();
        assert_eq!((secret.object, &*secret.user, ca), ("driver_info", "ann", None));
    }

    #[test]
    fn a_login_in_driver_info_that_no_registry_gets_is_refused() {
        let mut machine = node(json!({}));
        let registry: OciRegistry = "registry.example".to_owned().try_into().unwrap();
        for unset in [json!(null), json!("")] {
            machine.driver_info.insert(PULL_SECRET.to_owned(), unset);
            assert_eq!(check_operators_secret(&machine, &[]), Ok(()));
        }
        machine.driver_info.insert(PULL_SECRET.to_owned(), json!("ann:sesame"));
        assert_eq!(check_operators_secret(&machine, &[registry]), Ok(()));
        let why = check_operators_secret(&machine, &[]).unwrap_err().to_string();
        let want = "driver_info.image_pull_secret: no registry may get it; name the registries";
        assert!(why.starts_with(want) && !why.contains("sesame"), "{why}");
    }

    #[test]
    fn other_images_are_not_in_a_registry() {
        for source in [json!("http://h/x.raw"), json!("OCI://h/a:1"), json!(""), json!(null)] {
            assert_eq!(oci_image(&node(json!({"image_source": source}))), Ok(None), "{source}");
        }
        assert!(check_deploy(&node(json!({"image_source": "OCI://h/a:1"}))).is_err());
        assert!(oci_image(&node(json!({"image_source": 5}))).is_err());
    }

    #[test]
    fn a_secret_has_the_forms_of_ironic() {
        let of = |user: &str, password: &str| PullSecret {
            object: "instance_info",
            user: user.to_owned(),
            password: password.to_owned(),
        };
        for (text, want) in [
            ("ann:pass:word", of("ann", "pass:word")),
            (":token", of("", "token")),
            ("YW5uOnBhc3M6d29yZA==", of("ann", "pass:word")),
            // Without a colon inside, base64 is an ordinary secret.
            ("YW5u", of("", "YW5u")),
            ("/w==", of("", "/w==")),
            ("a token", of("", "a token")),
        ] {
            assert_eq!(PullSecret::parse("instance_info", text), want, "{text}");
        }
        assert_eq!(format!("{:?}", of("ann", "pass")), "PullSecret(…)");
    }
}
