//! Images on the host of the service: `file://` and the path of a file in the folder from which the provisioning listener serves images.

use std::path::{Component, Path};

use baremetal_core::{FILE_SCHEME, RequestRefused};
use serde_json::{Map, Value};

const KEY: &str = "image_source";

/// Refuses an image on this host that is not in `folder`.
pub(crate) fn check_folder(
    folder: Option<&Path>,
    instance_info: &Map<String, Value>,
) -> Result<(), RequestRefused> {
    let source = instance_info.get(KEY).and_then(Value::as_str).unwrap_or_default();
    match source.strip_prefix(FILE_SCHEME) {
        Some(path) => name_in_folder(folder, path).map(drop),
        None => Ok(()),
    }
}

/// Returns the name below `folder` of the image at `path`.
pub(crate) fn name_in_folder<'a>(
    folder: Option<&Path>,
    path: &'a str,
) -> Result<&'a str, RequestRefused> {
    let is_below = |name: &&Path| {
        let mut parts = name.components();
        parts.all(|part| matches!(part, Component::Normal(_))) && !name.as_os_str().is_empty()
    };
    let name = folder.and_then(|folder| Path::new(path).strip_prefix(folder).ok());
    name.filter(is_below).and_then(Path::to_str).ok_or_else(|| RequestRefused::Field {
        field: format!("instance_info.{KEY}"),
        problem: "a file of the service's host has to be in the folder that images of [provisioning] names in its configuration".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_image_is_a_file_below_the_folder() {
        let folder = Some(Path::new("/srv/images"));
        let name = |folder, path| name_in_folder(folder, path).ok();
        assert_eq!(name(folder, "/srv/images/a.raw"), Some("a.raw"));
        assert_eq!(name(folder, "/srv/images/debian/12.qcow2"), Some("debian/12.qcow2"));
        for elsewhere in [
            "/etc/shadow",
            "/srv/images",
            "/srv/images/",
            "/srv/images/../secret",
            "/srv/images-2/a.raw",
            "srv/images/a.raw",
        ] {
            assert_eq!(name(folder, elsewhere), None, "{elsewhere}");
        }
        assert_eq!(name(None, "/srv/images/a.raw"), None, "no folder is served");
    }

    #[test]
    fn other_locations_are_not_refused_here() {
        let checked = |source: &str| {
            let info = json!({"image_source": source});
            check_folder(Some(Path::new("/srv/images")), info.as_object().unwrap())
        };
        assert_eq!(checked("http://images.example/etc/shadow"), Ok(()));
        assert_eq!(checked("file:///srv/images/a.raw"), Ok(()));
        let refused = checked("file:///etc/shadow").unwrap_err().to_string();
        assert!(refused.starts_with("instance_info.image_source: a file of the"), "{refused}");
    }
}
