//! The image that a form names.

use serde_json::{Map, Value};

use crate::form::Fields;
use crate::problem::{Problem, Result};

/// The image of a form as an `instance_info`. Glance and OCI registries keep the checksums of their images; the service checks all values.
pub(crate) fn image_info(image: &str, fields: &Fields) -> Result<Map<String, Value>> {
    let (image, checksum) = (image.trim(), fields.find("checksum").unwrap_or_default().trim());
    let is_url = image.starts_with("http://") || image.starts_with("https://");
    if checksum.is_empty() && is_url {
        let problem = "checksum: required with an image at a URL";
        return Err(Problem::Unreadable(problem.to_owned()));
    }
    let (algorithm, sum) = match checksum.split_once(':') {
        _ if checksum.is_empty() => (None, None),
        _ if checksum.contains("://") => (None, Some(checksum)),
        Some((algorithm, sum)) => (Some(algorithm), Some(sum)),
        None => (Some("sha256"), Some(checksum)),
    };
    let given = [
        ("image_source", Some(image)),
        ("image_os_hash_algo", algorithm),
        ("image_os_hash_value", sum),
        ("image_disk_format", Some(fields.find("image_format").unwrap_or("raw"))),
    ];
    let given = given.into_iter().filter_map(|(key, it)| Some((key.to_owned(), it?.into())));
    Ok(given.collect())
}
