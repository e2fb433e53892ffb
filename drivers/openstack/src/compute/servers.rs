//! Servers: what they are, how they are asked for, and how ours are found again.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{MICROVERSION, SERVICE};
use crate::body::without_nulls;
use crate::error::CloudError;
use crate::lenient;
use crate::session::Session;

/// The most that user-data may have after base64: Nova's schema, `servers.user_data`.
pub const LARGEST_USER_DATA: usize = 65535;

lenient::words! {
    /// What a server is doing (Compute API guide, "Server concepts").
    ServerStatus {
        /// It is being made.
        Build = "BUILD",
        /// It runs.
        Active = "ACTIVE",
        /// It is switched off.
        Shutoff = "SHUTOFF",
        /// It could not be made, or something done to it failed: see its fault.
        Error = "ERROR",
        /// It is rebooting.
        Reboot = "REBOOT",
        /// It is rebooting, hard.
        HardReboot = "HARD_REBOOT",
        /// It is being resized.
        Resize = "RESIZE",
        /// It was resized, which is to be confirmed or reverted.
        VerifyResize = "VERIFY_RESIZE",
        /// It is going back to its old size.
        RevertResize = "REVERT_RESIZE",
        /// It moves to another host.
        Migrating = "MIGRATING",
        /// It is made anew.
        Rebuild = "REBUILD",
        /// Its memory is kept.
        Paused = "PAUSED",
        /// Its memory is on disk.
        Suspended = "SUSPENDED",
        /// It is an image.
        ShelvedOffloaded = "SHELVED_OFFLOADED",
        /// It was deleted and may come back.
        SoftDeleted = "SOFT_DELETED",
        /// It is gone.
        Deleted = "DELETED",
        /// Its host does not answer.
        Unknown = "UNKNOWN",
    }
}

/// A server.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Server {
    /// Its id.
    pub id: String,
    /// Its name, which others may have as well.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    /// What it is doing.
    pub status: ServerStatus,
    /// What is being done to it, if anything.
    #[serde(default, rename = "OS-EXT-STS:task_state")]
    pub task_state: Option<String>,
    /// What went wrong, if something did.
    #[serde(default)]
    pub fault: Option<Fault>,
    /// Its addresses, by the name of their network.
    #[serde(default)]
    pub addresses: BTreeMap<String, Vec<Address>>,
    /// What was said of it as it was made.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
    /// Its tags.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub tags: Vec<String>,
    /// Its size.
    #[serde(default)]
    pub flavor: ServerFlavor,
    /// The name of the key pair it was given.
    #[serde(default)]
    pub key_name: Option<String>,
    /// Where it is.
    #[serde(default, rename = "OS-EXT-AZ:availability_zone")]
    pub availability_zone: Option<String>,
    /// The host it is on, which administrators are told.
    #[serde(default, rename = "OS-EXT-SRV-ATTR:host")]
    pub host: Option<String>,
    /// The project it is of.
    #[serde(default, rename = "tenant_id")]
    pub project: String,
    /// The volumes it has.
    #[serde(default, rename = "os-extended-volumes:volumes_attached")]
    pub volumes: Vec<AttachedVolume>,
    /// When it was asked for.
    #[serde(default, deserialize_with = "lenient::time")]
    pub created: Option<Timestamp>,
}

/// What went wrong with a server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Fault {
    /// As an HTTP status.
    #[serde(default)]
    pub code: u16,
    /// In Nova's words.
    #[serde(default)]
    pub message: String,
}

/// An address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Address {
    /// The address.
    pub addr: IpAddr,
    /// `fixed` or `floating`.
    #[serde(default, rename = "OS-EXT-IPS:type")]
    pub kind: Option<String>,
}

/// The size of a server, as its flavor was when it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ServerFlavor {
    /// The flavor's name.
    pub original_name: String,
    /// Processors.
    pub vcpus: u64,
    /// MiB.
    pub ram: u64,
    /// GiB.
    pub disk: u64,
}

/// A volume of a server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AttachedVolume {
    /// Its id in Cinder.
    pub id: String,
}

/// A server to be made.
#[derive(Clone, Debug)]
pub struct NewServer {
    /// Its name. Derive it from what the server is: it is how it is found again.
    pub name: String,
    /// Its tags, each at most 60 characters without `/` and `,`.
    pub tags: Vec<String>,
    /// Its flavor's id.
    pub flavor_id: String,
    /// What it boots.
    pub boot: Boot,
    /// Empty volumes that come and go with it, in the order in which it finds them.
    pub disks: Vec<NewDisk>,
    /// The Neutron ports it gets, in order.
    pub ports: Vec<String>,
    /// What the system in it is told, as bytes; see [`LARGEST_USER_DATA`].
    pub user_data: Option<Vec<u8>>,
    /// How it is told.
    pub config_drive: ConfigDrive,
    /// The name of a key pair.
    pub key_name: Option<String>,
    /// Where it is to be.
    pub availability_zone: Option<String>,
    /// The id of the server group it belongs to.
    pub server_group: Option<String>,
    /// Further hints to the scheduler.
    pub hints: BTreeMap<String, String>,
    /// What else is said of it.
    pub metadata: BTreeMap<String, String>,
}

/// What a server boots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Boot {
    /// An image, on the flavor's disk.
    Image {
        /// Its id.
        id: String,
    },
    /// A volume made of an image, and deleted with the server.
    Volume {
        /// The image's id.
        image_id: String,
        /// GiB.
        size: u64,
        /// The volume's type; Cinder's default if `None`.
        kind: Option<String>,
    },
    /// A volume that is there, and stays when the server is deleted.
    Kept {
        /// Its id.
        volume_id: String,
    },
}

/// An empty volume of a server to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDisk {
    /// GiB.
    pub size: u64,
    /// The volume's type; Cinder's default if `None`.
    pub kind: Option<String>,
    /// By which word the server finds it: its metadata and its config drive name the volume's id beside it. At most 60 characters
    /// without `/` and `,`.
    pub tag: Option<String>,
}

/// How a server gets what it is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConfigDrive {
    /// As the cloud likes: by its metadata service as a rule.
    #[default]
    AsConfigured,
    /// On a drive.
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
        let mut disks = Vec::new();
        match &self.boot {
            Boot::Image { id } => {
                server["imageRef"] = json!(id);
                // Beside other disks Nova wants the image's own to be named too.
                if !self.disks.is_empty() {
                    disks.push(json!({
                        "boot_index": 0,
                        "source_type": "image",
                        "destination_type": "local",
                        "uuid": id,
                        "delete_on_termination": true,
                    }));
                }
            }
            Boot::Kept { volume_id } => disks.push(json!({
                "boot_index": 0,
                "source_type": "volume",
                "destination_type": "volume",
                "uuid": volume_id,
                "delete_on_termination": false,
            })),
            Boot::Volume { image_id, size, kind } => disks.push(without_nulls(json!({
                "boot_index": 0,
                "source_type": "image",
                "destination_type": "volume",
                "uuid": image_id,
                "volume_size": size,
                "volume_type": kind,
                "delete_on_termination": true,
            }))),
        }
        disks.extend(self.disks.iter().map(|disk| {
            without_nulls(json!({
                "boot_index": -1,
                "source_type": "blank",
                "destination_type": "volume",
                "volume_size": disk.size,
                "volume_type": disk.kind,
                "tag": disk.tag,
                "delete_on_termination": true,
            }))
        }));
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
}

/// Asks for a server, and gives its id; it is made while you look.
///
/// After an error whose outcome is unknown look for it by [`find`]: asking again would make another one.
pub async fn create(session: &Session, new: &NewServer) -> Result<String, CloudError> {
    #[derive(Deserialize)]
    struct Asked {
        id: String,
    }
    let call = session.post(SERVICE, &["servers"], new.body()).microversion(MICROVERSION);
    Ok(call.under::<Asked>("server").await?.id)
}

/// The server with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<Server>, CloudError> {
    let call = session.get(SERVICE, &["servers", id]).microversion(MICROVERSION);
    call.find_under("server").await
}

/// Those of this name, the newest first.
pub async fn find(session: &Session, name: &str) -> Result<Vec<Server>, CloudError> {
    let mut servers = list(session, &[("name", exactly(name))]).await?;
    servers.retain(|server| server.name == name);
    Ok(servers)
}

/// What Nova's filter for names finds just this name by: it takes a regular expression of its database's kind.
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

/// Those with this tag.
pub async fn tagged(session: &Session, tag: &str) -> Result<Vec<Server>, CloudError> {
    list(session, &[("tags", tag.to_owned())]).await
}

async fn list(session: &Session, query: &[(&str, String)]) -> Result<Vec<Server>, CloudError> {
    let call = session.get(SERVICE, &["servers", "detail"]).microversion(MICROVERSION);
    call.queries(query).all("servers").await
}

/// Sets metadata, leaving what is not named.
pub async fn set_metadata(
    session: &Session,
    id: &str,
    metadata: &HashMap<String, String>,
) -> Result<(), CloudError> {
    let body = json!({"metadata": metadata});
    let call = session.post(SERVICE, &["servers", id, "metadata"], body);
    call.microversion(MICROVERSION).repeatable().done().await
}

/// Deletes a server, which takes its time.
pub async fn delete(session: &Session, id: &str) -> Result<(), CloudError> {
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
    fn a_server_is_asked_for_in_novas_words() {
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
    fn a_boot_volume_goes_with_its_server() {
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
    fn a_server_is_read_with_what_is_there_and_without_what_is_not() {
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
