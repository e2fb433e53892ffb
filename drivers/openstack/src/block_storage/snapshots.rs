//! Snapshots: what volumes were at some time.

use serde::Deserialize;
use serde_json::json;

use super::SERVICE;
use super::volumes::VolumeStatus;
use crate::error::CloudError;
use crate::lenient;
use crate::session::Session;

/// What a volume was at some time.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Snapshot {
    /// Its id.
    pub id: String,
    /// Its name, which others may have as well.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    /// What it is doing.
    pub status: VolumeStatus,
    /// The volume's id.
    #[serde(default)]
    pub volume_id: String,
    /// GiB.
    #[serde(default)]
    pub size: u64,
}

/// Asks for a snapshot, of a volume that a server has as well. Derive the name from what it is for.
///
/// After an error whose outcome is unknown look for it by [`find`].
pub async fn create(
    session: &Session,
    volume_id: &str,
    name: &str,
) -> Result<Snapshot, CloudError> {
    let body = json!({"snapshot": {"volume_id": volume_id, "name": name, "force": true}});
    session.post(SERVICE, &["snapshots"], body).under("snapshot").await
}

/// The snapshot with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<Snapshot>, CloudError> {
    session.get(SERVICE, &["snapshots", id]).find_under("snapshot").await
}

/// Those of this name.
pub async fn find(session: &Session, name: &str) -> Result<Vec<Snapshot>, CloudError> {
    session.get(SERVICE, &["snapshots", "detail"]).query("name", name).all("snapshots").await
}

/// Deletes a snapshot, which takes its time.
pub async fn delete(session: &Session, id: &str) -> Result<(), CloudError> {
    session.delete(SERVICE, &["snapshots", id]).await
}
