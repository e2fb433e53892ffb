//! Parses the container that a node is to be installed with by the deploy interface `bootc` (ironic, `BootcAgentDeploy`).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::fast_track::flag;
use crate::instance::{refuse, text};
use crate::{Node, OciReference, RequestRefused, oci_image};

/// Lines of the file `authorized_keys` of root.
const AUTHORIZED_KEYS: &str = "bootc_authorized_keys";
/// Whether the root file system is encrypted, with a key in the machine's TPM.
const TPM2_LUKS: &str = "bootc_tpm2_luks";

/// A container whose program `bootc` installs it to the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootableContainer {
    pub reference: OciReference,
    /// The login at the registry, as the agent gets it.
    pub secret: Option<String>,
    /// The fields of `instance_info` that the agent reads.
    pub settings: Map<String, Value>,
}

/// Returns the container that `node` is to be installed with, or the field that is missing or wrong.
///
/// The login is only that of the instance: the container runs on the machine with all rights, and could read the login.
pub fn bootable_container(node: &Node) -> Result<BootableContainer, RequestRefused> {
    let image = oci_image(node)?.ok_or_else(|| {
        refuse("image_source", "missing; set it to the oci:// reference of a container".to_owned())
    })?;
    if image.ca.is_some() {
        let problem = "the deploy interface bootc passes no CA to the ramdisk".to_owned();
        return Err(refuse("image_ca", problem));
    }
    let mut settings = Map::new();
    if let Some(keys) = text(node, AUTHORIZED_KEYS)? {
        settings.insert(AUTHORIZED_KEYS.to_owned(), keys.into());
    }
    if let Some(value) = node.instance_info.get(TPM2_LUKS).filter(|value| !value.is_null()) {
        let wanted =
            flag(value).ok_or_else(|| refuse(TPM2_LUKS, "must be true or false".to_owned()))?;
        settings.insert(TPM2_LUKS.to_owned(), wanted.into());
    }
    // The agent puts this text into the file of logins of podman, where it is USER:PASSWORD in base64.
    let login = |user: &str, password: &str| STANDARD.encode(format!("{user}:{password}"));
    let secret = image.secret.map(|it| STANDARD.encode(login(&it.user, &it.password)));
    Ok(BootableContainer { reference: image.reference, secret, settings })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{DeployInterface, check_deploy, node_with_image};

    fn node(info: Value) -> Node {
        let mut node = node_with_image(info.as_object().unwrap());
        node.interfaces.deploy = Some(DeployInterface::Bootc);
        node
    }

    #[test]
    fn a_container_has_the_login_and_the_settings_of_its_instance() {
        let least = bootable_container(&node(json!({"image_source": "oci://h/os:1"}))).unwrap();
        assert_eq!((least.secret, least.settings.len()), (None, 0));

        let machine = node(json!({
            "image_source": "oci://h/os:1", "image_pull_secret": "ann:sesame", "bootc_authorized_keys": "ssh-ed25519 A",
            "bootc_tpm2_luks": "False", "root_device": {"name": "sda"},
        }));
        assert_eq!(check_deploy(&machine), Ok(()));
        let all = bootable_container(&machine).unwrap();
        assert_eq!(all.reference.to_string(), "oci://h/os:1");
        let twice = STANDARD.decode(all.secret.unwrap()).unwrap();
        assert_eq!(STANDARD.decode(twice).unwrap(), b"ann:sesame");
        // Any text is true for the agent, also "False".
        let want = json!({"bootc_authorized_keys": "ssh-ed25519 A", "bootc_tpm2_luks": false});
        assert_eq!(Value::Object(all.settings), want);
    }

    #[test]
    fn a_wrong_field_is_refused_with_its_name() {
        let pem = "-----BEGIN CERTIFICATE-----";
        for (info, want) in [
            (json!({}), "image_source: missing; set it to the oci:// reference of a container"),
            (
                json!({"image_source": "http://h/os.raw"}),
                "image_source: missing; set it to the oci:// reference of a container",
            ),
            (json!({"image_source": "oci://h"}), "image_source: names no repository"),
            (
                json!({"image_source": "oci://h/os", "image_ca": pem}),
                "image_ca: the deploy interface bootc passes no CA to the ramdisk",
            ),
            (
                json!({"image_source": "oci://h/os", "bootc_authorized_keys": ["a"]}),
                "bootc_authorized_keys: must be text",
            ),
            (
                json!({"image_source": "oci://h/os", "bootc_tpm2_luks": "maybe"}),
                "bootc_tpm2_luks: must be true or false",
            ),
            (
                json!({"image_source": "oci://h/os", "configdrive": "http:///drive"}),
                "configdrive: the URL names no host",
            ),
            (
                json!({"image_source": "oci://h/os", "root_device": {"colour": "red"}}),
                "root_device: the root device hint \"colour\" names no property of a disk",
            ),
        ] {
            let why = check_deploy(&node(info.clone())).unwrap_err().to_string();
            assert!(why.starts_with(&format!("instance_info.{want}")), "{why}: {info}");
        }
    }
}
