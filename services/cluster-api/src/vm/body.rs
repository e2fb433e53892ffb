//! The bodies of requests about VMs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster_core::{InvalidName, Name};
use jiff::Timestamp;
use lease::{Length, MailAddress, Terms};
use openstack_api::ApiError;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::lenient::{count, flag, text};

/// Nova's limit for user data (its schema `servers.user_data`), in characters of base64.
const LARGEST_USER_DATA: usize = 65535;

/// The maximum number of SSH keys, and the maximum length of each: 16 KiB hold an RSA key of 16384 bits with its comment.
const MOST_KEYS: usize = 16;
const LONGEST_KEY: usize = 16 << 10;

/// The body of a request for a VM. A field that is null or missing has the configured value.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewVm {
    /// A DNS label: lower-case letters, digits and dashes; made from the id if missing.
    #[serde(default, deserialize_with = "text")]
    pub(super) name: Option<String>,
    /// Id or name: see `/bedplate/v1/images`.
    pub(super) image: String,
    /// The flavor's id or name.
    pub(super) flavor: String,
    /// SSH public keys that may log in, as in `authorized_keys`.
    #[serde(default)]
    pub(super) ssh_keys: Vec<String>,
    /// The size of a boot volume in GiB. Without it the VM boots from the disk of its flavor.
    #[serde(default, deserialize_with = "count")]
    pub(super) root_volume_gib: Option<u32>,
    /// The network's id or name.
    #[serde(default, deserialize_with = "text")]
    pub(super) network: Option<String>,
    /// Whether the VM gets a floating IP.
    #[serde(default, deserialize_with = "flag")]
    pub(super) floating_ip_enabled: Option<bool>,
    #[serde(default, deserialize_with = "text")]
    pub(super) availability_zone: Option<String>,
    /// User data for the first boot, at most 65535 characters of base64. The service changes nothing in it.
    #[serde(default)]
    pub(super) user_data: Option<String>,
    /// The lease duration: 14d, 36h, 1d12h.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub(super) lease: Option<Length>,
    /// A mail address that gets the notices about the end of the lease.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub(super) notify: Option<MailAddress>,
}

impl NewVm {
    /// The name in the request, or a name made from `id`.
    pub(super) fn name(&self, id: &str) -> Result<Name, ApiError> {
        let made_up = || format!("vm-{}", id.get(..8).unwrap_or(id));
        let name = self.name.clone().unwrap_or_else(made_up);
        if name == "idle" {
            // `/bedplate/v1/machines/idle` is the path of a report.
            return Err(ApiError::bad_field("name", "must not be idle, which is a reserved name"));
        }
        label("name", &name)
    }

    /// The SSH keys, each checked and on a line of its own.
    pub(super) fn keys(&self) -> Result<Vec<String>, ApiError> {
        let wrong = |why: &str| ApiError::bad_field("ssh_keys", why);
        if self.ssh_keys.len() > MOST_KEYS {
            return Err(wrong(&format!("at most {MOST_KEYS} keys are permitted")));
        }
        self.ssh_keys.iter().map(|key| public_key(key).map_err(wrong)).collect()
    }

    pub(super) fn user_data(&self) -> Result<Option<Vec<u8>>, ApiError> {
        let wrong = |why: String| ApiError::bad_field("user_data", why);
        let Some(given) = self.user_data.as_deref().filter(|it| !it.is_empty()) else {
            return Ok(None);
        };
        if given.len() > LARGEST_USER_DATA {
            let why = format!(
                "has {} bytes, and Nova accepts {LARGEST_USER_DATA}: let the VM download the rest",
                given.len()
            );
            return Err(wrong(why));
        }
        let bytes = STANDARD.decode(given);
        bytes.map(Some).map_err(|why| wrong(format!("is not valid base64: {why}")))
    }
}

/// Parses a name that has to be a DNS label.
pub(super) fn label(field: &str, given: &str) -> Result<Name, ApiError> {
    let want = "must be a DNS label: at most 63 lower-case letters, digits and dashes, beginning with a letter and not ending with a dash";
    let wrong = || ApiError::bad_field(field, want);
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let fits = (1..=63).contains(&given.len()) && given.chars().all(is_letter);
    if !fits || !given.starts_with(|c: char| c.is_ascii_lowercase()) || given.ends_with('-') {
        return Err(wrong());
    }
    // `Name` refuses a text that looks like an id.
    given.parse().map_err(|_: InvalidName| wrong())
}

/// Checks a public key in the format of `ssh-keygen`, on one line.
fn public_key(given: &str) -> Result<String, &'static str> {
    let key = given.trim();
    let is_one_line = !key.chars().any(char::is_control);
    let mut words = key.split_ascii_whitespace();
    let (kind, bytes) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let kinds = ["ssh-ed25519", "ssh-rsa", "ecdsa-sha2-", "sk-ssh-ed25519@", "sk-ecdsa-sha2-"];
    let is_known = kinds.iter().any(|known| kind.starts_with(known));
    // Options before the kind (`command=`, `from=`) are refused: the key is for its owner's VM, which needs none.
    let is_key = STANDARD.decode(bytes).is_ok_and(|bytes| {
        let reported = bytes.get(4..4 + kind.len());
        reported == Some(kind.as_bytes())
    });
    if key.len() > LONGEST_KEY || !is_one_line || !is_known || !is_key {
        return Err(
            "each key must be a public key on one line, as ssh-keygen writes it: ssh-ed25519 AAAA… comment",
        );
    }
    Ok(key.to_owned())
}

/// An action on a VM.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, tag = "action", rename_all = "lowercase")]
pub(super) enum Action {
    /// Switches the VM on.
    Start {},
    /// Shuts the VM down.
    Stop {},
    /// Reboots the VM.
    Reboot {
        /// Whether the VM is switched off and on without a clean shutdown.
        #[serde(default)]
        hard: bool,
    },
    /// Changes the flavor.
    Resize {
        /// The flavor's id or name.
        flavor: String,
    },
}

/// The body of a request for a snapshot.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewSnapshot {
    /// A DNS label; made from the VM's name if missing.
    #[serde(default, deserialize_with = "text")]
    pub(super) name: Option<String>,
}

/// The body that extends a lease: the default duration if both fields are missing.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Extension {
    /// The duration from now: 14d, 36h, 1d12h.
    #[serde(default, rename = "for")]
    #[schema(value_type = Option<String>)]
    pub(super) length: Option<Length>,
    /// The end of the lease.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub(super) until: Option<Timestamp>,
}

impl Extension {
    /// The requested end of the lease. A duration counts from `now`.
    pub(super) fn until(&self, terms: Terms, now: Timestamp) -> Result<Timestamp, ApiError> {
        let granted = match (self.until, self.length) {
            (Some(_), Some(_)) => {
                return Err(ApiError::bad_field("until", "set either for or until, not both"));
            }
            (Some(until), None) => Some(until),
            (None, length) => {
                let granted = terms.grant(length, now);
                let granted = granted.map_err(|why| ApiError::bad_field("for", why))?;
                granted.map(|lease| lease.until)
            }
        };
        let why = "is required: leases have no default duration";
        granted.ok_or_else(|| ApiError::bad_field("for", why))
    }
}

/// The kind of a console.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ConsoleKind {
    /// The screen, in a browser.
    #[default]
    Novnc,
    /// The serial port, over a WebSocket.
    Serial,
}

/// The body of a request for a console.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ConsoleAsked {
    #[serde(default)]
    #[schema(inline)]
    pub(super) kind: ConsoleKind,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_dns_label() {
        for good in ["a", "lab-1", "web"] {
            assert!(label("name", good).is_ok(), "{good}");
        }
        let long = "a".repeat(64);
        for bad in ["", "-a", "a-", "1a", "A", "a.b", "a_b", "a b", "ä", &long] {
            let why = label("name", bad).expect_err(bad).message;
            assert!(why.starts_with("name: must be a DNS label"), "{why}");
        }
    }

    #[test]
    fn a_key_is_one_line_without_options() {
        let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFAgUCBQIFAgUCBQIFAgUCBQIFAgUCBQIFAgUCBQIFAg alice@lab";
        assert_eq!(public_key(&format!("{key}\n")).as_deref(), Ok(key));
        let two = format!("{key}\n{key}");
        let options = format!("command=\"x\" {key}");
        // The bytes of the key name another kind than its first word.
        let lies = key.replacen("ssh-ed25519", "ssh-rsa", 1);
        for bad in ["", "ssh-ed25519", "ssh-ed25519 !", &two, &options, &lies] {
            assert!(public_key(bad).is_err(), "{bad}");
        }
    }

    fn read(text: &str) -> NewVm {
        serde_json::from_str(text).expect("it can be read")
    }

    #[test]
    fn user_data_larger_than_nova_takes_is_refused() {
        let body = |data: &str| {
            read(&format!(r#"{{"image": "i", "flavor": "f", "user_data": "{data}"}}"#))
        };
        assert_eq!(body("e30=").user_data().expect("it is base64"), Some(b"{}".to_vec()));
        assert_eq!(body("").user_data().expect("nothing"), None);
        let why = body("{{ x }}").user_data().expect_err("no base64").message;
        assert!(why.starts_with("user_data: is not valid base64"), "{why}");
        assert!(body(&"A".repeat(65532)).user_data().is_ok());
        let why = body(&"A".repeat(65536)).user_data().expect_err("too long").message;
        assert!(why.starts_with("user_data: has 65536 bytes"), "{why}");
    }

    #[test]
    fn an_action_with_an_unknown_field_is_refused() {
        let read = |text: &str| serde_json::from_str::<Action>(text).map_err(|why| why.to_string());
        assert!(matches!(read(r#"{"action": "reboot"}"#), Ok(Action::Reboot { hard: false })));
        for bad in [
            r#"{"action": "start", "hard": true}"#,
            r#"{"action": "resize"}"#,
            r#"{"action": "fly"}"#,
            r#"{"action": "reboot", "hard": "yes"}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
