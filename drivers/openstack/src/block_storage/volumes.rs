//! Volumes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::SERVICE;
use crate::body::without_nulls;
use crate::error::CloudError;
use crate::lenient;
use crate::session::Session;

lenient::words! {
    /// What a volume or snapshot is doing (Block Storage API v3, "Volumes").
    VolumeStatus {
        /// It is being made.
        Creating = "creating",
        /// It can be used.
        Available = "available",
        /// A server is about to get it.
        Reserved = "reserved",
        /// A server gets it.
        Attaching = "attaching",
        /// A server gives it back.
        Detaching = "detaching",
        /// A server has it.
        InUse = "in-use",
        /// An image is written to it.
        Downloading = "downloading",
        /// It is going.
        Deleting = "deleting",
        /// It could not be made, or something done to it failed.
        Error = "error",
        /// It could not be deleted.
        ErrorDeleting = "error_deleting",
    }
}

/// A volume.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Volume {
    /// Its id.
    pub id: String,
    /// Its name, which others may have as well.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    /// What it is doing.
    pub status: VolumeStatus,
    /// GiB.
    #[serde(default)]
    pub size: u64,
    /// Its type.
    #[serde(default)]
    pub volume_type: Option<String>,
    /// Whether a server can boot it: `true` or `false`, as a word.
    #[serde(default)]
    pub bootable: Option<String>,
    /// What else is said of it.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub metadata: BTreeMap<String, String>,
    /// Which servers have it.
    #[serde(default)]
    pub attachments: Vec<Attachment>,
    /// When it was made.
    #[serde(default, deserialize_with = "lenient::time")]
    pub created_at: Option<Timestamp>,
}

/// A server that has a volume.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Attachment {
    /// The server's id.
    #[serde(default)]
    pub server_id: String,
}

/// A volume to be made.
#[derive(Clone, Debug, Default)]
pub struct NewVolume {
    /// Its name. Derive it from what the volume is: it is how it is found again.
    pub name: String,
    /// GiB.
    pub size: u64,
    /// Its type; the cloud's default if `None`.
    pub kind: Option<String>,
    /// Where it is to be.
    pub availability_zone: Option<String>,
    /// What is in it.
    pub source: Source,
    /// What else is said of it.
    pub metadata: BTreeMap<String, String>,
}

/// What is in a new volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// Nothing.
    #[default]
    Empty,
    /// What is in an image.
    Image {
        /// Its id.
        id: String,
    },
    /// What a volume was at some time.
    Snapshot {
        /// Its id.
        id: String,
    },
}

/// Asks for a volume; it is made while you look. After an error whose outcome is unknown look for it by [`find`].
pub async fn create(session: &Session, new: &NewVolume) -> Result<Volume, CloudError> {
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

/// The volume with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<Volume>, CloudError> {
    session.get(SERVICE, &["volumes", id]).find_under("volume").await
}

/// Those of this name.
pub async fn find(session: &Session, name: &str) -> Result<Vec<Volume>, CloudError> {
    session.get(SERVICE, &["volumes", "detail"]).query("name", name).all("volumes").await
}

/// All of our project. What a cluster's own storage driver made has its cluster's name in the metadata.
pub async fn list(session: &Session) -> Result<Vec<Volume>, CloudError> {
    session.get(SERVICE, &["volumes", "detail"]).all("volumes").await
}

/// Deletes a volume, which takes its time. One that a server has, or that has snapshots, is refused.
pub async fn delete(session: &Session, id: &str) -> Result<(), CloudError> {
    session.delete(SERVICE, &["volumes", id]).await
}
