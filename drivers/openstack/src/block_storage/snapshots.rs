//! Snapshots of volumes.

use serde::Deserialize;
use serde_json::json;

use super::SERVICE;
use super::volumes::VolumeStatus;
use crate::error::Result;
use crate::lenient;
use crate::session::Session;

/// A snapshot: the content of a volume at one time.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Snapshot {
    pub id: String,
    /// Names are not unique.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    pub status: VolumeStatus,
    #[serde(default)]
    pub volume_id: String,
    /// Size of the snapshot in GiB.
    #[serde(default)]
    pub size: u64,
}

/// Requests a snapshot of a volume, also of one that is attached to a server. Derive the name from the snapshot's purpose.
///
/// After an error with unknown outcome, look for the snapshot with [`find`].
pub async fn create(session: &Session, volume_id: &str, name: &str) -> Result<Snapshot> {
    let body = json!({"snapshot": {"volume_id": volume_id, "name": name, "force": true}});
    session.post(SERVICE, &["snapshots"], body).under("snapshot").await
}

/// Returns the snapshot with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<Snapshot>> {
    session.get(SERVICE, &["snapshots", id]).find_under("snapshot").await
}

/// Returns the snapshots with this name.
pub async fn find(session: &Session, name: &str) -> Result<Vec<Snapshot>> {
    session.get(SERVICE, &["snapshots", "detail"]).query("name", name).all("snapshots").await
}

/// Requests the deletion of a snapshot; Cinder deletes it in the background.
pub async fn delete(session: &Session, id: &str) -> Result<()> {
    session.delete(SERVICE, &["snapshots", id]).await
}
