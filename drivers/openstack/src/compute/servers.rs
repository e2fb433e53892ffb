//! Servers: create, find, show, delete.

use std::collections::BTreeMap;
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{MICROVERSION, SERVICE};
use crate::body::without_nulls;
use crate::error::Result;
use crate::lenient;
use crate::session::Session;

/// The largest user data in bytes of base64 (Nova's schema, `servers.user_data`).
pub const LARGEST_USER_DATA: usize = 65535;

lenient::words! {
    /// The status of a server (Compute API guide, "Server concepts").
    ServerStatus {
        Build = "BUILD",
        Active = "ACTIVE",
        Shutoff = "SHUTOFF",
        /// The creation, or a later operation, failed: see the server's fault.
        Error = "ERROR",
        Reboot = "REBOOT",
        HardReboot = "HARD_REBOOT",
        Resize = "RESIZE",
        /// The server has its new size, which must be confirmed or reverted.
        VerifyResize = "VERIFY_RESIZE",
        RevertResize = "REVERT_RESIZE",
        Migrating = "MIGRATING",
        Rebuild = "REBUILD",
        /// The server is halted, and its memory is kept.
        Paused = "PAUSED",
        /// The server's memory is stored on disk.
        Suspended = "SUSPENDED",
        /// The server is stored as an image.
        ShelvedOffloaded = "SHELVED_OFFLOADED",
        /// The server was deleted and can be restored.
        SoftDeleted = "SOFT_DELETED",
        Deleted = "DELETED",
        /// The server's host does not answer.
        Unknown = "UNKNOWN",
    }
}

/// A server in Nova.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Server {
    pub id: String,
    /// Names are not unique.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    pub status: ServerStatus,
    /// The task that Nova is performing, if any.
    #[serde(default, rename = "OS-EXT-STS:task_state")]
    pub task_state: Option<String>,
    /// The last failure.
    #[serde(default)]
    pub fault: Option<Fault>,
    /// Addresses by the name of their network.
    #[serde(default)]
    pub addresses: BTreeMap<String, Vec<Address>>,
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub tags: Vec<String>,
    #[serde(default)]
    pub flavor: ServerFlavor,
    /// The name of the key pair.
    #[serde(default)]
    pub key_name: Option<String>,
    #[serde(default, rename = "OS-EXT-AZ:availability_zone")]
    pub availability_zone: Option<String>,
    /// The host of the server; only administrators see it.
    #[serde(default, rename = "OS-EXT-SRV-ATTR:host")]
    pub host: Option<String>,
    /// The id of the project.
    #[serde(default, rename = "tenant_id")]
    pub project: String,
    #[serde(default, rename = "os-extended-volumes:volumes_attached")]
    pub volumes: Vec<AttachedVolume>,
    /// The time of the request.
    #[serde(default, deserialize_with = "lenient::time")]
    pub created: Option<Timestamp>,
}

/// A failure of a server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Fault {
    /// An HTTP status code.
    #[serde(default)]
    pub code: u16,
    #[serde(default)]
    pub message: String,
}

/// An address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Address {
    pub addr: IpAddr,
    /// `fixed` or `floating`.
    #[serde(default, rename = "OS-EXT-IPS:type")]
    pub kind: Option<String>,
}

/// The size of a server, copied from its flavor at creation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ServerFlavor {
    pub original_name: String,
    pub vcpus: u64,
    /// Size of the memory in MiB.
    pub ram: u64,
    /// Size of the disk in GiB.
    pub disk: u64,
}

/// A volume that is attached to a server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AttachedVolume {
    /// The volume's id in Cinder.
    pub id: String,
}

/// A server to create.
#[derive(Clone, Debug)]
pub struct NewServer {
    /// Derive the name from the server's purpose: the server is found again by its name.
    pub name: String,
    /// At most 60 characters each, without `/` and `,`.
    pub tags: Vec<String>,
    pub flavor_id: String,
    pub boot: Boot,
    /// Empty volumes that are created and deleted with the server, in the order in which the server sees them.
    pub disks: Vec<NewDisk>,
    /// Ids of Neutron ports, in order.
    pub ports: Vec<String>,
    /// User data as bytes; see [`LARGEST_USER_DATA`].
    pub user_data: Option<Vec<u8>>,
    pub config_drive: ConfigDrive,
    /// The name of a key pair.
    pub key_name: Option<String>,
    pub availability_zone: Option<String>,
    /// The id of a server group.
    pub server_group: Option<String>,
    /// Further scheduler hints.
    pub hints: BTreeMap<String, String>,
    pub metadata: BTreeMap<String, String>,
}

/// The boot disk of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Boot {
    /// An image, copied to the flavor's disk.
    Image { id: String },
    /// A volume created from an image, and deleted with the server.
    Volume {
        image_id: String,
        /// Size of the volume in GiB.
        size: u64,
        /// The volume type; `None` is Cinder's default.
        kind: Option<String>,
    },
    /// An existing volume, which stays when the server is deleted.
    ExistingVolume { volume_id: String },
}

/// An empty volume of a new server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDisk {
    /// Size of the volume in GiB.
    pub size: u64,
    /// The volume type; `None` is Cinder's default.
    pub kind: Option<String>,
    /// The word by which the server finds the volume: metadata and config drive list the volume's id with the tag. At most 60 characters,
    /// without `/` and `,`.
    pub tag: Option<String>,
}

/// How a server gets its user data and metadata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConfigDrive {
    /// By the cloud's default, usually its metadata service.
    #[default]
    AsConfigured,
    /// On a config drive.
    Always,
}

impl NewServer {
    fn body(&self) -> Value {
        let ports: Vec<Value> = self.ports.iter().map(|port| json!({"port": port})).collect();
        let networks = if ports.is_empty() { json!("none") } else { json!(ports) };
        let mut server = json!({
            "name": self.name,
            "flavorRef": self.flavor_id,
            "networks": networks,
            "metadata": self.metadata,
            "tags": self.tags,
            "key_name": self.key_name,
            "availability_zone": self.availability_zone,
            "user_data": self.user_data.as_ref().map(|data| STANDARD.encode(data)),
            "config_drive": (self.config_drive == ConfigDrive::Always).then_some(true),
        });
        if let Boot::Image { id } = &self.boot {
            server["imageRef"] = json!(id);
        }
        let disks = self.block_devices();
        if !disks.is_empty() {
            server["block_device_mapping_v2"] = json!(disks);
        }
        let mut hints: BTreeMap<&str, &str> =
            self.hints.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        hints.extend(self.server_group.as_deref().map(|group| ("group", group)));
        let mut body = json!({"server": without_nulls(server)});
        if !hints.is_empty() {
            body["os:scheduler_hints"] = json!(hints);
        }
        body
    }

    /// The disks in Nova's format, which begin with the disk that the server boots from.
    fn block_devices(&self) -> Vec<Value> {
        let boot = match &self.boot {
            // If there are further disks, Nova requires an entry for the image's disk too.
            Boot::Image { .. } if self.disks.is_empty() => None,
            Boot::Image { id } => Some(json!({
                "boot_index": 0,
                "source_type": "image",
                "destination_type": "local",
                "uuid": id,
                "delete_on_termination": true,
            })),
            Boot::ExistingVolume { volume_id } => Some(json!({
                "boot_index": 0,
                "source_type": "volume",
                "destination_type": "volume",
                "uuid": volume_id,
                "delete_on_termination": false,
            })),
            Boot::Volume { image_id, size, kind } => Some(without_nulls(json!({
                "boot_index": 0,
                "source_type": "image",
                "destination_type": "volume",
                "uuid": image_id,
                "volume_size": size,
                "volume_type": kind,
                "delete_on_termination": true,
            }))),
        };
        let others = self.disks.iter().map(|disk| {
            without_nulls(json!({
                "boot_index": -1,
                "source_type": "blank",
                "destination_type": "volume",
                "volume_size": disk.size,
                "volume_type": disk.kind,
                "tag": disk.tag,
                "delete_on_termination": true,
            }))
        });
        boot.into_iter().chain(others).collect()
    }
}

/// Requests a server and returns its id; Nova creates the server in the background.
///
/// After an error with unknown outcome, look for the server with [`find`]: a second request would create a second server.
pub async fn create(session: &Session, new: &NewServer) -> Result<String> {
    #[derive(Deserialize)]
    struct CreatedServer {
        id: String,
    }
    let call = session.post(SERVICE, &["servers"], new.body()).microversion(MICROVERSION);
    Ok(call.under::<CreatedServer>("server").await?.id)
}

/// Returns the server with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<Server>> {
    let call = session.get(SERVICE, &["servers", id]).microversion(MICROVERSION);
    call.find_under("server").await
}

/// Returns the servers with this name, the newest first.
pub async fn find(session: &Session, name: &str) -> Result<Vec<Server>> {
    let mut servers = list(session, &[("name", exactly(name))]).await?;
    servers.retain(|server| server.name == name);
    Ok(servers)
}

/// Builds a pattern that matches exactly this name: Nova's filter is a regular expression of its database.
pub(super) fn exactly(name: &str) -> String {
    let mut pattern = String::from("^");
    for c in name.chars() {
        if !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('$');
    pattern
}

/// Returns the servers with this tag.
pub async fn tagged(session: &Session, tag: &str) -> Result<Vec<Server>> {
    list(session, &[("tags", tag.to_owned())]).await
}

async fn list(session: &Session, query: &[(&str, String)]) -> Result<Vec<Server>> {
    let call = session.get(SERVICE, &["servers", "detail"]).microversion(MICROVERSION);
    call.queries(query).all("servers").await
}

/// Requests the deletion of a server; Nova deletes it in the background.
pub async fn delete(session: &Session, id: &str) -> Result<()> {
    session.deleting(SERVICE, &["servers", id]).microversion(MICROVERSION).done_or_gone().await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new() -> NewServer {
        NewServer {
            name: "n".to_owned(),
            tags: vec!["t".to_owned()],
            flavor_id: "f".to_owned(),
            boot: Boot::Image { id: "i".to_owned() },
            disks: Vec::new(),
            ports: vec!["p".to_owned()],
            user_data: Some(b"{}".to_vec()),
            config_drive: ConfigDrive::Always,
            key_name: None,
            availability_zone: None,
            server_group: Some("g".to_owned()),
            hints: BTreeMap::new(),
            metadata: BTreeMap::new(),
        }
    }

    #[test]
    fn a_request_for_a_server_has_novas_form() {
        assert_eq!(
            new().body(),
            json!({
                "server": {
                    "name": "n", "flavorRef": "f", "imageRef": "i", "networks": [{"port": "p"}],
                    "metadata": {}, "tags": ["t"], "user_data": "e30=", "config_drive": true,
                },
                "os:scheduler_hints": {"group": "g"},
            })
        );
    }

    #[test]
    fn a_boot_volume_is_deleted_with_its_server() {
        let boot = Boot::Volume { image_id: "i".to_owned(), size: 20, kind: None };
        let body = NewServer { boot, ports: Vec::new(), server_group: None, ..new() }.body();
        assert_eq!(
            body["server"]["block_device_mapping_v2"],
            json!([{
                "boot_index": 0, "source_type": "image", "destination_type": "volume",
                "uuid": "i", "volume_size": 20, "delete_on_termination": true,
            }])
        );
        let disks = vec![NewDisk { size: 5, kind: None, tag: Some("etcd".to_owned()) }];
        let more = NewServer { disks, ..new() }.body();
        assert_eq!(more["server"]["imageRef"], "i");
        assert_eq!(more["server"]["block_device_mapping_v2"][0]["destination_type"], "local");
        assert_eq!(
            more["server"]["block_device_mapping_v2"][1],
            json!({
                "boot_index": -1, "source_type": "blank", "destination_type": "volume",
                "volume_size": 5, "tag": "etcd", "delete_on_termination": true,
            })
        );
        assert_eq!(body["server"]["networks"], "none");
        assert_eq!(body.get("os:scheduler_hints"), None);
    }

    #[test]
    fn a_server_is_read_with_and_without_optional_fields() {
        let bare: Server =
            serde_json::from_value(json!({"id": "s", "status": "NEW_WORD"})).unwrap();
        assert_eq!(bare.status, ServerStatus::Other("NEW_WORD".to_owned()));
        let full: Server = serde_json::from_value(json!({
            "id": "s", "name": null, "status": "ERROR", "image": "", "tags": null,
            "fault": {"code": 500, "message": "No valid host was found.", "created": "x"},
            "addresses": {"net": [{"addr": "10.0.0.2", "version": 4, "OS-EXT-IPS:type": "fixed"}]},
        }))
        .unwrap();
        assert_eq!(full.fault.unwrap().message, "No valid host was found.");
        assert_eq!(full.addresses["net"][0].addr.to_string(), "10.0.0.2");
    }
}
