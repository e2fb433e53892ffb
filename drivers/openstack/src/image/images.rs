//! Images and their metadata.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{PAGE, SERVICE};
use crate::error::{Result, if_found};
use crate::lenient;
use crate::session::{Body, Session};

lenient::words! {
    ImageStatus {
        /// The record exists, without data.
        Queued = "queued",
        /// The data is being received.
        Saving = "saving",
        /// The data is staged for an import.
        Uploading = "uploading",
        Importing = "importing",
        Active = "active",
        Killed = "killed",
        Deleted = "deleted",
        /// Only administrators can use it.
        Deactivated = "deactivated",
    }
}

/// An image in Glance.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Image {
    pub id: String,
    /// Names are not unique.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    pub status: ImageStatus,
    /// In bytes; `None` until the data has arrived.
    #[serde(default)]
    pub size: Option<u64>,
    /// The smallest disk that fits the image, in GiB.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub min_disk: u64,
    /// The smallest memory that the image runs with, in MiB.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub min_ram: u64,
    /// `public`, `private`, `shared` or `community`.
    #[serde(default)]
    pub visibility: String,
    /// The id of the owning project.
    #[serde(default)]
    pub owner: Option<String>,
    /// `raw`, `qcow2`, …
    #[serde(default)]
    pub disk_format: Option<String>,
    /// The algorithm of `os_hash_value`: `sha512`.
    #[serde(default)]
    pub os_hash_algo: Option<String>,
    /// The digest of the data, in hexadecimal.
    #[serde(default)]
    pub os_hash_value: Option<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default, deserialize_with = "lenient::time")]
    pub created_at: Option<Timestamp>,
    /// All other properties, for example `os_distro` and `hw_*`.
    #[serde(flatten)]
    pub properties: BTreeMap<String, Value>,
}

impl Image {
    /// Returns the ids of the volume snapshots that this image of a server consists of. The image of a server that boots from a volume has
    /// no data, and its snapshots stay in Cinder when the image is deleted (nova's `API.snapshot_volume_backed`).
    pub fn volume_snapshots(&self) -> Vec<String> {
        #[derive(Deserialize)]
        struct Device {
            #[serde(default)]
            snapshot_id: Option<String>,
        }
        let mapping = self.properties.get("block_device_mapping");
        let devices: Option<Vec<Device>> = match mapping {
            Some(Value::String(text)) => serde_json::from_str(text).ok(),
            Some(other) => Deserialize::deserialize(other).ok(),
            None => None,
        };
        devices.into_iter().flatten().filter_map(|device| device.snapshot_id).collect()
    }
}

/// An image record to create; the data is sent later.
#[derive(Clone, Debug)]
pub struct NewImage {
    /// The id. We choose it, so that a repeated request is a conflict and does not create a second image.
    pub id: Uuid,
    pub name: String,
    /// `raw`, `qcow2`, …
    pub disk_format: String,
    /// The smallest disk that fits the image, in GiB.
    pub min_disk: u64,
    pub tags: Vec<String>,
    pub properties: BTreeMap<String, String>,
}

/// Creates an image record. Returns the existing record if the id is in use.
pub async fn create(session: &Session, new: &NewImage) -> Result<Image> {
    let mut body: Map<String, Value> = Map::new();
    body.extend(new.properties.iter().map(|(name, value)| (name.clone(), value.as_str().into())));
    let id = new.id.to_string();
    for (name, value) in [
        ("id", json!(id)),
        ("name", json!(new.name)),
        ("disk_format", json!(new.disk_format)),
        ("container_format", json!("bare")),
        ("min_disk", json!(new.min_disk)),
        ("tags", json!(new.tags)),
    ] {
        body.insert(name.to_owned(), value);
    }
    // The id makes a repetition harmless.
    let call = session.post(SERVICE, &["images"], Value::Object(body)).repeatable();
    match call.send().await {
        Ok(answer) => answer.whole(),
        Err(error) if error.is_conflict() => {
            let known = show(session, &id).await?;
            known.ok_or(error)
        }
        Err(error) => Err(error),
    }
}

/// Returns the image with this id, if we may see it.
pub async fn show(session: &Session, id: &str) -> Result<Option<Image>> {
    if_found(async { session.get(SERVICE, &["images", id]).send().await?.whole() }.await)
}

/// Returns the images of this name that we may see, the newest first.
pub async fn find(session: &Session, name: &str) -> Result<Vec<Image>> {
    // Quoted with `in:`, because a name may hold a comma or begin with an operator (Image API v2, "Show images").
    let quoted = format!("in:\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""));
    let call = session.get(SERVICE, &["images"]).query("limit", PAGE).query("name", quoted);
    let mut images: Vec<Image> = call.query("sort", "created_at:desc").all("images").await?;
    images.retain(|image| image.name == name);
    Ok(images)
}

/// Lists the projects that accepted an image which its owner shares with them.
pub async fn members(session: &Session, id: &str) -> Result<Vec<String>> {
    #[derive(Deserialize)]
    struct Member {
        member_id: String,
        status: String,
    }
    #[derive(Deserialize)]
    struct Members {
        members: Vec<Member>,
    }
    let answer = session.get(SERVICE, &["images", id, "members"]).send().await?;
    let Members { members } = answer.whole()?;
    let took = members.into_iter().filter(|member| member.status == "accepted");
    Ok(took.map(|member| member.member_id).collect())
}

/// Lists all active images that we may see.
pub async fn list(session: &Session) -> Result<Vec<Image>> {
    let call = session.get(SERVICE, &["images"]).query("limit", PAGE);
    call.query("status", "active").all("images").await
}

/// Sets properties, and removes those whose value is `None`.
pub async fn set_properties(
    session: &Session,
    id: &str,
    properties: &BTreeMap<String, Option<String>>,
) -> Result<Image> {
    let known = show(session, id).await?.map(|image| image.properties).unwrap_or_default();
    let pointer = |name: &str| format!("/{}", name.replace('~', "~0").replace('/', "~1"));
    let changes = properties.iter().filter_map(|(name, value)| match value {
        // "add" replaces an existing value (Image API v2, "JSON patch").
        Some(value) => Some(json!({"op": "add", "path": pointer(name), "value": value})),
        None if known.contains_key(name) => Some(json!({"op": "remove", "path": pointer(name)})),
        None => None,
    });
    let body = Body::Typed(
        "application/openstack-images-v2.1-json-patch",
        Value::Array(changes.collect()),
    );
    let call = session.patch(SERVICE, &["images", id], Value::Null).body(body);
    call.repeatable().send().await?.whole()
}

/// Deletes an image. A conflict means that servers use the image, or that it is protected.
pub async fn delete(session: &Session, id: &str) -> Result<()> {
    session.delete(SERVICE, &["images", id]).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_of_a_boot_volume_names_its_snapshots() {
        let image = |mapping: Value| -> Image {
            let body = json!({"id": "i", "status": "active", "block_device_mapping": mapping});
            serde_json::from_value(body).unwrap()
        };
        let text = r#"[{"boot_index": 0, "snapshot_id": "s"}, {"snapshot_id": null}]"#;
        assert_eq!(image(json!(text)).volume_snapshots(), ["s"]);
        assert!(image(json!("no list")).volume_snapshots().is_empty());
        assert!(image(Value::Null).volume_snapshots().is_empty());
    }
}
