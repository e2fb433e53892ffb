//! What clients write to ask for a machine, and for something to be done to one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster_core::{InvalidName, Name};
use jiff::Timestamp;
use lease::{Length, MailAddress};
use openstack_api::ApiError;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::lenient::{count, flag, text};

/// The most that Nova takes of user-data, as base64 (its schema `servers.user_data`).
const LARGEST_USER_DATA: usize = 65535;

/// The most keys that may log in, and how long each is at most: 16 KiB hold an RSA key of 16384 bits with its comment.
const MOST_KEYS: usize = 16;
const LONGEST_KEY: usize = 16 << 10;

/// What clients write to ask for a machine. What is null or missing is as the service is configured.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewMachine {
    /// A DNS label: small letters, digits and dashes. One is made up, unless given.
    #[serde(default, deserialize_with = "text")]
    pub(super) name: Option<String>,
    /// Id or name: see `/bedplate/v1/images`.
    pub(super) image: String,
    /// Id or name.
    pub(super) flavor: String,
    /// Public keys that may log in, as in `authorized_keys`.
    #[serde(default)]
    pub(super) ssh_keys: Vec<String>,
    /// The size of a volume that it boots from, in GiB; without it, it boots from the disk of its flavor.
    #[serde(default, deserialize_with = "count")]
    pub(super) root_volume_gib: Option<u32>,
    /// Id or name.
    #[serde(default, deserialize_with = "text")]
    pub(super) network: Option<String>,
    /// Whether it has an address that is reached from outside.
    #[serde(default, deserialize_with = "flag")]
    pub(super) floating_ip_enabled: Option<bool>,
    #[serde(default, deserialize_with = "text")]
    pub(super) availability_zone: Option<String>,
    /// What its system is told at its first boot, as base64: 65535 letters at most. Nothing in it is replaced.
    #[serde(default)]
    pub(super) user_data: Option<String>,
    /// For how long: 14d, 36h, 1d12h.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub(super) lease: Option<Length>,
    /// A mail address that is told of its end.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub(super) notify: Option<MailAddress>,
}

impl NewMachine {
    /// Its name; one made of `id`, where nobody gave one.
    pub(super) fn name(&self, id: &str) -> Result<Name, ApiError> {
        let made_up = || format!("vm-{}", id.get(..8).unwrap_or(id));
        let name = self.name.clone().unwrap_or_else(made_up);
        if name == "idle" {
            // Its path is that of the report.
            return Err(ApiError::bad_field("name", "no machine can be called idle"));
        }
        label("name", &name)
    }

    /// Its keys, each on a line of its own.
    pub(super) fn keys(&self) -> Result<Vec<String>, ApiError> {
        let wrong = |why: &str| ApiError::bad_field("ssh_keys", why);
        if self.ssh_keys.len() > MOST_KEYS {
            return Err(wrong(&format!("there may be {MOST_KEYS} at most")));
        }
        self.ssh_keys.iter().map(|key| public_key(key).map_err(wrong)).collect()
    }

    /// The bytes that its system is told.
    pub(super) fn user_data(&self) -> Result<Option<Vec<u8>>, ApiError> {
        let wrong = |why: String| ApiError::bad_field("user_data", why);
        let Some(given) = self.user_data.as_deref().filter(|it| !it.is_empty()) else {
            return Ok(None);
        };
        if given.len() > LARGEST_USER_DATA {
            let why = format!(
                "it has {} letters, and Nova takes {LARGEST_USER_DATA}: have it fetch the rest",
                given.len()
            );
            return Err(wrong(why));
        }
        let bytes = STANDARD.decode(given);
        bytes.map(Some).map_err(|why| wrong(format!("it is not base64: {why}")))
    }
}

/// A name that is a DNS label.
pub(super) fn label(field: &str, given: &str) -> Result<Name, ApiError> {
    let want = "it must be a DNS label: a small letter, then small letters, digits and dashes, 63 at most, and no dash at the end";
    let wrong = || ApiError::bad_field(field, want);
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let fits = (1..=63).contains(&given.len()) && given.chars().all(is_letter);
    if !fits || !given.starts_with(|c: char| c.is_ascii_lowercase()) || given.ends_with('-') {
        return Err(wrong());
    }
    // What looks like an id is not a name.
    given.parse().map_err(|_: InvalidName| wrong())
}

/// A public key as `ssh-keygen` writes it, on one line.
fn public_key(given: &str) -> Result<String, &'static str> {
    let key = given.trim();
    let is_one_line = !key.chars().any(char::is_control);
    let mut words = key.split_ascii_whitespace();
    let (kind, bytes) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let kinds = ["ssh-ed25519", "ssh-rsa", "ecdsa-sha2-", "sk-ssh-ed25519@", "sk-ecdsa-sha2-"];
    let is_known = kinds.iter().any(|known| kind.starts_with(known));
    // Options before the kind (`command=`, `from=`) are not for whoever asks for a machine to write: its own keys need none.
    let is_key = STANDARD.decode(bytes).is_ok_and(|bytes| {
        let told = bytes.get(4..4 + kind.len());
        told == Some(kind.as_bytes())
    });
    if key.len() > LONGEST_KEY || !is_one_line || !is_known || !is_key {
        return Err(
            "each must be a public key of one line, as ssh-keygen writes it: ssh-ed25519 AAAA… comment",
        );
    }
    Ok(key.to_owned())
}

/// What is to be done to a machine.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, tag = "action", rename_all = "lowercase")]
pub(super) enum Action {
    /// Switch it on.
    Start {},
    /// Shut it down.
    Stop {},
    /// Have it reboot.
    Reboot {
        /// Whether it is switched off and on, without asking its system.
        #[serde(default)]
        hard: bool,
    },
    /// Give it another flavor.
    Resize {
        /// Id or name.
        flavor: String,
    },
}

/// What is to be kept of a machine.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewSnapshot {
    /// A DNS label; made up, unless given.
    #[serde(default, deserialize_with = "text")]
    pub(super) name: Option<String>,
}

/// Until when a machine is to be lent: as long as by default, where nothing is said.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Extension {
    /// For how long from now: 14d, 36h, 1d12h.
    #[serde(default, rename = "for")]
    #[schema(value_type = Option<String>)]
    pub(super) length: Option<Length>,
    /// Until when.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub(super) until: Option<Timestamp>,
}

/// Which console is to be shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ConsoleKind {
    /// Its screen, in a browser.
    #[default]
    Novnc,
    /// Its serial line, by a WebSocket.
    Serial,
}

/// What is asked to see a console.
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
            assert!(why.starts_with("name: it must be a DNS label"), "{why}");
        }
    }

    #[test]
    fn a_key_is_one_line_without_options() {
        let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFAgUCBQIFAgUCBQIFAgUCBQIFAgUCBQIFAgUCBQIFAg alice@lab";
        assert_eq!(public_key(&format!("{key}\n")).as_deref(), Ok(key));
        let two = format!("{key}\n{key}");
        let options = format!("command=\"x\" {key}");
        // Its bytes say another kind than its first word.
        let lies = key.replacen("ssh-ed25519", "ssh-rsa", 1);
        for bad in ["", "ssh-ed25519", "ssh-ed25519 !", &two, &options, &lies] {
            assert!(public_key(bad).is_err(), "{bad}");
        }
    }

    fn read(text: &str) -> NewMachine {
        serde_json::from_str(text).expect("it can be read")
    }

    #[test]
    fn user_data_is_as_large_as_nova_takes_and_no_larger() {
        let body = |data: &str| {
            read(&format!(r#"{{"image": "i", "flavor": "f", "user_data": "{data}"}}"#))
        };
        assert_eq!(body("e30=").user_data().expect("it is base64"), Some(b"{}".to_vec()));
        assert_eq!(body("").user_data().expect("nothing"), None);
        let why = body("{{ x }}").user_data().expect_err("no base64").message;
        assert!(why.starts_with("user_data: it is not base64"), "{why}");
        assert!(body(&"A".repeat(65532)).user_data().is_ok());
        let why = body(&"A".repeat(65536)).user_data().expect_err("too long").message;
        assert!(why.starts_with("user_data: it has 65536 letters"), "{why}");
    }

    #[test]
    fn what_an_action_does_not_know_is_refused() {
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
