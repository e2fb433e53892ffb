//! Images and what is known of them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{PAGE, SERVICE};
use crate::error::{CloudError, if_found};
use crate::lenient;
use crate::session::{Body, Session};

lenient::words! {
    /// How far an image is.
    ImageStatus {
        /// Known by name, without bytes.
        Queued = "queued",
        /// Its bytes are being received.
        Saving = "saving",
        /// Its bytes are received, to be imported.
        Uploading = "uploading",
        /// It is being imported.
        Importing = "importing",
        /// It can be used.
        Active = "active",
        /// It could not be made.
        Killed = "killed",
        /// It is gone.
        Deleted = "deleted",
        /// Only administrators can use it.
        Deactivated = "deactivated",
    }
}

/// An image.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Image {
    /// Its id.
    pub id: String,
    /// Its name, which others may have as well.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    /// How far it is.
    pub status: ImageStatus,
    /// In bytes; `None` until they are known.
    #[serde(default)]
    pub size: Option<u64>,
    /// The smallest disk it fits on, in GiB.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub min_disk: u64,
    /// The least memory it runs with, in MiB.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub min_ram: u64,
    /// `public`, `private`, `shared` or `community`.
    #[serde(default)]
    pub visibility: String,
    /// The project that it is of.
    #[serde(default)]
    pub owner: Option<String>,
    /// `raw`, `qcow2`, …
    #[serde(default)]
    pub disk_format: Option<String>,
    /// Which digest `os_hash_value` is: `sha512`.
    #[serde(default)]
    pub os_hash_algo: Option<String>,
    /// The digest of its bytes, in hexadecimal.
    #[serde(default)]
    pub os_hash_value: Option<String>,
    /// Its tags.
    #[serde(default)]
    pub tags: Vec<String>,
    /// When it was made.
    #[serde(default, deserialize_with = "lenient::time")]
    pub created_at: Option<Timestamp>,
    /// All else that is said of it, `os_distro` and `hw_*` among it.
    #[serde(flatten)]
    pub properties: BTreeMap<String, Value>,
}

impl Image {
    /// The ids of the volume snapshots that this image of a server is made of: an image of a server that boots a volume has no
    /// bytes, and what it names stays in Cinder when the image is deleted (nova's `API.snapshot_volume_backed`).
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

/// An image to be made known; its bytes come later.
#[derive(Clone, Debug)]
pub struct NewImage {
    /// Its id. Chosen by us, so that a repeated create is a conflict and no second image.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// `raw`, `qcow2`, …
    pub disk_format: String,
    /// The smallest disk it fits on, in GiB.
    pub min_disk: u64,
    /// Its tags.
    pub tags: Vec<String>,
    /// All else that is said of it.
    pub properties: BTreeMap<String, String>,
}

/// Makes an image known. If its id is: that one.
pub async fn create(session: &Session, new: &NewImage) -> Result<Image, CloudError> {
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
    // The id makes it harmless to ask twice.
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

/// The image with this id, if we may see it.
pub async fn show(session: &Session, id: &str) -> Result<Option<Image>, CloudError> {
    if_found(async { session.get(SERVICE, &["images", id]).send().await?.whole() }.await)
}

/// Those of this name that we may see, the newest first.
pub async fn find(session: &Session, name: &str) -> Result<Vec<Image>, CloudError> {
    // `in:` and quotes, for a name may hold a comma or begin with an operator (Image API v2, "Show images").
    let quoted = format!("in:\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""));
    let call = session.get(SERVICE, &["images"]).query("limit", PAGE).query("name", quoted);
    let mut images: Vec<Image> = call.query("sort", "created_at:desc").all("images").await?;
    images.retain(|image| image.name == name);
    Ok(images)
}

/// The projects that took an image which its owner shares with them.
pub async fn members(session: &Session, id: &str) -> Result<Vec<String>, CloudError> {
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

/// All that we may see and that are active.
pub async fn list(session: &Session) -> Result<Vec<Image>, CloudError> {
    let call = session.get(SERVICE, &["images"]).query("limit", PAGE);
    call.query("status", "active").all("images").await
}

/// Sets properties, and removes those that are `None`.
pub async fn set_properties(
    session: &Session,
    id: &str,
    properties: &BTreeMap<String, Option<String>>,
) -> Result<Image, CloudError> {
    let known = show(session, id).await?.map(|image| image.properties).unwrap_or_default();
    let pointer = |name: &str| format!("/{}", name.replace('~', "~0").replace('/', "~1"));
    let changes = properties.iter().filter_map(|(name, value)| match value {
        // "add" replaces what is there (Image API v2, "JSON patch").
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

/// Deletes an image. One that a server was made of, or that is protected, is a conflict.
pub async fn delete(session: &Session, id: &str) -> Result<(), CloudError> {
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
