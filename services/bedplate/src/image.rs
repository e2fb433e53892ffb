//! The options for the image to install.

use clap::Args;
use serde_json::{Map, Value, json};

use crate::exit::Failure;

/// The image to install.
#[derive(Args, Clone, Debug)]
pub(crate) struct ImageOptions {
    /// URL of a whole-disk image: raw or qcow2, optionally compressed with gz, xz or zst.
    #[arg(long)]
    pub(crate) image: Option<String>,
    /// Checksum of the file as served (compressed, if the file is): sha256:HEX or sha512:HEX.
    #[arg(long, requires = "image")]
    pub(crate) checksum: Option<String>,
    /// Format after decompression: raw or qcow2; default: from the ending of the URL.
    #[arg(long, requires = "image")]
    pub(crate) format: Option<String>,
}

impl ImageOptions {
    /// The image as the `instance_info` of the Bare Metal API.
    pub(crate) fn instance_info(&self) -> Result<Option<Map<String, Value>>, Failure> {
        let Some(image) = &self.image else { return Ok(None) };
        let checksum = self.checksum.as_deref().ok_or_else(|| {
            Failure::usage(
                "--checksum is required: an image is never installed without verification",
            )
        })?;
        let Some((algorithm @ ("sha256" | "sha512"), value)) = checksum.split_once(':') else {
            return Err(Failure::usage("--checksum must be sha256:HEX or sha512:HEX"));
        };
        let mut info = Map::from_iter([
            ("image_source".to_owned(), json!(image)),
            ("image_os_hash_algo".to_owned(), json!(algorithm)),
            ("image_os_hash_value".to_owned(), json!(value)),
        ]);
        info.extend(
            self.format.as_ref().map(|format| ("image_disk_format".to_owned(), json!(format))),
        );
        Ok(Some(info))
    }
}
