//! The request body of a reservation.

use baremetal_core::{Allocation, AllocationUuid, NodeName, Reservation, Trait};
use jiff::Timestamp;
use lease::{Lease, Length, MailAddress, Terms};
use openstack_api::ApiError;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

/// The most SSH keys, and the longest of them in bytes.
const MOST_KEYS: usize = 32;
const LONGEST_KEY: usize = 16 << 10;
/// The longest user data in bytes, as in Nova.
const LONGEST_USER_DATA: usize = 64 << 10;
/// The most traits that a node can have.
const MOST_TRAITS: usize = 50;

/// The body of `POST /bedplate/v1/reservations`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReservationBody {
    /// The name of the reservation, which also becomes the host name of the machine.
    #[serde(default)]
    name: Option<String>,
    /// The resource class of the node.
    resource_class: String,
    /// Traits that the node must have.
    #[serde(default)]
    #[schema(value_type = Vec<String>, example = json!(["CUSTOM_GPU"]))]
    traits: Vec<Trait>,
    /// The image to install.
    #[schema(inline)]
    image: WholeDisk,
    /// SSH public keys that may log in, in the format of `authorized_keys`.
    #[serde(default)]
    ssh_keys: Vec<String>,
    /// User data for the first boot, for cloud-init or Ignition.
    #[serde(default)]
    user_data: Option<String>,
    /// The length of the lease, such as `7d` or `36h`.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    lease: Option<Length>,
    /// A mail address that is notified before the lease ends.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub(super) notify: Option<MailAddress>,
}

/// An image of a whole disk.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WholeDisk {
    /// The image, as in `image_source` of a node: an `http` or `https` URL, the id of an image in Glance, or `oci://HOST/REPOSITORY:TAG`.
    url: String,
    /// `sha256:HEX` or `sha512:HEX` of the file at the URL, or the URL of a file of checksums. An image in Glance or in an OCI registry needs
    /// none.
    #[serde(default)]
    checksum: Option<String>,
    /// `raw` or `qcow2`; by default taken from the extension of the URL.
    #[serde(default)]
    format: Option<String>,
    /// The login at an OCI registry, which is never shown.
    #[serde(default)]
    pull_secret: Option<String>,
    /// The PEM certificate of a CA of the image's server, trusted in addition.
    #[serde(default)]
    ca: Option<String>,
}

impl ReservationBody {
    /// The criteria for the node, of a reservation for this project and user.
    pub(super) fn allocation(
        &self,
        id: AllocationUuid,
        project: Option<&str>,
        user: Option<&str>,
        now: Timestamp,
    ) -> Result<Allocation, ApiError> {
        let name = self.name.clone().map(NodeName::try_from).transpose();
        let user = user.map(str::to_owned);
        Ok(Allocation {
            name: name.map_err(|why| ApiError::bad_field("name", why))?,
            resource_class: Some(self.resource_class.clone()),
            traits: self.traits.iter().cloned().map(String::from).collect(),
            owner: project.map(str::to_owned),
            reservation: Some(Reservation { user, image: self.image.url.clone() }),
            ..Allocation::new(id, now)
        })
    }

    /// The lease that the request asks for. A reservation always has an end.
    pub(super) fn granted_lease(&self, terms: Terms, now: Timestamp) -> Result<Lease, ApiError> {
        let lease = terms.grant(self.lease, now);
        let lease = lease.map_err(|why| ApiError::bad_field("lease", why))?;
        let missing = || ApiError::bad_field("lease", "is required: no default is configured");
        lease.ok_or_else(missing)
    }

    /// The image and the config drive as an `instance_info`.
    pub(super) fn instance_info(&self, id: AllocationUuid) -> Result<Map<String, Value>, ApiError> {
        if self.resource_class.is_empty() || self.resource_class.len() > 80 {
            return Err(ApiError::bad_field("resource_class", "must have 1 to 80 bytes"));
        }
        if self.traits.len() > MOST_TRAITS {
            let problem = format!("at most {MOST_TRAITS} are allowed");
            return Err(ApiError::bad_field("traits", problem));
        }
        let mut info = self.image.instance_info()?;
        info.insert("configdrive".to_owned(), self.config_drive(id)?);
        Ok(info)
    }

    /// A config drive in the format of OpenStack's metadata service: `meta_data.json` and `user_data`.
    fn config_drive(&self, id: AllocationUuid) -> Result<Value, ApiError> {
        if self.ssh_keys.is_empty() && self.user_data.is_none() {
            let problem =
                "at least one key or user_data is required, otherwise nobody could log in";
            return Err(ApiError::bad_field("ssh_keys", problem));
        }
        if self.ssh_keys.len() > MOST_KEYS {
            return Err(ApiError::bad_field(
                "ssh_keys",
                format!("at most {MOST_KEYS} are allowed"),
            ));
        }
        if self.user_data.as_ref().is_some_and(|data| data.len() > LONGEST_USER_DATA) {
            let problem = format!("is longer than {LONGEST_USER_DATA} bytes");
            return Err(ApiError::bad_field("user_data", problem));
        }
        let mut keys = Map::new();
        for (at, key) in self.ssh_keys.iter().enumerate() {
            let key = key.trim();
            if !is_public_key(key) {
                let field = format!("ssh_keys[{at}]");
                let problem = "must be an SSH public key on one line, as in authorized_keys";
                return Err(ApiError::bad_field(&field, problem));
            }
            keys.insert(format!("key-{}", at + 1), json!(key));
        }
        let hostname = self.name.clone().unwrap_or_else(|| format!("node-{id}"));
        let meta = json!({
            "uuid": id, "name": hostname, "hostname": hostname, "public_keys": keys,
        });
        let mut drive = json!({"meta_data": meta});
        if let Some(data) = &self.user_data {
            drive["user_data"] = json!(data);
        }
        Ok(drive)
    }
}

impl WholeDisk {
    /// The image as an `instance_info`. The core checks the values, as it checks those of a node.
    fn instance_info(&self) -> Result<Map<String, Value>, ApiError> {
        let WholeDisk { url, checksum, format, pull_secret, ca } = self;
        for (field, url) in [("image.url", Some(url)), ("image.checksum", checksum.as_ref())] {
            if url.is_some_and(|url| has_user(url)) {
                let problem = "must not contain a user name or password: everybody who can see the reservation could read them";
                return Err(ApiError::bad_field(field, problem));
            }
        }
        let (algorithm, sum) = match checksum.as_deref() {
            None => (None, None),
            Some(file) if file.contains("://") => (None, Some(file)),
            Some(sum) => {
                let form = "must be sha256:HEX, sha512:HEX or the URL of a file of checksums";
                let parts = sum.split_once(':');
                let parts = parts.ok_or_else(|| ApiError::bad_field("image.checksum", form))?;
                (Some(parts.0), Some(parts.1))
            }
        };
        let given = [
            ("image_source", Some(url.as_str())),
            ("image_os_hash_algo", algorithm),
            ("image_os_hash_value", sum),
            ("image_disk_format", format.as_deref()),
            ("image_pull_secret", pull_secret.as_deref()),
            ("image_ca", ca.as_deref()),
        ];
        let given = given.into_iter().filter_map(|(key, it)| Some((key.to_owned(), json!(it?))));
        Ok(given.collect())
    }
}

/// Whether a URL contains user information (RFC 3986 §3.2.1).
fn has_user(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@'))
}

/// Whether the text is a line of `authorized_keys` without options.
fn is_public_key(key: &str) -> bool {
    let kinds = ["ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-"];
    let mut words = key.split(' ');
    let kind = words.next().is_some_and(|word| kinds.iter().any(|kind| word.starts_with(kind)));
    let base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    let body = words.next().is_some_and(|word| word.len() > 16 && word.bytes().all(base64));
    kind && body && key.len() <= LONGEST_KEY && !key.chars().any(char::is_control)
}

/// Translates a mistake in `instance_info` to the field of the reservation that caused it.
pub(super) fn to_reservation_field(why: &str) -> ApiError {
    let fields = [
        ("instance_info.image_source", "image.url"),
        ("instance_info.image_os_hash_algo", "image.checksum"),
        ("instance_info.image_os_hash_value", "image.checksum"),
        ("instance_info.image_disk_format", "image.format"),
        ("instance_info.image_pull_secret", "image.pull_secret"),
        ("instance_info.image_ca", "image.ca"),
    ];
    let said = fields.into_iter().find_map(|(theirs, ours)| {
        why.strip_prefix(theirs).map(|problem| format!("{ours}{problem}"))
    });
    ApiError::bad_request(said.unwrap_or_else(|| why.to_owned()))
}
