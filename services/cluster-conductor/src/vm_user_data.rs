//! The user-data of a VM: the SSH keys, and the owner's own user-data.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cluster_core::{UserData, UserDataFormat, Vm, VmUuid};
use cluster_store::SealedUserData;
use ring::digest::{SHA256, digest};
use sealing::Keyring;
use serde_json::json;
use zeroize::Zeroizing;

use crate::cluster_secrets::{ClusterSecrets, KeysError};

/// The version of the Ignition specification of the configs.
const IGNITION: &str = "3.3.0";

/// The user who logs in to an image with Ignition.
pub(crate) const IGNITION_USER: &str = "core";

/// Seals the owner's user-data for a VM. Returns the part for the record, and the sealed text.
pub(crate) fn seal(
    keyring: &Keyring,
    vm: VmUuid,
    user_data: &[u8],
) -> Result<(UserData, String), KeysError> {
    let salt = sealing::random()?;
    let hashed = digest(&SHA256, &Zeroizing::new([salt.as_bytes(), user_data].concat()));
    let digest = format!("{}:{}", salt.as_str(), hex::encode(hashed.as_ref()));
    let noted = UserData { digest, is_kept: true };
    Ok((noted, keyring.seal(&SealedUserData::place_of(vm), user_data)?))
}

/// Returns the user-data of a VM's server; `None` when there is none.
pub(crate) async fn user_data(
    secrets: &ClusterSecrets,
    vm: &Vm,
) -> Result<Option<Vec<u8>>, KeysError> {
    let place = SealedUserData::place_of(vm.id);
    let sealed = secrets.store.sealed_user_data(vm.id).await?;
    let own = sealed.map(|sealed| secrets.keyring.open_sealed(&place, &sealed)).transpose()?;
    Ok(compose(vm.image.user_data_format, &vm.ssh_keys, own.as_deref()))
}

/// Combines the SSH keys and the owner's user-data in the format that the image reads.
fn compose(format: UserDataFormat, ssh_keys: &[String], own: Option<&[u8]>) -> Option<Vec<u8>> {
    match (ssh_keys.is_empty(), own, format) {
        (true, own, _) => own.map(<[u8]>::to_vec),
        (false, None, UserDataFormat::CloudInit) => Some(cloud_config(ssh_keys).into_bytes()),
        (false, Some(own), UserDataFormat::CloudInit) => Some(parts(&cloud_config(ssh_keys), own)),
        (false, own, UserDataFormat::Ignition) => Some(ignition_config(ssh_keys, own)),
    }
}

/// The keys are written as JSON, which is YAML: a key can never be read as anything but a string.
fn cloud_config(ssh_keys: &[String]) -> String {
    format!("#cloud-config\n{}\n", json!({ "ssh_authorized_keys": ssh_keys }))
}

/// Writes a MIME multi-part archive; cloud-init detects the format of each part.
fn parts(keys: &str, own: &[u8]) -> Vec<u8> {
    // No line of base64 starts with this text.
    const BOUNDARY: &str = "==bedplate==";
    let mut whole =
        format!("Content-Type: multipart/mixed; boundary=\"{BOUNDARY}\"\nMIME-Version: 1.0\n\n");
    for (kind, part) in [("text/cloud-config", keys.as_bytes()), ("text/plain", own)] {
        whole.push_str(&format!(
            "--{BOUNDARY}\nContent-Type: {kind}\nContent-Transfer-Encoding: base64\n\n{}\n",
            STANDARD.encode(part)
        ));
    }
    whole.push_str(&format!("--{BOUNDARY}--\n"));
    whole.into_bytes()
}

/// Writes an Ignition config that merges the owner's config.
pub(crate) fn ignition_config(ssh_keys: &[String], own: Option<&[u8]>) -> Vec<u8> {
    let user = json!({ "name": IGNITION_USER, "sshAuthorizedKeys": ssh_keys });
    let mut config = json!({ "ignition": { "version": IGNITION }, "passwd": { "users": [user] } });
    if let Some(own) = own {
        let source = format!("data:;base64,{}", STANDARD.encode(own));
        config["ignition"]["config"] = json!({ "merge": [{ "source": source }] });
    }
    config.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(format: UserDataFormat, keys: &[&str], own: Option<&str>) -> Option<String> {
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        let composed = compose(format, &keys, own.map(str::as_bytes))?;
        Some(String::from_utf8(composed).unwrap_or_else(|_| panic!("no text")))
    }

    #[test]
    fn without_keys_the_user_data_of_the_owner_is_passed_unchanged() {
        assert_eq!(text(UserDataFormat::CloudInit, &[], None), None);
        assert_eq!(text(UserDataFormat::Ignition, &[], Some("own")).as_deref(), Some("own"));
    }

    #[test]
    fn ssh_keys_cannot_inject_other_settings() {
        let user_data =
            text(UserDataFormat::CloudInit, &["ssh-ed25519 AAAA me\nruncmd: [reboot]"], None);
        let user_data = user_data.unwrap_or_default();
        assert_eq!(user_data.lines().count(), 2, "{user_data}");
        assert!(
            user_data
                .starts_with("#cloud-config\n{\"ssh_authorized_keys\":[\"ssh-ed25519 AAAA me\\n")
        );
    }

    #[test]
    fn keys_and_user_data_are_combined_in_both_formats() {
        let user_data =
            text(UserDataFormat::CloudInit, &["k"], Some("#!/bin/sh\n")).unwrap_or_default();
        assert_eq!(user_data.matches("\n--==bedplate==\n").count(), 2, "{user_data}");
        assert!(
            user_data.contains(&STANDARD.encode("#!/bin/sh\n"))
                && user_data.ends_with("--==bedplate==--\n")
        );
        let user_data = text(UserDataFormat::Ignition, &["k"], Some("{}")).unwrap_or_default();
        let read: serde_json::Value = serde_json::from_str(&user_data).unwrap_or_default();
        assert_eq!(read["passwd"]["users"][0]["sshAuthorizedKeys"][0], "k");
        assert_eq!(read["ignition"]["config"]["merge"][0]["source"], "data:;base64,e30=");
    }
}
