//! The options for the image to install.

use clap::Args;
use serde_json::{Map, Value, json};

use crate::exit::Failure;

/// The image to install.
#[derive(Args, Clone, Debug)]
pub(crate) struct ImageOptions {
    /// Whole-disk image, raw or qcow2: a URL, optionally of a file compressed with gz, xz or zst; the id of an image in Glance; or
    /// oci://HOST/REPOSITORY:TAG.
    #[arg(long)]
    pub(crate) image: Option<String>,
    /// Checksum of the file as served (compressed, if the file is): sha256:HEX, sha512:HEX or the URL of a file of checksums. Required for
    /// an image at a URL.
    #[arg(long, requires = "image")]
    pub(crate) checksum: Option<String>,
    /// Format after decompression: raw or qcow2; default: from the ending of the URL.
    #[arg(long, requires = "image")]
    pub(crate) format: Option<String>,
}

impl ImageOptions {
    /// The image as the `instance_info` of the Bare Metal API. The service checks the values.
    pub(crate) fn instance_info(&self) -> Result<Option<Map<String, Value>>, Failure> {
        let Some(image) = &self.image else { return Ok(None) };
        let (algorithm, sum) = match self.checked_checksum()? {
            Some(file) if file.contains("://") => (None, Some(file)),
            Some(sum) => {
                let parts =
                    sum.split_once(':').filter(|(name, _)| ["sha256", "sha512"].contains(name));
                let form =
                    "--checksum must be sha256:HEX, sha512:HEX or the URL of a file of checksums";
                let (algorithm, sum) = parts.ok_or_else(|| Failure::usage(form))?;
                (Some(algorithm), Some(sum))
            }
            None => (None, None),
        };
        let given = [
            ("image_source", Some(image.as_str())),
            ("image_os_hash_algo", algorithm),
            ("image_os_hash_value", sum),
            ("image_disk_format", self.format.as_deref()),
        ];
        let given = given.into_iter().filter_map(|(key, it)| Some((key.to_owned(), json!(it?))));
        Ok(Some(given.collect()))
    }

    /// Returns the checksum, which an image at a URL needs. Glance and OCI registries keep the checksums of their images.
    pub(crate) fn checked_checksum(&self) -> Result<Option<&str>, Failure> {
        let is_url = |image: &String| image.starts_with("http://") || image.starts_with("https://");
        if self.checksum.is_none() && self.image.as_ref().is_some_and(is_url) {
            let problem =
                "--checksum is required: an image at a URL is never installed without verification";
            return Err(Failure::usage(problem));
        }
        Ok(self.checksum.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(image: &str, checksum: Option<&str>) -> Result<Value, String> {
        let checksum = checksum.map(str::to_owned);
        let options = ImageOptions { image: Some(image.to_owned()), checksum, format: None };
        options.instance_info().map(|info| json!(info)).map_err(|why| format!("{why:?}"))
    }

    #[test]
    fn an_image_is_named_as_nodes_name_it() {
        let url = "http://images.example/d.raw";
        let sum = json!({"image_source": url, "image_os_hash_algo": "sha256", "image_os_hash_value": "00"});
        assert_eq!(read(url, Some("sha256:00")), Ok(sum));
        let file = "https://images.example/SHA256SUMS";
        let sums = json!({"image_source": url, "image_os_hash_value": file});
        assert_eq!(read(url, Some(file)), Ok(sums));
        for image in ["b7f1b8a4-6c2b-4a1e-8b57-6a1d4f6c2a11", "oci://registry.example/debian:12"] {
            assert_eq!(read(image, None), Ok(json!({"image_source": image})));
        }
    }

    #[test]
    fn an_image_at_a_url_needs_a_checksum() {
        let why = read("https://images.example/d.raw", None).unwrap_err();
        assert!(why.contains("--checksum is required"), "{why}");
        for wrong in ["00", "md5:00"] {
            let why = read("http://images.example/d.raw", Some(wrong)).unwrap_err();
            assert!(why.contains("--checksum must be sha256:HEX, sha512:HEX or"), "{why}");
        }
    }
}
