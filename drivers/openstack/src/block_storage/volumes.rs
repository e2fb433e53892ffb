//! Volumes: create, show, find, list, delete.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::SERVICE;
use crate::body::without_nulls;
use crate::error::Result;
use crate::lenient;
use crate::session::Session;

lenient::words! {
    /// The status of a volume or snapshot (Block Storage API v3, "Volumes").
    VolumeStatus {
        Creating = "creating",
        Available = "available",
        /// A server is about to attach the volume.
        Reserved = "reserved",
        Attaching = "attaching",
        Detaching = "detaching",
        InUse = "in-use",
        /// An image is being written to the volume.
        Downloading = "downloading",
        Deleting = "deleting",
        /// The creation, or a later operation, failed.
        Error = "error",
        ErrorDeleting = "error_deleting",
    }
}

/// A volume in Cinder.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Volume {
    pub id: String,
    /// Names are not unique.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    pub status: VolumeStatus,
    /// Size of the volume in GiB.
    #[serde(default)]
    pub size: u64,
    #[serde(default)]
    pub volume_type: Option<String>,
    /// `true` or `false`, as a string.
    #[serde(default)]
    pub bootable: Option<String>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub metadata: BTreeMap<String, String>,
    /// The servers that the volume is attached to.
    #[serde(default)]
    pub attachments: Vec<Attachment>,
    #[serde(default, deserialize_with = "lenient::time")]
    pub created_at: Option<Timestamp>,
}

/// The attachment of a volume to a server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Attachment {
    #[serde(default)]
    pub server_id: String,
}

/// A volume to create.
#[derive(Clone, Debug, Default)]
pub struct NewVolume {
    /// Derive the name from the volume's purpose: the volume is found again by its name.
    pub name: String,
    /// Size of the volume in GiB.
    pub size: u64,
    /// The volume type; `None` is the cloud's default.
    pub kind: Option<String>,
    pub availability_zone: Option<String>,
    pub source: Source,
    pub metadata: BTreeMap<String, String>,
}

/// The initial content of a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Source {
    #[default]
    Empty,
    Image {
        id: String,
    },
    Snapshot {
        id: String,
    },
}

/// Requests a volume; Cinder creates it in the background. After an error with unknown outcome, look for the volume with [`find`].
pub async fn create(session: &Session, new: &NewVolume) -> Result<Volume> {
    let (image, snapshot) = match &new.source {
        Source::Empty => (None, None),
        Source::Image { id } => (Some(id), None),
        Source::Snapshot { id } => (None, Some(id)),
    };
    let volume = without_nulls(json!({
        "name": new.name,
        "size": new.size,
        "volume_type": new.kind,
        "availability_zone": new.availability_zone,
        "imageRef": image,
        "snapshot_id": snapshot,
        "metadata": new.metadata,
    }));
    session.post(SERVICE, &["volumes"], json!({"volume": volume})).under("volume").await
}

/// Returns the volume with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<Volume>> {
    session.get(SERVICE, &["volumes", id]).find_under("volume").await
}

/// Returns the volumes with this name.
pub async fn find(session: &Session, name: &str) -> Result<Vec<Volume>> {
    session.get(SERVICE, &["volumes", "detail"]).query("name", name).all("volumes").await
}

/// Lists all volumes of our project. Volumes of a cluster's storage driver have the cluster's name in their metadata.
pub async fn list(session: &Session) -> Result<Vec<Volume>> {
    session.get(SERVICE, &["volumes", "detail"]).all("volumes").await
}

/// Requests the deletion of a volume; Cinder deletes it in the background. Cinder refuses if the volume is attached or has snapshots.
pub async fn delete(session: &Session, id: &str) -> Result<()> {
    session.delete(SERVICE, &["volumes", id]).await
}
